//! The agent's folder: who it is, its key, which signers it believes, its journal. The key never leaves it. One process at a
//! time works with it; the lock is the kernel's, so whoever is killed leaves none behind.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::{Digest, Secret};
use node_protocol::{Key, KeyFault, Keyring};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub enum HomeFault {
    #[error("{path} cannot be used: {error}")]
    Disk { path: PathBuf, error: std::io::Error },
    #[error("{path} cannot be read: {error}")]
    Broken { path: PathBuf, error: serde_json::Error },
    #[error("the node's key: {0}")]
    Key(#[from] KeyFault),
    #[error("this node has not enrolled: run `gpuaas agent --enroll TOKEN`")]
    NotEnrolled,
    #[error("another agent works in {0}")]
    Held(PathBuf),
}

/// A folder that is held, for as long as this lives.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
}

/// Who this node is to the platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub node_id: Uuid,
    pub name: String,
    /// Where the platform is reached.
    pub platform: String,
    /// Whom assertions are meant for.
    pub issuer: String,
    /// What ran the containers when the node enrolled, and runs them ever after. A node that enrolled before this was kept
    /// has an engine.
    #[serde(default = "docker")]
    pub driver: String,
    /// Of the token that made it this node. Not kept by a node that enrolled before this was.
    #[serde(default)]
    pub token_digest: Option<Digest>,
}

impl Identity {
    /// Whether this token made it this node, so that there is nothing to enrol.
    pub fn came_by(&self, token: &Secret<String>) -> bool {
        self.token_digest.as_ref() == Some(&digest_of(token))
    }
}

pub(crate) fn digest_of(token: &Secret<String>) -> Digest {
    Digest::from_sha256(Sha256::digest(token.expose()).into())
}

/// A key that is none of the node's yet, and the token that it is to be registered with.
#[derive(Serialize, Deserialize)]
struct Newcomer {
    token_digest: Digest,
    private_key_pem: String,
}

const NEWCOMER: &str = "newcomer.json";

fn docker() -> String {
    "docker".to_owned()
}

/// How often a folder that is held is asked for again.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    pub fn at(folder: &Path) -> Result<Home, HomeFault> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| HomeFault::Disk { path: folder.to_owned(), error })?;
        Ok(Home { folder: folder.to_owned() })
    }

    /// Holds the folder for the one agent that works with it. Whoever worked before gets so long to end.
    pub async fn claim(&self, patience: Duration) -> Result<Claim, HomeFault> {
        let deadline = Instant::now() + patience;
        loop {
            match self.lock("lock") {
                Err(HomeFault::Held(_)) if Instant::now() < deadline => sleep(BETWEEN_TRIES).await,
                decided => return decided,
            }
        }
    }

    /// Holds it for the one supervisor, at once or not at all.
    pub fn supervise(&self) -> Result<Claim, HomeFault> {
        self.lock("supervisor.lock")
    }

    fn lock(&self, name: &str) -> Result<Claim, HomeFault> {
        let path = self.path(name);
        let opened = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let disk = |error| HomeFault::Disk { path: path.clone(), error };
        let lock = opened.map_err(disk)?;
        match lock.try_lock() {
            Ok(()) => Ok(Claim { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(HomeFault::Held(self.folder.clone())),
            Err(TryLockError::Error(error)) => Err(disk(error)),
        }
    }

    pub fn is_enrolled(&self) -> bool {
        self.path("identity.json").exists()
    }

    pub fn journal(&self) -> PathBuf {
        self.path("journal")
    }

    pub fn identity(&self) -> Result<Identity, HomeFault> {
        self.read("identity.json")
    }

    pub fn keyring(&self) -> Result<Keyring, HomeFault> {
        self.read("keyring.json")
    }

    /// The node's key.
    pub fn key(&self) -> Result<Key, HomeFault> {
        let path = self.path("key.pem");
        match fs::read_to_string(&path) {
            Ok(pem) => Ok(Key::from_pem(&pem)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(HomeFault::NotEnrolled),
            Err(error) => Err(HomeFault::Disk { path, error }),
        }
    }

    /// The key to enrol with; made when it is first asked for, and the same for the same token: whoever got no answer may be
    /// registered by now, and asks again. For the same reason another token needs another key.
    pub fn newcomer(&self, token: &Secret<String>) -> Result<Key, HomeFault> {
        let token_digest = digest_of(token);
        if let Some(known) = self.read_if_there::<Newcomer>(NEWCOMER)?
            && known.token_digest == token_digest
        {
            return Ok(Key::from_pem(&known.private_key_pem)?);
        }
        let key = Key::generate();
        let private_key_pem = key.private_key_pem()?.expose().clone();
        let newcomer = Newcomer { token_digest, private_key_pem };
        self.write(NEWCOMER, &serde_json::to_vec_pretty(&newcomer).unwrap_or_default())?;
        Ok(key)
    }

    /// The keyring first and the identity last: who has an identity has signers to believe, and the key it was registered with.
    /// What a crash leaves unfinished is finished by enrolling again with the same token.
    pub fn enrolled(&self, identity: &Identity, key: &Key, keyring: &Keyring) -> Result<(), HomeFault> {
        self.keep_keyring(keyring)?;
        self.write("key.pem", key.private_key_pem()?.expose().as_bytes())?;
        self.keep_identity(identity)?;
        let path = self.path(NEWCOMER);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(HomeFault::Disk { path, error })
            }
            _ => Ok(()),
        }
    }

    pub fn keep_identity(&self, identity: &Identity) -> Result<(), HomeFault> {
        self.write("identity.json", &serde_json::to_vec_pretty(identity).unwrap_or_default())
    }

    pub fn keep_keyring(&self, keyring: &Keyring) -> Result<(), HomeFault> {
        self.write("keyring.json", &serde_json::to_vec_pretty(keyring).unwrap_or_default())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// What may not have been written yet, or by a release that this one cannot read: then it is as if it were not there.
    pub(crate) fn read_if_there<T: serde::de::DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, HomeFault> {
        match self.read(name) {
            Ok(read) => Ok(Some(read)),
            Err(HomeFault::NotEnrolled) => Ok(None),
            Err(fault @ HomeFault::Broken { .. }) => {
                tracing::warn!(%fault, "a file is left aside");
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, HomeFault> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| HomeFault::Broken { path, error }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(HomeFault::NotEnrolled),
            Err(error) => Err(HomeFault::Disk { path, error }),
        }
    }

    /// Whole or not at all, there after a crash too, and for this account's eyes only.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), HomeFault> {
        let (path, fresh) = (self.path(name), self.path(&format!("{name}.new")));
        let written = || {
            let mut file =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, &path)?;
            File::open(&self.folder)?.sync_all()
        };
        written().map_err(|error| HomeFault::Disk { path: path.clone(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newcomer_has_one_key_for_one_token() {
        let folder = std::env::temp_dir().join(format!("gpuaas-home-{}", Uuid::now_v7()));
        let home = Home::at(&folder).unwrap();
        let [token, other] = ["enrol-1", "enrol-2"].map(|token| Secret::new(token.to_owned()));
        let key = home.newcomer(&token).unwrap();
        assert_eq!(home.newcomer(&token).unwrap().id(), key.id(), "asked again, it is who it was");
        assert!(matches!(home.key(), Err(HomeFault::NotEnrolled)), "it is no node yet");
        assert_ne!(home.newcomer(&other).unwrap().id(), key.id());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn an_identity_of_an_earlier_release_came_by_no_token() {
        let kept = r#"{ "node_id": "01970000-0000-7000-8000-000000000001", "name": "gpu-1", "platform": "p", "issuer": "i" }"#;
        let identity: Identity = serde_json::from_str(kept).unwrap();
        assert_eq!((identity.driver.as_str(), &identity.token_digest), ("docker", &None));
        assert!(!identity.came_by(&Secret::new(String::new())));
    }
}
