//! The local node of `gpuaas dev`: enrolled through the public API, as any node is, with all of this machine allocated to
//! the example project. A later start finds it in the data directory.

use agent::Home;
use domain::Secret;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::data::DataDir;
use super::ready::PROJECT_ID;
use crate::failure::Failure;
use crate::role::agent::{self as role, AnyDriver, Choice, choose};

pub struct LocalNode {
    pub driver: &'static str,
    pub allocation_id: Uuid,
    stop: CancellationToken,
    life: JoinHandle<Result<(), Failure>>,
}

impl LocalNode {
    pub async fn start(
        data: &DataDir,
        api_url: &str,
        gpus: u32,
        docker: Option<&str>,
    ) -> Result<LocalNode, Failure> {
        let home = Home::at(&data.path.join("agent")).map_err(Failure::usage)?;
        let driver = choose(Choice::Auto, docker).await?;
        let name = driver.name();
        let admin = Admin::sign_in(api_url).await?;
        if !home.is_enrolled() {
            enrol(&admin, &home, name, gpus).await?;
        }
        let node_id = home.identity().map_err(Failure::usage)?.node_id;
        let allocation_id = allocation(&admin, node_id).await?;
        let stop = CancellationToken::new();
        let life = tokio::spawn(life(home, driver, stop.clone()));
        Ok(LocalNode { driver: name, allocation_id, stop, life })
    }

    /// What runs goes on; the next start finds it.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.life.await;
    }
}

async fn life(home: Home, driver: AnyDriver, stop: CancellationToken) -> Result<(), Failure> {
    role::serve(home, driver, stop).await
}

async fn enrol(admin: &Admin<'_>, home: &Home, driver: &str, gpus: u32) -> Result<(), Failure> {
    let node = admin
        .post("/nodes", &json!({ "name": format!("local-{}", &Uuid::now_v7().simple().to_string()[20..]) }))
        .await?;
    let token = node["enrolment_token"].as_str().unwrap_or_default().to_owned();
    role::register(home, admin.api_url, &Secret::new(token), "127.0.0.1", driver, gpus).await?;
    Ok(())
}

/// The whole machine, for the example project; given once.
async fn allocation(admin: &Admin<'_>, node_id: Uuid) -> Result<Uuid, Failure> {
    let there = admin.get(&format!("/allocations?status=active&node_id={node_id}")).await?;
    let found = there["items"][0]["id"].as_str().map(str::to_owned);
    let id = match found {
        Some(id) => id,
        None => {
            let whole =
                json!({ "project_id": PROJECT_ID, "node_id": node_id, "capacity_shape": "baremetal" });
            let made = admin.post("/allocations", &whole).await?;
            made["id"].as_str().unwrap_or_default().to_owned()
        }
    };
    id.parse().map_err(Failure::server)
}

/// The administrator, by the same door as everybody.
struct Admin<'a> {
    api_url: &'a str,
    client: Client,
    token: String,
}

impl Admin<'_> {
    async fn sign_in(api_url: &str) -> Result<Admin<'_>, Failure> {
        let client = Client::builder().no_proxy().build().map_err(Failure::server)?;
        let url = format!("{api_url}/realms/gpuaas/protocol/openid-connect/token");
        let form = "client_id=gpuaas&grant_type=password&username=admin&password=admin";
        let request = client.post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
        let said = answered(request).await?;
        let token = said["access_token"].as_str().unwrap_or_default().to_owned();
        Ok(Admin { api_url, client, token })
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let url = format!("{}/api/v1/admin{path}", self.api_url);
        answered(self.client.post(url).bearer_auth(&self.token).json(body)).await
    }

    async fn get(&self, path: &str) -> Result<Value, Failure> {
        let url = format!("{}/api/v1/admin{path}", self.api_url);
        answered(self.client.get(url).bearer_auth(&self.token)).await
    }
}

async fn answered(request: reqwest::RequestBuilder) -> Result<Value, Failure> {
    let answer = request.send().await.map_err(|error| Failure::server(error.without_url()))?;
    let status = answer.status();
    let body: Value = answer.json().await.unwrap_or_default();
    if status.is_success() {
        return Ok(body);
    }
    Err(Failure::server(format!("the local node could not be set up: {}", body["message"])))
}
