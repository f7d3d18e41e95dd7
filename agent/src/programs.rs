//! The programs that this agent has been on a node: those of releases in `releases/`, by digest, and in `current.json` the one
//! that reported and stayed. Without any it is the one that was installed; and so it is again once another is installed, because
//! whoever did that meant it.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use domain::Digest;
use serde::{Deserialize, Serialize};

use crate::home::{Home, HomeFault};

const CURRENT: &str = "current.json";
const RELEASES: &str = "releases";
const PROGRAM: &str = "gpuaas";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Current {
    program: Digest,
    /// The installed program in whose place it was put.
    instead_of: Stamp,
}

/// By which an installed program is known again without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    modified: (i64, i64),
}

impl Stamp {
    fn of(installed: &Path) -> Option<Stamp> {
        let stamp = |it: &Metadata| Stamp { bytes: it.len(), modified: (it.mtime(), it.mtime_nsec()) };
        fs::metadata(installed).ok().as_ref().map(stamp)
    }
}

impl Home {
    /// Where the program of this digest is kept, if it is.
    pub fn program(&self, digest: &Digest) -> PathBuf {
        self.path(RELEASES).join(digest.hex()).join(PROGRAM)
    }

    /// The program of a release that took the installed one's place, if it is still to be had.
    pub fn current(&self, installed: &Path) -> Result<Option<Digest>, HomeFault> {
        let kept: Option<Current> = self.read_if_there(CURRENT)?;
        let kept = kept.filter(|kept| Some(&kept.instead_of) == Stamp::of(installed).as_ref());
        Ok(kept.map(|kept| kept.program).filter(|digest| self.program(digest).is_file()))
    }

    /// From here on, and after a crash too, the agent is this program. The others are not needed any more.
    pub(crate) fn adopt(&self, program: &Digest, installed: &Path) -> Result<(), HomeFault> {
        let missing = || HomeFault::Disk {
            path: installed.to_owned(),
            error: std::io::Error::from(std::io::ErrorKind::NotFound),
        };
        let instead_of = Stamp::of(installed).ok_or_else(missing)?;
        let current = Current { program: program.clone(), instead_of };
        self.write(CURRENT, &serde_json::to_vec_pretty(&current).unwrap_or_default())?;
        self.keep_only(&[program]);
        Ok(())
    }

    /// Takes away every program but these. One that cannot be taken away now is by the next that is adopted.
    pub(crate) fn keep_only(&self, programs: &[&Digest]) {
        for found in fs::read_dir(self.path(RELEASES)).into_iter().flatten().flatten() {
            if programs.iter().all(|kept| found.file_name() != kept.hex()) {
                let _ = fs::remove_dir_all(found.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(of: u8) -> Digest {
        Digest::from_sha256([of; 32])
    }

    fn put(home: &Home, program: &Digest) {
        let path = home.program(program);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "a program").unwrap();
    }

    #[test]
    fn what_was_adopted_runs_until_it_is_gone_or_another_is_installed() {
        let folder = std::env::temp_dir().join(format!("gpuaas-programs-{}", uuid::Uuid::now_v7()));
        let home = Home::at(&folder).unwrap();
        let installed = folder.join("installed");
        fs::write(&installed, "as it was installed").unwrap();
        assert_eq!(home.current(&installed).unwrap(), None);

        put(&home, &digest(1));
        put(&home, &digest(2));
        home.adopt(&digest(2), &installed).unwrap();
        assert_eq!(home.current(&installed).unwrap(), Some(digest(2)));
        assert!(!home.program(&digest(1)).exists(), "nobody needs it any more");

        fs::write(&installed, "installed by somebody who wants it to run").unwrap();
        assert_eq!(home.current(&installed).unwrap(), None);
        home.adopt(&digest(2), &installed).unwrap();
        home.keep_only(&[]);
        assert_eq!(home.current(&installed).unwrap(), None, "what is gone cannot be started");
        fs::remove_dir_all(folder).unwrap();
    }
}
