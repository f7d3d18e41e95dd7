//! Whose an app is, as far as artifacts are concerned: the project that asked first to publish for its slug.

use sqlx::PgConnection;
use uuid::Uuid;

/// The owner of a slug, held still: two projects that ask first at the same moment take turns.
pub async fn of_locked(conn: &mut PgConnection, app_slug: &str) -> sqlx::Result<Option<Uuid>> {
    sqlx::query!("select pg_advisory_xact_lock(hashtextextended('app-owner/' || $1, 0))", app_slug)
        .execute(&mut *conn)
        .await?;
    of(conn, app_slug).await
}

pub async fn of(conn: &mut PgConnection, app_slug: &str) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select project_id from publish_intents where app_slug = $1 order by id limit 1",
        app_slug
    )
    .fetch_optional(conn)
    .await
}
