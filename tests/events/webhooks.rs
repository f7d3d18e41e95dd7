//! Webhooks: a receiver gets every event, signed and in order, and what it does not take is tried again, kept or given up.
//! No event goes where the policy does not allow.

mod changed;
mod crowd;
mod lost;
pub mod office;
mod struck;

use std::time::Duration;

use axum::http::Method;
use serde_json::{Value, json};

use self::office::{Office, Receiver, Reply};
use crate::http::project;

const DAY: Duration = Duration::from_secs(24 * 3600);

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_what_it_wants_in_order_and_signed() {
    let office = Office::open().await;
    office.tell("before").await;
    office.number().await;
    let receiver = Receiver::open().await;
    let made = office.webhook(&receiver.url(), json!(["apps.version.staged"])).await;
    let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    for subject in ["a", "b", "c"] {
        office.tell(subject).await;
    }
    office.deliver().await;
    let got = receiver.got();
    assert_eq!(got.iter().map(|letter| &letter.event["subject"]).collect::<Vec<_>>(), ["a", "b", "c"]);
    for letter in &got {
        assert_eq!(letter.headers["webhook-id"].to_str().unwrap(), letter.event["id"]);
        assert_eq!(letter.headers["content-type"], "application/cloudevents+json");
        assert_eq!(letter.signatures(), [letter.signed_with(secret)]);
        assert!(
            letter.is_believed(secret)
                && !letter.is_believed("whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldCwgbm90IG91cnM=")
        );
    }
    let log = office.deliveries(id).await;
    assert!(log.iter().all(|one| one["status"] == "delivered" && one["attempts"] == 1), "{log:#?}");
    // Nothing is sent twice.
    office.deliver().await;
    assert_eq!(receiver.got().len(), 3);

    // While receivers change over, both secrets sign.
    let rotated =
        office.http.post(&project(&format!("/webhooks/{id}/rotate-secret")), json!({})).await.with(200);
    let newer = rotated["secret"].as_str().unwrap();
    office.tell("d").await;
    office.deliver().await;
    let letter = receiver.got().pop().unwrap();
    assert_eq!(letter.signatures(), [letter.signed_with(newer), letter.signed_with(secret)]);
    office.story.advance(2 * DAY).await;
    office.tell("e").await;
    office.deliver().await;
    let letter = receiver.got().pop().unwrap();
    assert_eq!(letter.signatures(), [letter.signed_with(newer)]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_taken_is_tried_again_later_and_holds_up_nobody_for_long() {
    let office = Office::open().await;
    for (reply, error) in [
        (Reply::Status(500), "the receiver answered 500"),
        (Reply::Silence, "the receiver did not answer in time"),
        (
            Reply::Redirect("http://169.254.169.254/latest/meta-data"),
            "the receiver redirects; redirects are not followed",
        ),
    ] {
        let receiver = Receiver::open().await;
        let made = office.webhook(&receiver.url(), json!([])).await;
        let id = made["id"].as_str().unwrap();
        receiver.will(reply);
        office.tell("a").await;
        office.tell("b").await;
        office.deliver().await;
        // The first that is not taken ends the round.
        assert_eq!(receiver.got().len(), 1, "{error}");
        let log = office.deliveries(id).await;
        let failed = log.iter().find(|one| one["attempts"] == 1).unwrap();
        assert_eq!((&failed["status"], &failed["error"]), (&json!("pending"), &json!(error)));
        assert_eq!(office.shown(id).await["status"], "active");
        // After a short rest the next one is sent, after its own pause the one that failed.
        office.story.advance(Duration::from_secs(3)).await;
        office.deliver().await;
        office.story.advance(Duration::from_secs(7)).await;
        office.deliver().await;
        let subjects: Vec<Value> =
            receiver.got().iter().map(|letter| letter.event["subject"].clone()).collect();
        assert_eq!(subjects, ["a", "b", "a"], "{error}");
        assert!(office.deliveries(id).await.iter().all(|one| one["status"] == "delivered"), "{error}");
        assert_eq!(office.shown(id).await["failing_since"], json!(null));
        office.http.delete(&project(&format!("/webhooks/{id}"))).await.with(204);
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_gone_is_sent_nothing_more() {
    let office = Office::open().await;
    let receiver = Receiver::open().await;
    let made = office.webhook(&receiver.url(), json!([])).await;
    let id = made["id"].as_str().unwrap();
    receiver.will(Reply::Status(410));
    office.tell("a").await;
    office.tell("b").await;
    office.deliver().await;
    let shown = office.shown(id).await;
    assert_eq!((&shown["status"], &shown["disabled_reason"]), (&json!("disabled"), &json!("gone")));
    office.story.advance(DAY).await;
    office.deliver().await;
    assert_eq!(receiver.got().len(), 1);
    let audit = office
        .http
        .get(&project(&format!("/audit?target=webhook:{id}&action=disable_webhook")))
        .await
        .with(200);
    assert_eq!(audit["items"][0]["reason"], "the receiver answered 410");

    // Made active again it goes on where it stopped; what was given up is replayed.
    let path = project(&format!("/webhooks/{id}"));
    office.http.patch(&path, json!({ "status": "active" })).await.with(200);
    office.deliver().await;
    let body = json!({ "failed_since": "2020-01-01T00:00:00Z" });
    let replayed = office.http.post(&format!("{path}/replay"), body).await.with(200);
    assert_eq!(replayed["replayed"], 1);
    office.deliver().await;
    let subjects: Vec<Value> = receiver.got().iter().map(|letter| letter.event["subject"].clone()).collect();
    assert_eq!(subjects, ["a", "b", "a"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_takes_nothing_for_more_than_a_day_is_given_up() {
    let office = Office::open().await;
    let receiver = Receiver::open().await;
    let made = office.webhook(&receiver.url(), json!([])).await;
    let id = made["id"].as_str().unwrap();
    receiver.always(Reply::Status(503));
    office.tell("a").await;
    office.deliver().await;
    for pause in [5, 300, 1800, 7200, 18_000, 36_000, 36_000_u64] {
        assert_eq!(office.shown(id).await["status"], "active");
        office.story.advance(Duration::from_secs(pause + pause / 5 + 1)).await;
        office.deliver().await;
    }
    assert_eq!(receiver.got().len(), 8);
    let shown = office.shown(id).await;
    assert_eq!((&shown["status"], &shown["disabled_reason"]), (&json!("disabled"), &json!("failing")));
    let dead = office.http.get(&project(&format!("/webhooks/{id}/deliveries?status=failed"))).await.with(200);
    assert_eq!(
        (&dead["items"][0]["attempts"], &dead["items"][0]["response_status"]),
        (&json!(8), &json!(503))
    );
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_into_our_own_network_unless_policy_allows_it() {
    let office = Office::closed().await;
    let receiver = Receiver::open().await;
    let all = project("/webhooks");
    for url in [
        "https://127.0.0.1:9/",
        "https://169.254.169.254/",
        "https://[::1]/",
        "http://example.com/",
        "no url",
    ] {
        let refused = office.http.post(&all, json!({ "url": url })).await.with(400);
        assert_eq!(refused["details"]["errors"][0]["pointer"], "/url", "{url}");
    }
    // A name tells only when it is resolved, and then each time.
    let made =
        office.webhook(&receiver.url().replace("http://127.0.0.1", "https://localhost"), json!([])).await;
    let id = made["id"].as_str().unwrap();
    office.tell("a").await;
    office.deliver().await;
    assert_eq!(office.deliveries(id).await[0]["error"], "the address is not on the open internet");
    assert_eq!(receiver.connections(), 0);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_told_once_and_kept_sealed() {
    let office = Office::open().await;
    let headers = [("x-idempotency-key", "one")];
    let body = json!({ "url": "https://hooks.example.com/" });
    let path = project("/webhooks");
    let ask = || office.http.send(Method::POST, &path, &headers, Some(body.clone()));
    let first = ask().await.with(201);
    let secret = first["secret"].as_str().unwrap().to_owned();
    let again = ask().await.with(201);
    assert_eq!((&again["secret"], &again["secret_already_delivered"]), (&json!(null), &json!(true)));
    assert_eq!(again["id"], first["id"]);
    let kept: String = sqlx::query_scalar(
        "select (select string_agg(w::text, ' ') from webhooks w) || (select string_agg(a::text, ' ') from audit a)",
    )
    .fetch_one(&office.story.pool)
    .await
    .unwrap();
    assert!(!kept.contains(secret.trim_start_matches("whsec_")), "{kept}");
    office.close().await;
}

/// A receiver that is down is knocked at now and then, not once per event, and no run is made per event.
#[tokio::test(flavor = "multi_thread")]
async fn many_events_for_a_receiver_that_is_down_cost_a_few_tries() {
    let office = Office::open().await;
    let receiver = Receiver::open().await;
    office.webhook(&receiver.url(), json!([])).await;
    receiver.always(Reply::Status(503));
    let mut tx = office.story.pool.begin().await.unwrap();
    for n in 0..500 {
        let event = super::event(&n.to_string(), &json!({}));
        store::outbox::insert(&mut tx, &event).await.unwrap();
    }
    tx.commit().await.unwrap();
    for _ in 0..5 {
        office.deliver().await;
    }
    let tries = receiver.got().len();
    assert!(tries < 10, "{tries} tries");
    receiver.always(Reply::Status(204));
    office.story.advance(Duration::from_secs(600)).await;
    office.deliver().await;
    assert_eq!(receiver.got().len(), 500 + tries);
    let runs: i64 = sqlx::query_scalar("select count(*) from engine.run where kind = 'webhook.deliver'")
        .fetch_one(&office.story.pool)
        .await
        .unwrap();
    assert!(runs < 10, "{runs} runs");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_go_once_their_events_are_no_longer_kept_and_those_under_way_stay() {
    let office = Office::open().await;
    let (taken, refused) = (Receiver::open().await, Receiver::open().await);
    let delivered = office.webhook(&taken.url(), json!([])).await["id"].as_str().unwrap().to_owned();
    office.tell("a").await;
    office.deliver().await;
    assert_eq!(office.deliveries(&delivered).await.len(), 1);
    office.story.advance(31 * DAY).await;
    let pending = office.webhook(&refused.url(), json!([])).await["id"].as_str().unwrap().to_owned();
    refused.will(Reply::Status(500));
    office.tell("b").await;
    office.deliver().await;
    office.clean_up().await;
    let left: Vec<Value> = office.deliveries(&delivered).await;
    assert_eq!(
        left.iter().filter(|one| one["status"] == "delivered").count(),
        1,
        "only the young one: {left:#?}"
    );
    assert_eq!(office.deliveries(&pending).await.len(), 1);
    office.close().await;
}
