//! Principals: what the tables of identity grant to somebody, read at one moment together with the version of
//! authority, which rises with every change. As long as the version stands still, what was read stays true.

use domain::{
    ActorType, Grant, OrganizationRole, PermissionSet, PlatformRole, PolicyKey, Principal, ProjectRole, Scope,
};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::policies::{self, Subject};

/// What a process may keep in memory while the version stands still.
#[derive(Clone, Debug)]
pub struct Standing {
    pub principal: Principal,
    /// For reading: a person's name at their issuer, or a service account's.
    pub name: String,
    /// A person's role on the platform itself.
    pub platform_role: Option<String>,
    pub requests_per_minute: u32,
    /// The app instance whose own identity this is.
    pub instance: Option<Uuid>,
    /// The registered key that the caller's token was made with; only the token says so.
    pub key_id: Option<String>,
    pub version: i64,
}

pub async fn version(conn: &mut PgConnection) -> sqlx::Result<i64> {
    sqlx::query_scalar!("select version from authority").fetch_one(conn).await
}

/// A person, if they have signed in before. Call it in a transaction that sees one moment.
pub async fn of_user(conn: &mut PgConnection, issuer: &str, subject: &str) -> sqlx::Result<Option<Standing>> {
    let version = version(conn).await?;
    let user = sqlx::query!(
        "select id, username, platform_role from users where issuer = $1 and subject = $2",
        issuer,
        subject
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(user) = user else { return Ok(None) };
    let grants = grants_of(conn, user.id, &user.platform_role).await?;
    let principal = Principal { id: user.id, actor_type: ActorType::User, grants };
    let subject = Subject { user: Some(user.id), ..Subject::default() };
    let requests_per_minute = requests_per_minute(conn, subject).await?;
    let platform_role = Some(user.platform_role);
    let (name, instance) = (user.username, None);
    let key_id = None;
    Ok(Some(Standing { principal, name, platform_role, requests_per_minute, instance, key_id, version }))
}

/// What a person may do now, known by their id: for what they were given and hold only as long as they may.
pub async fn of_person(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Principal>> {
    let role = sqlx::query_scalar!("select platform_role from users where id = $1", id);
    let Some(role) = role.fetch_optional(&mut *conn).await? else { return Ok(None) };
    Ok(Some(Principal { id, actor_type: ActorType::User, grants: grants_of(conn, id, &role).await? }))
}

async fn grants_of(conn: &mut PgConnection, user: Uuid, platform_role: &str) -> sqlx::Result<Vec<Grant>> {
    let mut grants = memberships(conn, user).await?;
    // A role that only a newer release knows grants nothing here.
    let platform: PlatformRole = platform_role.parse().unwrap_or_default();
    if !platform.keys().is_empty() {
        grants.push(grant(Scope::Platform, platform.as_str(), platform.keys(), true));
    }
    Ok(grants)
}

/// A service account that is neither disabled nor deleted. Call it in a transaction that sees one moment.
pub async fn of_service_account(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Standing>> {
    let version = version(conn).await?;
    let account = sqlx::query!(
        r#"select a.org_id, a.project_id, a.name, a.permissions, i.id as "instance?"
           from service_accounts a left join app_instances i on i.operator_service_account_id = a.id
           where a.id = $1 and a.status = 'active'"#,
        id
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(account) = account else { return Ok(None) };
    let scope = Scope::Project { org: account.org_id, project: account.project_id };
    let keys = PermissionSet::known_among(&account.permissions);
    // An instance holds no keys: its routes ask whether it speaks of itself.
    let role = if account.instance.is_some() { "app" } else { "service_account" };
    let grants = vec![grant(scope, role, keys, true)];
    let principal = Principal { id, actor_type: ActorType::ServiceAccount, grants };
    let subject = Subject { user: Some(id), project: scope.project(), org: scope.org() };
    let requests_per_minute = requests_per_minute(conn, subject).await?;
    let (name, platform_role, instance) = (account.name, None, account.instance);
    let key_id = None;
    Ok(Some(Standing { principal, name, platform_role, requests_per_minute, instance, key_id, version }))
}

/// A node that has enrolled. It holds no keys: its routes ask who it is, not what it may do elsewhere.
pub async fn of_node(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<Standing>> {
    let version = version(conn).await?;
    let name = sqlx::query_scalar!("select name from nodes where id = $1 and key_id is not null", id)
        .fetch_optional(&mut *conn)
        .await?;
    let Some(name) = name else { return Ok(None) };
    let principal = Principal { id, actor_type: ActorType::Node, grants: Vec::new() };
    let requests_per_minute = requests_per_minute(conn, Subject::default()).await?;
    let (platform_role, instance) = (None, None);
    let key_id = None;
    Ok(Some(Standing { principal, name, platform_role, requests_per_minute, instance, key_id, version }))
}

async fn requests_per_minute(conn: &mut PgConnection, subject: Subject) -> sqlx::Result<u32> {
    let limit = policies::whole_number(conn, PolicyKey::ApiRequestsPerMinute, subject).await?;
    Ok(u32::try_from(limit).unwrap_or(u32::MAX))
}

async fn memberships(conn: &mut PgConnection, user: Uuid) -> sqlx::Result<Vec<Grant>> {
    let rows = sqlx::query!(
        r#"select m.org_id, m.project_id, m.role, r.name as "custom_role?", r.permissions as "permissions?"
           from memberships m left join custom_roles r on r.id = m.role_id where m.user_id = $1 order by m.id"#,
        user
    )
    .fetch_all(conn)
    .await?;
    let grants = rows.into_iter().map(|row| {
        let scope = match row.project_id {
            Some(project) => Scope::Project { org: row.org_id, project },
            None => Scope::Organization { org: row.org_id },
        };
        match (row.role, row.custom_role) {
            (Some(name), _) => built_in(scope, &name),
            (None, name) => {
                let keys = PermissionSet::known_among(&row.permissions.unwrap_or_default());
                grant(scope, &name.unwrap_or_default(), keys, true)
            }
        }
    });
    Ok(grants.collect())
}

fn built_in(scope: Scope, name: &str) -> Grant {
    if let Scope::Project { .. } = scope {
        let role: Option<ProjectRole> = name.parse().ok();
        return grant(scope, name, role.map_or(PermissionSet::EMPTY, ProjectRole::keys), true);
    }
    let role: Option<OrganizationRole> = name.parse().ok();
    let keys = role.map_or(PermissionSet::EMPTY, OrganizationRole::keys);
    grant(scope, name, keys, role.is_some_and(OrganizationRole::reaches_projects))
}

fn grant(scope: Scope, role: &str, keys: PermissionSet, reaches_inside: bool) -> Grant {
    Grant { scope, role: role.to_owned(), keys, reaches_inside }
}
