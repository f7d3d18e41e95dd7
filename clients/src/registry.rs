//! The image registry: any that speaks the distribution protocol and asks a token server who may do what. The platform is
//! that server, so a credential reaches what the platform says and nothing else; image bytes never pass through it.
//!
//! What is read from a registry is believed only after it was hashed here.

mod authority;
mod password;
mod repository;
mod scope;
mod tokens;

pub use authority::{Authority, AuthorityFault};
pub use password::Password;
pub use repository::{Manifest, Pushed, RegistryFault, Repository};
pub use scope::{Access, Action, Scope};
pub use tokens::{RegistryToken, TokenServer};

use std::sync::Arc;

use domain::Secret;

/// Which registry there is, and what the platform needs to speak for it.
#[derive(Debug, Clone)]
pub struct Registry {
    /// What people and nodes write before a repository's name.
    pub host: String,
    /// Where this process reaches it.
    url: String,
    tokens: Arc<TokenServer>,
    /// What the registry shows when it reports what happened; without one nothing is believed.
    events_secret: Option<Arc<Secret<String>>>,
    http: reqwest::Client,
}

impl Registry {
    pub fn new(
        url: &str,
        host: &str,
        tokens: TokenServer,
        events_secret: Option<Secret<String>>,
    ) -> Result<Registry, RegistryFault> {
        Ok(Registry {
            host: host.to_owned(),
            url: url.trim_end_matches('/').to_owned(),
            tokens: Arc::new(tokens),
            events_secret: events_secret.map(Arc::new),
            http: repository::http()?,
        })
    }

    pub fn tokens(&self) -> &TokenServer {
        &self.tokens
    }

    pub fn events_secret(&self) -> Option<&Secret<String>> {
        self.events_secret.as_deref()
    }

    /// One repository, spoken to by the platform itself.
    pub fn repository(&self, name: &str) -> Repository {
        Repository::own(self.http.clone(), &self.url, name, self.tokens.clone())
    }
}
