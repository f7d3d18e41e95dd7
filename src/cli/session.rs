//! What a profile remembers of a sign-in: the tokens, in a file that only its owner may read, in their state folder.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use domain::Secret;
use serde::{Deserialize, Serialize};

use super::profile::make_folder_of;
use crate::config::Surroundings;
use crate::failure::Failure;

#[derive(Clone, Debug)]
pub struct Session {
    pub access_token: Secret<String>,
    pub refresh_token: Option<Secret<String>>,
    /// Where the tokens came from, and where new ones do.
    pub token_endpoint: String,
    pub client_id: String,
}

/// The session as its file has it: the one place where its tokens are written out.
#[derive(Serialize, Deserialize)]
struct Kept {
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    token_endpoint: String,
    client_id: String,
}

impl Session {
    pub fn read(surroundings: &Surroundings, profile: &str) -> Result<Option<Session>, Failure> {
        let path = path(surroundings, profile);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        };
        // The error of a parser quotes what it read, which here is a token.
        let kept: Kept = serde_json::from_str(&text).map_err(|_| {
            Failure::auth(format!("{} is damaged: sign in again with `gpuaas login`", path.display()))
        })?;
        Ok(Some(Session {
            access_token: Secret::new(kept.access_token),
            refresh_token: kept.refresh_token.map(Secret::new),
            token_endpoint: kept.token_endpoint,
            client_id: kept.client_id,
        }))
    }

    /// Beside the file and then in its place, so that two commands at once never read half a session.
    pub fn write(&self, surroundings: &Surroundings, profile: &str) -> Result<(), Failure> {
        let path = path(surroundings, profile);
        let failed = |error: io::Error| Failure::usage(format!("cannot write {}: {error}", path.display()));
        let kept = Kept {
            access_token: self.access_token.expose().clone(),
            refresh_token: self.refresh_token.as_ref().map(|token| token.expose().clone()),
            token_endpoint: self.token_endpoint.clone(),
            client_id: self.client_id.clone(),
        };
        let text = serde_json::to_string_pretty(&kept).map_err(Failure::server)?;
        make_folder_of(&path)?;
        let new = path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        fs::rename(&new, &path).map_err(failed)
    }

    pub fn forget(surroundings: &Surroundings, profile: &str) -> Result<(), Failure> {
        let path = path(surroundings, profile);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Failure::usage(format!("cannot remove {}: {error}", path.display())))
            }
            _ => Ok(()),
        }
    }
}

fn path(surroundings: &Surroundings, profile: &str) -> PathBuf {
    surroundings.state_home.join(format!("gpuaas/sessions/{profile}.json"))
}
