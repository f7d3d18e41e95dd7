//! The platform as the agent reaches it: it calls, the platform answers. A token that is about to end, or is refused, is
//! replaced by proving the node's key again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use domain::Secret;
use node_protocol::{
    Enrolled, Heartbeat, HeartbeatAnswer, Inventory, Key, NodeToken, Outcome, Progress, Signed,
    assert_identity,
};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::home::{Identity, digest_of};

/// Where wall time comes from: assertions and expiry are judged by it.
pub type Now = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// How long an answer that should come at once may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long all of a program may take to come.
const PROGRAM_WITHIN: Duration = Duration::from_secs(20 * 60);
/// A token is replaced this long before it ends.
const EARLY: Duration = Duration::from_secs(60);
/// How long one that could not be replaced yet is used before that is tried again.
const RENEWED_AGAIN_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum PlatformFault {
    /// It will pass: the platform is away, or says to come back.
    #[error("the platform did not answer: {0}")]
    Unreachable(String),
    /// It will not pass by asking again.
    #[error("the platform refused ({status}): {message}")]
    Refused { status: u16, message: String },
    #[error("the platform's answer cannot be read: {0}")]
    Unreadable(String),
}

pub struct Platform {
    client: Client,
    identity: Identity,
    key: Key,
    now: Now,
    token: Mutex<Option<Token>>,
}

struct Token {
    text: Secret<String>,
    /// From here on another is asked for.
    renewed_from: Instant,
    ends: Instant,
}

#[derive(Deserialize)]
struct Next {
    task: Option<Signed>,
}

impl Platform {
    pub fn new(identity: Identity, key: Key, now: Now) -> Result<Platform, PlatformFault> {
        Ok(Platform { client: client()?, identity, key, now, token: Mutex::default() })
    }

    pub fn node_id(&self) -> Uuid {
        self.identity.node_id
    }

    pub async fn next(&self, wait: Duration) -> Result<Option<Signed>, PlatformFault> {
        let path = format!("/tasks/wait?wait={}s", wait.as_secs());
        let next: Next = read(self.ask(Method::GET, self.url(&path), None, PATIENCE + wait).await?).await?;
        Ok(next.task)
    }

    pub async fn progress(&self, task: Uuid, progress: &Progress) -> Result<(), PlatformFault> {
        let path = format!("/tasks/{task}/progress");
        self.ask(Method::POST, self.url(&path), Some(json!(progress)), PATIENCE).await.map(drop)
    }

    pub async fn result(&self, task: Uuid, key: &str, outcome: &Outcome) -> Result<(), PlatformFault> {
        let body = json!({ "idempotency_key": key, "outcome": outcome });
        let url = self.url(&format!("/tasks/{task}/result"));
        self.ask(Method::POST, url, Some(body), PATIENCE).await.map(drop)
    }

    pub async fn heartbeat(&self, beat: &Heartbeat) -> Result<HeartbeatAnswer, PlatformFault> {
        read(self.ask(Method::POST, self.url("/heartbeat"), Some(json!(beat)), PATIENCE).await?).await
    }

    /// A program of a release of the platform, whose bytes are still to come. A node is signed in like anybody.
    pub async fn program(&self, version: &str, artifact: &str) -> Result<Response, PlatformFault> {
        let platform = &self.identity.platform;
        let url = format!("{platform}/api/v1/platform/releases/{version}/artifacts/{artifact}/download");
        self.ask(Method::GET, url, None, PROGRAM_WITHIN).await
    }

    async fn ask(
        &self,
        method: Method,
        url: String,
        body: Option<Value>,
        patience: Duration,
    ) -> Result<Response, PlatformFault> {
        for first in [true, false] {
            let token = self.token().await?;
            let request =
                self.client.request(method.clone(), &url).bearer_auth(token.expose()).timeout(patience);
            let request = match &body {
                Some(body) => request.json(body),
                None => request,
            };
            let answer = send(request).await;
            // A token can be refused early: the platform may have started anew with other keys.
            match answer {
                Err(PlatformFault::Refused { status: 401, .. }) if first => *self.token.lock().await = None,
                answer => return answer,
            }
        }
        Err(PlatformFault::Unreachable("no token is accepted".to_owned()))
    }

    /// A token is good until it ends: that there is no other yet keeps nobody from using it.
    async fn token(&self) -> Result<Secret<String>, PlatformFault> {
        let mut held = self.token.lock().await;
        if let Some(token) = held.as_ref()
            && Instant::now() < token.renewed_from
        {
            return Ok(token.text.clone());
        }
        match (self.prove().await, held.as_mut()) {
            (Err(fault), Some(old)) if Instant::now() < old.ends => {
                tracing::warn!(%fault, "the token could not be replaced yet");
                old.renewed_from = Instant::now() + RENEWED_AGAIN_AFTER;
                Ok(old.text.clone())
            }
            (proven, _) => Ok(held.insert(proven?).text.clone()),
        }
    }

    /// A new token for the proof of the node's key.
    async fn prove(&self) -> Result<Token, PlatformFault> {
        let Identity { node_id, issuer, .. } = &self.identity;
        let assertion = assert_identity(&self.key, *node_id, issuer, (self.now)());
        let body = json!({ "key_id": self.key.id(), "assertion": assertion.expose() });
        let request = self.client.post(self.url("/token")).json(&body).timeout(PATIENCE);
        let got: NodeToken = read(send(request).await?).await?;
        let (now, lives) = (Instant::now(), Duration::from_secs(got.expires_in.unsigned_abs()));
        let (renewed_from, ends) = (now + lives.saturating_sub(EARLY), now + lives);
        Ok(Token { text: Secret::new(got.access_token), renewed_from, ends })
    }

    fn url(&self, path: &str) -> String {
        format!("{}/internal/v1/nodes/{}{path}", self.identity.platform, self.identity.node_id)
    }
}

/// What a node says of itself when it enrols.
pub struct Newcomer<'a> {
    pub key: &'a Key,
    pub address: &'a str,
    pub driver: &'a str,
    pub agent_version: &'a str,
    pub inventory: &'a Inventory,
}

/// Registers the node's own key with its one-time token. Whoever gets no answer asks again with the same key.
pub async fn enrol(
    platform: &str,
    token: &Secret<String>,
    node: &Newcomer<'_>,
) -> Result<(Identity, Enrolled), PlatformFault> {
    let public_key =
        node.key.public().to_pem().map_err(|fault| PlatformFault::Unreadable(fault.to_string()))?;
    let body = json!({
        "enrolment_token": token.expose(), "public_key": public_key, "address": node.address, "driver": node.driver,
        "agent_version": node.agent_version, "inventory": node.inventory,
    });
    let platform = platform.trim_end_matches('/').to_owned();
    let request =
        client()?.post(format!("{platform}/internal/v1/nodes/enroll")).json(&body).timeout(PATIENCE);
    let enrolled: Enrolled = read(send(request).await?).await?;
    let (node_id, name) = (enrolled.node_id, enrolled.name.clone());
    let (issuer, driver) = (enrolled.issuer.clone(), node.driver.to_owned());
    let token_digest = Some(digest_of(token));
    let identity = Identity { node_id, name, platform, issuer, driver, token_digest };
    Ok((identity, enrolled))
}

fn client() -> Result<Client, PlatformFault> {
    let client = Client::builder().connect_timeout(Duration::from_secs(5)).no_proxy();
    client.build().map_err(|error| PlatformFault::Unreadable(error.to_string()))
}

/// Sorted once, here: what passes and what does not.
async fn send(request: RequestBuilder) -> Result<Response, PlatformFault> {
    let answer = request.send().await.map_err(|error| PlatformFault::Unreachable(without_url(error)))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(PlatformFault::Unreachable(format!("status {status}")));
    }
    let body: Value = answer.json().await.unwrap_or_default();
    let message = body["message"].as_str().unwrap_or("no reason given").to_owned();
    Err(PlatformFault::Refused { status: status.as_u16(), message })
}

async fn read<T: DeserializeOwned>(answer: Response) -> Result<T, PlatformFault> {
    answer.json().await.map_err(|error| PlatformFault::Unreadable(without_url(error)))
}

fn without_url(error: reqwest::Error) -> String {
    error.without_url().to_string()
}

#[cfg(test)]
mod tests;
