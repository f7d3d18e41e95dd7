//! The place of these stories: a platform on a real address, and a real registry that asks it who may come in.

use std::net::Ipv4Addr;

use api::Depot;
use clients::registry::Repository;
use domain::Secret;
use sha2::{Digest, Sha256};
use store::registry_credentials::{self, NewCredential};
use tokio::net::TcpListener;
use uuid::Uuid;

use crate::http::Http;
use crate::support::realm;
use crate::support::registry::{TestRegistry, wrapping};
use crate::support::story::Story;

pub struct Yard {
    pub story: Story,
    pub http: Http,
    pub registry: TestRegistry,
}

/// What somebody was given to reach one repository.
pub struct Credential {
    pub username: String,
    pub password: String,
}

impl Credential {
    pub fn pair(&self) -> Option<(&str, &str)> {
        Some((&self.username, &self.password))
    }
}

impl Yard {
    pub async fn new() -> Yard {
        let story = Story::new().await;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let registry = TestRegistry::start(listener.local_addr().unwrap());
        let depot = Depot { registry: registry.client(), wrapping: wrapping() };
        let http = Http::with(&story, |state| state.with_depot(depot)).await;
        http.listen_on(listener);
        Yard { story, http, registry }
    }

    /// A credential as an intent would make it.
    pub async fn credential(&self, repository: &str, may_push: bool, ttl_seconds: i32) -> Credential {
        let (id, password) = (Uuid::now_v7(), Uuid::new_v4().simple().to_string());
        let new = NewCredential {
            id,
            org_id: realm::DEMO,
            project_id: realm::EXAMPLE,
            repository,
            may_push,
            secret_hash: &Sha256::digest(&password),
            ttl_seconds,
        };
        let mut conn = self.story.pool.acquire().await.unwrap();
        registry_credentials::insert(&mut conn, &new).await.unwrap();
        Credential { username: id.to_string(), password }
    }

    /// `host:port/repository` and what follows.
    pub fn name(&self, repository: &str, reference: &str) -> String {
        format!("{}/{repository}{reference}", self.registry.host)
    }

    /// The repository as whoever holds the credential speaks to it.
    pub fn speak(&self, repository: &str, with: &Credential) -> Repository {
        let url = format!("http://{}", self.registry.host);
        let password = Secret::new(with.password.clone());
        Repository::with_credential(&url, repository, &with.username, password).unwrap()
    }

    pub async fn end(self) {
        drop(self.registry);
        self.story.end().await;
    }
}
