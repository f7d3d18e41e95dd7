//! The schema's version: the embedded migrations, how they are applied, and whether a binary may serve on what
//! it finds. Only the owner role migrates; serving never changes the schema.
//!
//! A release expands the schema, the next one contracts it. So a binary runs on its own schema and on the one of
//! the following release, and refuses anything older or newer than that.
//!
//! Nothing here uses the checked query macros: these tables do not exist on the database the macros look at.

use std::collections::BTreeMap;

use sqlx::migrate::{MigrateError as SqlxMigrateError, Migrator};
use sqlx::{PgConnection, QueryBuilder};

use crate::roles;

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// The release of the schema this binary was built for. Raise it in the first migration of a new release.
pub const RELEASE: i32 = 1;

/// Serialises whole migrations, the queue's own included. The number is arbitrary and must never change.
const MIGRATION_LOCK: i64 = 0x6770_7561_6173;

/// Whoever waits for a table makes everybody wait who comes after, those who renew their lease included. So a migration gives
/// way after a second, and tries again.
const GIVES_WAY: &str = "set lock_timeout = '1s'";
const COMES_BACK: &str = "select pg_sleep(1)";
const TRIES: u32 = 60;

/// What serving finds when the schema fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    Current,
    /// Migrated further than this binary knows, by no more than one release.
    Newer {
        release: i32,
    },
}

/// Why a binary must not serve on a schema. Each says what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Unfit {
    #[error("the database has no schema yet: run `gpuaas migrate` as the owner role")]
    Empty,
    #[error(
        "the schema is too old: {} migrations are missing, the first is {first}; run `gpuaas migrate` as the owner role",
        .missing
    )]
    TooOld { missing: usize, first: i64 },
    #[error(
        "the schema is of release {found}, this binary is of release {RELEASE} and runs on {} at most: upgrade the binary",
        RELEASE + 1
    )]
    TooNew { found: i32 },
    #[error(
        "migration {0} was applied with other contents than this binary holds: the binary and the database do not belong together"
    )]
    Changed(i64),
    #[error(
        "migration {0} was begun and never finished: restore the database, or finish it by hand and set its `success`"
    )]
    Unfinished(i64),
}

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error(transparent)]
    Unfit(#[from] Unfit),
    #[error("cannot read the schema's version: {0}")]
    Database(#[from] sqlx::Error),
}

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error(
        "the database was migrated by a newer release (migration {0} is unknown here): upgrade the binary, there is nothing to migrate"
    )]
    NewerDatabase(i64),
    #[error("migration failed: {0}")]
    Migration(SqlxMigrateError),
    #[error(transparent)]
    Role(#[from] roles::RoleError),
    #[error("migration failed: {0}")]
    Database(#[from] sqlx::Error),
}

/// One migration as the database remembers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub checksum: Vec<u8>,
    pub success: bool,
}

/// Whether nobody else migrates this database, and now nobody else will; the lock ends with the connection. It does not
/// wait: a session that waits in the server is not missed there when its process is gone, and its snapshot holds up an
/// index that is built concurrently.
pub async fn try_lock(conn: &mut PgConnection) -> sqlx::Result<bool> {
    let mut query = QueryBuilder::new("select pg_try_advisory_lock(");
    query.push_bind(MIGRATION_LOCK).push(")");
    query.build_query_scalar().fetch_one(conn).await
}

/// Applies what is missing, then gives `app_role` the rights it serves with. Answers how many migrations ran;
/// running it again changes nothing. The queue's own migrations come first and are the engine's.
pub async fn run(conn: &mut PgConnection, app_role: &str) -> Result<usize, MigrateError> {
    let before = applied(conn).await?.len();
    sqlx::raw_sql(GIVES_WAY).execute(&mut *conn).await?;
    let mut tries = 1;
    // Each migration is a transaction of its own: those before the one that gave way are there.
    while let Err(error) = MIGRATIONS.run_direct(None, conn, false).await {
        if tries == TRIES || !is_locked(&error) {
            return Err(explain(error));
        }
        tries += 1;
        sqlx::raw_sql(COMES_BACK).execute(&mut *conn).await?;
    }
    record_release(conn).await?;
    roles::grant_serving(conn, app_role).await?;
    Ok(applied(conn).await?.len() - before)
}

/// Whether this binary may serve on the schema behind `conn`. Reads only, so the serving role may ask.
pub async fn check(conn: &mut PgConnection) -> Result<Fit, SchemaError> {
    let applied = applied(conn).await?;
    if applied.is_empty() {
        return Err(Unfit::Empty.into());
    }
    let release = recorded_release(conn).await?;
    Ok(judge(&embedded(), &applied, release)?)
}

/// The rule itself, apart from any database: every migration we carry must be there unchanged, and what we do
/// not know must come from our own release or the next.
pub fn judge(
    embedded: &BTreeMap<i64, Vec<u8>>,
    applied: &BTreeMap<i64, Applied>,
    release: i32,
) -> Result<Fit, Unfit> {
    if let Some((version, _)) = applied.iter().find(|(_, one)| !one.success) {
        return Err(Unfit::Unfinished(*version));
    }
    let missing: Vec<i64> =
        embedded.keys().filter(|version| !applied.contains_key(version)).copied().collect();
    if let Some(first) = missing.first() {
        return Err(Unfit::TooOld { missing: missing.len(), first: *first });
    }
    if let Some((version, _)) = embedded.iter().find(|(version, sum)| applied[version].checksum != **sum) {
        return Err(Unfit::Changed(*version));
    }
    match release {
        _ if release > RELEASE + 1 => Err(Unfit::TooNew { found: release }),
        _ if applied.len() > embedded.len() => Ok(Fit::Newer { release }),
        _ => Ok(Fit::Current),
    }
}

/// The last migration this binary carries.
pub fn newest() -> i64 {
    MIGRATIONS.iter().map(|one| one.version).max().unwrap_or_default()
}

/// The migrations this binary carries, by version.
pub fn embedded() -> BTreeMap<i64, Vec<u8>> {
    MIGRATIONS.iter().map(|one| (one.version, one.checksum.to_vec())).collect()
}

async fn applied(conn: &mut PgConnection) -> sqlx::Result<BTreeMap<i64, Applied>> {
    if !table_exists(conn, "public._sqlx_migrations").await? {
        return Ok(BTreeMap::new());
    }
    let mut query = QueryBuilder::new("select version, checksum, success from public._sqlx_migrations");
    let rows: Vec<(i64, Vec<u8>, bool)> = query.build_query_as().fetch_all(conn).await?;
    Ok(rows
        .into_iter()
        .map(|(version, checksum, success)| (version, Applied { checksum, success }))
        .collect())
}

/// An older binary cannot know which release its unknown migrations belong to, so whoever migrates writes it down.
async fn record_release(conn: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(
        "create table if not exists public.schema_release (
             release    integer primary key,
             applied_at timestamptz not null default clock_timestamp())",
    )
    .execute(&mut *conn)
    .await?;
    let mut query = QueryBuilder::new("insert into public.schema_release (release) values (");
    query.push_bind(RELEASE).push(") on conflict do nothing");
    query.build().execute(conn).await?;
    Ok(())
}

async fn recorded_release(conn: &mut PgConnection) -> sqlx::Result<i32> {
    if !table_exists(conn, "public.schema_release").await? {
        return Ok(RELEASE);
    }
    let mut query = QueryBuilder::new("select coalesce(max(release), 0) from public.schema_release");
    query.build_query_scalar().fetch_one(conn).await
}

async fn table_exists(conn: &mut PgConnection, name: &str) -> sqlx::Result<bool> {
    let mut query = QueryBuilder::new("select to_regclass(");
    query.push_bind(name).push(") is not null");
    query.build_query_scalar().fetch_one(conn).await
}

/// Whether somebody held a table for too long.
fn is_locked(error: &SqlxMigrateError) -> bool {
    let (SqlxMigrateError::Execute(error) | SqlxMigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "55P03")
}

fn explain(error: SqlxMigrateError) -> MigrateError {
    match error {
        SqlxMigrateError::VersionMissing(version) => MigrateError::NewerDatabase(version),
        other => MigrateError::Migration(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(versions: &[i64]) -> BTreeMap<i64, Vec<u8>> {
        versions.iter().map(|version| (*version, vec![*version as u8])).collect()
    }

    fn database(versions: &[i64]) -> BTreeMap<i64, Applied> {
        sums(versions).into_iter().map(|(at, checksum)| (at, Applied { checksum, success: true })).collect()
    }

    #[test]
    fn a_schema_with_exactly_our_migrations_is_current() {
        assert_eq!(judge(&sums(&[1, 2]), &database(&[1, 2]), RELEASE), Ok(Fit::Current));
    }

    #[test]
    fn a_missing_migration_is_too_old_and_named() {
        let verdict = judge(&sums(&[1, 2, 3]), &database(&[1]), RELEASE);
        assert_eq!(verdict, Err(Unfit::TooOld { missing: 2, first: 2 }));
    }

    #[test]
    fn one_release_newer_is_served_two_are_not() {
        let newer = database(&[1, 2]);
        let next = RELEASE + 1;
        assert_eq!(judge(&sums(&[1]), &newer, next), Ok(Fit::Newer { release: next }));
        assert_eq!(judge(&sums(&[1]), &newer, next + 1), Err(Unfit::TooNew { found: next + 1 }));
    }

    #[test]
    fn a_changed_or_unfinished_migration_is_never_served() {
        let mut changed = database(&[1]);
        changed.insert(1, Applied { checksum: vec![9], success: true });
        assert_eq!(judge(&sums(&[1]), &changed, RELEASE), Err(Unfit::Changed(1)));
        changed.insert(2, Applied { checksum: vec![2], success: false });
        assert_eq!(judge(&sums(&[1]), &changed, RELEASE), Err(Unfit::Unfinished(2)));
    }
}
