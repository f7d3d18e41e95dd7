//! The key that signs tasks and receipts: its row is in the database, its private half sealed, and this process keeps what
//! it opened. One is made whenever there is none: the first, and whoever takes over from one that has grown old.

use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use clients::seal::{SealFault, Sealer};
use domain::Secret;
use node_protocol::{Key, KeyFault, Keyring, SignatureFault, Signed, Signer, SignerState};
use serde_json::json;
use sqlx::PgConnection;
use store::task_signers::{self as table, TaskSigner};

#[derive(Debug, thiserror::Error)]
pub enum SignerFault {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("the task signer cannot be opened: {0}")]
    Seal(#[from] SealFault),
    #[error("the task signer cannot be used: {0}")]
    Key(#[from] KeyFault),
    #[error("the task signer's private half is no text")]
    NotText,
    #[error("the task signer cannot sign: {0}")]
    Sign(SignatureFault),
    #[error("there is no active task signer")]
    None,
}

#[derive(Clone, Debug)]
pub struct TaskSigners {
    sealer: Sealer,
    opened: Arc<Mutex<Option<Key>>>,
}

impl TaskSigners {
    pub fn new(sealer: Sealer) -> TaskSigners {
        TaskSigners { sealer, opened: Arc::default() }
    }

    pub fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// The key that signs now, and the list that nodes should know.
    pub async fn active(&self, conn: &mut PgConnection) -> Result<(Key, Keyring), SignerFault> {
        let (mut version, mut signers) = table::all(conn).await?;
        if !signers.iter().any(is_active) {
            self.make_first(conn).await?;
            (version, signers) = table::all(conn).await?;
        }
        let active = signers.iter().find(|signer| is_active(signer)).ok_or(SignerFault::None)?;
        let key = self.open(active)?;
        let signers = signers.iter().filter_map(shown).collect();
        Ok((key, Keyring { version, signers }))
    }

    /// A new signer takes over from one that is older than this, which signs the list that says so with its last word. False where
    /// none is so old.
    pub async fn rotate(&self, conn: &mut PgConnection, older_than: TimeDelta) -> Result<bool, SignerFault> {
        let Some(old) = table::lock_active_older_than(conn, older_than).await? else { return Ok(false) };
        let (key, _) = self.active(conn).await?;
        table::begin_grace(conn, &old).await?;
        let (_, list) = self.active(conn).await?;
        let signed = Signed::sign(&list, &key).map_err(SignerFault::Sign)?;
        table::keep_handover(conn, &old, &json!(signed)).await?;
        Ok(true)
    }

    /// The list signed by whoever signs now, and to a node whose own is older the last words of those who handed over.
    pub async fn told_to(
        &self,
        conn: &mut PgConnection,
        known: Option<i64>,
    ) -> Result<(Signed, Vec<Signed>), SignerFault> {
        let (key, list) = self.active(conn).await?;
        let handovers = match known {
            Some(known) if known < list.version => table::handovers(conn).await?,
            _ => Vec::new(),
        };
        let handovers = handovers.into_iter().filter_map(|kept| serde_json::from_value(kept).ok()).collect();
        Ok((Signed::sign(&list, &key).map_err(SignerFault::Sign)?, handovers))
    }

    async fn make_first(&self, conn: &mut PgConnection) -> Result<(), SignerFault> {
        let key = Key::generate();
        let pem = Secret::new(key.private_key_pem()?.expose().clone().into_bytes());
        let sealed = self.sealer.seal(&pem, &bound_to(&key.id()))?;
        table::make_active(conn, &key.id(), &key.public().to_pem()?, &sealed).await?;
        Ok(())
    }

    fn open(&self, signer: &TaskSigner) -> Result<Key, SignerFault> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = opened.as_ref().filter(|key| key.id() == signer.key_id) {
            return Ok(key.clone());
        }
        let sealed = signer.sealed.as_deref().ok_or(SignerFault::None)?;
        let pem = self.sealer.open(sealed, &bound_to(&signer.key_id))?;
        let key = Key::from_pem(std::str::from_utf8(pem.expose()).map_err(|_| SignerFault::NotText)?)?;
        *opened = Some(key.clone());
        Ok(key)
    }
}

fn is_active(signer: &TaskSigner) -> bool {
    signer.state == SignerState::Active.as_str()
}

fn bound_to(key_id: &str) -> String {
    format!("task_signers.sealed:{key_id}")
}

/// A state that only a newer release knows is nothing a node should hear of.
fn shown(signer: &TaskSigner) -> Option<Signer> {
    let state = SignerState::ALL.into_iter().find(|state| state.as_str() == signer.state)?;
    Some(Signer { key_id: signer.key_id.clone(), public_key: signer.public_key.clone(), state })
}
