//! Many webhooks, and receivers that do not keep up: a project has so many and no more, they have a part of the workers, and
//! who waits too long is seen.

use std::time::Duration;

use serde_json::json;
use store::readings::{self, WebhookReading};
use uuid::Uuid;

use super::office::{Office, Receiver, Reply};
use crate::http::project;
use crate::watch::scraped;

async fn reading(office: &Office) -> WebhookReading {
    let mut conn = office.story.pool.acquire().await.unwrap();
    readings::webhooks(&mut conn).await.unwrap()
}

/// How many tries of this process ended like this. Other stories try too, so it only grows.
fn tries(word: &str) -> u64 {
    workflows::webhook::results().find(|(result, _)| *result == word).unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_has_twenty_webhooks_and_no_more_however_many_are_made_at_once() {
    let office = Office::open().await;
    let all = project("/webhooks");
    let body = || json!({ "url": "https://hooks.example.com/" });
    let mut last = json!(null);
    for _ in 0..19 {
        last = office.http.post(&all, body()).await.with(201);
    }
    let (one, other) = tokio::join!(office.http.post(&all, body()), office.http.post(&all, body()));
    let mut statuses = [one.status.as_u16(), other.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 409]);
    // One that is disabled counts: it may be active again.
    let path = project(&format!("/webhooks/{}", last["id"].as_str().unwrap()));
    office.http.patch(&path, json!({ "status": "disabled" })).await.with(200);
    let refused = office.http.post(&all, body()).await.with(409);
    assert_eq!((&refused["code"], &refused["details"]["most"]), (&json!("state_conflict"), &json!(20)));
    assert!(refused["message"].as_str().unwrap().contains("at most 20 webhooks"), "{refused:#}");
    office.http.delete(&path).await.with(204);
    office.http.post(&all, body()).await.with(201);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_receivers_of_a_project_have_four_places_and_the_others_wait_without_a_worker() {
    let office = Office::open().await;
    let receiver = Receiver::open().await;
    receiver.always(Reply::Late(Duration::from_millis(200)));
    for _ in 0..12 {
        office.webhook(&receiver.url(), json!([])).await;
    }
    let before = tries("delivered");
    office.tell("a").await;
    office.deliver().await;
    office
        .story
        .until_true(
            "every webhook is delivered to",
            "select count(*) = 12 and $1::uuid is not null and $2::text[] is not null
             from webhook_deliveries where status = 'delivered'",
            Uuid::nil(),
            &[],
        )
        .await;
    let most = receiver.most_at_once();
    assert!((1..=4).contains(&most), "{most} at once");
    assert_eq!(receiver.got().len(), 12, "each once");
    assert!(tries("delivered") >= before + 12);
    let (runs, waited): (i64, i64) = sqlx::query_as(
        "select count(distinct r.id), count(s.run_id) from engine.run r
         left join engine.step s on s.run_id = r.id and s.name = 'place' where r.kind = 'webhook.deliver'",
    )
    .fetch_one(&office.story.pool)
    .await
    .unwrap();
    assert!(runs == 12 && waited >= 1, "{runs} runs waited {waited} times");
    office.story.quiet().await;
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_failed_once_and_is_not_tried_again_is_overdue() {
    let office = Office::open().await;
    let receiver = Receiver::open().await;
    office.webhook(&receiver.url(), json!([])).await;
    receiver.will(Reply::Status(500));
    let before = tries("refused");
    office.tell("a").await;
    office.deliver().await;
    let rests = reading(&office).await;
    assert_eq!((rests.failing, rests.waiting), (1, 1));
    assert!(rests.overdue_seconds < 1.0, "its time has not come: {rests:?}");
    // Nobody looks for what is due.
    office.story.advance(Duration::from_secs(600)).await;
    let late = reading(&office).await;
    assert!((500.0..700.0).contains(&late.overdue_seconds), "{late:?}");
    assert!(tries("refused") > before);
    let page = scraped(&office.http).await;
    for result in ["delivered", "refused", "unanswered"] {
        let line = format!("gpuaas_webhook_tries_total{{result=\"{result}\"}} ");
        assert!(page.contains(&line), "no {line} in\n{page}");
    }
    office.close().await;
}
