//! `gpuaas serve` as it is shipped, and somebody whom it believes: a service account in a project of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use chrono::TimeDelta;
use clients::clock::SystemClock;
use clients::registry::Authority;
use clients::seal::Sealer;
use clients::signing::{KeyFault, SigningKey, SigningKeys};
use clients::tokens::{Bearer, Minter};
use domain::{ActorType, PolicyKey, PolicyLayer, ProjectRole};
use serde_json::json;
use sqlx::{ConnectOptions, PgPool};
use store::service_accounts::{self, NewServiceAccount};
use store::{organizations, policies, projects};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::failure::Failure;
use crate::server::Database;

/// What the platform calls itself unless it is told otherwise.
const AUDIENCE: &str = "gpuaas-api";

/// A process that is killed when it is dropped, with its folder.
pub struct Platform {
    pub address: SocketAddr,
    token: String,
    minter: Minter,
    child: Child,
    folder: PathBuf,
}

impl Platform {
    /// The token has the keys of this role. Nothing is driven here: only questions are answered.
    pub async fn start(
        database: &Database,
        address: SocketAddr,
        role: ProjectRole,
    ) -> Result<Platform, Failure> {
        Platform::start_as(database, address, role, &["--api-only"]).await
    }

    /// The same with its workers and schedules.
    pub async fn start_whole(
        database: &Database,
        address: SocketAddr,
        role: ProjectRole,
    ) -> Result<Platform, Failure> {
        Platform::start_as(database, address, role, &[]).await
    }

    async fn start_as(
        database: &Database,
        address: SocketAddr,
        role: ProjectRole,
        part: &[&str],
    ) -> Result<Platform, Failure> {
        let own_url = format!("http://{address}");
        let key = SigningKey::generate().map_err(unfit)?;
        let folder = std::env::temp_dir().join(format!("gpuaas-bench-api-{}", Uuid::new_v4().simple()));
        fs::create_dir(&folder).map_err(Failure::io(format!("make {}", folder.display())))?;
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Failure::io(format!("write {}", path.display())))?;
            Ok::<_, Failure>(path)
        };
        let signing = write("signing-keys.pem", key.private_key_pem().map_err(unfit)?.expose())?;
        let sealing = write("sealing-keys", Sealer::generate_line("k1").expose())?;
        let authority = Authority::generate_key().map_err(|fault| Failure::Setup(fault.to_string()))?;
        let registry_key = write("registry-token-key.pem", authority.expose())?;
        let bearer = settle(&database.pool, role).await?;
        let minter = Minter::new(&own_url, AUDIENCE, SigningKeys::one(key), Arc::new(SystemClock));
        let token = minter.mint(bearer).map_err(unfit)?.access_token.expose().clone();
        let child = Command::new(binary()?)
            .args(["serve", "--listen", &address.to_string()])
            .args(part)
            .args(["--database-url", database.options.to_url_lossy().as_str()])
            .args(["--set", &format!("auth.public_url={own_url}")])
            .args(["--set", "auth.issuers=https://nobody.example gpuaas"])
            .args(["--set", &format!("auth.signing_keys_file={}", signing.display())])
            .args(["--set", &format!("auth.sealing_keys_file={}", sealing.display())])
            // Nobody pushes here, so no registry needs to listen.
            .args(["--set", "registry.url=http://127.0.0.1:1"])
            .args(["--set", &format!("registry.token_key_file={}", registry_key.display())])
            .args(["--set", &format!("artifact_store.path={}", folder.join("blobs").display())])
            .stdin(Stdio::null())
            .stderr(log(&folder)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(Failure::io("start gpuaas serve"))?;
        Ok(Platform { address, token, minter, child, folder })
    }

    /// What its callers show.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// What a node shows that has proven itself.
    pub fn node_bearer(&self, node: Uuid) -> Result<String, Failure> {
        let bearer = Bearer {
            subject: node,
            actor_type: ActorType::Node,
            org_id: None,
            project_id: None,
            scope: String::new(),
            key_id: None,
            lifetime: TimeDelta::hours(1),
        };
        let minted = self.minter.mint(bearer).map_err(unfit)?;
        Ok(format!("Bearer {}", minted.access_token.expose()))
    }

    /// Of the server; zero once it has ended.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Where it keeps blobs.
    pub fn blobs(&self) -> PathBuf {
        self.folder.join("blobs")
    }

    /// What it said, for when it does not answer.
    pub fn said(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Every request is logged, as anywhere: the cost of that is part of the figure.
fn log(folder: &std::path::Path) -> Result<fs::File, Failure> {
    fs::File::create(folder.join("log")).map_err(Failure::io("write the server's log"))
}

/// The program as it is shipped, built beside this one.
pub fn binary() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe().map_err(Failure::io("find this program"))?.with_file_name("gpuaas");
    if program.exists() {
        Ok(program)
    } else {
        Err(Failure::Setup("gpuaas is not built: ./dev bench builds it".into()))
    }
}

/// The account whose token is shown. No bound but the type's holds for its requests here: millions are asked.
pub async fn settle(pool: &PgPool, role: ProjectRole) -> Result<Bearer, Failure> {
    let (org, project, account) = (Uuid::now_v7(), Uuid::now_v7(), Uuid::now_v7());
    let mut tx = pool.begin().await?;
    organizations::ensure(&mut tx, org, "bench", "bench").await?;
    projects::ensure(&mut tx, project, org, "bench", "bench").await?;
    let keys = role.keys();
    let new = NewServiceAccount {
        id: account,
        org_id: org,
        project_id: project,
        slug: "bench",
        name: "bench",
        description: None,
        keys,
        created_by: Uuid::nil(),
    };
    service_accounts::insert(&mut tx, &new).await?;
    let limit = PolicyKey::ApiRequestsPerMinute;
    policies::set(&mut tx, PolicyLayer::Global, Uuid::nil(), limit, &json!(u32::MAX), Uuid::nil()).await?;
    tx.commit().await?;
    Ok(Bearer {
        subject: account,
        actor_type: ActorType::ServiceAccount,
        org_id: Some(org),
        project_id: Some(project),
        scope: keys.names().join(" "),
        key_id: None,
        lifetime: TimeDelta::hours(1),
    })
}

fn unfit(fault: KeyFault) -> Failure {
    Failure::Setup(fault.to_string())
}
