//! A webhook that is changed while its receiver has a letter in hand: from then on it is what it was changed to. The old
//! receiver gets nothing more, and what it says last is not held against the new one.

use serde_json::json;

use super::office::{Office, Receiver, Reply};
use crate::http::project;

/// A webhook whose receiver has the first of three events in hand and answers like this once it may; answers its path.
async fn in_hand(office: &Office, receiver: &Receiver, status: u16) -> String {
    let made = office.webhook(&receiver.url(), json!([])).await;
    receiver.will(Reply::WhenReleased(status));
    for subject in ["a", "b", "c"] {
        office.tell(subject).await;
    }
    office.begin().await;
    receiver.has_one_in_hand().await;
    project(&format!("/webhooks/{}", made["id"].as_str().unwrap()))
}

/// Lets the receiver answer, and sends what is due after that.
async fn goes_on(office: &Office, receiver: &Receiver) {
    receiver.release();
    office.story.quiet().await;
    office.deliver().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_old_receiver_does_not_take_goes_to_the_new_one_and_is_not_held_against_it() {
    let office = Office::patient().await;
    for status in [410, 500] {
        let (old, new) = (Receiver::open().await, Receiver::open().await);
        let path = in_hand(&office, &old, status).await;
        office.http.patch(&path, json!({ "url": new.url() })).await.with(200);
        goes_on(&office, &old).await;
        let shown = office.http.get(&path).await.with(200);
        assert_eq!((&shown["status"], &shown["url"]), (&json!("active"), &json!(new.url())), "{status}");
        assert_eq!(shown["failing_since"], json!(null), "{status}");
        assert_eq!(old.subjects(), ["a"], "{status}");
        assert_eq!(new.subjects(), ["a", "b", "c"], "{status}");
        office.http.delete(&path).await.with(204);
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_receiver_gets_no_event_after_the_one_it_has_in_hand() {
    let office = Office::patient().await;
    let (old, new) = (Receiver::open().await, Receiver::open().await);
    let path = in_hand(&office, &old, 204).await;
    office.http.patch(&path, json!({ "url": new.url() })).await.with(200);
    goes_on(&office, &old).await;
    assert_eq!(old.subjects(), ["a"]);
    assert_eq!(new.subjects(), ["b", "c"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn once_a_webhook_is_deleted_nothing_more_is_sent() {
    let office = Office::patient().await;
    for status in [204, 410, 500] {
        let receiver = Receiver::open().await;
        let path = in_hand(&office, &receiver, status).await;
        office.http.delete(&path).await.with(204);
        goes_on(&office, &receiver).await;
        assert_eq!(receiver.subjects(), ["a"], "{status}");
        office.http.get(&path).await.with(404);
    }
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_disabled_meanwhile_sends_the_rest_once_it_is_active() {
    let office = Office::patient().await;
    let receiver = Receiver::open().await;
    let path = in_hand(&office, &receiver, 204).await;
    office.http.patch(&path, json!({ "status": "disabled" })).await.with(200);
    goes_on(&office, &receiver).await;
    assert_eq!(receiver.subjects(), ["a"]);
    let shown = office.http.get(&path).await.with(200);
    assert_eq!(shown["disabled_reason"], "by_request");
    office.http.patch(&path, json!({ "status": "active" })).await.with(200);
    office.deliver().await;
    assert_eq!(receiver.subjects(), ["a", "b", "c"]);
    office.close().await;
}
