//! The key that signs tasks and receipts: its row is in the database, its private half sealed, and this process keeps what
//! it opened. The first one is made when it is first needed.

use std::sync::{Arc, Mutex, PoisonError};

use clients::seal::{SealFault, Sealer};
use domain::Secret;
use node_protocol::{Key, KeyFault, Keyring, Signer, SignerState};
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
