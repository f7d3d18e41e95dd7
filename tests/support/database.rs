//! A database per test, cloned from a template that is migrated once per server and per state of the migrations.
//!
//! In the template `engine.now()` is the wall clock plus an offset, so that a test can move the database's time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use uuid::Uuid;

use super::cluster::shared_server;

pub struct TestDatabase {
    pub options: PgConnectOptions,
    pub name: String,
    server: PgConnectOptions,
}

impl TestDatabase {
    pub async fn new() -> TestDatabase {
        TestDatabase::on(shared_server()).await
    }

    pub async fn on(server: PgConnectOptions) -> TestDatabase {
        let mut admin = PgConnection::connect_with(&server).await.expect("the test server answers");
        let template = template(&server, &mut admin).await;
        let name = format!("t_{}", Uuid::new_v4().simple());
        run(&mut admin, format!("create database {name} template {template}")).await;
        TestDatabase { options: server.clone().database(&name), name, server }
    }

    /// Past whatever stands between it and the story.
    pub fn direct(&self) -> PgConnectOptions {
        self.server.clone().database(&self.name)
    }

    /// For processes that are told where it is.
    pub fn url(&self) -> String {
        let (host, port) = (self.options.get_host(), self.options.get_port());
        format!("postgres://{}@{host}:{port}/{}", self.options.get_username(), self.name)
    }

    pub fn pool(&self) -> PgPool {
        PgPoolOptions::new().max_connections(4).connect_lazy_with(self.options.clone())
    }

    /// Moves the database's clock; timers see it, leases do not.
    pub async fn advance(&self, pool: &PgPool, time: Duration) {
        sqlx::query("update engine.test_clock set ahead = ahead + make_interval(secs => $1)")
            .bind(time.as_secs_f64())
            .execute(pool)
            .await
            .expect("the clock moves");
    }

    /// Ends every session but the caller's, as an administrator might.
    pub async fn drop(self) {
        let mut admin = PgConnection::connect_with(&self.server).await.expect("the test server answers");
        run(&mut admin, format!("drop database if exists {} with (force)", self.name)).await;
    }
}

async fn template(server: &PgConnectOptions, admin: &mut PgConnection) -> String {
    let name = format!("template_{:x}", fingerprint());
    // One test migrates; the others wait here and find it done.
    run(admin, "select pg_advisory_lock(7461)".into()).await;
    let there: bool = sqlx::query_scalar("select exists (select 1 from pg_database where datname = $1)")
        .bind(&name)
        .fetch_one(&mut *admin)
        .await
        .expect("the list of databases");
    if !there {
        let building = format!("{name}_building");
        run(admin, format!("drop database if exists {building} with (force)")).await;
        run(admin, format!("create database {building}")).await;
        migrate(server.clone().database(&building)).await;
        run(admin, format!("alter database {building} rename to {name}")).await;
    }
    run(admin, "select pg_advisory_unlock(7461)".into()).await;
    name
}

/// Roles belong to the whole server, so tests that need this one must not race to create it.
pub const MAKE_APP_ROLE: &str = "do $$ begin perform pg_advisory_xact_lock(42); if not exists (select from pg_roles where rolname = 'gpuaas_app') \
     then create role gpuaas_app; end if; end $$";

async fn migrate(options: PgConnectOptions) {
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await.expect("the new database");
    engine::setup_queue(&pool).await.expect("the queue's tables");
    let mut conn = pool.acquire().await.expect("a connection");
    run(&mut conn, MAKE_APP_ROLE.into()).await;
    store::migrate::run(&mut conn, "gpuaas_app").await.expect("our migrations");
    for statement in [
        "create table engine.test_clock (ahead interval not null)",
        "insert into engine.test_clock values ('0')",
        "create or replace function engine.now() returns timestamptz language sql volatile parallel safe as \
         'select clock_timestamp() + (select ahead from engine.test_clock)'",
        "grant all on engine.test_clock to public",
        "create table effect (key text primary key, step text not null, run uuid not null, held boolean not null, \
         calls int not null default 1, undos int not null default 0, epoch bigint not null)",
        "grant all on effect to public",
    ] {
        run(&mut conn, statement.into()).await;
    }
    drop(conn);
    pool.close().await;
}

async fn run(conn: &mut PgConnection, statement: String) {
    sqlx::raw_sql(AssertSqlSafe(statement.clone()))
        .execute(conn)
        .await
        .unwrap_or_else(|e| panic!("{statement}: {e}"));
}

/// Names the template, so that a changed migration makes a new one.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    store::migrate::embedded().hash(&mut hasher);
    include_str!("database.rs").hash(&mut hasher);
    hasher.finish()
}
