//! Asking an issuer: https only (plain http on loopback where allowed), no redirects, little time,
//! little space. What a project named must be on the open internet.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};

use crate::public_address::{PublicOnly, is_public};

const PATIENCE: Duration = Duration::from_secs(5);
const LARGEST: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct Fetcher {
    client: Client,
    public_only: bool,
    loopback_http: bool,
}

impl Fetcher {
    pub(super) fn anywhere(loopback_http: bool) -> Result<Fetcher, String> {
        Fetcher::new(false, loopback_http)
    }

    pub(super) fn public_only(loopback_http: bool) -> Result<Fetcher, String> {
        Fetcher::new(true, loopback_http)
    }

    fn new(public_only: bool, loopback_http: bool) -> Result<Fetcher, String> {
        // An error says that a provider is installed already: there is only one we compile.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .timeout(PATIENCE)
            .connect_timeout(PATIENCE)
            .redirect(Policy::none())
            .user_agent(concat!("gpuaas/", env!("CARGO_PKG_VERSION")));
        if public_only {
            builder = builder.dns_resolver(PublicOnly);
        }
        let client = builder.build().map_err(|error| error.to_string())?;
        Ok(Fetcher { client, public_only, loopback_http })
    }

    pub(super) fn may_reach(&self, address: &str) -> bool {
        Url::parse(address).is_ok_and(|url| self.allows(&url))
    }

    /// Names are looked at when they are resolved; addresses must be looked at here.
    fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let literal: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        if !url.username().is_empty() || url.password().is_some() {
            return false;
        }
        match url.scheme() {
            "http" => self.loopback_http && literal.is_some_and(|address| address.is_loopback()),
            "https" => !self.public_only || literal.is_none_or(is_public),
            _ => false,
        }
    }

    /// The body of a 200. The reason of a failure names the address and nothing of the answer.
    pub(super) async fn get(&self, address: &str) -> Result<Vec<u8>, String> {
        let (status, body) = self.ask(self.client.get(self.allowed(address)?), address).await?;
        if status == StatusCode::OK { Ok(body) } else { Err(format!("{address} answered {status}")) }
    }

    /// The body of a 200; nothing when the other side refuses what was sent.
    pub(super) async fn post_form(
        &self,
        address: &str,
        fields: &[(&str, &str)],
    ) -> Result<Option<Vec<u8>>, String> {
        let url = self.allowed(address)?;
        // The query of an address is written exactly as a form is.
        let mut form = url.clone();
        form.query_pairs_mut().clear().extend_pairs(fields);
        let request = self
            .client
            .post(url)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(ACCEPT, "application/json")
            .body(form.query().unwrap_or_default().to_owned());
        match self.ask(request, address).await? {
            (StatusCode::OK, body) => Ok(Some(body)),
            (status, _) if status.is_client_error() => Ok(None),
            (status, _) => Err(format!("{address} answered {status}")),
        }
    }

    fn allowed(&self, address: &str) -> Result<Url, String> {
        let url = Url::parse(address).ok().filter(|url| self.allows(url));
        url.ok_or_else(|| format!("{address} is not an address that may be asked"))
    }

    async fn ask(&self, request: RequestBuilder, address: &str) -> Result<(StatusCode, Vec<u8>), String> {
        let failed = |error: reqwest::Error| {
            let why = if error.is_timeout() { "it did not answer in time" } else { "the connection failed" };
            format!("{address}: {why}")
        };
        let mut answer = request.send().await.map_err(failed)?;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > LARGEST {
                return Err(format!("{address} answered more than {LARGEST} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((answer.status(), body))
    }
}
