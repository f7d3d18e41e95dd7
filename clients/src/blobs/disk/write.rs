//! Writing a part of an upload: from the byte where the upload stands, in order, hashed on the way where the part is the
//! last. Bytes that arrived stay when the connection breaks, so the next part goes on after them.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};

use bytes::Bytes;
use domain::Digest;
use futures::{Stream, StreamExt, pin_mut};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{BlobFault, Disk, hash_into, locked, trouble};

/// Chunks between the connection and the disk. Each has what one read of a connection gives, so few are enough.
const UNDER_WAY: usize = 16;

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
        let (chunks, arriving) = mpsc::channel(UNDER_WAY);
        let disk = self.clone();
        let writing = tokio::task::spawn_blocking(move || disk.append(intent, part, arriving));
        let whole = pass_on(body, chunks, part.first(), end, most).await;
        let written = writing.await.unwrap_or_else(|error| Err(BlobFault::Unavailable(error.to_string())))?;
        if part == Part::Whole && matches!(whole, Err(BlobFault::TooLarge { .. })) {
            let _ = tokio::fs::remove_file(self.incoming(intent)).await;
        }
        whole?;
        if part.end().is_some_and(|end| written.offset < end) {
            return Err(BlobFault::Interrupted);
        }
        if part.is_last() {
            self.complete(intent, written).await
        } else {
            Ok(Written { digest: None, ..written })
        }
    }

    /// Notes what a complete upload is, so that nobody needs to read it again.
    async fn complete(&self, intent: Uuid, written: Written) -> Result<Written, BlobFault> {
        if let Some(digest) = &written.digest {
            let text = format!("{} {digest}", written.offset);
            tokio::fs::write(self.note(intent), text).await.map_err(|error| trouble(&error))?;
        }
        Ok(written)
    }

    fn append(
        &self,
        intent: Uuid,
        part: Part,
        mut arriving: mpsc::Receiver<Bytes>,
    ) -> Result<Written, BlobFault> {
        let path = self.incoming(intent);
        let mut file = locked(&path, OpenOptions::new().read(true).write(true).create(true).truncate(false))?;
        let _ = fs::remove_file(self.note(intent));
        let mut hash = begin(&mut file, part)?;
        let mut offset = part.first();
        while let Some(chunk) = arriving.blocking_recv() {
            file.write_all(&chunk).map_err(|error| trouble(&error))?;
            offset += chunk.len() as u64;
            if let Some(hash) = &mut hash {
                hash.update(&chunk);
            }
        }
        let digest = hash.map(|hash| Digest::from_sha256(hash.finalize().into()));
        if digest.is_some() {
            file.sync_all().map_err(|error| trouble(&error))?;
        }
        Ok(Written { offset, digest })
    }
}

/// The file stands where the part begins. A last part is hashed together with what is there already.
fn begin(file: &mut File, part: Part) -> Result<Option<Sha256>, BlobFault> {
    let failed = |error: std::io::Error| trouble(&error);
    if part == Part::Whole {
        file.set_len(0).map_err(failed)?;
    }
    let offset = file.metadata().map_err(failed)?.len();
    if offset != part.first() {
        return Err(BlobFault::Elsewhere { offset });
    }
    if !part.is_last() {
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        return Ok(None);
    }
    let mut so_far = Sha256::new();
    let mut before = file.try_clone().map_err(failed)?.take(offset);
    hash_into(&mut so_far, &mut before)?;
    Ok(Some(so_far))
}

/// Hands chunks to the disk, which sets the pace, and stops where more come than were announced or allowed.
async fn pass_on<E>(
    body: impl Stream<Item = Result<Bytes, E>>,
    chunks: mpsc::Sender<Bytes>,
    first: u64,
    end: u64,
    most: u64,
) -> Result<(), BlobFault> {
    pin_mut!(body);
    let mut offset = first;
    while let Some(chunk) = body.next().await {
        let Ok(chunk) = chunk else { return Err(BlobFault::Interrupted) };
        offset = offset.saturating_add(chunk.len() as u64);
        if offset > end {
            return Err(BlobFault::TooLarge { most: end.min(most) });
        }
        // The disk's own trouble is told by the disk.
        if chunks.send(chunk).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}
