//! Pages of events: narrowed as asked, in their order, none twice.

use serde_json::{Value, json};

use super::{sequenced, tell};
use crate::billing::office::Office;
use crate::catalog::register;
use crate::http::{Http, project};
use crate::support::realm::{DEMO, EXAMPLE};
use crate::support::story::Story;
use workflows::sequencer::number_all;

async fn names(http: &Http, query: &str) -> Vec<String> {
    let page = http.get(&project(&format!("/events{query}"))).await.with(200);
    let subject = |event: &Value| event["subject"].as_str().unwrap().to_owned();
    page["items"].as_array().unwrap().iter().map(subject).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_in_their_order_as_far_as_they_have_one() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for subject in ["a", "b", "c"] {
        tell(&story.pool, subject).await;
    }
    assert!(names(&http, "").await.is_empty());
    number_all(story.engine.pool()).await.unwrap();
    assert_eq!(names(&http, "").await, ["a", "b", "c"]);

    let first = http.get(&project("/events?limit=2")).await.with(200);
    assert_eq!(first["items"][1]["sequence"], "00000000000000000002");
    assert_eq!(first["items"][1]["type"], "apps.version.staged");
    let cursor = first["next_cursor"].as_str().unwrap();
    tell(&story.pool, "d").await;
    number_all(story.engine.pool()).await.unwrap();
    assert_eq!(names(&http, &format!("?limit=2&cursor={cursor}")).await, ["c", "d"]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_filter_narrows_and_a_wrong_one_is_refused() {
    let story = Story::new().await;
    let (http, sequencer) = sequenced(&story).await;
    tell(&story.pool, "a").await;
    register(&http, "notes", "1.0.0").await;
    sequencer.stop().await;
    number_all(story.engine.pool()).await.unwrap();

    assert_eq!(names(&http, "").await.len(), 2);
    assert_eq!(names(&http, "?type=apps.version.staged").await, ["a"]);
    assert_eq!(names(&http, "?type=apps.version.staged,apps.version.registered").await.len(), 2);
    assert_eq!(names(&http, "?subject=a").await, ["a"]);
    assert_eq!(names(&http, "?correlation_id=c-events").await, ["a"]);
    assert!(names(&http, "?since=2999-01-01T00:00:00Z").await.is_empty());
    let refused = http.get(&project("/events?type=apps.exploded&cursor=ev1.-1&since=today")).await.with(400);
    let pointers: Vec<&Value> =
        refused["details"]["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, [&json!("/cursor"), &json!("/type"), &json!("/since")]);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instances_events_are_listed_by_their_numbers_whatever_their_ids_are() {
    let office = Office::open().await;
    let story = &office.platform.story;
    // The clock of whoever wrote the later ones was behind.
    for (number, id) in [(1_i32, "7fff"), (2, "3fff"), (3, "5fff")] {
        sqlx::query(
            "insert into outbox (id, project_id, org_id, type, subject, data, correlation_id)
             values (($1 || '0000-0000-7000-8000-000000000000')::uuid, $2, $3, 'apps.instance.running', $4,
                 jsonb_build_object('number', $5), 'c')",
        )
        .bind(id)
        .bind(EXAMPLE)
        .bind(DEMO)
        .bind(office.instance.to_string())
        .bind(number)
        .execute(&story.pool)
        .await
        .unwrap();
    }
    let page = async |query: &str| {
        let path = project(&format!("/app-instances/{}/events{query}", office.instance));
        office.platform.http.get(&path).await.with(200)
    };
    let numbers = |page: &Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(|one| one["data"]["number"].as_i64().unwrap()).collect()
    };
    assert_eq!(numbers(&page("").await), Vec::<i64>::new(), "what has no number is told to nobody");
    number_all(story.engine.pool()).await.unwrap();
    let first = page("?limit=2").await;
    assert_eq!(numbers(&first), [1, 2]);
    let cursor = first["next_cursor"].as_str().unwrap();
    assert_eq!(numbers(&page(&format!("?limit=2&cursor={cursor}")).await), [3]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_projects_events_are_not_told() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    tell(&story.pool, "a").await;
    number_all(story.engine.pool()).await.unwrap();
    let other = crate::support::realm::NEXT_DOOR;
    let page = http.get(&format!("/api/v1/projects/{other}/events")).await.with(200);
    assert_eq!(page["items"], json!([]));
    story.end().await;
}
