//! What lists runs and acts on them.

use engine::RunState;
use uuid::Uuid;

use super::Stage;
use crate::cli::Shell;
use crate::http::Http;
use crate::support::story::Story;
use crate::support::world::{Do, Trouble, hold, touch};

const HOUR: u64 = 3_600_000;
const NOBODY: &str = "01970000-0000-7000-8000-000000000000";

/// Three runs that did something and wait now.
async fn waiting(story: &Story) -> [String; 3] {
    let mut runs = [Uuid::nil(); 3];
    for run in &mut runs {
        *run = story.start([touch("a"), hold("b"), Do::Wait(HOUR)]).await;
        story.until(*run, &[RunState::Waiting]).await;
    }
    runs.map(|run| run.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_about_runs() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("project-admin").token());
    let stage = Stage::of(&shell);
    story.world.trouble("b", [Trouble::Retry]);
    let run = story.start([touch("a"), hold("b")]).await;
    story.ends(run).await;
    let run = run.to_string();
    let list = ["workflows", "list", "--status"];
    stage
        .shows("workflows_list", &[&list[..], &["succeeded"]].concat(), &[&list[..], &["happy"]].concat())
        .await;
    stage.shows("workflows_show", &["workflows", "show", &run], &["workflows", "show", NOBODY]).await;
    stage.shows("workflows_watch", &["workflows", "watch", &run], &["workflows", "watch", NOBODY]).await;
    let [one, two, three] = waiting(&story).await;
    for verb in ["pause", "resume"] {
        let words = |run| ["workflows", verb, run];
        stage.well(&format!("workflows_{verb}"), [&words(&one), &words(&two), &words(&three)]).await;
        for run in [&one, &two, &three] {
            let settled = if verb == "pause" { RunState::Paused } else { RunState::Waiting };
            story.until(run.parse().unwrap(), &[settled]).await;
        }
        stage.badly(&format!("workflows_{verb}"), [&words(&run); 3]).await;
    }
    let words = |run| ["workflows", "cancel", run, "--wait"];
    stage.well("workflows_cancel", [&words(&one), &words(&two), &words(&three)]).await;
    stage.badly("workflows_cancel", [&words(&run); 3]).await;
    let names = shell.ask(&["workflows", "watch", &run, "-o", "name"]).await;
    assert_eq!(names.stdout, format!("{run}\n"));
    let yaml = shell.ask(&["workflows", "watch", &run, "-o", "yaml"]).await;
    assert!(yaml.stdout.starts_with("---\ndata:\n"), "{yaml:?}");
    server.close().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_sees_the_steps() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("viewer").token());
    let [run, ..] = waiting(&story).await;
    let mut seeing = crate::cli::Running::start(shell.on_terminal(&["wait", &run]));
    let seen = seeing.says("… word waits, ").await;
    assert!(
        seen.contains("\x1b[32m✓\x1b[0m touch/a") && seen.contains("\x1b[32m✓\x1b[0m hold/b"),
        "{seen:?}"
    );
    let waited = async { shell.ask(&["wait", &run]).await };
    let ended = async {
        story.signal(run.parse().unwrap(), "word", "", serde_json::json!("go")).await;
        story.ends(run.parse().unwrap()).await;
    };
    let (said, ()) = tokio::join!(waited, ended);
    assert_eq!(said.code, Some(0), "{said:?}");
    seeing.says("succeeded").await;
    seeing.end().await;
    for run in waiting(&story).await {
        assert_eq!(shell.ask(&["wait", &run, "--timeout", "0"]).await.code, Some(2));
    }
    server.close().await;
    story.end().await;
}
