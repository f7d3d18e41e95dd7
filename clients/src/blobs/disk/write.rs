//! Writing a part of an upload: from the byte where the upload stands, in order, hashed on the way where the part is the
//! last. Bytes that arrived stay when the connection breaks, so the next part goes on after them. A thread is taken only
//! for as long as there is something to write, so that slow uploads hold none; the file's lock is held to the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};

use bytes::Bytes;
use domain::Digest;
use futures::stream::Stream;
use futures::{StreamExt, pin_mut};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{BlobFault, CHUNK, Disk, blocking, hash_into, locked, trouble};

/// What a request says of the bytes it brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of them: what is there is replaced.
    Whole,
    /// From `first` to `last`; of `total` in all, where that is known.
    Range { first: u64, last: u64, total: Option<u64> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// How much is there now.
    pub offset: u64,
    /// Of the whole, where this part completed it.
    pub digest: Option<Digest>,
}

impl Part {
    fn first(self) -> u64 {
        match self {
            Part::Whole => 0,
            Part::Range { first, .. } => first,
        }
    }

    fn is_last(self) -> bool {
        match self {
            Part::Whole => true,
            Part::Range { last, total, .. } => total == Some(last.saturating_add(1)),
        }
    }

    /// One more than the last byte, where the request says it.
    fn end(self) -> Option<u64> {
        match self {
            Part::Whole => None,
            Part::Range { last, .. } => Some(last.saturating_add(1)),
        }
    }
}

impl Disk {
    /// `most` is what the whole upload may have. An error of `body` ends the part; what came before it stays.
    pub async fn write<E>(
        &self,
        intent: Uuid,
        part: Part,
        most: u64,
        body: impl Stream<Item = Result<Bytes, E>>,
    ) -> Result<Written, BlobFault> {
        let end = part.end().unwrap_or(most);
        if end > most {
            return Err(BlobFault::TooLarge { most });
        }
        let disk = self.clone();
        let mut upload = blocking(move || disk.begin(intent, part)).await?;
        pin_mut!(body);
        let mut offset = part.first();
        let ended = loop {
            let batch = Batch::arriving(&mut body, end - offset).await;
            offset += batch.size;
            upload = blocking(move || upload.append(&batch.chunks)).await?;
            match batch.then {
                Then::More => {}
                Then::End => break Ok(()),
                Then::Broken => break Err(BlobFault::Interrupted),
                Then::TooMuch => break Err(BlobFault::TooLarge { most: end.min(most) }),
            }
        };
        if part == Part::Whole && matches!(ended, Err(BlobFault::TooLarge { .. })) {
            blocking(move || upload.file.set_len(0).map_err(|error| trouble(&error))).await?;
            return Err(BlobFault::TooLarge { most });
        }
        ended?;
        if part.end().is_some_and(|end| offset < end) {
            return Err(BlobFault::Interrupted);
        }
        let disk = self.clone();
        blocking(move || disk.complete(intent, upload, offset)).await
    }

    /// The file stands where the part begins. A last part is hashed together with what is there already.
    fn begin(&self, intent: Uuid, part: Part) -> Result<Upload, BlobFault> {
        let failed = |error: io::Error| trouble(&error);
        let path = self.incoming(intent);
        let mut file = locked(&path, OpenOptions::new().read(true).write(true).create(true).truncate(false))?;
        let _ = fs::remove_file(self.note(intent));
        if part == Part::Whole {
            file.set_len(0).map_err(failed)?;
        }
        let offset = file.metadata().map_err(failed)?.len();
        if offset != part.first() {
            return Err(BlobFault::Elsewhere { offset });
        }
        if !part.is_last() {
            file.seek(SeekFrom::Start(offset)).map_err(failed)?;
            return Ok(Upload { file, hash: None });
        }
        let mut so_far = Sha256::new();
        let mut before = file.try_clone().map_err(failed)?.take(offset);
        hash_into(&mut so_far, &mut before)?;
        Ok(Upload { file, hash: Some(so_far) })
    }

    /// Notes what a complete upload is, so that nobody needs to read it again. Nobody else writes meanwhile: the note is of
    /// these bytes.
    fn complete(&self, intent: Uuid, upload: Upload, offset: u64) -> Result<Written, BlobFault> {
        let Upload { file, hash } = upload;
        let digest = hash.map(|hash| Digest::from_sha256(hash.finalize().into()));
        if let Some(digest) = &digest {
            let text = format!("{offset} {digest}");
            let noted = file.sync_all().and_then(|()| fs::write(self.note(intent), text));
            noted.map_err(|error| trouble(&error))?;
        }
        Ok(Written { offset, digest })
    }
}

/// A file under its lock, and the hash of what is in it, where the part is the last.
struct Upload {
    file: File,
    hash: Option<Sha256>,
}

impl Upload {
    fn append(mut self, chunks: &[Bytes]) -> Result<Upload, BlobFault> {
        for chunk in chunks {
            self.file.write_all(chunk).map_err(|error| trouble(&error))?;
            if let Some(hash) = &mut self.hash {
                hash.update(chunk);
            }
        }
        Ok(self)
    }
}

/// What arrived: enough to be worth a thread, or all that came before the body's end.
struct Batch {
    chunks: Vec<Bytes>,
    size: u64,
    then: Then,
}

enum Then {
    More,
    End,
    Broken,
    /// More came than was announced or allowed.
    TooMuch,
}

impl Batch {
    async fn arriving<E>(body: &mut (impl Stream<Item = Result<Bytes, E>> + Unpin), room: u64) -> Batch {
        let mut batch = Batch { chunks: Vec::new(), size: 0, then: Then::More };
        while batch.size < CHUNK as u64 {
            match body.next().await {
                None => batch.then = Then::End,
                Some(Err(_)) => batch.then = Then::Broken,
                Some(Ok(chunk)) if batch.size + chunk.len() as u64 > room => batch.then = Then::TooMuch,
                Some(Ok(chunk)) => {
                    batch.size += chunk.len() as u64;
                    batch.chunks.push(chunk);
                    continue;
                }
            }
            break;
        }
        batch
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;

    use super::super::super::{BlobName, Blobs};
    use super::*;

    fn disk() -> Disk {
        Disk::open(&std::env::temp_dir().join(format!("gpuaas-blobs-{}", Uuid::new_v4()))).unwrap()
    }

    fn body(bytes: &'static [u8]) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::iter(bytes.chunks(2).map(|chunk| Ok(Bytes::from_static(chunk))))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn of_uploads_at_the_same_moment_the_note_is_of_the_bytes_that_stay() {
        let disk = disk();
        for _ in 0..200 {
            let name = BlobName { key: "projects/p".to_owned(), intent: Uuid::new_v4() };
            let write = |bytes| {
                let (disk, intent) = (disk.clone(), name.intent);
                tokio::spawn(async move { disk.write(intent, Part::Whole, 10, body(bytes)).await })
            };
            let (this, that) = (write(b"this"), write(b"that"));
            let written = [this.await.unwrap(), that.await.unwrap()];
            let there = std::fs::read(disk.incoming(name.intent)).unwrap();
            let found = Digest::from_sha256(Sha256::digest(&there).into());
            let accepted = Blobs::Disk(disk.clone()).accept(&name, &found, 10).await;
            assert_eq!(accepted, Ok(4), "{written:?}");
        }
        fs::remove_dir_all(&disk.root).unwrap();
    }

    #[test]
    fn uploads_that_trickle_hold_no_thread() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).max_blocking_threads(1).build();
        let (runtime, disk) = (runtime.unwrap(), disk());
        let root = disk.root.clone();
        runtime.block_on(async {
            for _ in 0..3 {
                let disk = disk.clone();
                let slow = body(b"this").chain(stream::pending());
                tokio::spawn(async move { disk.write(Uuid::new_v4(), Part::Whole, 10, slow).await });
            }
            tokio::task::yield_now().await;
            let written = disk.write(Uuid::new_v4(), Part::Whole, 10, body(b"that")).await.unwrap();
            assert_eq!(written.offset, 4);
        });
        // What still writes ends with it.
        drop(runtime);
        fs::remove_dir_all(root).unwrap();
    }
}
