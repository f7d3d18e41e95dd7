//! What was told and written, from the shell: logs of an instance, and further below events and traces of the project.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::routing::get;
use serde_json::json;
use uuid::Uuid;
use workflows::sequencer::{Hints, Sequencer, number_all};

use super::instances::{Town, answer};
use super::{Running, Shell, told};
use crate::billing::ledger::{priced, rolled_up};
use crate::billing::office::Office;
use crate::http::Http;
use crate::support::realm::EXAMPLE;
use crate::support::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_read_and_followed() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    insta::assert_snapshot!("logs_table", told(&operator.ask(&["logs", "hello", "--tail", "5"]).await));
    insta::assert_snapshot!("logs_json", told(&operator.ask(&["logs", "hello", "-o", "json"]).await));
    insta::assert_snapshot!("logs_bad", told(&operator.ask(&["logs", "hello", "--tail", "0"]).await));
    let mut following = Running::start(operator.command(&["logs", "hello", "-f", "--timestamps"]));
    following.says("main: simulated, so nothing runs").await;
    following.end().await;
    assert_eq!(operator.ask(&["down", "hello"]).await.code, Some(0));
    insta::assert_snapshot!("logs_gone", told(&operator.ask(&["logs", "hello"]).await));
    insta::assert_snapshot!(
        "logs_gone_json",
        told(&operator.ask(&["logs", "hello", "-f", "-o", "json"]).await)
    );
    town.end().await;
}

/// A log whose stream breaks off after three lines of one moment and begins anew with the last of them.
async fn stuttering() -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let streams = Arc::new(AtomicU32::new(0));
    let line = |second: u8, text: &str| {
        let at = format!("2026-01-31T12:00:0{second}Z");
        let line = json!({ "at": at, "stream": "stdout", "text": text });
        format!("event: line\nid: {at}\ndata: {line}\n\n")
    };
    let first = [line(1, "one"), line(1, "two"), line(1, "two")].concat();
    let then = [line(1, "one"), line(1, "two"), line(1, "two"), line(1, "three"), line(2, "end")].concat();
    let logs = async move || {
        let stream = if streams.fetch_add(1, Ordering::SeqCst) == 0 { first.clone() } else { then.clone() };
        ([("content-type", "text/event-stream")], stream)
    };
    let instance = json!({
        "id": Uuid::from_u128(7), "org_id": Uuid::nil(), "project_id": EXAMPLE, "app_slug": "hello", "version": "1.0.0",
        "target_version": null, "display_name": "hello", "status": "running", "status_reason": null,
        "operating_mode": "tenant_dedicated", "control_plane_scope": "project", "runtime_backend": "launchable_oci",
        "tenant_boundary_mode": "project_isolated", "placement_intent": {}, "config": {}, "resources": {},
        "artifacts": [], "operator_service_account_id": null, "last_operation": null, "allowed_actions": [],
        "correlation_id": "c", "created_at": "2026-01-31T12:00:00Z", "activated_at": null,
    });
    let router = axum::Router::new()
        .route("/api/v1/projects/{project}/app-instances/{id}", get(async move || axum::Json(instance)))
        .route("/api/v1/projects/{project}/app-instances/{id}/logs", get(logs));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_one_moment_are_all_told_and_none_twice() {
    let shell = Shell::at(stuttering().await, "anybody");
    let mut following = Running::start(shell.command(&["logs", &Uuid::from_u128(7).to_string(), "-f"]));
    assert_eq!(following.says("end\n").await, "one\ntwo\ntwo\nthree\nend\n");
    following.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_and_followed_and_one_request_is_traced() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let begun = answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    number_all(town.platform.story.engine.pool()).await.expect("numbers");
    insta::assert_snapshot!("events_table", told(&operator.ask(&["events", "hello"]).await));
    let one = ["events", "hello", "--type", "apps.instance.running", "-o", "json"];
    insta::assert_snapshot!("events_json", told(&operator.ask(&one).await));
    insta::assert_snapshot!("events_bad", told(&operator.ask(&["events", "--type", "apps.happy"]).await));
    let sequencer = Sequencer::start(&town.platform.story.engine, &Hints::default());
    let mut following = Running::start(operator.command(&["events", "-f", "--limit", "1"]));
    following.says("apps.instance.running").await;
    assert_eq!(operator.ask(&["down", "hello"]).await.code, Some(0));
    following.says("apps.instance.decommissioned").await;
    following.end().await;
    sequencer.stop().await;

    let traced = operator.ask(&["trace", begun["correlation_id"].as_str().unwrap()]).await;
    assert_eq!(traced.code, Some(0), "{traced:?}");
    for part in ["workflow", "step", "node_task", "event", "instance.deploy", "apps.instance.running"] {
        assert!(traced.stdout.contains(part), "{part}: {traced:?}");
    }
    insta::assert_snapshot!("trace_missing", told(&operator.ask(&["trace", "nobody-asked"]).await));
    insta::assert_snapshot!(
        "trace_missing_json",
        told(&operator.ask(&["trace", "nobody-asked", "-o", "json"]).await)
    );
    town.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_summed_for_people_and_listed_for_spreadsheets() {
    let office = Office::open().await;
    priced(&office).await;
    let nothing = ["usage", "--by", "usage_unit"];
    let viewer = office.platform.http.acting("viewer");
    let server = viewer.listen().await;
    let shell = Shell::at(server.address, viewer.token());
    let empty = shell.ask(&nothing).await;
    assert_eq!((empty.code, empty.stdout.lines().count()), (Some(0), 1), "{empty:?}");
    office.tell(&[office.event("a", 10).await, office.event("b", 6).await]).await.with(200);
    rolled_up(&office).await;
    let sums = shell.ask(&["usage", "writer"]).await;
    assert_eq!(sums.code, Some(0), "{sums:?}");
    assert!(sums.stdout.contains("writer") && sums.stdout.contains("16 tokens"), "{sums:?}");
    assert!(sums.stdout.contains(" EUR"), "{sums:?}");
    let sheet = shell.ask(&["usage", "writer", "--window", "none", "-o", "csv"]).await;
    assert!(sheet.stdout.starts_with("id,at,source,quantity,unit,of,in the ledger\n"), "{sheet:?}");
    assert_eq!(sheet.stdout.matches(",app_runtime,").count(), 2, "{sheet:?}");
    let month = answer(&shell.ask(&["usage", "--window", "month", "--by", "usage_unit", "-o", "json"]).await);
    assert!(month["items"][0]["quantities"].is_object(), "{month:#}");
    insta::assert_snapshot!("usage_bad", told(&shell.ask(&["usage", "--by", "colour"]).await));
    insta::assert_snapshot!(
        "usage_bad_json",
        told(&shell.ask(&["usage", "--by", "colour", "-o", "json"]).await)
    );
    server.close().await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_events_the_newest_are_shown_and_who_follows_misses_and_repeats_nothing() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let server = http.listen().await;
    let shell = Shell::at(server.address, http.acting("viewer").token());
    // More than any list is read, and the first hundred are no longer kept.
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!(
        "insert into event_counters (project_id, last_seq, forgotten) values ('{EXAMPLE}', 5300, 100);
         insert into outbox (id, project_id, seq, type, subject, data, correlation_id)
             select gen_random_uuid(), '{EXAMPLE}', n, 'apps.version.staged', 's' || n, '{{}}', 'c' from generate_series(101, 5300) n"
    )))
    .execute(&story.pool)
    .await
    .unwrap();
    let newest = answer(&shell.ask(&["events", "--limit", "3", "-o", "json"]).await);
    let subjects: Vec<&str> =
        newest.as_array().unwrap().iter().map(|event| event["subject"].as_str().unwrap()).collect();
    assert_eq!(subjects, ["s5298", "s5299", "s5300"], "the newest, oldest first");
    let sequencer = Sequencer::start(&story.engine, &Hints::default());
    let tell = async |subject: &str| {
        sqlx::query(
            "insert into outbox (id, project_id, type, subject, data, correlation_id)
             values (gen_random_uuid(), $1, 'apps.version.retired', $2, '{}', 'c')",
        )
        .bind(EXAMPLE)
        .bind(subject)
        .execute(&story.pool)
        .await
        .unwrap();
    };
    // On a terminal, so that talk is heard too.
    let of_type = ["events", "-f", "--type", "apps.version.retired"];
    let mut matching = Running::start(shell.on_terminal(&of_type));
    let mut all = Running::start(shell.on_terminal(&["events", "-f", "--limit", "1"]));
    all.says("s5300").await;
    tell("next").await;
    assert!(!all.says("next").await.contains("s5299"), "what was shown is not shown again");
    let heard = matching.says("next").await;
    assert!(!heard.contains("gone") && !heard.contains("staged"), "{heard}");
    all.end().await;
    matching.end().await;
    sequencer.stop().await;
    server.close().await;
    story.end().await;
}
