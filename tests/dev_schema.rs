//! Migrating, serving and examining an existing server: who may change the schema, and which schema is served.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgPool};
use uuid::Uuid;

use crate::support::cluster::{Cluster, Folder, shared_server, shared_server_url};
use crate::support::database::MAKE_APP_ROLE;
use crate::support::process::{Dev, Said, Serve, gpuaas, interrupt, run};

/// What whoever migrates holds; all releases agree on the number.
pub const MIGRATION_LOCK: &str = "select pg_advisory_lock(113732703314291)";

/// An empty database on the shared server, dropped with the test.
struct Scratch {
    name: String,
    url: String,
}

impl Scratch {
    async fn new() -> Scratch {
        let name = format!("schema_{}", Uuid::new_v4().simple());
        execute(&shared_server(), &format!("create database {name}")).await;
        let (server, _) =
            shared_server_url().rsplit_once('/').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        Scratch { url: format!("{server}/{name}"), name }
    }

    async fn execute(&self, statement: &str) {
        execute(&PgConnectOptions::from_str(&self.url).unwrap(), statement).await;
    }

    async fn number(&self, query: &'static str) -> i64 {
        let mut conn = PgConnectOptions::from_str(&self.url).unwrap().connect().await.unwrap();
        sqlx::query_scalar(query).fetch_one(&mut conn).await.unwrap()
    }

    fn migrate(&self) -> Said {
        gpuaas(&["migrate"]).env("GPUAAS_DATABASE_URL", &self.url).output().unwrap().into()
    }

    fn serve(&self) -> Command {
        self.serve_on("127.0.0.1:0")
    }

    fn serve_on(&self, address: &str) -> Command {
        gpuaas(&[
            "serve",
            "--api-only",
            "--listen",
            address,
            "--set",
            "auth.allow_nobody=true",
            "--database-url",
            &stepped_down(&self.url),
        ])
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let drop = format!("drop database if exists {} with (force)", self.name);
        let _ = Command::new("psql").arg(shared_server_url()).args(["-qc", &drop]).status();
    }
}

/// The same login, stepped down into the application role.
fn stepped_down(url: &str) -> String {
    format!("{url}?options=-c%20role%3Dgpuaas_app")
}

async fn execute(options: &PgConnectOptions, statement: &str) {
    let mut conn = options.connect().await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut conn).await.unwrap();
}

pub async fn make_app_role() {
    execute(&shared_server(), MAKE_APP_ROLE).await;
}

#[tokio::test]
async fn serve_refuses_an_empty_database_and_names_the_command() {
    let scratch = Scratch::new().await;
    let serve = ["serve", "--set", "auth.allow_nobody=true", "--database-url", &scratch.url];
    let said: Said = gpuaas(&serve).output().unwrap().into();
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("run `gpuaas migrate`"), "{said:?}");
}

#[tokio::test]
async fn migrating_twice_changes_nothing() {
    make_app_role().await;
    let scratch = Scratch::new().await;
    let (first, second) = (scratch.migrate(), scratch.migrate());
    assert!(first.code == Some(0) && first.stderr.contains("applied"), "{first:?}");
    assert!(second.code == Some(0) && second.stderr.contains("the schema is current"), "{second:?}");
}

#[tokio::test]
async fn processes_that_migrate_at_once_take_turns() {
    make_app_role().await;
    let scratch = Scratch::new().await;
    let mut migrations: Vec<_> = (0..4)
        .map(|_| {
            let mut command = gpuaas(&["migrate"]);
            command.env("GPUAAS_DATABASE_URL", &scratch.url).stderr(Stdio::null()).spawn().unwrap()
        })
        .collect();
    assert!(migrations.iter_mut().all(|one| one.wait().unwrap().success()));
}

#[tokio::test]
async fn a_migration_that_waits_for_another_says_so_once_and_goes_on() {
    make_app_role().await;
    let (scratch, folder) = (Scratch::new().await, Folder::new());
    let mut other = PgConnectOptions::from_str(&scratch.url).unwrap().connect().await.unwrap();
    sqlx::raw_sql(MIGRATION_LOCK).execute(&mut other).await.unwrap();
    let mut command = gpuaas(&["migrate"]);
    command.env("GPUAAS_DATABASE_URL", &scratch.url);
    let mut waiting = Serve::of(&folder.0, command);
    waiting.says("waiting for another migration");
    assert!(waiting.is_running(), "{}", waiting.said());
    other.close().await.unwrap();
    let (status, said) = waiting.ends();
    assert!(status.success() && said.contains("applied"), "{said}");
    assert_eq!(said.matches("waiting for another migration").count(), 1, "{said}");
}

#[tokio::test]
async fn a_migration_gives_way_to_whoever_waits_behind_it_and_comes_back() {
    make_app_role().await;
    let scratch = Scratch::new().await;
    let options = PgConnectOptions::from_str(&scratch.url).unwrap();
    let pool = PgPool::connect_with(options).await.unwrap();
    engine::setup_queue(&pool).await.unwrap();
    let mut writes = pool.begin().await.unwrap();
    sqlx::raw_sql("lock table apalis.jobs in row exclusive mode").execute(&mut *writes).await.unwrap();
    let mut command = gpuaas(&["migrate"]);
    command.env("GPUAAS_DATABASE_URL", &scratch.url).stderr(Stdio::null()).stdout(Stdio::null());
    let mut migrating = command.spawn().unwrap();
    let gave_way =
        "select count(*) from pg_stat_activity where datname = current_database() and query like '%pg_sleep%'
                    and pid <> pg_backend_pid()";
    while scratch.number(gave_way).await == 0 {
        assert!(migrating.try_wait().unwrap().is_none(), "it must not go on, nor give up");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    writes.rollback().await.unwrap();
    assert!(migrating.wait().unwrap().success());
    pool.close().await;
}

#[tokio::test]
async fn serve_runs_on_one_release_newer_and_refuses_two() {
    make_app_role().await;
    let scratch = Scratch::new().await;
    assert_eq!(scratch.migrate().code, Some(0));
    let migration = "insert into _sqlx_migrations values (99990101000000, 'later', now(), true, '', 0)";
    scratch.execute(migration).await;
    let release = |above: i32| {
        format!("insert into schema_release (release) select max(release) + {above} from schema_release")
    };
    scratch.execute(&release(1)).await;
    let doctor = run(&["doctor", "--database-url", &stepped_down(&scratch.url)]);
    assert!(doctor.stdout.contains("newer than this binary"), "{doctor:?}");
    // What the newer release declared, of a workflow that this one has too.
    let schedule = "insert into engine.schedule (name, kind, version, cron, missed, overlap, next_at)
                    values ('newer', 'platform.watch_nodes', 1, '0 0 0 1 1 *', 'skip', 'skip', 'infinity')";
    scratch.execute(schedule).await;
    let folder = Folder::new();
    let alone = ["--set", "auth.allow_nobody=true", "--listen", "127.0.0.1:0"];
    let mut older = Serve::api(&folder.0, &stepped_down(&scratch.url), &alone);
    older.says("the schema is newer than this binary");
    older.says("serving");
    older.terminate();
    assert!(older.ends().0.success());
    assert_eq!(scratch.number("select count(*) from engine.schedule where name = 'newer'").await, 1);

    scratch.execute(&release(1)).await;
    let said: Said = scratch.serve().output().unwrap().into();
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("upgrade the binary"), "{said:?}");
    let said = scratch.migrate();
    assert!(said.code == Some(2) && said.stderr.contains("newer release"), "{said:?}");
}

#[tokio::test]
async fn serving_as_the_owner_is_told_and_wrong() {
    make_app_role().await;
    let (scratch, folder) = (Scratch::new().await, Folder::new());
    assert_eq!(scratch.migrate().code, Some(0));
    let alone = ["--set", "auth.allow_nobody=true", "--listen", "127.0.0.1:0"];
    let (rewrites, makes) = ("may rewrite public.ledger_entries", "may create tables in schema engine");
    for (url, excess) in [(scratch.url.clone(), true), (stepped_down(&scratch.url), false)] {
        let mut serving = Serve::api(&folder.0, &url, &alone);
        serving.says("serving");
        serving.terminate();
        let said = serving.ends().1;
        assert_eq!((said.contains(rewrites), said.contains(makes)), (excess, excess), "{said}");
        let doctor = run(&["doctor", "--database-url", &url]);
        assert_eq!(doctor.stdout.contains("rights      WRONG"), excess, "{doctor:?}");
        assert_eq!(doctor.stdout.contains("rights      ok"), !excess, "{doctor:?}");
    }
}

#[tokio::test]
async fn serve_has_no_issuer_of_its_own() {
    make_app_role().await;
    let scratch = Scratch::new().await;
    assert_eq!(scratch.migrate().code, Some(0));
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
    let mut serving = scratch.serve_on(&free.to_string()).stderr(Stdio::null()).spawn().unwrap();
    let mut stream = loop {
        match TcpStream::connect(free) {
            Ok(stream) => break stream,
            Err(_) => assert!(serving.try_wait().unwrap().is_none(), "it serves"),
        }
    };
    let path = "/realms/gpuaas/.well-known/openid-configuration";
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {free}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    interrupt(&serving);
    assert!(serving.wait().unwrap().success());
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("route_not_found"), "{answer}");
}

#[test]
fn dev_on_an_existing_server_serves_with_the_application_role() {
    let server = Cluster::start();
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &["--database-url", &server.url()]);
    assert!(dev.get("/livez").starts_with("HTTP/1.1 200"));
    assert!(!dev.data.join("postgres").exists(), "no cluster of its own");
    let doctor = run(&["doctor", "--database-url", &stepped_down(&server.url())]);
    assert!(doctor.stdout.contains("rights      ok"), "{doctor:?}");
    assert!(dev.stop().0.success());
}

#[test]
fn serving_goes_on_after_the_database_server_crashed_and_came_back() {
    let server = Cluster::start();
    let folder = Folder::new();
    let dev = Dev::start(&folder.0.join("data"), &["--database-url", &server.url()]);
    assert!(dev.get("/readyz").starts_with("HTTP/1.1 200"));
    server.stop_at_once();
    assert!(dev.get("/readyz").starts_with("HTTP/1.1 503"));
    assert!(dev.get("/livez").starts_with("HTTP/1.1 200"), "a missing database is no reason to be restarted");
    server.start_again();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !dev.get("/readyz").starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < deadline, "still not ready, although the database answers again");
    }
    assert!(dev.stop().0.success());
}

#[tokio::test]
async fn doctor_tells_by_its_exit_code() {
    make_app_role().await;
    let unreachable = run(&["doctor", "--database-url", "postgres://nobody@127.0.0.1:1/nothing"]);
    assert_eq!(unreachable.code, Some(2), "{unreachable:?}");
    assert!(
        unreachable.stderr.contains("cannot reach the database at nobody@127.0.0.1:1/nothing"),
        "{unreachable:?}"
    );

    let scratch = Scratch::new().await;
    let empty = run(&["doctor", "--database-url", &scratch.url]);
    assert_eq!(empty.code, Some(6), "{empty:?}");
    assert!(empty.stdout.contains("run `gpuaas migrate`"), "{empty:?}");
}

#[tokio::test]
async fn doctor_names_the_runs_that_a_binary_would_strand_and_the_promises_that_are_broken() {
    make_app_role().await;
    let scratch = Scratch::new().await;
    assert_eq!(scratch.migrate().code, Some(0));
    let url = stepped_down(&scratch.url);
    let well = run(&["doctor", "--before-upgrade", "--database-url", &url]);
    assert!(well.stdout.contains("this binary can drive every unfinished run"), "{well:?}");
    assert!(well.stdout.contains("lease 15 s; statements 5 s, locks 2 s"), "{well:?}");
    scratch
        .execute(
            "insert into engine.schedule (name, kind, version, cron, missed, overlap, next_at)
             values ('left_over', 'long.gone', 7, '0 0 0 1 1 *', 'skip', 'skip', 'infinity')",
        )
        .await;
    let left_over = run(&["doctor", "--database-url", &url]);
    assert!(left_over.stdout.contains("the workflow of left_over (long.gone v7); start"), "{left_over:?}");
    scratch
        .execute(
            "insert into engine.run (id, kind, version, project_id, correlation_id, input, wake_at)
             values (gen_random_uuid(), 'long.gone', 7, gen_random_uuid(), 'c', '{}', engine.now())",
        )
        .await;
    let stranded = run(&["doctor", "--before-upgrade", "--database-url", &url]);
    assert_eq!(stranded.code, Some(6), "{stranded:?}");
    assert!(stranded.stdout.contains("cannot drive long.gone v7 (1 runs)"), "{stranded:?}");
    assert!(stranded.stdout.contains("1 runs are unfinished and no process drives them"), "{stranded:?}");
    scratch.execute("update engine.run set wake_at = null").await;
    let broken = run(&["doctor", "--database-url", &url]);
    assert_eq!(broken.code, Some(6), "{broken:?}");
    assert!(broken.stdout.contains("1 broken; the first is P5"), "{broken:?}");
}
