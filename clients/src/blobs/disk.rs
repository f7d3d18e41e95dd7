//! Blobs on a disk. An upload is a file that grows; parts are appended in order, and the one that completes it hashes the
//! whole. Accepting renames the file to where nobody uploads. Whoever writes or accepts holds the file's lock, and looks
//! again whether it is still the same file.

mod write;

pub use write::{Part, Written};

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use domain::Digest;
use futures::StreamExt;
use futures::stream::BoxStream;
use sha2::{Digest as _, Sha256};
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use super::{BlobFault, BlobName, agree};

const CHUNK: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct Disk {
    root: PathBuf,
}

impl Disk {
    pub fn open(root: &Path) -> io::Result<Disk> {
        fs::create_dir_all(root.join("incoming"))?;
        Ok(Disk { root: root.to_owned() })
    }

    /// How much of an upload is there.
    pub async fn offset(&self, intent: Uuid) -> Result<u64, BlobFault> {
        match tokio::fs::metadata(self.incoming(intent)).await {
            Ok(file) => Ok(file.len()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
            Err(error) => Err(trouble(&error)),
        }
    }

    pub(super) async fn accept(&self, name: &BlobName, digest: &Digest, most: u64) -> Result<u64, BlobFault> {
        let (disk, name, digest) = (self.clone(), name.clone(), digest.clone());
        blocking(move || disk.take(&name, &digest, most)).await
    }

    pub(super) async fn check(&self, name: &BlobName, digest: &Digest) -> Result<u64, BlobFault> {
        let (disk, name, digest) = (self.clone(), name.clone(), digest.clone());
        blocking(move || disk.look(&name, &digest)).await
    }

    fn look(&self, name: &BlobName, digest: &Digest) -> Result<u64, BlobFault> {
        let mut accepted = File::open(self.place(name)).map_err(|error| trouble(&error))?;
        agree(digest, digest_of(&mut accepted)?)?;
        size(&accepted)
    }

    fn take(&self, name: &BlobName, digest: &Digest, most: u64) -> Result<u64, BlobFault> {
        let (incoming, place) = (self.incoming(name.intent), self.place(name));
        if place.exists() {
            return self.look(name, digest);
        }
        let mut file = locked(&incoming, OpenOptions::new().read(true).write(true))?;
        let size = size(&file)?;
        if size > most {
            return Err(BlobFault::TooLarge { most });
        }
        let found = match self.noted(name.intent, size) {
            Some(found) => found,
            None => digest_of(&mut file)?,
        };
        agree(digest, found)?;
        let folder = place.parent().unwrap_or(&self.root);
        let moved = fs::create_dir_all(folder)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&incoming, &place))
            .and_then(|()| File::open(folder)?.sync_all());
        moved.map_err(|error| trouble(&error))?;
        let _ = fs::remove_file(self.note(name.intent));
        Ok(size)
    }

    pub(super) async fn read(
        &self,
        name: &BlobName,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobFault>>, BlobFault> {
        let file = tokio::fs::File::open(self.place(name)).await.map_err(|error| trouble(&error))?;
        let chunks = ReaderStream::with_capacity(file, CHUNK);
        Ok(chunks.map(|chunk| chunk.map_err(|error| trouble(&error))).boxed())
    }

    pub(super) async fn delete(&self, name: &BlobName) -> Result<(), BlobFault> {
        let (disk, name) = (self.clone(), name.clone());
        blocking(move || disk.remove(&name)).await
    }

    /// Not while somebody writes to it.
    fn remove(&self, name: &BlobName) -> Result<(), BlobFault> {
        let incoming = self.incoming(name.intent);
        let _held = match locked(&incoming, OpenOptions::new().read(true).write(true)) {
            Ok(file) => Some(file),
            Err(BlobFault::Absent) => None,
            Err(fault) => return Err(fault),
        };
        for path in [self.place(name), self.note(name.intent), incoming] {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(trouble(&error)),
                _ => {}
            }
        }
        Ok(())
    }

    fn incoming(&self, intent: Uuid) -> PathBuf {
        self.root.join("incoming").join(intent.to_string())
    }

    /// Beside a complete upload: its size and digest.
    fn note(&self, intent: Uuid) -> PathBuf {
        self.incoming(intent).with_extension("sha256")
    }

    fn noted(&self, intent: Uuid, size: u64) -> Option<Digest> {
        let text = fs::read_to_string(self.note(intent)).ok()?;
        let (noted, digest) = text.split_once(' ')?;
        (noted.parse() == Ok(size)).then(|| digest.parse().ok()).flatten()
    }

    fn place(&self, name: &BlobName) -> PathBuf {
        self.root.join(&name.key).join(name.intent.to_string())
    }
}

/// The file of this path, which nobody else writes until it is closed. It may have been accepted, and so renamed, while
/// we waited for nobody: then it is not this path's any more.
fn locked(path: &Path, how: &OpenOptions) -> Result<File, BlobFault> {
    let file = how.open(path).map_err(|error| trouble(&error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(BlobFault::Busy),
        Err(TryLockError::Error(error)) => return Err(trouble(&error)),
    }
    let same = fs::metadata(path).and_then(|there| Ok(there.ino() == file.metadata()?.ino()));
    if same.unwrap_or_default() { Ok(file) } else { Err(BlobFault::Busy) }
}

fn digest_of(file: &mut File) -> Result<Digest, BlobFault> {
    let mut hash = Sha256::new();
    hash_into(&mut hash, file)?;
    Ok(Digest::from_sha256(hash.finalize().into()))
}

/// From where it stands to its end.
fn hash_into(hash: &mut Sha256, file: &mut impl Read) -> Result<(), BlobFault> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match file.read(&mut buffer).map_err(|error| trouble(&error))? {
            0 => return Ok(()),
            read => hash.update(&buffer[..read]),
        }
    }
}

fn size(file: &File) -> Result<u64, BlobFault> {
    file.metadata().map(|file| file.len()).map_err(|error| trouble(&error))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BlobFault> + Send + 'static,
) -> Result<T, BlobFault> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(BlobFault::Unavailable(error.to_string())))
}

/// Never the path itself: it says where our things are.
fn trouble(error: &io::Error) -> BlobFault {
    match error.kind() {
        ErrorKind::NotFound => BlobFault::Absent,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => BlobFault::NoRoom,
        kind => BlobFault::Unavailable(kind.to_string()),
    }
}
