//! Who may do what in the database. The owner role migrates; the application role serves: it reads and writes
//! rows, makes no tables, and cannot change or delete what is append-only.
//!
//! Role and table names are not values, so they are quoted here instead of bound.

use sqlx::{AssertSqlSafe, PgConnection, QueryBuilder};

/// Tables the serving role may only read and add to: operators' acts, the audit log, what was used and what it cost.
const APPEND_ONLY: &[&str] = &[
    "engine.act",
    "public.audit",
    "public.ledger_entries",
    "public.prices",
    "public.resource_ledger",
    "public.teardown_receipts",
    "public.usage_records",
];

/// Tables of the migration machinery: the serving role reads them to judge the schema's version.
const READ_ONLY: &[&str] = &["public._sqlx_migrations", "public.schema_release", "apalis._sqlx_migrations"];

#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    #[error(
        "there is no role `{0}` to serve with: as an administrator run `create role {0} login password '…'`, \
         or set `database.app_role` to the role that serves"
    )]
    Missing(String),
    #[error(
        "cannot create role `{role}`: {cause}; as an administrator run `create role {role}; grant {role} to {me}`"
    )]
    NotAllowed { role: String, me: String, cause: sqlx::Error },
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// Makes `role` able to log in with `password`, whether or not it exists.
pub async fn ensure_login(conn: &mut PgConnection, role: &str, password: &str) -> sqlx::Result<()> {
    let verb = if exists(conn, role).await? { "alter" } else { "create" };
    let statement = format!("{verb} role {} login password {}", identifier(role), literal(password));
    run(conn, statement).await
}

/// Makes the database `name`, owned by `owner`, unless it is there.
pub async fn ensure_database(conn: &mut PgConnection, name: &str, owner: &str) -> sqlx::Result<()> {
    let mut query = QueryBuilder::new("select exists (select from pg_database where datname = ");
    query.push_bind(name).push(")");
    if query.build_query_scalar::<bool>().fetch_one(&mut *conn).await? {
        return Ok(());
    }
    run(conn, format!("create database {} owner {}", identifier(name), identifier(owner))).await
}

/// Makes `role` exist and lets the present user step into it with `set role`: how a server that hands out a
/// single login still serves with the application's rights.
pub async fn ensure_assumable(conn: &mut PgConnection, role: &str) -> Result<(), RoleError> {
    if exists(conn, role).await? && may_assume(conn, role).await? {
        return Ok(());
    }
    let me: String =
        QueryBuilder::new("select current_user::text").build_query_scalar().fetch_one(&mut *conn).await?;
    let refused = |cause| RoleError::NotAllowed { role: role.to_owned(), me: me.clone(), cause };
    if !exists(conn, role).await? {
        run(conn, format!("create role {}", identifier(role))).await.map_err(refused)?;
    }
    run(conn, format!("grant {} to current_user", identifier(role))).await.map_err(refused)
}

/// The rights to serve, on all tables of today and those the present user makes later. Safe to repeat.
pub async fn grant_serving(conn: &mut PgConnection, role: &str) -> Result<(), RoleError> {
    if !exists(conn, role).await? {
        return Err(RoleError::Missing(role.to_owned()));
    }
    let to = identifier(role);
    let mut statements = vec![format!("grant usage on schema public, engine, apalis to {to}")];
    for schema in ["engine", "apalis", "public"] {
        for (what, rights) in [("tables", "select, insert, update, delete"), ("sequences", "usage, select")] {
            statements.push(format!("grant {rights} on all {what} in schema {schema} to {to}"));
            statements.push(format!(
                "alter default privileges in schema {schema} grant {rights} on {what} to {to}"
            ));
        }
    }
    for table in READ_ONLY {
        statements.push(format!("revoke insert, update, delete, truncate on {table} from {to}"));
        statements.push(format!("grant select on {table} to {to}"));
    }
    for table in APPEND_ONLY {
        statements.push(format!("revoke update, delete, truncate on {table} from {to}"));
    }
    run(conn, format!("begin; {}; commit", statements.join("; "))).await?;
    Ok(())
}

/// What the present role could do and must not: make tables, or rewrite an append-only one. Empty is as it should be.
pub async fn excess_rights(conn: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    let mut excess = Vec::new();
    for schema in ["engine", "apalis", "public"] {
        let mut query = QueryBuilder::new("select has_schema_privilege(");
        query.push_bind(schema).push(", 'create')");
        if query.build_query_scalar::<bool>().fetch_one(&mut *conn).await? {
            excess.push(format!("may create tables in schema {schema}"));
        }
    }
    for table in APPEND_ONLY {
        let mut query = QueryBuilder::new("select has_table_privilege(");
        query
            .push_bind(*table)
            .push(", 'update') or has_table_privilege(")
            .push_bind(*table)
            .push(", 'delete') or has_table_privilege(")
            .push_bind(*table)
            .push(", 'truncate')");
        if query.build_query_scalar::<bool>().fetch_one(&mut *conn).await? {
            excess.push(format!("may rewrite {table}"));
        }
    }
    Ok(excess)
}

async fn exists(conn: &mut PgConnection, role: &str) -> sqlx::Result<bool> {
    let mut query = QueryBuilder::new("select exists (select from pg_roles where rolname = ");
    query.push_bind(role).push(")");
    query.build_query_scalar().fetch_one(conn).await
}

async fn may_assume(conn: &mut PgConnection, role: &str) -> sqlx::Result<bool> {
    let mut query = QueryBuilder::new("select pg_has_role(");
    query.push_bind(role).push(", 'member')");
    query.build_query_scalar().fetch_one(conn).await
}

async fn run(conn: &mut PgConnection, statement: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await?;
    Ok(())
}

fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
