//! A node is given up for lost only when somebody was there to hear it: a platform that was away has lost nobody.

use serde_json::{Value, json};
use store::listening;
use workflows::reconcilers::lost_nodes::WatchNodes;
use workflows::sequencer::number_all;

use crate::billing::office::Office;
use crate::http::{admin, project};
use crate::support::realm::EXAMPLE;

/// Time passes, and whoever answers nodes says so meanwhile, as a process that serves does.
async fn listened(office: &Office, seconds: u64) {
    for _ in 0..seconds / 10 {
        listens(office).await;
        office.later(10).await;
    }
    listens(office).await;
}

async fn listens(office: &Office) {
    let mut conn = office.platform.story.pool.acquire().await.unwrap();
    listening::mark(&mut conn).await.unwrap();
}

async fn is_lost(office: &Office) -> bool {
    office.run(&WatchNodes {}).await;
    let node = office.platform.http.get(&admin(&format!("/nodes/{}", office.node.id))).await.with(200);
    node["status"] == "unavailable"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_was_away_loses_nobody_and_one_that_listens_hears_who_is_silent() {
    let office = Office::open().await;
    listened(&office, 70).await;
    office.beat(true).await;
    // Nobody serves for five minutes; then the workers are back before anybody answers nodes.
    office.later(300).await;
    assert!(!is_lost(&office).await, "nobody listens");
    listened(&office, 20).await;
    assert!(!is_lost(&office).await, "nobody has listened for long enough");
    office.beat(true).await;
    listened(&office, 50).await;
    assert!(!is_lost(&office).await, "it spoke again");
    let instance = project(&format!("/app-instances/{}", office.instance));
    assert_eq!(office.platform.http.get(&instance).await.with(200)["status"], "running");
    listened(&office, 20).await;
    assert!(is_lost(&office).await, "it is silent, and was listened to");
    assert_eq!(office.platform.http.get(&instance).await.with(200)["status"], "failed");
    // Whoever holds a part of it hears so, by whatever they follow.
    number_all(office.platform.story.engine.pool()).await.unwrap();
    let path = project("/events?type=nodes.lost");
    let told: Value = office.platform.http.acting("viewer").get(&path).await.with(200)["items"].clone();
    assert_eq!(told.as_array().unwrap().len(), 1, "{told:#}");
    assert_eq!(told[0]["source"], json!(format!("/projects/{EXAMPLE}")));
    assert_eq!(told[0]["data"]["instances"], json!([office.instance]));
    office.close().await;
}
