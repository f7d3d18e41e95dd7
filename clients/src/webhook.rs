//! Sends events to receivers that people named, signed as Standard Webhooks says.
//!
//! Receivers may be anywhere, so nothing here may lead into our own network: names are looked at when they are resolved,
//! and the connection is made to what was looked at; redirects are not followed; nothing of an answer is kept but its
//! status.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use domain::Secret;
use rand::RngCore;
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP, Webhook};
use zeroize::Zeroizing;

use crate::clock::{Clock, SystemClock};
use crate::public_address::{PublicOnly, is_public};

const PREFIX: &str = "whsec_";

/// Why there was no answer. Says nothing of what is behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendFault {
    #[error("the address is not on the open internet")]
    NotPublic,
    #[error("the address is no https URL without a user")]
    BadAddress,
    #[error("the receiver did not answer in time")]
    Timeout,
    #[error("the connection failed")]
    Connection,
}

/// Two clients, because a connection that was kept open must not serve who may not have made it.
#[derive(Clone, Debug)]
pub struct WebhookSender {
    public: Client,
    anywhere: Client,
}

/// What is sent to whom.
pub struct Letter<'a> {
    pub url: &'a str,
    pub private_allowed: bool,
    /// By which the receiver knows a repetition.
    pub id: &'a str,
    pub body: &'a [u8],
    pub secrets: &'a [Secret<String>],
}

impl WebhookSender {
    /// A receiver has `patience` to connect, take the event and answer.
    pub fn new(patience: Duration) -> Result<WebhookSender, String> {
        // An error says that a provider is installed already: there is only one we compile.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = || {
            Client::builder()
                .timeout(patience)
                .connect_timeout(patience)
                .redirect(Policy::none())
                .no_proxy()
                .user_agent(concat!("gpuaas/", env!("CARGO_PKG_VERSION")))
        };
        let public = builder().dns_resolver(PublicOnly).build().map_err(|error| error.to_string())?;
        let anywhere = builder().build().map_err(|error| error.to_string())?;
        Ok(WebhookSender { public, anywhere })
    }

    /// The status that the receiver answered.
    pub async fn send(&self, letter: &Letter<'_>) -> Result<u16, SendFault> {
        let url = allowed(letter.url, letter.private_allowed)?;
        let client = if letter.private_allowed { &self.anywhere } else { &self.public };
        // Receivers compare it with their own clocks, so it is the machine's.
        let at = SystemClock.now().timestamp();
        let answer = client
            .post(url)
            .header(CONTENT_TYPE, "application/cloudevents+json")
            .header(HEADER_WEBHOOK_ID, letter.id)
            .header(HEADER_WEBHOOK_TIMESTAMP, at.to_string())
            .header(HEADER_WEBHOOK_SIGNATURE, signatures(letter, at))
            .body(letter.body.to_vec())
            .send()
            .await;
        match answer {
            Ok(answer) => Ok(answer.status().as_u16()),
            Err(error) if error.is_timeout() => Err(SendFault::Timeout),
            Err(error) if refused(&error) => Err(SendFault::NotPublic),
            Err(_) => Err(SendFault::Connection),
        }
    }
}

/// Names are looked at when they are resolved; addresses must be looked at here. Plain http is for private networks.
pub fn allowed(url: &str, private_allowed: bool) -> Result<Url, SendFault> {
    let url = Url::parse(url).map_err(|_| SendFault::BadAddress)?;
    let Some(host) = url.host_str() else { return Err(SendFault::BadAddress) };
    let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let scheme = url.scheme() == "https" || (private_allowed && url.scheme() == "http");
    if !scheme || !url.username().is_empty() || url.password().is_some() {
        return Err(SendFault::BadAddress);
    }
    if !private_allowed && !literal.is_none_or(is_public) {
        return Err(SendFault::NotPublic);
    }
    Ok(url)
}

/// Whether the resolver found nothing that may be visited.
fn refused(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string() == crate::public_address::NOT_PUBLIC {
            return true;
        }
        cause = error.source();
    }
    false
}

/// A new secret, as receivers keep it.
pub fn new_secret() -> Secret<String> {
    let mut key = Zeroizing::new([0; 32]);
    rand::rng().fill_bytes(key.as_mut());
    Secret::new(format!("{PREFIX}{}", BASE64_STANDARD.encode(key.as_ref())))
}

/// One signature for each secret, separated by spaces.
fn signatures(letter: &Letter<'_>, at: i64) -> String {
    let signed: Vec<String> =
        letter.secrets.iter().filter_map(|secret| signature(secret, letter, at)).collect();
    signed.join(" ")
}

fn signature(secret: &Secret<String>, letter: &Letter<'_>, at: i64) -> Option<String> {
    Webhook::new(secret.expose()).ok()?.sign(letter.id, at, letter.body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's own example.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let letter = Letter {
            url: "",
            private_allowed: false,
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            body: br#"{"test": 2432232314}"#,
            secrets: &[secret.clone(), secret],
        };
        let one = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signatures(&letter, 1_614_265_330), format!("{one} {one}"));
    }

    #[test]
    fn secrets_are_long_and_all_different() {
        let (one, other) = (new_secret(), new_secret());
        assert_ne!(one.expose(), other.expose());
        assert_eq!(BASE64_STANDARD.decode(one.expose().strip_prefix(PREFIX).unwrap()).unwrap().len(), 32);
    }

    #[test]
    fn only_https_to_the_open_internet_is_allowed() {
        assert!(allowed("https://example.com/hook", false).is_ok());
        for url in
            ["http://example.com", "ftp://example.com", "https://a:b@example.com", "no url", "https://"]
        {
            assert_eq!(allowed(url, false), Err(SendFault::BadAddress), "{url}");
        }
        for url in
            ["https://127.0.0.1", "https://169.254.169.254/latest", "https://[::1]:8443", "https://10.0.0.1"]
        {
            assert_eq!(allowed(url, false), Err(SendFault::NotPublic), "{url}");
            assert!(allowed(url, true).is_ok(), "{url}");
        }
        assert!(allowed("http://127.0.0.1:9", true).is_ok());
    }
}
