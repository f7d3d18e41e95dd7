//! The data directory of `gpuaas dev`: who holds it, and the secrets in it.
//!
//! One process at a time holds the directory. The lock is the kernel's, so a killed process leaves none behind.

use std::fmt::Display;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::Secret;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ClusterError;

#[derive(Debug)]
pub struct DataDir {
    pub path: PathBuf,
    /// Held open for its lock.
    _lock: File,
}

/// Generated once per cluster, readable only by whoever runs `gpuaas dev`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Passwords {
    pub superuser: String,
    pub owner: String,
    pub application: String,
}

impl DataDir {
    /// Makes the directory if needed and holds it, or says who does.
    pub fn claim(path: &Path) -> Result<DataDir, ClusterError> {
        // Others may pass through, because the database server may run under another account; they see nothing.
        let made = DirBuilder::new().recursive(true).mode(0o711).create(path);
        made.map_err(|error| ClusterError::io("create", path, error))?;
        let path = fs::canonicalize(path).map_err(|error| ClusterError::io("find", path, error))?;
        let lock_path = path.join("lock");
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path);
        let mut lock = opened.map_err(|error| ClusterError::io("open", &lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(ClusterError::Held { holder: read_pid(&mut lock), path });
            }
            Err(TryLockError::Error(error)) => return Err(ClusterError::io("lock", &lock_path, error)),
        }
        let noted = lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id()));
        noted.map_err(|error| ClusterError::io("write", &lock_path, error))?;
        Ok(DataDir { path, _lock: lock })
    }

    /// The cluster's passwords; `None` when there are none yet.
    pub fn passwords(&self) -> Result<Option<Passwords>, ClusterError> {
        let path = self.passwords_path();
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(|error| ClusterError::io("read", &path, error))?;
        toml::from_str(&text)
            .map(Some)
            .map_err(|error| ClusterError::Passwords { path, why: error.to_string() })
    }

    /// New passwords, on disk before anything uses them.
    pub fn make_passwords(&self) -> Result<Passwords, ClusterError> {
        let passwords =
            Passwords { superuser: make_password(), owner: make_password(), application: make_password() };
        let path = self.passwords_path();
        let text = toml::to_string(&passwords)
            .map_err(|error| ClusterError::Passwords { path: path.clone(), why: error.to_string() })?;
        write_secret(&path, &text)?;
        Ok(passwords)
    }

    /// The secret kept in the file of this name; made and kept on first use.
    pub fn secret<E: Display>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Secret<String>, E>,
    ) -> Result<Secret<String>, ClusterError> {
        let path = self.path.join(name);
        if path.exists() {
            let kept = fs::read_to_string(&path).map_err(|error| ClusterError::io("read", &path, error))?;
            return Ok(Secret::new(kept));
        }
        let made =
            make().map_err(|error| ClusterError::io("make", &path, io::Error::other(error.to_string())))?;
        write_secret(&path, made.expose())?;
        Ok(made)
    }

    pub fn passwords_path(&self) -> PathBuf {
        self.path.join("postgres-passwords.toml")
    }
}

/// Writes a file that only its owner may read, replacing what was there. The file of this name is whole or not there at all:
/// a full disk or a kill leaves the one before.
pub fn write_secret(path: &Path, text: &str) -> Result<(), ClusterError> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let folder = path.parent().unwrap_or(path);
    let written = fs::remove_file(&unfinished)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
        .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished))
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&unfinished, path))
        .and_then(|()| File::open(folder).and_then(|folder| folder.sync_all()));
    written.map_err(|error| ClusterError::io("write", path, error))
}

/// 122 random bits in letters and digits, so that no quoting is ever needed.
fn make_password() -> String {
    Uuid::new_v4().simple().to_string()
}

fn read_pid(lock: &mut File) -> String {
    let mut text = String::new();
    match lock.read_to_string(&mut text) {
        Ok(_) if !text.trim().is_empty() => format!("process {}", text.trim()),
        _ => "another process".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_directory_is_refused_and_names_its_holder() {
        let path = std::env::temp_dir().join(format!("gpuaas-{}", Uuid::new_v4()));
        let first = DataDir::claim(&path).unwrap();
        let error = DataDir::claim(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        assert!(DataDir::claim(&path).is_ok(), "the lock ends with its holder");
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_secret_that_cannot_be_written_leaves_the_one_before() {
        let folder = std::env::temp_dir().join(format!("gpuaas-{}", Uuid::new_v4()));
        fs::create_dir(&folder).unwrap();
        let secret = folder.join("key.pem");
        write_secret(&secret, "first").unwrap();
        // What a killed start left behind is in nobody's way.
        fs::write(folder.join("key.pem.unfinished"), "sec").unwrap();
        write_secret(&secret, "second").unwrap();
        assert_eq!(fs::read_to_string(&secret).unwrap(), "second");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing else is left");

        fs::create_dir(folder.join("key.pem.unfinished")).unwrap();
        assert!(write_secret(&secret, "third").is_err());
        assert_eq!(fs::read_to_string(&secret).unwrap(), "second");
        fs::remove_dir_all(folder).unwrap();
    }
}
