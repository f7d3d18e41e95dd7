//! `[registry]` and `[vault]`: which image registry the platform speaks for, and who hands its credentials over.

use std::sync::Arc;

use clients::clock::SystemClock;
use clients::registry::{self, Authority, TokenServer};
use domain::Secret;

use super::auth::key_text;
use super::{ConfigError, Values};
use crate::failure::Failure;

#[derive(Debug, Clone)]
pub struct Registry {
    pub url: String,
    pub host: String,
    pub service: String,
    pub issuer: String,
    pub token_key: Secret<String>,
    pub events_secret: Option<Secret<String>>,
}

#[derive(Debug, Clone)]
pub struct Vault {
    pub url: String,
    pub token: Secret<String>,
}

impl Registry {
    pub(super) fn load(values: &Values) -> Result<Option<Registry>, ConfigError> {
        let Some(url) = address(values, "registry.url")? else { return Ok(None) };
        let host = match values.optional("registry.host")? {
            Some(host) => host,
            None => url.split_once("://").map_or(url.as_str(), |(_, host)| host).to_owned(),
        };
        let key = key_text(values, "registry.token_key", "registry.token_key_file")?;
        let Some((setting, token_key)) = key else {
            return Err(
                values.wrong("registry.url", &"needs `registry.token_key_file` or `registry.token_key`")
            );
        };
        Authority::from_pem(&token_key, Arc::new(SystemClock)).map_err(|why| values.wrong(setting, &why))?;
        let events_secret = key_text(values, "registry.events_secret", "registry.events_secret_file")?;
        Ok(Some(Registry {
            url,
            host,
            service: values.text("registry.service")?,
            issuer: values.text("registry.issuer")?,
            token_key: Secret::new(token_key),
            events_secret: events_secret.map(|(_, secret)| Secret::new(secret.trim().to_owned())),
        }))
    }

    pub fn authority(&self) -> Result<Authority, Failure> {
        Authority::from_pem(self.token_key.expose(), Arc::new(SystemClock)).map_err(Failure::usage)
    }

    pub fn connect(&self) -> Result<registry::Registry, Failure> {
        let tokens = TokenServer::new(self.authority()?, &self.issuer, &self.service, Arc::new(SystemClock));
        registry::Registry::new(&self.url, &self.host, tokens, self.events_secret.clone())
            .map_err(Failure::server)
    }
}

impl Vault {
    pub(super) fn load(values: &Values) -> Result<Option<Vault>, ConfigError> {
        let Some(url) = address(values, "vault.url")? else { return Ok(None) };
        match key_text(values, "vault.token", "vault.token_file")? {
            Some((_, token)) => Ok(Some(Vault { url, token: Secret::new(token.trim().to_owned()) })),
            None => Err(values.wrong("vault.url", &"needs `vault.token_file` or `vault.token`")),
        }
    }
}

pub(super) fn address(values: &Values, key: &str) -> Result<Option<String>, ConfigError> {
    let url = values.optional(key)?.map(|url| url.trim_end_matches('/').to_owned());
    match &url {
        Some(address) if !address.starts_with("https://") && !address.starts_with("http://") => {
            Err(values.wrong(key, &"must begin with https:// or http://"))
        }
        _ => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn a_registry_needs_a_key_and_a_vault_a_token() {
        let of = |file: &str| load(file, &[], &[]).unwrap_err().to_string();
        let error = of("[registry]\nurl = \"https://registry.example\"\n");
        assert!(error.contains("gpuaas.toml:2") && error.contains("registry.token_key_file"), "{error}");
        let error = of("[vault]\nurl = \"https://vault.example\"\n");
        assert!(error.contains("vault.token_file"), "{error}");
        let error = of("[registry]\nurl = \"registry.example\"\n");
        assert!(error.contains("must begin with https://"), "{error}");
    }

    #[test]
    fn a_registry_is_called_what_its_address_says_unless_told_otherwise() {
        let key = Authority::generate_key().unwrap();
        let environment = [("GPUAAS_REGISTRY_TOKEN_KEY", key.expose().as_str())];
        let file = "[registry]\nurl = \"http://10.0.0.7:5000/\"\n";
        let registry = load(file, &environment, &[]).unwrap().registry.unwrap();
        assert_eq!(
            (registry.url.as_str(), registry.host.as_str()),
            ("http://10.0.0.7:5000", "10.0.0.7:5000")
        );
        let named = format!("{file}host = \"registry.example\"\n");
        assert_eq!(load(&named, &environment, &[]).unwrap().registry.unwrap().host, "registry.example");
        assert!(registry.authority().unwrap().certificate().unwrap().contains("BEGIN CERTIFICATE"));
        let secret = key.expose().lines().nth(1).unwrap();
        assert!(!format!("{registry:?}").contains(secret));
    }
}
