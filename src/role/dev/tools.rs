//! Finds the Postgres programs: on PATH, or where the distribution keeps one folder per major version.
//! Data made by one major version is only ever opened by that version.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use super::ClusterError;

const PROGRAMS: [&str; 3] = ["initdb", "postgres", "pg_ctl"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// Where the programs are; `None` is PATH.
    folder: Option<PathBuf>,
    pub major: u32,
}

impl Tools {
    /// The programs of major version `wanted`, or the newest when any will do.
    pub async fn find(wanted: Option<u32>) -> Result<Tools, ClusterError> {
        let mut found = Vec::new();
        for folder in std::iter::once(None).chain(distribution_folders().into_iter().map(Some)) {
            if let Some(major) = major_version(folder.as_deref()).await {
                found.push(Tools { folder, major });
            }
        }
        let here: Vec<u32> = found.iter().map(|tools| tools.major).collect();
        match wanted {
            Some(major) => found
                .into_iter()
                .find(|tools| tools.major == major)
                .ok_or(ClusterError::OtherMajor { data: major, here }),
            None => found.into_iter().max_by_key(|tools| tools.major).ok_or(ClusterError::NoPostgres),
        }
    }

    pub fn command(&self, program: &str) -> Command {
        match &self.folder {
            Some(folder) => Command::new(folder.join(program)),
            None => Command::new(program),
        }
    }
}

/// `/usr/lib/postgresql/15/bin` on Debian, `/usr/pgsql-15/bin` on Red Hat.
fn distribution_folders() -> Vec<PathBuf> {
    let inside = |parent: &str, prefix: &str| -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
        let named = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
        named.map(|entry| entry.path().join("bin")).collect()
    };
    let mut folders = inside("/usr/lib/postgresql", "");
    folders.extend(inside("/usr", "pgsql-"));
    folders
}

async fn major_version(folder: Option<&Path>) -> Option<u32> {
    let mut major = None;
    for program in PROGRAMS {
        let path = folder.map_or_else(|| PathBuf::from(program), |folder| folder.join(program));
        let answer = Command::new(path)
            .arg("--version")
            .output()
            .await
            .ok()
            .filter(|answer| answer.status.success())?;
        major = parse_major(&String::from_utf8_lossy(&answer.stdout));
    }
    major
}

/// The answer reads `initdb (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)`, or `17beta1` before a release.
fn parse_major(answer: &str) -> Option<u32> {
    let version = answer.split_whitespace().nth(2)?;
    let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_spelling() {
        assert_eq!(parse_major("initdb (PostgreSQL) 15.14 (Debian 15.14-0+deb12u1)\n"), Some(15));
        assert_eq!(parse_major("postgres (PostgreSQL) 17beta1\n"), Some(17));
        assert_eq!(parse_major("something else\n"), None);
    }

    #[tokio::test]
    async fn a_version_that_is_not_here_is_an_error_that_names_it() {
        let error = Tools::find(Some(1)).await.unwrap_err();
        assert!(matches!(error, ClusterError::OtherMajor { data: 1, .. }), "{error}");
    }
}
