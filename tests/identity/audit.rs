//! The audit log: every change and every denial is in it, and nobody can alter it.

use axum::http::Method;
use engine::RunState;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Executor};
use uuid::Uuid;

use crate::http::{Http, admin, project};
use crate::support::realm::{DEMO, EXAMPLE, NEXT_DOOR};
use crate::support::story::Story;
use crate::support::world::{Do, Trouble, touch};

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
async fn a_project_reads_what_the_platforms_people_did_to_what_is_its_own() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start([Do::Wait(3_600_000)]).await;
    story.until(run, &[RunState::Waiting]).await;
    http.post(&admin(&format!("/workflows/{run}/cancel")), json!({ "reason": "enough" })).await.with(202);
    let policy = format!("/policies/project/{EXAMPLE}/canary.min_samples");
    http.put(&admin(&policy), json!({ "value": 30 })).await.with(200);
    let credit = json!({ "amount_minor": 100, "currency": "EUR" });
    http.post(&admin(&format!("/projects/{EXAMPLE}/credits")), credit).await.with(201);
    let next_door = format!("/policies/project/{NEXT_DOOR}/canary.min_samples");
    http.put(&admin(&next_door), json!({ "value": 30 })).await.with(200);

    let page = http.acting("project-admin").get(&project("/audit")).await.with(200);
    let told: Vec<(&str, &str)> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (entry["action"].as_str().unwrap(), entry["target"].as_str().unwrap()))
        .collect();
    let (workflow, ledger) = (format!("workflow:{run}"), format!("ledger:{EXAMPLE}"));
    let value = format!("policy:project/{EXAMPLE}/canary.min_samples");
    let expected = [
        ("create_credit", ledger.as_str()),
        ("set_policy", value.as_str()),
        ("cancel_workflow", workflow.as_str()),
    ];
    assert_eq!(told, expected, "and nothing of next door");
    let of = |at: usize| (&page["items"][at]["org_id"], &page["items"][at]["actor"]["type"]);
    assert_eq!(of(0), (&json!(DEMO), &json!("user")));
    assert_eq!(of(1), (&json!(DEMO), &json!("user")));
    assert_eq!(story.ends(run).await, RunState::Cancelled);
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_are_retried_together_are_told_one_by_one() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    story.world.trouble("odd", vec![Trouble::NeedsOperator; 2]);
    let mut stopped = Vec::new();
    for _ in 0..2 {
        let run = story.start([touch("odd")]).await;
        assert_eq!(story.settles(run).await, RunState::Paused);
        stopped.push(run);
    }
    let ids = json!([stopped[0], stopped[1], Uuid::from_u128(7)]);
    let asked = json!({ "ids": ids, "reason": "repaired" });
    http.post(&admin("/workflows/bulk-retry"), asked).await.with(200);
    for run in &stopped {
        let path = project(&format!("/audit?target=workflow:{run}"));
        let page = http.acting("project-admin").get(&path).await.with(200);
        let [entry] = &page["items"].as_array().unwrap()[..] else { panic!("{page:#}") };
        assert_eq!(
            (&entry["action"], &entry["reason"]),
            (&json!("bulk_retry_workflows"), &json!("repaired"))
        );
        assert_eq!((&entry["before"]["status"], &entry["after"]["id"]), (&json!("paused"), &json!(run)));
    }
    let all = entries(&http, "action=bulk_retry_workflows").await;
    assert_eq!(all.len(), 2, "what was refused did not change");
    for run in stopped {
        assert_eq!(story.ends(run).await, RunState::Succeeded);
    }
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
