//! A server may run on beside a newer release, which tells of things that it does not know. It passes them on as they are.

use serde_json::json;
use workflows::sequencer::number_all;

use super::stream::Client;
use super::webhooks::office::{Office, Receiver};
use super::{sequenced, tell, tell_newer};
use crate::http::project;
use crate::support::realm::EXAMPLE;
use crate::support::story::Story;

const DREAMT: &str = "apps.instance.dreamt";

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_an_unknown_type_is_listed_and_streamed_like_any_other() {
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    tell(&story.pool, "before").await;
    tell_newer(&story.pool, EXAMPLE, "dreamt").await;
    tell(&story.pool, "after").await;
    number_all(story.engine.pool()).await.unwrap();
    let page = http.get(&project("/events")).await.with(200);
    let types: Vec<_> = page["items"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["apps.version.staged", DREAMT, "apps.version.staged"]);
    let mut client = Client::open(&http, "", Some("0")).await;
    for subject in ["before", "dreamt", "after"] {
        assert_eq!(client.next().await.unwrap().data["subject"], subject);
    }
    sequencer.stop().await;
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_an_unknown_type_is_sent_and_a_webhook_that_wants_only_such_gets_nothing_else() {
    let office = Office::open().await;
    let (all, dreams) = (Receiver::open().await, Receiver::open().await);
    office.webhook(&all.url(), json!([])).await;
    let made = office.webhook(&dreams.url(), json!(["apps.version.staged"])).await;
    let id = made["id"].as_str().unwrap();
    sqlx::query("update webhooks set event_types = array[$2] where id = $1::uuid")
        .bind(id)
        .bind(DREAMT)
        .execute(&office.story.pool)
        .await
        .unwrap();
    assert_eq!(office.shown(id).await["event_types"], json!([DREAMT]));
    office.tell("a").await;
    office.tell("b").await;
    office.deliver().await;
    assert_eq!((all.subjects(), dreams.subjects()), (vec!["a".into(), "b".into()], vec![]));
    office.tell("c").await;
    tell_newer(&office.story.pool, EXAMPLE, "dreamt").await;
    office.deliver().await;
    assert_eq!(all.subjects(), ["a", "b", "c", "dreamt"]);
    assert_eq!(dreams.subjects(), ["dreamt"]);
    assert_eq!(office.deliveries(id).await[0]["event_type"], DREAMT);
    office.close().await;
}
