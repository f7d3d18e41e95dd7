//! What was told and written, from the shell: logs of an instance, and further below events and traces of the project.

use workflows::sequencer::{Hints, Sequencer, number_all};

use super::instances::{Town, answer};
use super::{Running, told};

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

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_and_followed_and_one_request_is_traced() {
    let town = Town::new().await;
    let operator = town.shell("operator");
    town.version().await;
    let begun = answer(&operator.ask(&["up", "hello", "-o", "json"]).await);
    number_all(&town.platform.story.pool).await.expect("numbers");
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
