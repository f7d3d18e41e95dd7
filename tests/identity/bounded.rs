//! Reads that stay small however much there is.

use serde_json::json;
use sqlx::PgConnection;
use store::audit::{self, Filter};
use uuid::Uuid;

use crate::http::{Http, admin, project};
use crate::support::realm::EXAMPLE;
use crate::support::story::Story;
use crate::support::world::touch;

/// A few entries of every kind that a filter asks for, and after them thousands that it does not.
const HISTORY: &str = "
    insert into audit (id, project_id, actor_id, action, target, result, code, correlation_id, at)
    select ('018f0000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $1,
           case when n < 5 then $2 else $3 end, case when n < 5 then 'rare' else 'usual' end,
           case when n < 5 then 'thing:rare' else 'thing:' || n end, case when n < 5 then 'denied' else 'succeeded' end,
           case when n < 5 then 'policy_denied' end, case when n < 5 then 'c-rare' else 'c-' || n end,
           engine.now() - interval '1 day'
    from generate_series(1, 20000) n";

/// How many rows of the log this transaction has looked at.
async fn looked_at(conn: &mut PgConnection) -> i64 {
    sqlx::query_scalar(
        "select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_xact_user_tables
         where relname = 'audit'",
    )
    .fetch_one(conn)
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_filter_of_the_audit_log_reads_what_it_shows_and_little_more() {
    let story = Story::new().await;
    let _http = Http::over(&story).await;
    let rare = Uuid::now_v7();
    sqlx::query(HISTORY).bind(EXAMPLE).bind(rare).bind(Uuid::now_v7()).execute(&story.pool).await.unwrap();
    sqlx::query("analyze audit").execute(&story.pool).await.unwrap();
    let page = || Filter { limit: 51, ..Filter::default() };
    let text = |word: &str| Some(word.to_owned());
    for (name, filter) in [
        ("none", page()),
        ("project", Filter { project_id: Some(EXAMPLE), ..page() }),
        ("actor", Filter { actor_id: Some(rare), ..page() }),
        ("action", Filter { action: text("rare"), ..page() }),
        ("action of a project", Filter { action: text("rare"), project_id: Some(EXAMPLE), ..page() }),
        ("target", Filter { target: text("thing:rare"), ..page() }),
        ("denied", Filter { result: text("denied"), ..page() }),
        ("denied in a project", Filter { result: text("denied"), project_id: Some(EXAMPLE), ..page() }),
        ("correlation", Filter { correlation_id: text("c-rare"), ..page() }),
        ("since", Filter { since: Some(chrono::Utc::now() + chrono::TimeDelta::hours(1)), ..page() }),
    ] {
        let mut tx = story.pool.begin().await.unwrap();
        // What this connection did before may still be in its count.
        let before = looked_at(&mut tx).await;
        let shown = audit::list(&mut tx, &filter).await.unwrap().len() as i64;
        let looked = looked_at(&mut tx).await - before;
        tx.rollback().await.unwrap();
        assert!(looked <= shown + 60, "{name}: {looked} rows were read to show {shown}");
    }
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_many_values_shows_the_first_and_says_so() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let user = Uuid::now_v7();
    sqlx::query(
        "insert into policies (layer, scope_id, key, value, updated_by)
         select 'user', case when n = 0 then $1 else gen_random_uuid() end, 'canary.min_samples', '30', $1
         from generate_series(0, 150) n",
    )
    .bind(user)
    .execute(&story.pool)
    .await
    .unwrap();
    let found = async |query: &str| {
        let page = http.get(&admin(&format!("/policies{query}"))).await.with(200);
        let items = page["items"].as_array().unwrap().clone();
        items.into_iter().find(|policy| policy["key"] == "canary.min_samples").unwrap()
    };
    let all = found("").await;
    assert_eq!((all["set"].as_array().unwrap().len(), &all["more"]), (100, &json!(true)));
    let one = found(&format!("?scope_id={user}")).await;
    assert_eq!((one["set"].as_array().unwrap().len(), &one["more"]), (1, &json!(false)));
    story.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_many_steps_shows_the_last_and_counts_the_rest() {
    let story = Story::new().await;
    let http = Http::over(&story).await;
    let run = story.start((0..620).map(|n| touch(&n.to_string())).collect::<Vec<_>>()).await;
    story.ends(run).await;
    let shown = http.get(&project(&format!("/workflows/{run}"))).await.with(200);
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &shown["steps_left_out"]), (500, &json!(120)));
    assert_eq!((&steps[0]["key"], &steps[499]["key"]), (&json!("120"), &json!("619")));
    assert_eq!(steps[499]["attempts"].as_array().unwrap().len(), 1, "with their tries");
    story.end().await;
}
