//! Events of apps: each has its own verdict, is taken once, and can be read at once.

use axum::http::{Method, Request, header};
use chrono::{DateTime, TimeDelta, Utc};
use domain::{UsageSource, Window};
use serde_json::{Value, json};
use store::usage_records::{self, Attribution, NewRecord};
use uuid::Uuid;

use super::ledger::{priced, rolled_up};
use super::office::{Office, manifest};
use crate::events::order::somebody_waits;
use crate::http::{Http, admin, project};
use crate::support::realm::{DEMO, EXAMPLE};

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_event_fails_no_other_and_each_has_its_verdict() {
    let office = Office::open().await;
    let now = office.now().await;
    let with = |pointer: &str, value: serde_json::Value| {
        let mut event = office.event_at("changed", 1, now);
        *event.pointer_mut(pointer).unwrap() = value;
        event
    };
    let events = [
        office.event_at("one", 5, now),
        office.event_at("one", 7, now),
        with("/data/usage_unit", json!("requests")),
        with("/data/usage_unit", json!("session_seconds")),
        with("/time", json!(now - TimeDelta::days(1) - TimeDelta::seconds(5))),
        with("/time", json!(now + TimeDelta::seconds(600))),
        with("/subject", json!(Uuid::now_v7())),
        with("/data/quantity", json!(0)),
        with("/data/quantity", json!(1.5)),
        with("/data/quantity", json!(-3)),
        with("/source", json!("/platform/meters/x")),
        with("/source", json!("")),
        with("/type", json!("app.other")),
        with("/id", json!("nul\0")),
        json!("not an event"),
        json!(null),
        office.event_at("two", 11, now - TimeDelta::hours(23)),
    ];
    let expected = [
        "accepted",
        "duplicate",
        "rejected unknown_unit",
        "rejected unknown_unit",
        "rejected too_late",
        "rejected in_the_future",
        "rejected unknown_instance",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "rejected invalid",
        "accepted",
    ];
    assert_eq!(office.verdicts(&events).await, expected);
    assert_eq!(office.verdicts(&events[..2]).await, ["duplicate", "duplicate"], "told again");
    let tokens = |quantity| ("tokens".to_owned(), quantity);
    assert_eq!(office.records("").await, [tokens(5), tokens(11)], "the first of two stands");
    assert_eq!(office.verdicts(&[]).await, [""; 0]);
    let many = vec![json!({}); 501];
    assert_eq!(office.tell(&many).await.with(400)["code"], "validation_error");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_platform_counts_it_takes_from_nobody() {
    let office = Office::open().await;
    let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
    office.platform.http.post(&path, manifest("timed", json!({ "kind": "gpu_seconds" }))).await.with(201);
    let timed = Uuid::now_v7();
    office.settle(timed, "timed").await;
    let mut event = office.event("one", 5).await;
    event["subject"] = json!(timed);
    event["data"]["usage_unit"] = json!("gpu_seconds");
    assert_eq!(office.verdicts(&[event]).await, ["rejected counted_by_platform"]);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_either_version_counts_is_taken_while_one_gives_way_to_the_other() {
    let office = Office::open().await;
    let path = admin(&format!("/apps/manifests?owner_project_id={EXAMPLE}"));
    let mut next = manifest("writer", json!({ "kind": "requests" }));
    next["version"]["version"] = json!("2.0.0");
    office.platform.http.post(&path, next).await.with(201);
    let counting = async |id: &str| {
        let (tokens, mut requests, mut pages) =
            (office.event(id, 1).await, office.event(id, 1).await, office.event(id, 1).await);
        requests["source"] = json!("/apps/writer/2");
        requests["data"]["usage_unit"] = json!("requests");
        pages["data"]["usage_unit"] = json!("pages");
        office.verdicts(&[tokens, requests, pages]).await
    };
    let stands = async |version: &str, previous: Option<&str>, target: Option<&str>| {
        sqlx::query(
            "update app_instances set version = $2, previous_version = $3, target_version = $4 where id = $1",
        )
        .bind(office.instance)
        .bind(version)
        .bind(previous)
        .bind(target)
        .execute(&office.platform.story.pool)
        .await
        .unwrap();
    };
    assert_eq!(counting("before").await, ["accepted", "rejected unknown_unit", "rejected unknown_unit"]);
    stands("1.0.0", None, Some("2.0.0")).await;
    assert_eq!(counting("at the switch").await, ["accepted", "accepted", "rejected unknown_unit"]);
    stands("2.0.0", Some("1.0.0"), None).await;
    assert_eq!(counting("after it").await, ["accepted", "accepted", "rejected unknown_unit"]);
    stands("2.0.0", None, None).await;
    assert_eq!(counting("long after").await, ["rejected unknown_unit", "accepted", "rejected unknown_unit"]);
    office.close().await;
}

/// Calls by the instance's own identity.
async fn speaks_for(office: &Office, instance: Uuid) -> Http {
    let http = &office.platform.http;
    let body = json!({ "name": format!("{instance} itself"), "permissions": ["billing.usage.write"] });
    let made = http.post(&project("/service-accounts"), body).await.with(201);
    let proof = json!({
        "service_account_id": made["id"], "key_id": made["key_id"], "private_key_pem": made["private_key_pem"],
    });
    let token = http.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(200);
    let account: Uuid = made["id"].as_str().unwrap().parse().unwrap();
    sqlx::query("update app_instances set operator_service_account_id = $2 where id = $1")
        .bind(instance)
        .bind(account)
        .execute(&office.platform.story.pool)
        .await
        .unwrap();
    http.bearing(token["access_token"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_tells_of_its_own_usage_alone() {
    let office = Office::open().await;
    let other = Uuid::now_v7();
    office.settle(other, "writer").await;
    let mut of_other = office.event("other", 3).await;
    of_other["subject"] = json!(other);
    let batch = json!([office.event("own", 2).await, of_other]);
    let itself = speaks_for(&office, office.instance).await;
    let told = itself.post(&project("/usage-events"), batch).await.with(200);
    assert_eq!(told["results"][0]["verdict"], "accepted");
    assert_eq!(told["results"][1]["verdict"], "rejected");
    assert!(told["results"][1]["reason"].as_str().unwrap().starts_with("not_your_instance"));
    let read = itself.get(&format!("/api/v1/billing/usage?project_id={EXAMPLE}")).await.with(403);
    assert_eq!(read["code"], "insufficient_permissions", "it tells, and reads nothing");
    office.close().await;
}

/// An event of this instance.
async fn event_of(office: &Office, instance: Uuid, id: &str, quantity: i64) -> Value {
    let mut event = office.event(id, quantity).await;
    event["subject"] = json!(instance);
    event
}

/// The verdicts on what an instance itself tells.
async fn verdicts(itself: &Http, events: &[Value]) -> Vec<String> {
    let told = itself.post(&project("/usage-events"), json!(events)).await.with(200);
    let results = told["results"].as_array().unwrap().iter();
    results.map(|one| one["verdict"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_instance_takes_the_name_of_anothers_event_away() {
    let office = Office::open().await;
    let (own, other) = (office.instance, Uuid::now_v7());
    office.settle(other, "writer").await;
    let of = async |instance: Uuid, id: &str, quantity: i64| event_of(&office, instance, id, quantity).await;
    // It knows how the other names its events, and is there first.
    let itself = speaks_for(&office, own).await;
    let first = [of(own, "req-1", 1).await, of(own, "req-2", 1).await];
    assert_eq!(verdicts(&itself, &first).await, ["accepted", "accepted"]);
    assert_eq!(verdicts(&itself, &first).await, ["duplicate", "duplicate"]);
    let others = [of(other, "req-1", 20).await];
    let other_itself = speaks_for(&office, other).await;
    assert_eq!(verdicts(&other_itself, &others).await, ["accepted"]);
    assert_eq!(verdicts(&other_itself, &others).await, ["duplicate"]);
    // Whoever tells of either what was told already is told so.
    let again = [of(own, "req-1", 1).await, of(other, "req-1", 20).await];
    assert_eq!(office.verdicts(&again).await, ["duplicate"; 2]);
    // A collector learns that what it tells is not counted, whoever has the name.
    let alike = [of(own, "req-3", 4).await, of(other, "req-3", 5).await];
    assert_eq!(office.verdicts(&alike).await, ["accepted", "rejected taken"]);
    assert_eq!(office.verdicts(&alike[1..]).await, ["rejected taken"]);
    assert_eq!(office.verdicts(&[of(other, "req-2", 300).await]).await, ["rejected taken"]);
    assert_eq!(verdicts(&itself, &alike[..1]).await, ["duplicate"]);
    let counted: i64 = office.records("").await.iter().map(|(_, quantity)| quantity).sum();
    assert_eq!(counted, 2 + 20 + 4);
    let mut disguised = of(other, "req-4", 6).await;
    disguised["source"] = json!(format!("/platform/instances/{own}//apps/writer"));
    assert_eq!(office.verdicts(&[disguised]).await, ["rejected invalid"]);
    office.close().await;
}

/// As a server of the release before writes what it is told, whoever tells it.
fn as_before(event: &Value) -> NewRecord {
    let text = |pointer: &str| event.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let occurred_at: DateTime<Utc> = text("/time").parse().unwrap();
    NewRecord {
        id: Uuid::now_v7(),
        of: Attribution {
            org_id: DEMO,
            project_id: EXAMPLE,
            app_instance_id: Some(text("/subject").parse().unwrap()),
            allocation_id: None,
            app_slug: Some("writer".into()),
            operating_mode: None,
            control_plane_scope: None,
            runtime_backend: None,
            control_plane_component: None,
        },
        usage_source: UsageSource::AppRuntime,
        usage_unit: text("/data/usage_unit"),
        quantity: event["data"]["quantity"].as_i64().unwrap(),
        occurred_at,
        window: Window::of(occurred_at, 60),
        correlation_id: "c-before".into(),
        reference_id: None,
        metadata: json!({}),
        source: text("/source"),
        event_id: text("/id"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_a_server_of_the_release_before_is_told_too_is_counted_once() {
    let office = Office::open().await;
    let story = &office.platform.story;
    let (own, other) = (office.instance, Uuid::now_v7());
    office.settle(other, "writer").await;
    let itself = speaks_for(&office, own).await;
    let of =
        async |instance: Uuid, id: &str, quantity: i64| [event_of(&office, instance, id, quantity).await];
    let before = async |events: &[Value]| {
        let mut conn = story.pool.acquire().await.unwrap();
        let records: Vec<NewRecord> = events.iter().map(as_before).collect();
        usage_records::add(&mut conn, &records).await.unwrap().len()
    };

    let first = of(own, "req-1", 1).await;
    assert_eq!(before(&first).await, 1);
    assert_eq!(verdicts(&itself, &first).await, ["duplicate"], "told there, and here again");
    let second = of(own, "req-2", 10).await;
    assert_eq!(verdicts(&itself, &second).await, ["accepted"]);
    assert_eq!(before(&second).await, 0, "told here, and there again");
    assert_eq!(before(&of(other, "req-3", 100).await).await, 1);
    let third = of(own, "req-3", 1000).await;
    assert_eq!(verdicts(&itself, &third).await, ["accepted"], "by another name");
    assert_eq!(verdicts(&itself, &third).await, ["duplicate"]);
    assert_eq!(before(&third).await, 0, "nor is it told there again");

    // At one moment: here it is not to be seen yet that the name is taken.
    for (whose, id, verdict) in [(own, "req-4", "duplicate"), (other, "req-5", "accepted")] {
        let mut there = story.pool.begin().await.unwrap();
        let [told_there] = of(whose, id, 10_000).await;
        usage_records::add(&mut there, &[as_before(&told_there)]).await.unwrap();
        let told_here = of(own, id, 10_000).await;
        let (told, ()) = tokio::join!(verdicts(&itself, &told_here), async {
            somebody_waits(story, "usage_records").await;
            there.commit().await.unwrap();
        });
        assert_eq!(told, [verdict], "{id}");
    }
    let counted: i64 = office.records("").await.iter().map(|(_, quantity)| quantity).sum();
    assert_eq!(counted, 1 + 10 + 100 + 1000 + 3 * 10_000);
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_read_by_record_by_window_by_column_and_as_a_table() {
    let office = Office::open().await;
    let now = office.now().await;
    let hour = TimeDelta::hours(1);
    let events = [
        office.event_at("a", 1, now),
        office.event_at("b", 2, now - hour),
        office.event_at("c", 4, now - hour - hour),
        office.event_at("d", 8, now - hour),
    ];
    office.tell(&events).await.with(200);
    let told = office.usage("").await;
    let first = &told["items"][0];
    assert_eq!(
        (&first["source"], &first["event_id"]),
        (&json!("/apps/writer"), &json!("a")),
        "as it was told"
    );
    let sums = office.usage("&window=hour").await;
    let quantity = |item: &serde_json::Value| item["quantities"]["tokens"].as_i64().unwrap();
    let quantities = |page: &serde_json::Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(quantity).collect()
    };
    assert_eq!(quantities(&sums), [4, 10, 1]);
    assert!(sums["items"][0].get("usage_source").is_none(), "all together unless asked: {sums:#}");
    let first = office.usage("&window=hour&limit=2").await;
    assert_eq!(quantities(&first), [4, 10]);
    let next = format!("&window=hour&limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    let last = office.usage(&next).await;
    assert_eq!((quantities(&last), &last["next_cursor"]), (vec![1], &json!(null)));
    let by = office.usage("&window=month&group_by=usage_source,app_instance_id").await;
    assert_eq!(by["items"][0]["usage_source"], "app_runtime");
    assert_eq!(by["items"][0]["app_instance_id"], json!(office.instance));
    let since = format!("&from={}", (now - hour).format("%Y-%m-%dT%H:%M:%SZ"));
    assert_eq!(office.records(&since).await.len(), 3);
    assert_eq!(office.records("&usage_source=allocation").await, []);
    let request = Request::builder()
        .method(Method::GET)
        .uri(format!("/api/v1/billing/usage?app_instance_id={}", office.instance))
        .header(header::ACCEPT, "text/csv");
    let table =
        office.platform.http.acting("viewer").open(request.body(axum::body::Body::empty()).unwrap()).await;
    assert_eq!(table.headers()[header::CONTENT_TYPE], "text/csv; charset=utf-8");
    let bytes = axum::body::to_bytes(table.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert_eq!(text.lines().count(), 5, "{text}");
    let column = text.lines().next().unwrap().split(',').position(|name| name == "quantity").unwrap();
    assert_eq!(text.lines().nth(4).unwrap().split(',').nth(column), Some("8"), "{text}");
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sums_of_pieces_of_an_hour_are_exact() {
    let office = Office::open().await;
    priced(&office).await;
    let now = office.now().await;
    let ago = |minutes: i64| now - TimeDelta::minutes(minutes);
    let events = [
        office.event_at("a", 1, ago(60)),
        office.event_at("b", 2, ago(40)),
        office.event_at("c", 4, ago(20)),
    ];
    office.tell(&events).await.with(200);
    rolled_up(&office).await;
    let asked = async |from: Option<i64>, to: Option<i64>| {
        let mut query = "&window=month&group_by=app_slug".to_owned();
        for (name, minutes) in [("from", from), ("to", to)] {
            if let Some(minutes) = minutes {
                query += &format!("&{name}={}", ago(minutes).format("%Y-%m-%dT%H:%M:%SZ"));
            }
        }
        let page = office.usage(&query).await;
        assert_eq!(page["items"].as_array().unwrap().len(), 1, "{page:#}");
        let sum = &page["items"][0];
        assert_eq!((&sum["app_slug"], &sum["rated"]), (&json!("writer"), &json!(true)));
        (sum["quantities"]["tokens"].as_i64().unwrap(), sum["amount_minor"].as_i64().unwrap())
    };
    assert_eq!(asked(None, None).await, (7, 10));
    assert_eq!(asked(Some(50), None).await, (6, 8), "from the middle of an hour");
    assert_eq!(asked(None, Some(30)).await, (3, 4), "to the middle of one");
    assert_eq!(asked(Some(50), Some(30)).await, (2, 2), "within one");
    assert_eq!(asked(Some(60), Some(0)).await, (7, 10));
    office.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_of_others_does_not_exist() {
    let office = Office::open().await;
    let usage = |query: String| format!("/api/v1/billing/usage{query}");
    let stranger = office.platform.http.acting("stranger");
    let of_project = stranger.get(&usage(format!("?project_id={EXAMPLE}"))).await.with(404);
    assert_eq!(of_project["code"], "project_not_found");
    let of_instance = stranger.get(&usage(format!("?app_instance_id={}", office.instance))).await.with(404);
    assert_eq!(of_instance["code"], "app_instance_not_found");
    let nobody = office.platform.http.acting("viewer").get(&usage(String::new())).await.with(400);
    assert_eq!(nobody["details"]["errors"][0]["pointer"], "/project_id");
    let viewer = office.platform.http.acting("viewer");
    let headers = [("x-project-id", EXAMPLE.to_string())];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    viewer.send(Method::GET, &usage(String::new()), &headers, None).await.with(200);
    let query = format!("?project_id={}", Uuid::now_v7());
    viewer.send(Method::GET, &usage(query), &headers, None).await.with(400);
    office.close().await;
}
