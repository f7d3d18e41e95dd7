//! Runs of a manifest's own tests on a fresh instance: the last one is what the gate looks at.

use domain::version_gate::SmokeRun;
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// Once per run; a repetition changes nothing.
pub async fn insert(
    conn: &mut PgConnection,
    version: Uuid,
    run: Uuid,
    passed: bool,
    evidence: &Value,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into smoke_runs (version_id, run_id, passed, evidence) values ($1, $2, $3, $4) on conflict do nothing",
        version,
        run,
        passed,
        evidence
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn last(conn: &mut PgConnection, version: Uuid) -> sqlx::Result<Option<SmokeRun>> {
    sqlx::query_as!(
        SmokeRun,
        "select run_id, passed, evidence from smoke_runs where version_id = $1 order by at desc, run_id desc limit 1",
        version
    )
    .fetch_optional(conn)
    .await
}
