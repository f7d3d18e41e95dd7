//! Profiles: the platforms a person speaks to, each under a name, in `gpuaas/config.toml` of their configuration folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config::Surroundings;
use crate::failure::Failure;

/// The profile of those who never named one.
pub const DEFAULT: &str = "default";
/// Where `gpuaas dev` listens.
const LOCAL: &str = "http://127.0.0.1:8080";

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profiles {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    #[serde(default)]
    pub profiles: BTreeMap<String, Profile>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Who issues the person's tokens; unless given, the platform's own issuer for development.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

impl Profile {
    pub fn url(&self) -> &str {
        self.url.as_deref().unwrap_or(LOCAL)
    }
}

impl Profiles {
    pub fn read(surroundings: &Surroundings) -> Result<Profiles, Failure> {
        let path = path(surroundings);
        match fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text)
                .map_err(|error| Failure::usage(format!("{}: {}", path.display(), error.message()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Profiles::default()),
            Err(error) => Err(Failure::usage(format!("cannot read {}: {error}", path.display()))),
        }
    }

    pub fn write(&self, surroundings: &Surroundings) -> Result<(), Failure> {
        let path = path(surroundings);
        let text = toml::to_string_pretty(self).map_err(Failure::server)?;
        make_folder_of(&path)?;
        fs::write(&path, text)
            .map_err(|error| Failure::usage(format!("cannot write {}: {error}", path.display())))
    }

    /// The name that is meant: the flag's, the environment's, the chosen one, or the default.
    pub fn name(&self, flag: Option<&str>, surroundings: &Surroundings) -> String {
        let named = flag.or(surroundings.profile.as_deref()).or(self.current.as_deref());
        named.unwrap_or(DEFAULT).to_owned()
    }

    /// The profile of that name. Only the default one need not have been made.
    pub fn get(&self, name: &str) -> Result<Profile, Failure> {
        match self.profiles.get(name) {
            Some(profile) => Ok(profile.clone()),
            None if name == DEFAULT => Ok(Profile::default()),
            None => Err(Failure::not_found(format!(
                "there is no profile {name}; make it with `gpuaas login --profile {name} --url URL`"
            ))),
        }
    }
}

/// Names become file names, so they are plain words.
pub fn check_name(name: &str) -> Result<(), Failure> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    Err(Failure::usage("a profile's name has 1 to 64 letters, digits, - and _"))
}

pub fn make_folder_of(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .map_err(|error| Failure::usage(format!("cannot make {}: {error}", folder.display())))
}

fn path(surroundings: &Surroundings) -> PathBuf {
    surroundings.config_home.join("gpuaas/config.toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_lead_out_of_the_folder_are_refused() {
        for bad in ["", "../x", "a/b", "a b", "."] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
        assert!(check_name("prod-eu_1").is_ok());
    }

    #[test]
    fn a_profile_that_nobody_made_is_missing_unless_it_is_the_default() {
        let profiles = Profiles::default();
        assert_eq!(profiles.get(DEFAULT).unwrap().url(), LOCAL);
        assert_eq!(profiles.get("prod").unwrap_err().code, crate::failure::Kind::NotFound);
    }
}
