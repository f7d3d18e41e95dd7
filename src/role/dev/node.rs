//! The local node of `gpuaas dev`: enrolled through the public API, as any node is, with all of this machine allocated to
//! the example project. A later start finds it in the data directory.

use agent::{Home, HomeFault, Subnet};
use domain::Secret;
use serde_json::json;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::admin::Admin;
use super::data::DataDir;
use super::ready::PROJECT_ID;
use crate::failure::Failure;
use crate::role::agent::{self as role, AnyDriver, Choice, DockerAt, choose};

pub struct LocalNode {
    pub driver: &'static str,
    pub allocation_id: Uuid,
    stop: CancellationToken,
    life: JoinHandle<()>,
}

impl LocalNode {
    pub async fn start(
        data: &DataDir,
        admin: &Admin,
        gpus: u32,
        docker: Option<&str>,
    ) -> Result<LocalNode, Failure> {
        let home = Home::at(&data.path.join("agent")).map_err(Failure::usage)?;
        // Whoever starts this looks on, so an engine that is gone is told and not waited for.
        let choice = match home.identity() {
            Ok(identity) => Choice::Auto.enrolled(&identity.driver)?,
            Err(_) => Choice::Auto,
        };
        let driver = match choose(choice, DockerAt { host: docker, pool: Subnet::POOL }).await? {
            AnyDriver::Simulated(simulated) => AnyDriver::Simulated(simulated.with_gpus(gpus)),
            docker => docker,
        };
        let name = driver.name();
        if !home.is_enrolled() {
            enrol(admin, &home, name, gpus).await?;
        }
        let node_id = follow(&home, &admin.api_url).map_err(Failure::usage)?;
        let allocation_id = allocation(admin, node_id).await?;
        let stop = CancellationToken::new();
        let life = role::serve(home, driver, stop.clone()).await?;
        Ok(LocalNode { driver: name, allocation_id, stop, life })
    }

    /// Returns when the agent ends by itself.
    pub async fn ended(&mut self) -> Failure {
        let _ = (&mut self.life).await;
        Failure::server("the agent of the local node ended")
    }

    /// What runs goes on; the next start finds it.
    pub async fn stop(self) {
        self.stop.cancel();
        // One that ended by itself has been waited for already.
        if !self.life.is_finished() {
            let _ = self.life.await;
        }
    }
}

/// The platform may be on another port than when the node enrolled.
fn follow(home: &Home, api_url: &str) -> Result<Uuid, HomeFault> {
    let mut identity = home.identity()?;
    if identity.platform != api_url {
        identity.issuer = identity.issuer.replace(&identity.platform, api_url);
        identity.platform = api_url.to_owned();
        home.keep_identity(&identity)?;
    }
    Ok(identity.node_id)
}

async fn enrol(admin: &Admin, home: &Home, driver: &str, gpus: u32) -> Result<(), Failure> {
    let node = admin
        .post(
            "/admin/nodes",
            &json!({ "name": format!("local-{}", &Uuid::now_v7().simple().to_string()[20..]) }),
        )
        .await?;
    let token = node["enrolment_token"].as_str().unwrap_or_default().to_owned();
    role::register(home, &admin.api_url, &Secret::new(token), "127.0.0.1", driver, gpus).await?;
    Ok(())
}

/// The whole machine, for the example project; given once.
async fn allocation(admin: &Admin, node_id: Uuid) -> Result<Uuid, Failure> {
    let there = admin.get(&format!("/admin/allocations?status=active&node_id={node_id}")).await?;
    let found = there["items"][0]["id"].as_str().map(str::to_owned);
    let id = match found {
        Some(id) => id,
        None => {
            let whole =
                json!({ "project_id": PROJECT_ID, "node_id": node_id, "capacity_shape": "baremetal" });
            let made = admin.post("/admin/allocations", &whole).await?;
            made["id"].as_str().unwrap_or_default().to_owned()
        }
    };
    id.parse().map_err(Failure::server)
}
