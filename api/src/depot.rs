//! Where artifacts are kept, images and blobs, and how credentials for it are handed over.

use clients::blobs::Blobs;
use clients::registry::Registry;
use clients::wrapping::{Vault, Wrapper, Wrapping};
use domain::Secret;
use serde_json::Value;
use sqlx::PgConnection;
use store::wrapped_secrets::{self, About, NewSecret};

use crate::error::ApiError;

pub struct Depot {
    pub registry: Registry,
    /// A platform without a store takes images alone.
    pub blobs: Option<Blobs>,
    pub wrapping: Wrapping,
}

/// A secret that can be fetched once.
pub(crate) struct Handed {
    pub(crate) token: Secret<String>,
    /// Where it is fetched: a path of ours, or an address of the secret store's.
    pub(crate) unwrap_path: String,
}

/// How a secret is handed over.
pub(crate) struct Wanted<'a> {
    pub(crate) purpose: &'a str,
    pub(crate) ttl_seconds: i32,
    pub(crate) about: &'a About,
}

impl Depot {
    /// Kept with the caller's transaction where our database keeps it; a secret store of its own may keep one that nobody
    /// hears of, which ends by itself.
    pub(crate) async fn hand_over(
        &self,
        conn: &mut PgConnection,
        secret: &Value,
        wanted: &Wanted<'_>,
    ) -> Result<Handed, ApiError> {
        match &self.wrapping {
            Wrapping::Embedded(wrapper) => embedded(wrapper, conn, secret, wanted).await,
            Wrapping::Vault(vault) => by_vault(vault, secret, wanted.ttl_seconds).await,
        }
    }
}

async fn embedded(
    wrapper: &Wrapper,
    conn: &mut PgConnection,
    secret: &Value,
    wanted: &Wanted<'_>,
) -> Result<Handed, ApiError> {
    let &Wanted { purpose, ttl_seconds, about } = wanted;
    let bytes = Secret::new(secret.to_string().into_bytes());
    let wrapped = wrapper.wrap(&bytes, purpose).map_err(|fault| ApiError::internal(&fault))?;
    let new =
        NewSecret { token_hash: &wrapped.token_hash, sealed: &wrapped.sealed, purpose, ttl_seconds, about };
    wrapped_secrets::insert(conn, &new).await?;
    Ok(Handed { token: wrapped.token, unwrap_path: "/v1/sys/wrapping/unwrap".to_owned() })
}

async fn by_vault(vault: &Vault, secret: &Value, ttl_seconds: i32) -> Result<Handed, ApiError> {
    let wrapped = vault.wrap(secret, ttl_seconds).await.map_err(|fault| {
        tracing::warn!(%fault, "a credential could not be handed over");
        ApiError::unavailable("The secret store does not answer right now.")
    })?;
    Ok(Handed { token: wrapped, unwrap_path: vault.unwrap_url() })
}
