//! The device grant (RFC 8628): a code is shown here, typed into a browser anywhere, and asked about until it is known.

use std::time::Duration;

use serde::Deserialize;
use tokio::time::sleep;

use super::oauth::{Refused, SignIn};
use crate::cli::client::unreachable;
use crate::cli::output::say;
use crate::cli::session::Session;
use crate::failure::Failure;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// What `slow_down` adds to the time between two questions.
const SLOWER: u64 = 5;

#[derive(Deserialize)]
struct Device {
    device_code: String,
    user_code: String,
    verification_uri: String,
    verification_uri_complete: Option<String>,
    expires_in: u64,
    interval: Option<u64>,
}

pub async fn sign_in(sign_in: &SignIn<'_>) -> Result<Session, Failure> {
    let device = begin(sign_in).await?;
    say(&format!("Open {} and enter {}", device.verification_uri, device.user_code));
    if let Some(page) = &device.verification_uri_complete {
        say(&format!("or open {page}"));
    }
    let form = [("grant_type", GRANT), ("device_code", device.device_code.as_str())];
    let mut interval = device.interval.unwrap_or(5);
    let mut left = device.expires_in;
    while left > 0 {
        let pause = interval.min(left);
        sleep(Duration::from_secs(pause)).await;
        left -= pause;
        match sign_in.ask(&form).await? {
            Ok(session) => return Ok(session),
            Err(Refused { error, .. }) if error == "authorization_pending" => {}
            Err(Refused { error, .. }) if error == "slow_down" => interval += SLOWER,
            Err(refused) => return Err(refused.failure()),
        }
    }
    Err(Failure::auth("nobody signed in in time"))
}

async fn begin(sign_in: &SignIn<'_>) -> Result<Device, Failure> {
    let endpoint = sign_in.discovery.device_authorization_endpoint.as_ref();
    let endpoint = endpoint
        .ok_or_else(|| Failure::usage("the issuer has no device sign-in; set GPUAAS_TOKEN instead"))?;
    let form = [("client_id", sign_in.client_id), ("scope", "openid")];
    let answer = sign_in.http.post(endpoint).form(&form).send().await;
    let answer = answer.map_err(|error| unreachable(endpoint, &error))?;
    if !answer.status().is_success() {
        return Err(Failure::auth(format!(
            "the issuer does not begin a sign-in for client {}",
            sign_in.client_id
        )));
    }
    answer
        .json()
        .await
        .map_err(|_| Failure::server(format!("{endpoint} answers in a way that is not understood")))
}
