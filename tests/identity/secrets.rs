//! Secrets leave once, with the answer they belong to, and are found nowhere else.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::service_accounts::{bearer, make};
use crate::http::{Http, project};
use crate::support::story::Story;

/// Every row of every table of ours, as text.
pub async fn everything_stored(story: &Story) -> String {
    let tables: Vec<String> = sqlx::query_scalar(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('public', 'engine', 'apalis')",
    )
    .fetch_all(&story.pool)
    .await
    .unwrap();
    let mut stored = String::new();
    for table in tables {
        let rows: Vec<String> = sqlx::query_scalar(AssertSqlSafe(format!("select t::text from {table} t")))
            .fetch_all(&story.pool)
            .await
            .unwrap();
        stored.push_str(&rows.join("\n"));
    }
    // First answers are kept as bytes, which the database shows in hexadecimal.
    let answers: Vec<Vec<u8>> =
        sqlx::query_scalar("select body from idempotency").fetch_all(&story.pool).await.unwrap();
    for answer in answers {
        stored.push_str(&String::from_utf8(answer).unwrap());
    }
    stored
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_private_keys_nor_tokens_are_stored_anywhere() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let made = make(&http, json!({ "name": "one" })).await;
    let key = [("x-idempotency-key", "k1")];
    let path = project(&format!("/service-accounts/{}/rotate-key", made["id"].as_str().unwrap()));
    let rotated = http.send(axum::http::Method::POST, &path, &key, Some(json!({}))).await.with(200);
    let token = bearer(&http, &rotated).await;
    http.bearing(&token).get(&project("/audit")).await.with(403);
    // A proof that fails must not be kept either.
    let proof = json!({ "service_account_id": made["id"], "key_id": "wrong", "private_key_pem": made["private_key_pem"] });
    http.bearing("").post("/api/v1/auth/service-account/token", proof).await.with(401);

    let stored = everything_stored(&story).await;
    let middle = |pem: &Value| pem.as_str().unwrap().lines().nth(1).unwrap().to_owned();
    assert!(stored.contains(made["key_id"].as_str().unwrap()), "the search looks in the right places");
    for secret in [middle(&made["private_key_pem"]), middle(&rotated["private_key_pem"]), token] {
        assert!(!stored.contains(&secret));
    }
    story.end().await;
}
