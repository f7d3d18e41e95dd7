//! People who have signed in at least once. The pair of issuer and subject is the person; the name is for reading.

use chrono::{DateTime, Utc};
use domain::PlatformRole;
use sqlx::PgConnection;
use uuid::Uuid;

#[derive(Clone, Debug)]
pub struct User {
    pub id: Uuid,
    pub username: String,
    pub platform_role: String,
    pub created_at: DateTime<Utc>,
}

/// The first sign-in makes the user; later ones keep the name up to date.
pub async fn sign_in(
    conn: &mut PgConnection,
    issuer: &str,
    subject: &str,
    username: &str,
) -> sqlx::Result<User> {
    sqlx::query_as!(
        User,
        "insert into users (id, issuer, subject, username) values ($1, $2, $3, $4)
         on conflict (issuer, subject) do update set username = excluded.username
         returning id, username, platform_role, created_at",
        Uuid::now_v7(),
        issuer,
        subject,
        username
    )
    .fetch_one(conn)
    .await
}

pub async fn set_platform_role(conn: &mut PgConnection, id: Uuid, role: PlatformRole) -> sqlx::Result<()> {
    sqlx::query!(
        "update users set platform_role = $2 where id = $1 and platform_role <> $2",
        id,
        role.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<User>> {
    sqlx::query_as!(User, "select id, username, platform_role, created_at from users where id = $1", id)
        .fetch_optional(conn)
        .await
}

/// Names are the issuers' and need not be unique: two answers mean that the caller must name an id.
pub async fn named(conn: &mut PgConnection, username: &str) -> sqlx::Result<Vec<User>> {
    sqlx::query_as!(
        User,
        "select id, username, platform_role, created_at from users where username = $1 order by id limit 2",
        username
    )
    .fetch_all(conn)
    .await
}
