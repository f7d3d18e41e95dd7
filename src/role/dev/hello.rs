//! The app `hello` in every new `gpuaas dev`, published as a team would: its image by `gpuaas publish`, its rollout and the
//! entitlement by the routes that anybody uses. A later start goes on where an earlier one broke off, and leaves alone what
//! is done or was changed since.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use domain::ErrorCode;
use serde_json::{Value, json};
use tokio::process::Command;

use super::admin::Admin;
use super::ready::PROJECT_ID;
use crate::failure::Failure;

/// Of the manifest that is registered; a story holds the two together.
const VERSION: &str = "hello/versions/1.0.0";
/// How often a run of an earlier start is looked at that still moves the version.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What is to be published, and by whom.
pub struct Hello {
    pub admin: Admin,
    /// An OCI layout, as `./dev pack` makes it.
    pub image: PathBuf,
    /// Where the publishing command may keep what it remembers.
    pub scratch: PathBuf,
}

/// Beside this program, where `./dev pack` puts it.
pub fn usual_image() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().nth(2).unwrap_or(Path::new("/")).join("apps/hello")
}

impl Hello {
    /// Answers what became of it, for the banner.
    pub async fn publish(self) -> String {
        match self.published().await {
            Ok(true) => "hello, published and entitled".to_owned(),
            Ok(false) => format!(
                "hello, registered without an image: `./dev pack` makes one, which is looked for in {}",
                self.image.display()
            ),
            Err(failure) => format!("hello, registered and not published: {}", failure.message),
        }
    }

    /// False where there is no image to begin with.
    async fn published(&self) -> Result<bool, Failure> {
        loop {
            let version = self.admin.get(&format!("/apps/catalog/{VERSION}")).await?;
            match version["status"].as_str().unwrap_or_default() {
                "draft" if !self.image.join("index.json").exists() => return Ok(false),
                "draft" => {
                    self.publish_image().await?;
                    self.advance("stage", &json!({})).await?;
                }
                "staged" => self.advance("canary", &json!({ "percent": 100 })).await?,
                "canary" => self.advance("publish", &json!({})).await?,
                _ => break,
            }
        }
        self.entitle().await?;
        Ok(true)
    }

    /// The image, pushed, registered, verified, and promoted to where active versions come from.
    async fn publish_image(&self) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(Failure::server)?;
        let said = Command::new(program)
            .args(["publish", "hello", "1.0.0", "--output", "json", "--image"])
            .arg(&self.image)
            .args(["--url", &self.admin.api_url, "--project", &PROJECT_ID.to_string()])
            .env("GPUAAS_TOKEN", &self.admin.token)
            .env("XDG_CONFIG_HOME", &self.scratch)
            .env("XDG_STATE_HOME", &self.scratch)
            .env_remove("GPUAAS_PROFILE")
            .env("NO_PROXY", "127.0.0.1")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let said = said.await.map_err(Failure::server)?;
        if !said.status.success() {
            return Err(Failure::server(String::from_utf8_lossy(&said.stderr).trim()));
        }
        let artifact: Value = serde_json::from_slice(&said.stdout).map_err(Failure::server)?;
        let is_prod = |channel: &Value| channel == "prod";
        if artifact["channels"].as_array().is_some_and(|channels| channels.iter().any(is_prod)) {
            return Ok(());
        }
        let id = artifact["id"].as_str().unwrap_or_default();
        let path = format!("/projects/{PROJECT_ID}/app-artifacts/{id}/promote?wait=60s");
        self.succeeds(&path, &json!({ "channel": "prod" })).await
    }

    async fn advance(&self, verb: &str, body: &Value) -> Result<(), Failure> {
        self.succeeds(&format!("/admin/apps/catalog/{VERSION}/{verb}?wait=60s"), body).await
    }

    /// A run that is still going, this one or one of an earlier start, is looked at again.
    async fn succeeds(&self, path: &str, body: &Value) -> Result<(), Failure> {
        let answer = match self.admin.post(path, body).await {
            Err(failure) if is_going(&failure) => {
                tokio::time::sleep(LOOK_EVERY).await;
                return Ok(());
            }
            answer => answer?,
        };
        match answer["workflow"]["status"].as_str() {
            Some("failed" | "compensated" | "cancelled" | "stuck" | "paused") => {
                let id = answer["workflow"]["id"].as_str().unwrap_or_default();
                let run = self.admin.get(&format!("/admin/workflows/{id}")).await?;
                Err(Failure::failed(run["error"]["message"].as_str().unwrap_or("its workflow tells why")))
            }
            _ => Ok(()),
        }
    }

    /// Once; what somebody decided since stays.
    async fn entitle(&self) -> Result<(), Failure> {
        let route = format!("/projects/{PROJECT_ID}/apps/entitlements");
        let there = self.admin.get(&route).await?;
        let is_hello = |one: &Value| one["app_slug"] == "hello";
        if there["items"].as_array().is_some_and(|items| items.iter().any(is_hello)) {
            return Ok(());
        }
        self.admin.put(&format!("{route}/hello"), &json!({ "enabled": true })).await?;
        Ok(())
    }
}

fn is_going(failure: &Failure) -> bool {
    failure.answer.as_ref().is_some_and(|answer| answer.code == ErrorCode::OperationInProgress)
}
