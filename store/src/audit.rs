//! The audit log: what was done and what was refused. It only grows; the database refuses everything else.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{PgConnection, QueryBuilder};
use uuid::Uuid;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct Entry {
    pub id: Uuid,
    pub at: DateTime<Utc>,
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub actor_id: Option<Uuid>,
    pub actor_type: Option<String>,
    pub actor_role: Option<String>,
    pub action: String,
    pub target: String,
    pub result: String,
    pub code: Option<String>,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub reason: Option<String>,
    pub correlation_id: String,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

/// An entry before the database gave it its id and time.
#[derive(Clone, Debug, Default)]
pub struct NewEntry {
    pub org_id: Option<Uuid>,
    pub project_id: Option<Uuid>,
    pub actor_id: Option<Uuid>,
    pub actor_type: Option<&'static str>,
    pub actor_role: Option<String>,
    pub action: String,
    pub target: String,
    /// The error code of a denial; without one the act succeeded.
    pub code: Option<&'static str>,
    pub before: Option<Value>,
    pub after: Option<Value>,
    pub reason: Option<String>,
    pub correlation_id: String,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
}

pub async fn insert(conn: &mut PgConnection, entry: &NewEntry) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into audit (id, org_id, project_id, actor_id, actor_type, actor_role, action, target, result, code,
                            before, after, reason, correlation_id, ip, user_agent)
         values ($1, $2, $3, $4, $5, $6, $7, $8, case when $9::text is null then 'succeeded' else 'denied' end, $9,
                 $10, $11, $12, $13, $14, $15)",
        Uuid::now_v7(),
        entry.org_id,
        entry.project_id,
        entry.actor_id,
        entry.actor_type,
        entry.actor_role,
        entry.action,
        entry.target,
        entry.code,
        entry.before,
        entry.after,
        entry.reason,
        entry.correlation_id,
        entry.ip,
        entry.user_agent
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// What a reader of the log asks for; every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub project_id: Option<Uuid>,
    pub actor_id: Option<Uuid>,
    pub action: Option<String>,
    pub target: Option<String>,
    pub result: Option<String>,
    pub correlation_id: Option<String>,
    pub since: Option<DateTime<Utc>>,
    pub before: Option<Uuid>,
    pub limit: i64,
}

/// Newest first.
pub async fn list(conn: &mut PgConnection, filter: &Filter) -> sqlx::Result<Vec<Entry>> {
    let mut query = QueryBuilder::new(
        "select id, at, org_id, project_id, actor_id, actor_type, actor_role, action, target, result, code, before,
                after, reason, correlation_id, ip, user_agent
         from audit where true",
    );
    if let Some(project) = filter.project_id {
        query.push(" and project_id = ").push_bind(project);
    }
    if let Some(actor) = filter.actor_id {
        query.push(" and actor_id = ").push_bind(actor);
    }
    for (column, wanted) in
        [("action", &filter.action), ("target", &filter.target), ("correlation_id", &filter.correlation_id)]
    {
        if let Some(wanted) = wanted {
            query.push(" and ").push(column).push(" = ").push_bind(wanted.clone());
        }
    }
    // Said to the letter, because what was denied has an index of its own.
    match filter.result.as_deref() {
        Some("denied") => _ = query.push(" and result = 'denied'"),
        Some(_) => _ = query.push(" and result = 'succeeded'"),
        None => {}
    }
    if let Some(since) = filter.since {
        query.push(" and at >= ").push_bind(since);
    }
    if let Some(before) = filter.before {
        query.push(" and id < ").push_bind(before);
    }
    query.push(" order by id desc limit ").push_bind(filter.limit);
    query.build_query_as().fetch_all(conn).await
}
