//! Policies: values that administrators set on a layer. Which one holds is decided in `domain`.

use chrono::{DateTime, Utc};
use domain::policy::Resolved;
use domain::{PolicyKey, PolicyLayer};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub struct Policy {
    pub layer: String,
    /// The nil id on the global layer.
    pub scope_id: Uuid,
    pub key: String,
    pub value: Value,
    pub updated_by: Uuid,
    pub updated_at: DateTime<Utc>,
}

/// For whom a policy is asked: every layer that is known takes part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject {
    pub user: Option<Uuid>,
    pub project: Option<Uuid>,
    pub org: Option<Uuid>,
}

/// What is set for a key, for everybody or for this subject alone: at most so many values.
pub async fn of_key(
    conn: &mut PgConnection,
    key: PolicyKey,
    scope_id: Option<Uuid>,
    limit: i64,
) -> sqlx::Result<Vec<Policy>> {
    sqlx::query_as!(
        Policy,
        "select layer, scope_id, key, value, updated_by, updated_at from policies
         where key = $1 and ($2::uuid is null or scope_id = $2) order by layer, scope_id limit $3",
        key.as_str(),
        scope_id,
        limit
    )
    .fetch_all(conn)
    .await
}

/// Held still until the transaction ends, so that what was compared with it stays true.
pub async fn find_locked(
    conn: &mut PgConnection,
    layer: PolicyLayer,
    scope_id: Uuid,
    key: PolicyKey,
) -> sqlx::Result<Option<Policy>> {
    sqlx::query_as!(
        Policy,
        "select layer, scope_id, key, value, updated_by, updated_at from policies
         where layer = $1 and scope_id = $2 and key = $3 for update",
        layer.as_str(),
        scope_id,
        key.as_str()
    )
    .fetch_optional(conn)
    .await
}

pub async fn set(
    conn: &mut PgConnection,
    layer: PolicyLayer,
    scope_id: Uuid,
    key: PolicyKey,
    value: &Value,
    by: Uuid,
) -> sqlx::Result<Policy> {
    sqlx::query_as!(
        Policy,
        "insert into policies (layer, scope_id, key, value, updated_by) values ($1, $2, $3, $4, $5)
         on conflict (layer, scope_id, key)
         do update set value = excluded.value, updated_by = excluded.updated_by, updated_at = engine.now()
         returning layer, scope_id, key, value, updated_by, updated_at",
        layer.as_str(),
        scope_id,
        key.as_str(),
        value,
        by
    )
    .fetch_one(conn)
    .await
}

/// The value that holds for somebody somewhere.
pub async fn resolve(conn: &mut PgConnection, key: PolicyKey, subject: Subject) -> sqlx::Result<Resolved> {
    let set = sqlx::query!(
        "select layer, value from policies
         where key = $1 and (layer = 'global' or (layer = 'org' and scope_id = $2)
             or (layer = 'project' and scope_id = $3) or (layer = 'user' and scope_id = $4))",
        key.as_str(),
        subject.org,
        subject.project,
        subject.user
    )
    .fetch_all(conn)
    .await?;
    let layers = set.iter().filter_map(|row| Some((row.layer.parse::<PolicyLayer>().ok()?, &row.value)));
    Ok(key.resolve(layers))
}

/// The value of a key that is a whole number, for somebody somewhere.
pub async fn whole_number(conn: &mut PgConnection, key: PolicyKey, subject: Subject) -> sqlx::Result<i64> {
    Ok(key.whole_number(&resolve(conn, key, subject).await?.value))
}

/// The value of a key that is any number, for somebody somewhere.
pub async fn number(conn: &mut PgConnection, key: PolicyKey, subject: Subject) -> sqlx::Result<f64> {
    Ok(key.number(&resolve(conn, key, subject).await?.value))
}

/// The value of a key that is yes or no, for somebody somewhere.
pub async fn flag(conn: &mut PgConnection, key: PolicyKey, subject: Subject) -> sqlx::Result<bool> {
    Ok(key.flag(&resolve(conn, key, subject).await?.value))
}
