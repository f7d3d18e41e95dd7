//! The audit log: every change and every denial is in it, and nobody can alter it.

use axum::http::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor};

use crate::http::{Http, admin, project};
use crate::support::realm::{EXAMPLE, NEXT_DOOR};
use crate::support::story::Story;

async fn entries(http: &Http, filter: &str) -> Vec<Value> {
    let page = http.get(&admin(&format!("/audit?{filter}"))).await.with(200);
    page["items"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_told_with_who_what_and_why() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let headers = [("x-request-id", "audit-story"), ("user-agent", "curl/8")];
    let body = json!({ "name": "one", "permissions": ["workflows.read"] });
    let path = project("/service-accounts");
    let made = http.acting("project-admin").send(Method::POST, &path, &headers, Some(body)).await.with(201);
    let told = entries(&http, "correlation_id=audit-story").await;
    assert_eq!(told.len(), 1);
    let told = &told[0];
    assert_eq!(told["action"], "create_service_account");
    assert_eq!(told["target"], format!("service_account:{}", made["id"].as_str().unwrap()));
    assert_eq!((&told["result"], &told["code"]), (&json!("succeeded"), &Value::Null));
    assert_eq!((&told["actor"]["type"], &told["actor"]["role"]), (&json!("user"), &json!("admin")));
    assert_eq!((&told["project_id"], &told["user_agent"]), (&json!(EXAMPLE), &json!("curl/8")));
    assert_eq!(told["after"]["permissions"], json!(["workflows.read"]));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_is_told_also_where_the_place_was_kept_secret() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let next_door = format!("/api/v1/projects/{NEXT_DOOR}/workflows");
    for (who, path, code) in [
        ("viewer", project("/members"), "insufficient_permissions"),
        ("viewer", next_door, "project_not_found"),
        ("viewer", admin("/projects"), "admin_required"),
    ] {
        http.acting(who).get(&path).await;
        let told = entries(&http, "result=denied").await[0].clone();
        assert_eq!((&told["code"], &told["target"]), (&json!(code), &json!(path)));
        assert_eq!(told["actor"]["type"], "user");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_reads_its_own_entries_only() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    http.post(&project("/service-accounts"), json!({ "name": "one" })).await.with(201);
    let next_door = format!("/api/v1/projects/{NEXT_DOOR}");
    http.post(&format!("{next_door}/service-accounts"), json!({ "name": "two" })).await.with(201);
    let page = http.acting("viewer").get(&project("/audit")).await.with(200);
    let items = page["items"].as_array().unwrap();
    assert!(!items.is_empty() && items.iter().all(|entry| entry["project_id"] == json!(EXAMPLE)), "{page:#}");
    let page = http.acting("neighbour").get(&format!("{next_door}/audit?project_id={EXAMPLE}")).await;
    assert_eq!(page.with(400)["code"], "invalid_request");
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn walking_the_pages_meets_every_entry_once_newest_first() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    for n in 0..5 {
        http.post(&project("/service-accounts"), json!({ "name": format!("machine-{n}") })).await.with(201);
    }
    let (mut met, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = http.get(&project(&format!("/audit?limit=2{cursor}"))).await.with(200);
        met.extend(page["items"].as_array().unwrap().iter().map(|entry| entry["after"]["name"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(met, [4, 3, 2, 1, 0].map(|n| json!(format!("machine-{n}"))));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_alters_an_entry_neither_the_serving_role_nor_the_owner() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    http.post(&project("/service-accounts"), json!({ "name": "one" })).await.with(201);
    for role in ["gpuaas_app", "postgres"] {
        for statement in ["update audit set action = 'nothing'", "delete from audit", "truncate audit"] {
            let mut tx = story.pool.begin().await.unwrap();
            if role == "gpuaas_app" {
                tx.execute("set local role gpuaas_app").await.unwrap();
            }
            let refused = tx.execute(AssertSqlSafe(statement.to_owned())).await;
            let code =
                refused.unwrap_err().into_database_error().and_then(|e| e.code().map(|c| c.into_owned()));
            assert_eq!(code.as_deref(), Some("42501"), "{role}: {statement}");
        }
    }
    assert!(!entries(&http, "action=create_service_account").await.is_empty());
    story.end().await;
}
