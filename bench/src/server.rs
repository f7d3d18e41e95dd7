//! The Postgres that is measured on: one that was named, or one of our own that ends with the benchmark. It must
//! keep what it confirms, or the figures would not count. Every measurement gets a fresh, migrated database.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, PgPool};
use tokio::time::sleep;
use uuid::Uuid;

use crate::failure::Failure;
use crate::workload;

const TEMPLATE: &str = "bench_template";
/// Migrations grant rights to the role that serves, so it must exist; measuring is done as the administrator.
const APP_ROLE: &str = "gpuaas_app";
const SETTINGS: &[&str] = &[
    "fsync=on",
    "full_page_writes=on",
    "synchronous_commit=on",
    "shared_buffers=1GB",
    "max_wal_size=8GB",
    "max_connections=200",
];

pub struct Server {
    options: PgConnectOptions,
    own: Option<Cluster>,
}

impl Server {
    /// The server behind `url`, or a new one, with a migrated template to clone databases from.
    pub async fn reach(url: Option<&str>) -> Result<Server, Failure> {
        let own = if url.is_none() { Some(Cluster::start().await?) } else { None };
        let options = match (url, &own) {
            (_, Some(cluster)) => cluster.options(),
            (url, None) => PgConnectOptions::from_str(url.unwrap_or_default())?,
        };
        let server = Server { options, own };
        let mut admin = server.admin().await?;
        must_keep_what_it_confirms(&mut admin).await?;
        server.make_template(&mut admin).await?;
        admin.close().await?;
        Ok(server)
    }

    pub async fn admin(&self) -> Result<PgConnection, Failure> {
        Ok(self.options.clone().connect().await?)
    }

    /// A new database of that name, with the platform's schema and nothing in it.
    pub async fn database(&self, name: &str) -> Result<Database, Failure> {
        let name = format!("bench_{name}");
        let mut admin = self.admin().await?;
        execute(&mut admin, format!("drop database if exists {name} with (force)")).await?;
        execute(&mut admin, format!("create database {name} template {TEMPLATE}")).await?;
        admin.close().await?;
        let options = self.options.clone().database(&name);
        // As the platform's own connections are: compiling a plan costs more than any of its queries.
        let pool = options.clone().options([("jit", "off")]);
        let pool = PgPoolOptions::new().max_connections(20).connect_lazy_with(pool);
        must_be_logged(&pool).await?;
        Ok(Database { options, pool })
    }

    /// By the server's socket, where it is ours. Over TCP the end of a COPY, a small message after a large one, waits up to 40 ms
    /// for the acknowledgement of that, which is work of nobody's.
    pub async fn nearby(&self, database: &Database) -> Result<PgConnection, Failure> {
        let options = database.options.clone().options([("jit", "off")]);
        let options = match &self.own {
            Some(cluster) => options.socket(&cluster.folder),
            None => options,
        };
        Ok(options.connect().await?)
    }

    pub async fn drop(&self, database: Database) -> Result<(), Failure> {
        database.pool.close().await;
        let name = database.options.get_database().unwrap_or_default();
        let mut admin = self.admin().await?;
        execute(&mut admin, format!("drop database {name} with (force)")).await
    }

    async fn make_template(&self, admin: &mut PgConnection) -> Result<(), Failure> {
        execute(admin, format!("drop database if exists {TEMPLATE} with (force)")).await?;
        execute(admin, format!("create database {TEMPLATE}")).await?;
        let options = self.options.clone().database(TEMPLATE);
        let pool = PgPoolOptions::new().max_connections(1).connect_with(options).await?;
        engine::setup_queue(&pool).await.map_err(|error| Failure::Setup(error.to_string()))?;
        let mut conn = pool.acquire().await?;
        store::roles::ensure_assumable(&mut conn, APP_ROLE)
            .await
            .map_err(|error| Failure::Setup(error.to_string()))?;
        store::migrate::run(&mut conn, APP_ROLE).await.map_err(|error| Failure::Setup(error.to_string()))?;
        execute(&mut conn, workload::EFFECT_TABLE.to_owned()).await?;
        drop(conn);
        pool.close().await;
        Ok(())
    }
}

/// One measurement's database. Its own pool leaves the engine's pools to the engine.
pub struct Database {
    pub options: PgConnectOptions,
    pub pool: PgPool,
}

pub async fn execute(conn: &mut PgConnection, statement: String) -> Result<(), Failure> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await?;
    Ok(())
}

async fn must_keep_what_it_confirms(conn: &mut PgConnection) -> Result<(), Failure> {
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        let value = sqlx::query_scalar!(r#"select current_setting($1) as "value!""#, setting)
            .fetch_one(&mut *conn)
            .await?;
        if value != "on" {
            return Err(Failure::Dishonest(format!("{setting} is {value}")));
        }
    }
    Ok(())
}

async fn must_be_logged(pool: &PgPool) -> Result<(), Failure> {
    let unlogged = sqlx::query_scalar!(
        r#"select c.oid::regclass::text as "name!" from pg_class c
           where c.relkind in ('r', 'p', 'i', 'I') and c.relpersistence <> 'p'
             and c.relnamespace in (select oid from pg_namespace where nspname in ('engine', 'apalis', 'public'))"#
    )
    .fetch_all(pool)
    .await?;
    if unlogged.is_empty() {
        Ok(())
    } else {
        Err(Failure::Dishonest(format!("unlogged: {}", unlogged.join(", "))))
    }
}

/// A cluster of our own, in the foreground so that an interrupt from the terminal reaches it too.
struct Cluster {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl Cluster {
    async fn start() -> Result<Cluster, Failure> {
        let folder = std::env::temp_dir().join(format!("gpuaas-bench-{}", Uuid::new_v4().simple()));
        fs::create_dir(&folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = bound.map_err(Failure::io("find a free port"))?.port();
        let mut cluster = Cluster { folder, port, child: None };
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(&cluster.folder))?;
        }
        run(server_command("initdb").arg("-D").arg(cluster.data()).args([
            "--username=postgres",
            "--auth=trust",
            "--encoding=UTF8",
            "--no-locale",
            "--data-checksums",
        ]))?;
        cluster.child = Some(cluster.spawn()?);
        cluster.until_ready().await?;
        Ok(cluster)
    }

    fn spawn(&self) -> Result<Child, Failure> {
        let mut server = server_command("postgres");
        server.arg("-D").arg(self.data()).args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-k"]);
        server.arg(&self.folder);
        for setting in SETTINGS {
            server.args(["-c", setting]);
        }
        let log = fs::File::create(self.folder.join("server.log"))
            .map_err(Failure::io("write the server's log"))?;
        server.stderr(log).spawn().map_err(Failure::io("run postgres"))
    }

    async fn until_ready(&self) -> Result<(), Failure> {
        for _ in 0..300 {
            if let Ok(conn) = self.options().connect().await {
                return Ok(conn.close().await?);
            }
            sleep(Duration::from_millis(100)).await;
        }
        Err(Failure::Patience(format!("the server in {} answers", self.folder.display())))
    }

    fn options(&self) -> PgConnectOptions {
        PgConnectOptions::new_without_pgpass()
            .host("127.0.0.1")
            .port(self.port)
            .username("postgres")
            .database("postgres")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let stop = ["stop", "--silent", "--mode=immediate", "--wait"];
        let _ = server_command("pg_ctl").arg("-D").arg(self.data()).args(stop).status();
        if let Some(child) = &mut self.child {
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program of Postgres, under an account that the server accepts. `runuser` becomes the program, so a signal to
/// it reaches the server.
fn server_command(program: &str) -> Command {
    let path = postgres_program(program);
    let mut command = if is_root() { Command::new("runuser") } else { Command::new(&path) };
    if is_root() {
        command.args(["-u", "postgres", "--"]).arg(path);
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// The newest that Debian keeps aside, else whatever PATH has.
pub fn postgres_program(program: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders =
        versions.map(|entry| entry.path().join("bin")).filter(|folder| folder.join(program).exists());
    folders
        .max_by_key(|folder| major(folder))
        .map_or_else(|| PathBuf::from(program), |folder| folder.join(program))
}

fn major(folder: &Path) -> u32 {
    let version = folder.parent().and_then(|version| version.file_name()?.to_str()?.parse().ok());
    version.unwrap_or_default()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let program = format!("{command:?}");
    let output = command.output().map_err(Failure::io(format!("run {program}")))?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::Program { program, said: String::from_utf8_lossy(&output.stderr).into_owned() })
}
