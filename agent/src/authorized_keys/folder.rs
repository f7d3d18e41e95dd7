//! The `.ssh` of an account, as whoever logs in there may have left it. The agent is root and the folder is theirs, so all of it
//! is reached by descriptors, no link is followed, and what is not plainly the account's own is refused untouched: what is read
//! or given away through a link could be anybody's.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;
use uuid::Uuid;

use super::Account;

const NAME: &str = ".ssh";
/// More than a thousand keys; whoever grows the file beyond it does not grow the agent.
const MOST_BYTES: u64 = 1 << 20;

#[derive(Debug, thiserror::Error)]
pub(super) enum FolderFault {
    #[error("{path} {what}")]
    Refused { path: PathBuf, what: &'static str },
    #[error("{path} cannot be used: {error}")]
    Disk { path: PathBuf, error: io::Error },
}

pub(super) struct Folder {
    folder: File,
    path: PathBuf,
    owner: (u32, u32),
}

impl Folder {
    /// `None` where there is none and none is to be made.
    pub(super) fn open(account: &Account, make: bool) -> Result<Option<Folder>, FolderFault> {
        let path = account.home.join(NAME);
        let opened = open(&account.home, make).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => refused(&path, "is a link or no folder"),
            error => disk(&path)(error.into()),
        });
        let Some(folder) = opened? else { return Ok(None) };
        let folder = Folder { folder, path, owner: account.owner };
        folder.own()?;
        Ok(Some(folder))
    }

    /// An empty one was made just now, or by an agent that ended in between: nothing in it can be given away with it.
    fn own(&self) -> Result<(), FolderFault> {
        let disk = disk(&self.path);
        if self.folder.metadata().map_err(&disk)?.uid() == self.owner.0 {
            return Ok(());
        }
        for entry in Dir::read_from(&self.folder).map_err(|error| disk(error.into()))? {
            let entry = entry.map_err(|error| disk(error.into()))?;
            if ![c".", c".."].contains(&entry.file_name()) {
                return Err(refused(&self.path, "belongs to another account"));
            }
        }
        give(&self.folder, self.owner, 0o700).map_err(disk)
    }

    /// What the file says; nothing where there is none.
    pub(super) fn read(&self, name: &str) -> Result<String, FolderFault> {
        let path = self.path.join(name);
        // A pipe is opened without waiting for anybody, and then refused.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(String::new()),
            Err(Errno::LOOP) => return Err(refused(&path, "is a link")),
            Err(error) => return Err(disk(&path)(error.into())),
        };
        let seen = file.metadata().map_err(disk(&path))?;
        if !seen.is_file() {
            return Err(refused(&path, "is no file"));
        }
        // Anybody's file can have been linked or moved here.
        if seen.uid() != self.owner.0 {
            return Err(refused(&path, "belongs to another account"));
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(disk(&path))?;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(refused(&path, "is larger than a list of keys can be"));
        }
        String::from_utf8(bytes).map_err(|_| refused(&path, "is not UTF-8 text"))
    }

    pub(super) fn refused(&self, name: &str, what: &'static str) -> FolderFault {
        refused(&self.path.join(name), what)
    }

    /// Beside the file and then in its place, so that nobody is locked out by half of it.
    pub(super) fn replace(&self, name: &str, text: &str) -> Result<(), FolderFault> {
        // A name that nobody can have planted anything under.
        let fresh = format!(".gpuaas-{}", Uuid::new_v4());
        let path = self.path.join(name);
        let disk = disk(&path);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &fresh, flags, Mode::RUSR | Mode::WUSR);
        let file = File::from(file.map_err(|error| disk(error.into()))?);
        let replaced = fill(file, text, self.owner)
            .and_then(|()| Ok(renameat(&self.folder, &fresh, &self.folder, name)?));
        if let Err(error) = replaced {
            let _ = unlinkat(&self.folder, &fresh, AtFlags::empty());
            return Err(disk(error));
        }
        self.folder.sync_all().map_err(disk)
    }
}

/// The home's own path is for root to choose; what is in it is not.
fn open(home: &Path, make: bool) -> Result<Option<File>, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let within = |home: OwnedFd| {
        if make
            && let Err(error) = mkdirat(&home, NAME, Mode::RWXU)
            && error != Errno::EXIST
        {
            return Err(error);
        }
        openat(&home, NAME, flags | OFlags::NOFOLLOW, Mode::empty())
    };
    match openat(CWD, home, flags, Mode::empty()).and_then(within) {
        Err(Errno::NOENT) if !make => Ok(None),
        opened => opened.map(|folder| Some(File::from(folder))),
    }
}

fn fill(mut file: File, text: &str, owner: (u32, u32)) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    give(&file, owner, 0o600)?;
    file.sync_all()
}

/// By the descriptor: whatever its name leads to by now, this is what was opened.
fn give(file: &File, (user, group): (u32, u32), mode: u32) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(mode))?;
    fchown(file, Some(user), Some(group))
}

fn refused(path: &Path, what: &'static str) -> FolderFault {
    FolderFault::Refused { path: path.to_owned(), what }
}

fn disk(path: &Path) -> impl Fn(io::Error) -> FolderFault {
    move |error| FolderFault::Disk { path: path.to_owned(), error }
}
