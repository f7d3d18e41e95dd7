//! What the database server says about itself: its clock, by which everybody goes, and for `gpuaas doctor` its version and
//! whether it keeps what it has confirmed.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

/// The time by which everything is decided.
pub async fn now(conn: &mut PgConnection) -> sqlx::Result<DateTime<Utc>> {
    sqlx::query_scalar!(r#"select engine.now() as "now!""#).fetch_one(conn).await
}

/// One look at the server.
#[derive(Debug, Clone)]
pub struct Facts {
    pub version: String,
    pub version_number: i32,
    pub fsync: bool,
    pub full_page_writes: bool,
    pub synchronous_commit: bool,
    pub checksums: bool,
    pub role: String,
    pub clock: DateTime<Utc>,
}

pub async fn facts(conn: &mut PgConnection) -> sqlx::Result<Facts> {
    sqlx::query_as!(
        Facts,
        r#"select current_setting('server_version')              as "version!",
                  current_setting('server_version_num')::int     as "version_number!",
                  current_setting('fsync')::bool                 as "fsync!",
                  current_setting('full_page_writes')::bool      as "full_page_writes!",
                  current_setting('synchronous_commit') <> 'off' as "synchronous_commit!",
                  current_setting('data_checksums')::bool        as "checksums!",
                  current_user::text                             as "role!",
                  clock_timestamp()                              as "clock!""#
    )
    .fetch_one(conn)
    .await
}
