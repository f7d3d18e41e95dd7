//! The administrator of `gpuaas dev`, who sets it up by the same door as everybody: the API, with the password that is
//! printed.

use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use serde_json::Value;

use crate::cli::client::refusal;
use crate::failure::Failure;

/// Longer than the longest `?wait=`.
const ANSWERS_WITHIN: Duration = Duration::from_secs(90);

pub struct Admin {
    pub api_url: String,
    pub token: String,
    client: Client,
}

impl Admin {
    pub async fn sign_in(api_url: &str) -> Result<Admin, Failure> {
        // Requests here never leave the machine, yet the client is not built without a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder().timeout(ANSWERS_WITHIN).no_proxy().build().map_err(Failure::server)?;
        let url = format!("{api_url}/realms/gpuaas/protocol/openid-connect/token");
        let form = "client_id=gpuaas&grant_type=password&username=admin&password=admin";
        let request = client.post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
        let said = answered(request).await?;
        let token = said["access_token"].as_str().map(str::to_owned);
        let token = token.ok_or_else(|| Failure::server("the issuer does not know its own administrator"))?;
        Ok(Admin { api_url: api_url.to_owned(), token, client })
    }

    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        answered(self.client.get(self.at(path)).bearer_auth(&self.token)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        answered(self.client.post(self.at(path)).bearer_auth(&self.token).json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        answered(self.client.put(self.at(path)).bearer_auth(&self.token).json(body)).await
    }

    pub async fn post_yaml(&self, path: &str, body: &'static str) -> Result<Value, Failure> {
        let request = self.client.post(self.at(path)).bearer_auth(&self.token);
        answered(request.header("content-type", "application/yaml").body(body)).await
    }

    fn at(&self, path: &str) -> String {
        format!("{}/api/v1{path}", self.api_url)
    }
}

async fn answered(request: RequestBuilder) -> Result<Value, Failure> {
    let answer = request.send().await.map_err(|error| Failure::server(error.without_url()))?;
    let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
    if status.is_success() {
        serde_json::from_str(&text).map_err(Failure::server)
    } else {
        Err(refusal(status, &text))
    }
}
