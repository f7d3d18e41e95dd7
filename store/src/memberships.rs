//! Memberships: a person's part in an organization, or in one of its projects, with exactly one role there.

use chrono::{DateTime, Utc};
use domain::{ProjectRole, Scope};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::Slice;

#[derive(Clone, Debug)]
pub struct Membership {
    pub id: Uuid,
    pub user_id: Uuid,
    pub username: String,
    /// The name of the built-in or custom role.
    pub role: String,
    /// The custom role; `None` for a built-in one.
    pub role_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A role as a membership stores it.
#[derive(Clone, Copy, Debug)]
pub enum RoleRef<'a> {
    BuiltIn(&'a str),
    Custom(Uuid),
}

impl<'a> RoleRef<'a> {
    fn columns(self) -> (Option<&'a str>, Option<Uuid>) {
        match self {
            RoleRef::BuiltIn(name) => (Some(name), None),
            RoleRef::Custom(id) => (None, Some(id)),
        }
    }
}

pub async fn insert(
    conn: &mut PgConnection,
    scope: Scope,
    user_id: Uuid,
    role: RoleRef<'_>,
) -> sqlx::Result<Uuid> {
    let (name, role_id) = role.columns();
    sqlx::query_scalar!(
        "insert into memberships (id, org_id, project_id, user_id, role, role_id) values ($1, $2, $3, $4, $5, $6)
         returning id",
        Uuid::now_v7(),
        scope.org(),
        scope.project(),
        user_id,
        name,
        role_id
    )
    .fetch_one(conn)
    .await
}

/// Makes the person a member of the project unless they are one; a role given meanwhile stays.
pub async fn ensure_in_project(
    conn: &mut PgConnection,
    project_id: Uuid,
    user_id: Uuid,
    role: ProjectRole,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into memberships (id, org_id, project_id, user_id, role)
         select $1, org_id, id, $3, $4 from projects where id = $2 on conflict do nothing",
        Uuid::now_v7(),
        project_id,
        user_id,
        role.as_str()
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Members of exactly this organization or project, not of what lies inside or around it.
pub async fn list(conn: &mut PgConnection, scope: Scope, slice: Slice) -> sqlx::Result<Vec<Membership>> {
    sqlx::query_as!(
        Membership,
        r#"select m.id, m.user_id, u.username, coalesce(m.role, r.name) as "role!", m.role_id,
                  m.created_at, m.updated_at
           from memberships m join users u on u.id = m.user_id left join custom_roles r on r.id = m.role_id
           where m.org_id = $1 and m.project_id is not distinct from $2 and ($3::uuid is null or m.id > $3)
           order by m.id limit $4"#,
        scope.org(),
        scope.project(),
        slice.after,
        slice.limit
    )
    .fetch_all(conn)
    .await
}

pub async fn find(conn: &mut PgConnection, scope: Scope, id: Uuid) -> sqlx::Result<Option<Membership>> {
    sqlx::query_as!(
        Membership,
        r#"select m.id, m.user_id, u.username, coalesce(m.role, r.name) as "role!", m.role_id,
                  m.created_at, m.updated_at
           from memberships m join users u on u.id = m.user_id left join custom_roles r on r.id = m.role_id
           where m.id = $3 and m.org_id = $1 and m.project_id is not distinct from $2"#,
        scope.org(),
        scope.project(),
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends, so that what was compared with it stays true.
pub async fn find_locked(
    conn: &mut PgConnection,
    scope: Scope,
    id: Uuid,
) -> sqlx::Result<Option<Membership>> {
    sqlx::query_as!(
        Membership,
        r#"select m.id, m.user_id, u.username, coalesce(m.role, r.name) as "role!", m.role_id,
                  m.created_at, m.updated_at
           from memberships m join users u on u.id = m.user_id left join custom_roles r on r.id = m.role_id
           where m.id = $3 and m.org_id = $1 and m.project_id is not distinct from $2
           for update of m"#,
        scope.org(),
        scope.project(),
        id
    )
    .fetch_optional(conn)
    .await
}

pub async fn set_role(conn: &mut PgConnection, id: Uuid, role: RoleRef<'_>) -> sqlx::Result<()> {
    let (name, role_id) = role.columns();
    sqlx::query!(
        "update memberships set role = $2, role_id = $3, updated_at = engine.now() where id = $1",
        id,
        name,
        role_id
    )
    .execute(conn)
    .await?;
    Ok(())
}

pub async fn delete(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("delete from memberships where id = $1", id).execute(conn).await?;
    Ok(())
}
