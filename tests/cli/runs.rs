//! Runs from the shell: listed, shown, watched, retried and waited for; and who did what.

use std::time::Duration;

use engine::{RunState, Settings};

use super::{Shell, told};
use crate::http::Http;
use crate::support::story::{Story, quick};
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;

#[tokio::test(flavor = "multi_thread")]
async fn whoami_tells_what_one_holds() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("viewer").token());
    insta::assert_snapshot!("whoami_table", told(&shell.ask(&["whoami"]).await));
    insta::assert_snapshot!("whoami_json", told(&shell.ask(&["whoami", "-o", "json"]).await));
    insta::assert_snapshot!("whoami_yaml", told(&shell.ask(&["whoami", "-o", "yaml"]).await));
    let stranger = Shell::at(server.address, "garbage");
    insta::assert_snapshot!("whoami_refused", told(&stranger.ask(&["whoami"]).await));
    insta::assert_snapshot!("whoami_refused_json", told(&stranger.ask(&["whoami", "-o", "json"]).await));
    server.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_and_shown() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("viewer").token());
    story.world.trouble("b", [Trouble::Retry]);
    let run = story.start([touch("a"), hold("b")]).await;
    story.ends(run).await;
    let waits = story.start([Do::Wait(HOUR)]).await;
    story.until(waits, &[RunState::Waiting]).await;

    insta::assert_snapshot!("workflows_list_table", told(&shell.ask(&["workflows", "list"]).await));
    let succeeded = ["workflows", "list", "--status", "succeeded", "-o", "json"];
    insta::assert_snapshot!("workflows_list_json", told(&shell.ask(&succeeded).await));
    let names = shell.ask(&["workflows", "list", "-o", "name"]).await;
    assert_eq!(names.stdout, format!("{waits}\n{run}\n"));
    insta::assert_snapshot!(
        "workflows_list_bad",
        told(&shell.ask(&["workflows", "list", "--status", "happy", "--cause", "bad"]).await)
    );

    let id = run.to_string();
    insta::assert_snapshot!("workflows_show_table", told(&shell.ask(&["workflows", "show", &id]).await));
    insta::assert_snapshot!(
        "workflows_show_json",
        told(&shell.ask(&["workflows", "show", &id, "-o", "json"]).await)
    );
    let nobody = "01970000-0000-7000-8000-000000000000";
    insta::assert_snapshot!("workflows_show_missing", told(&shell.ask(&["workflows", "show", nobody]).await));
    // As much of an id as tells it from the others is enough: the last letters differ.
    let said = shell.ask(&["workflows", "show", &id[..id.len() - 2], "-o", "name"]).await;
    assert_eq!(said.stdout, format!("{id}\n"), "{said:?}");
    server.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_watched_to_its_end() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("viewer").token());
    let run = story.start([touch("a"), Do::Wait(HOUR)]).await;
    story.until(run, &[RunState::Waiting]).await;
    let id = run.to_string();
    let watched = async { shell.ask(&["workflows", "watch", &id]).await };
    let ended = async {
        story.signal(run, "word", "", serde_json::json!("go")).await;
        story.ends(run).await;
    };
    let (said, ()) = tokio::join!(watched, ended);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("step  touch/a  succeeded\n"), "{said:?}");
    assert!(said.stdout.ends_with("run   test.script  succeeded\n"), "{said:?}");
    // What has ended is told at once, as one snapshot.
    insta::assert_snapshot!("workflows_watch_table", told(&shell.ask(&["workflows", "watch", &id]).await));
    let events = shell.ask(&["workflows", "watch", &id, "-o", "json"]).await;
    let event: serde_json::Value = serde_json::from_str(&events.stdout).expect("one event on one line");
    assert_eq!((&event["event"], &event["data"]["status"]), (&"snapshot".into(), &"succeeded".into()));
    server.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_retried_and_waited_for_and_the_audit_log_tells() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("project-admin").token());
    story.world.trouble("a", [Trouble::NeedsOperator]);
    let run = story.start([touch("a")]).await;
    story.until(run, &[RunState::Paused]).await;
    let id = run.to_string();

    insta::assert_snapshot!("wait_failed", told(&shell.ask(&["wait", &id]).await));
    let retry = ["retry", &id, "--reason", "fixed", "-o", "json"];
    let said = shell.ask(&retry).await;
    assert_eq!(said.code, Some(0), "{said:?}");
    story.ends(run).await;
    insta::assert_snapshot!("wait_table", told(&shell.ask(&["wait", &id]).await));
    insta::assert_snapshot!(
        "audit_table",
        told(&shell.ask(&["audit", "--target", &format!("workflow:{id}")]).await)
    );

    let viewer = Shell::at(server.address, http.acting("viewer").token());
    insta::assert_snapshot!("retry_denied", told(&viewer.ask(&["retry", &id]).await));
    insta::assert_snapshot!("retry_denied_json", told(&viewer.ask(&["retry", &id, "-o", "json"]).await));
    let denied = ["audit", "--result", "denied", "-o", "json"];
    insta::assert_snapshot!("audit_json", told(&shell.ask(&denied).await));
    let waits = story.start([Do::Wait(HOUR)]).await;
    story.until(waits, &[RunState::Waiting]).await;
    insta::assert_snapshot!("retry_conflict", told(&shell.ask(&["retry", &waits.to_string()]).await));
    insta::assert_snapshot!(
        "wait_time_is_up",
        told(&shell.ask(&["wait", &waits.to_string(), "--timeout", "0"]).await)
    );
    server.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_owner_is_silent_is_taken_from_it_by_force_alone() {
    let story = Story::with(Settings { force_after: Duration::ZERO, ..quick() }, None).await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("project-admin").token());
    story.world.trouble("b", [Trouble::Hang]);
    let run = story.start([hold("a"), hold("b")]).await;
    story.until_step(run, "b", "running").await;
    let id = run.to_string();
    let refused = shell.ask(&["workflows", "resume", &id]).await;
    assert_eq!(refused.code, Some(5), "it does not rest: {refused:?}");
    let taken = shell.ask(&["workflows", "resume", &id, "--force", "--reason", "Its machine hangs"]).await;
    assert_eq!(taken.code, Some(0), "{taken:?}");
    assert_eq!(story.ends(run).await, RunState::Succeeded);
    story.world.gate.add_permits(1);
    assert_eq!(story.effects(run).await.len(), 2, "each once");
    server.close().await;
    story.end().await;
}
