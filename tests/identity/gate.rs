//! Who comes in, and in which order the others are told why not.

use std::time::Duration;

use axum::http::Method;
use chrono::TimeDelta;
use domain::{PolicyKey, PolicyLayer};
use serde_json::json;
use uuid::Uuid;

use crate::http::{Http, admin, organization, project};
use crate::support::realm::{DEMO, EXAMPLE, FAR_AWAY, ISSUER, NEXT_DOOR};
use crate::support::story::Story;

#[tokio::test(flavor = "multi_thread")]
async fn the_first_sign_in_makes_a_user_who_may_do_nothing_yet() {
    let story = Story::new().await;
    let http = Http::over(&story).await.acting("newcomer");
    let me = http.get("/api/v1/me").await.with(200);
    assert_eq!((&me["name"], &me["actor_type"]), (&json!("newcomer"), &json!("user")));
    assert_eq!((&me["platform_role"], &me["grants"]), (&json!("platform_user"), &json!([])));
    assert_eq!(
        http.get("/api/v1/me").await.with(200)["id"],
        me["id"],
        "the second sign-in is the same person"
    );
    assert_eq!(http.get(&project("/workflows")).await.with(404)["code"], "project_not_found");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn me_tells_where_one_holds_what() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let me = http.acting("operator").get("/api/v1/me").await.with(200);
    let grant = &me["grants"][0];
    assert_eq!((&grant["org_id"], &grant["project_id"]), (&json!(DEMO), &json!(EXAMPLE)));
    assert_eq!(grant["role"], "operator");
    assert!(grant["permissions"].as_array().unwrap().contains(&json!("workflows.operate")));
    assert!(!grant["permissions"].as_array().unwrap().contains(&json!("iam.member.manage")));
    let me = http.get("/api/v1/me").await.with(200);
    assert_eq!(me["grants"][0]["role"], "platform_superadmin");
    story.end().await;
}

/// A name is kept in memory with its principal, so a new one must be noticed, and only a new one.
#[tokio::test(flavor = "multi_thread")]
async fn another_name_raises_the_version_of_authority_and_the_same_one_does_not() {
    let story = Story::new().await;
    Http::over(&story).await;
    let version = async || {
        sqlx::query_scalar::<_, i64>("select version from authority").fetch_one(&story.pool).await.unwrap()
    };
    let called = async |name: &str| {
        let mut conn = story.pool.acquire().await.unwrap();
        store::users::sign_in(&mut conn, ISSUER, "viewer", name).await.unwrap();
    };
    let before = version().await;
    called("viewer").await;
    assert_eq!(version().await, before);
    called("vera").await;
    assert_eq!(version().await, before + 1);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_come_in_the_contracts_order() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let somewhere = |project: Uuid| format!("/api/v1/projects/{project}/members");
    let bad = json!({ "no_such_field": true });
    for (who, path, status, code) in [
        // Whoever is nobody learns nothing else, whatever else is wrong.
        ("", somewhere(Uuid::now_v7()), 401, "token_missing"),
        // A project one has no part in does not exist, be it there or not, be it next door or far away.
        ("project-admin", somewhere(Uuid::now_v7()), 404, "project_not_found"),
        ("project-admin", somewhere(NEXT_DOOR), 404, "project_not_found"),
        ("project-admin", somewhere(FAR_AWAY), 404, "project_not_found"),
        ("member", somewhere(EXAMPLE), 404, "project_not_found"),
        ("admin", somewhere(Uuid::now_v7()), 404, "project_not_found"),
        ("admin", "/api/v1/projects/mine/members".to_owned(), 404, "project_not_found"),
        ("stranger", organization("/roles"), 404, "organization_not_found"),
        // The platform is not theirs, whatever they hold elsewhere.
        ("project-admin", admin("/organizations"), 403, "admin_required"),
        ("owner", admin("/organizations"), 403, "admin_required"),
        // The place is theirs, the key is not; only then is the body looked at.
        ("ops", admin("/organizations"), 403, "insufficient_permissions"),
        ("viewer", somewhere(EXAMPLE), 403, "insufficient_permissions"),
        ("org-viewer", organization("/roles"), 403, "insufficient_permissions"),
        ("project-admin", somewhere(EXAMPLE), 400, "validation_error"),
    ] {
        let caller = if who.is_empty() { http.bearing("") } else { http.acting(who) };
        let answer = caller.post(&path, bad.clone()).await.with(status);
        assert_eq!(answer["code"], code, "{who} {path}");
    }
    let missing = http.acting("project-admin").delete(&format!("{}/nobody", somewhere(EXAMPLE))).await;
    assert_eq!(missing.with(404)["code"], "member_not_found");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_believed_until_it_expires_and_not_a_moment_longer() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    assert_eq!(http.get("/api/v1/me").await.status, 200);
    // Skew between two machines' clocks is forgiven, half a minute of it.
    http.realm.clock.advance(TimeDelta::minutes(61));
    assert_eq!(http.get("/api/v1/me").await.with(401)["code"], "token_expired");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_project_header_must_agree_with_the_path() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let send = |value: String| {
        let http = http.clone();
        async move { http.send(Method::GET, &project("/workflows"), &[("x-project-id", &value)], None).await }
    };
    assert_eq!(send(EXAMPLE.to_string()).await.status, 200);
    for value in [NEXT_DOOR.to_string(), "mine".to_owned()] {
        assert_eq!(send(value).await.with(400)["code"], "invalid_request");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_principal_may_ask_so_often_a_minute_and_others_are_not_held_up() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let me = http.acting("viewer").get("/api/v1/me").await.with(200)["id"].clone();
    let path = admin(&format!("/policies/user/{}/rate_limit.api_requests_per_minute", me.as_str().unwrap()));
    http.put(&path, json!({ "value": 3 })).await.with(200);
    let mut answers = Vec::new();
    for _ in 0..4 {
        answers.push(http.acting("viewer").get("/api/v1/me").await);
    }
    assert_eq!(answers[0].header("ratelimit-policy"), "\"api\";q=3;w=60");
    let last = answers.pop().unwrap();
    assert!(last.header("retry-after").parse::<u32>().unwrap() <= 60);
    assert!(last.header("ratelimit").starts_with("\"api\";r=0;"));
    assert_eq!(last.with(429)["code"], "rate_limited");
    assert_eq!(http.acting("operator").get("/api/v1/me").await.status, 200);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_away_is_gone_with_the_next_request_and_soon_in_every_process() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let elsewhere = http.elsewhere();
    let members = http.get(&project("/members")).await.with(200);
    let viewer =
        members["items"].as_array().unwrap().iter().find(|m| m["username"] == "viewer").unwrap().clone();
    let path = project("/workflows");
    for process in [&http, &elsewhere] {
        assert_eq!(process.acting("viewer").get(&path).await.status, 200);
    }
    http.delete(&project(&format!("/members/{}", viewer["id"].as_str().unwrap()))).await;
    assert_eq!(http.acting("viewer").get(&path).await.with(404)["code"], "project_not_found");
    // The other process looks at most this often; it must not need a restart, a sign-in or a new token.
    let soon = async { while elsewhere.acting("viewer").get(&path).await.status == 200 {} };
    tokio::time::timeout(Duration::from_secs(30), soon).await.expect("the other process notices by itself");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_raised_limit_holds_at_once() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let mut conn = story.pool.acquire().await.unwrap();
    let (layer, key) = (PolicyLayer::Global, PolicyKey::ApiRequestsPerMinute);
    store::policies::set(&mut conn, layer, Uuid::nil(), key, &json!(700), Uuid::nil()).await.unwrap();
    drop(conn);
    let answer = http.elsewhere().get("/api/v1/me").await;
    assert_eq!(answer.header("ratelimit-policy"), "\"api\";q=700;w=60");
    story.end().await;
}
