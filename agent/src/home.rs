//! The agent's folder: who it is, its key, which signers it believes, its journal. The key never leaves it.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use node_protocol::{Key, KeyFault, Keyring};
use serde::{Deserialize, Serialize};
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
}

fn docker() -> String {
    "docker".to_owned()
}

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

    /// The node's key; made when it is first asked for.
    pub fn key(&self) -> Result<Key, HomeFault> {
        let path = self.path("key.pem");
        match fs::read_to_string(&path) {
            Ok(pem) => Ok(Key::from_pem(&pem)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let key = Key::generate();
                self.write("key.pem", key.private_key_pem()?.expose().as_bytes())?;
                Ok(key)
            }
            Err(error) => Err(HomeFault::Disk { path, error }),
        }
    }

    /// The keyring first: who has an identity has signers to believe.
    pub fn enrolled(&self, identity: &Identity, keyring: &Keyring) -> Result<(), HomeFault> {
        self.keep_keyring(keyring)?;
        self.write("identity.json", &serde_json::to_vec_pretty(identity).unwrap_or_default())
    }

    pub fn keep_keyring(&self, keyring: &Keyring) -> Result<(), HomeFault> {
        self.write("keyring.json", &serde_json::to_vec_pretty(keyring).unwrap_or_default())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn read<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<T, HomeFault> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| HomeFault::Broken { path, error }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(HomeFault::NotEnrolled),
            Err(error) => Err(HomeFault::Disk { path, error }),
        }
    }

    /// Whole or not at all, and for this account's eyes only.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), HomeFault> {
        let (path, fresh) = (self.path(name), self.path(&format!("{name}.new")));
        let written = || {
            let mut file =
                fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&fresh, &path)
        };
        written().map_err(|error| HomeFault::Disk { path: path.clone(), error })
    }
}
