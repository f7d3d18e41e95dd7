//! The reference apps, put into the catalog of every `gpuaas dev` over HTTP with the administrator's token: by the route that
//! anybody's app comes in by. A second start finds them there and changes nothing.

use std::time::Duration;

use reqwest::{Client, StatusCode, header};
use serde_json::Value;
use uuid::Uuid;

use crate::failure::Failure;

const MANIFESTS: [&str; 4] = [
    include_str!("../../../apps/hello/manifest.yaml"),
    include_str!("../../../apps/jupyterlab/manifest.yaml"),
    include_str!("../../../apps/vllm-openai/manifest.yaml"),
    include_str!("../../../apps/slurm-reference/manifest.yaml"),
];

pub async fn register(api_url: &str, owner: Uuid) -> Result<(), Failure> {
    // Requests here never leave the machine, yet the client is not built without a provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client =
        Client::builder().timeout(Duration::from_secs(30)).no_proxy().build().map_err(Failure::server)?;
    let token = sign_in(&client, api_url).await?;
    let route = format!("{api_url}/api/v1/admin/apps/manifests?owner_project_id={owner}");
    for manifest in MANIFESTS {
        let request =
            client.post(&route).bearer_auth(&token).header(header::CONTENT_TYPE, "application/yaml");
        let answer = request.body(manifest).send().await.map_err(Failure::server)?;
        match answer.status() {
            StatusCode::OK | StatusCode::CREATED => {}
            // The data is of an earlier release and the version has left draft; it keeps what it was staged with.
            StatusCode::CONFLICT => {
                let said = answer.text().await.unwrap_or_default();
                tracing::warn!(answer = said, "a reference app stays as it was");
            }
            other => {
                let said = answer.text().await.unwrap_or_default();
                return Err(Failure::server(format!("a reference app was refused with {other}: {said}")));
            }
        }
    }
    Ok(())
}

/// As the administrator, by the password that every `gpuaas dev` prints.
async fn sign_in(client: &Client, api_url: &str) -> Result<String, Failure> {
    let route = format!("{api_url}/realms/gpuaas/protocol/openid-connect/token");
    let answer = client
        .post(route)
        .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body("client_id=gpuaas&grant_type=password&username=admin&password=admin")
        .send()
        .await
        .map_err(Failure::server)?;
    let body: Value = answer.json().await.map_err(Failure::server)?;
    let token = body["access_token"].as_str().map(str::to_owned);
    token.ok_or_else(|| Failure::server("the issuer does not know its own administrator"))
}
