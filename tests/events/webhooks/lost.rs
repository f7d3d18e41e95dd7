//! Events are kept for so long. A webhook that was away for longer says how many it will never send.

use std::time::Duration;

use serde_json::json;
use store::outbox;

use super::office::{Office, Receiver};
use crate::http::project;
use crate::support::realm::EXAMPLE;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// As every night, a month later.
async fn a_month_passes(office: &Office) {
    office.number().await;
    office.story.advance(31 * DAY).await;
    let mut tx = office.story.pool.begin().await.unwrap();
    outbox::forget(&mut tx, EXAMPLE, 30.0 * DAY.as_secs_f64(), 1000).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_goes_on_too_late_says_how_many_events_are_lost() {
    let office = Office::open().await;
    let receiver = Receiver::open().await;
    let made = office.webhook(&receiver.url(), json!(["apps.version.staged"])).await;
    assert_eq!((&made["events_lost"], &made["events_lost_at"]), (&json!(0), &json!(null)));
    let id = made["id"].as_str().unwrap();
    let path = project(&format!("/webhooks/{id}"));
    office.http.patch(&path, json!({ "status": "disabled" })).await.with(200);
    office.tell("a").await;
    office.tell("b").await;
    a_month_passes(&office).await;
    office.tell("c").await;
    office.http.patch(&path, json!({ "status": "active" })).await.with(200);
    office.deliver().await;
    assert_eq!(receiver.subjects(), ["c"]);
    let shown = office.shown(id).await;
    assert_eq!(shown["events_lost"], 2);
    assert!(shown["events_lost_at"].is_string(), "{shown:#}");

    // Also where nothing that it wants is left, and it is told once.
    office.http.patch(&path, json!({ "status": "disabled" })).await.with(200);
    office.tell("d").await;
    a_month_passes(&office).await;
    office.http.patch(&path, json!({ "status": "active" })).await.with(200);
    office.deliver().await;
    office.deliver().await;
    assert_eq!(receiver.subjects(), ["c"]);
    assert_eq!(office.shown(id).await["events_lost"], 3);
    let audit = project(&format!("/audit?target=webhook:{id}&action=lose_webhook_events"));
    let entries = office.http.get(&audit).await.with(200);
    let mut lost: Vec<_> =
        entries["items"].as_array().unwrap().iter().map(|one| &one["after"]["events_lost"]).collect();
    lost.sort_by_key(|number| number.as_i64());
    assert_eq!(lost, [1, 2]);
    office.close().await;
}
