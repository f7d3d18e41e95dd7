//! Webhooks: where a project wants its events sent, how far it has got, and whether its receiver takes anything.

use chrono::{DateTime, Utc};
use domain::webhook::DisabledReason;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct Webhook {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub url: String,
    pub description: Option<String>,
    pub event_types: Vec<String>,
    pub status: String,
    pub disabled_reason: Option<String>,
    /// Until then the secret before signs too.
    pub previous_secret_until: Option<DateTime<Utc>>,
    pub failing_since: Option<DateTime<Utc>>,
    pub events_lost: i64,
    pub events_lost_at: Option<DateTime<Utc>>,
    pub created_by: Uuid,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Webhook {
    pub fn is_active(&self) -> bool {
        self.status == "active"
    }
}

pub struct NewWebhook<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub url: &'a str,
    pub description: Option<&'a str>,
    pub event_types: &'a [String],
    pub secret: &'a str,
    pub created_by: Uuid,
}

/// What a webhook's secret is sealed for: this row and no other.
pub fn sealed_for(id: Uuid) -> String {
    format!("webhooks.secret:{id}")
}

/// It is sent what is told from now on.
pub async fn insert(conn: &mut PgConnection, new: &NewWebhook<'_>) -> sqlx::Result<Webhook> {
    sqlx::query_as!(
        Webhook,
        "insert into webhooks (id, org_id, project_id, url, description, event_types, secret, created_by, position)
         values ($1, $2, $3, $4, $5, $6, $7, $8,
                 coalesce((select last_seq from event_counters where project_id = $3), 0))
         returning id, org_id, project_id, url, description, event_types, status, disabled_reason, previous_secret_until,
                failing_since, events_lost, events_lost_at, created_by, created_at, updated_at",
        new.id,
        new.org_id,
        new.project_id,
        new.url,
        new.description,
        new.event_types,
        new.secret,
        new.created_by
    )
    .fetch_one(conn)
    .await
}

/// How many the project has. Until the transaction ends, whoever else counts them to add one waits.
pub async fn count_to_add(conn: &mut PgConnection, project: Uuid) -> sqlx::Result<i64> {
    sqlx::query_scalar!("select id from projects where id = $1 for no key update", project)
        .fetch_optional(&mut *conn)
        .await?;
    sqlx::query_scalar!(r#"select count(*) as "number!" from webhooks where project_id = $1"#, project)
        .fetch_one(conn)
        .await
}

/// Whose it is; none if it is gone.
pub async fn project_of(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!("select project_id from webhooks where id = $1", id).fetch_optional(conn).await
}

pub async fn list(conn: &mut PgConnection, project: Uuid, slice: Slice) -> sqlx::Result<Vec<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "select id, org_id, project_id, url, description, event_types, status, disabled_reason, previous_secret_until,
                failing_since, events_lost, events_lost_at, created_by, created_at, updated_at
         from webhooks where project_id = $1 and ($2::uuid is null or id > $2) order by id limit $3",
        project,
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, project: Uuid, id: Uuid) -> sqlx::Result<Option<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "select id, org_id, project_id, url, description, event_types, status, disabled_reason, previous_secret_until,
                failing_since, events_lost, events_lost_at, created_by, created_at, updated_at
         from webhooks where id = $2 and project_id = $1",
        project,
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Webhook>> {
    sqlx::query_as!(
        Webhook,
        "select id, org_id, project_id, url, description, event_types, status, disabled_reason, previous_secret_until,
                failing_since, events_lost, events_lost_at, created_by, created_at, updated_at
         from webhooks where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

/// Everything a person may change. One that is enabled goes on where it stopped, at once.
pub async fn update(conn: &mut PgConnection, webhook: &Webhook) -> sqlx::Result<Webhook> {
    sqlx::query_as!(
        Webhook,
        "update webhooks set url = $2, description = $3, event_types = $4, status = $5, disabled_reason = $6,
                failures = 0, failing_since = null, rests_until = null, updated_at = engine.now()
         where id = $1
         returning id, org_id, project_id, url, description, event_types, status, disabled_reason, previous_secret_until,
                failing_since, events_lost, events_lost_at, created_by, created_at, updated_at",
        webhook.id,
        webhook.url,
        webhook.description,
        &webhook.event_types,
        webhook.status,
        webhook.disabled_reason
    )
    .fetch_one(conn)
    .await
}

/// Its deliveries go with it.
pub async fn delete(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from webhooks where id = $1", id).execute(conn).await.map(drop)
}

/// Nothing is sent any more. False if it was disabled before.
pub async fn disable(conn: &mut PgConnection, id: Uuid, why: DisabledReason) -> sqlx::Result<bool> {
    let changed = sqlx::query!(
        "update webhooks set status = 'disabled', disabled_reason = $2, updated_at = engine.now()
         where id = $1 and status = 'active'",
        id,
        why.as_str()
    )
    .execute(conn)
    .await?;
    Ok(changed.rows_affected() > 0)
}

/// The receiver took something.
pub async fn thrives(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhooks set failures = 0, failing_since = null, rests_until = null where id = $1 and failures > 0",
        id
    )
    .execute(conn)
    .await
    .map(drop)
}

/// Whether the webhook still is what it was when it was read: every change, and nothing else, moves this time.
pub async fn is_unchanged(
    conn: &mut PgConnection,
    id: Uuid,
    updated_at: DateTime<Utc>,
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select 1 from webhooks where id = $1 and updated_at = $2) as "unchanged!""#,
        id,
        updated_at
    )
    .fetch_one(conn)
    .await
}

/// The receiver at this address did not take something. Answers how many tries in a row failed, and for how many seconds by
/// now; nothing if events go elsewhere by now, or nowhere. The webhook is held from here to the end of the transaction.
pub async fn suffers(conn: &mut PgConnection, id: Uuid, url: &str) -> sqlx::Result<Option<(i32, f64)>> {
    let row = sqlx::query!(
        r#"update webhooks set failures = failures + 1, failing_since = coalesce(failing_since, engine.now())
           where id = $1 and url = $2
           returning failures, extract(epoch from engine.now() - failing_since)::float8 as "seconds!""#,
        id,
        url
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| (row.failures, row.seconds)))
}

/// Nothing is sent to it for so long.
pub async fn rest(conn: &mut PgConnection, id: Uuid, seconds: f64) -> sqlx::Result<()> {
    sqlx::query!(
        "update webhooks set rests_until = engine.now() + make_interval(secs => $2) where id = $1",
        id,
        seconds
    )
    .execute(conn)
    .await
    .map(drop)
}

/// The sealed secrets that sign now: the newest, and the one before it while receivers change over.
pub async fn live_secrets(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Vec<String>> {
    let row = sqlx::query!(
        "select secret, case when previous_secret_until > engine.now() then previous_secret end as previous
         from webhooks where id = $1",
        id
    )
    .fetch_one(conn)
    .await?;
    Ok([Some(row.secret), row.previous].into_iter().flatten().collect())
}

/// A new secret beside the newest old one, which signs for so much longer.
pub async fn rotate(conn: &mut PgConnection, id: Uuid, secret: &str, seconds: f64) -> sqlx::Result<Webhook> {
    sqlx::query_as!(
        Webhook,
        "update webhooks set secret = $2, previous_secret = secret,
                previous_secret_until = engine.now() + make_interval(secs => $3), updated_at = engine.now()
         where id = $1
         returning id, org_id, project_id, url, description, event_types, status, disabled_reason, previous_secret_until,
                failing_since, events_lost, events_lost_at, created_by, created_at, updated_at",
        id,
        secret,
        seconds
    )
    .fetch_one(conn)
    .await
}
