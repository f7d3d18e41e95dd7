//! What is to be retired, as it was asked for, until it is.

use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

/// One that should be over by now.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The workflow that does it.
    pub kind: String,
    pub subject_id: Uuid,
    /// What it was started with.
    pub input: Value,
}

/// Asked for again, the last asking counts.
pub async fn ask(
    conn: &mut PgConnection,
    kind: &str,
    subject: Uuid,
    input: &Value,
    grace_seconds: f64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into retirements (kind, subject_id, input, due_at)
         values ($1, $2, $3, engine.now() + make_interval(secs => $4))
         on conflict (kind, subject_id) do update set input = excluded.input, asked_at = engine.now(), due_at = excluded.due_at",
        kind,
        subject,
        input,
        grace_seconds
    )
    .execute(conn)
    .await
    .map(drop)
}

/// It is retired, or not to be any more.
pub async fn forget(conn: &mut PgConnection, kind: &str, subject: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from retirements where kind = $1 and subject_id = $2", kind, subject)
        .execute(conn)
        .await
        .map(drop)
}

/// Those whose grace period ended so many seconds ago, by kind and subject: a batch of those after one.
pub async fn overdue(
    conn: &mut PgConnection,
    slack_seconds: f64,
    after: Option<(&str, Uuid)>,
    limit: i64,
) -> sqlx::Result<Vec<Overdue>> {
    sqlx::query_as!(
        Overdue,
        "select kind, subject_id, input from retirements
         where due_at <= engine.now() - make_interval(secs => $1)
           and ($2::text is null or (kind, subject_id) > ($2, $3))
         order by kind, subject_id limit $4",
        slack_seconds,
        after.map(|(kind, _)| kind),
        after.map(|(_, subject)| subject),
        limit
    )
    .fetch_all(conn)
    .await
}
