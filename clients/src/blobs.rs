//! Where blobs are kept: on a disk of ours, or in a bucket that speaks S3's protocol. Whoever has an intent uploads to a
//! place of that intent alone; a blob is accepted once it was hashed here, and nobody writes to it after that. Neither way
//! holds a blob in memory.

mod disk;
mod s3;

pub use disk::{Disk, Part, Written};
pub use s3::{S3, S3Settings, SignedUpload};

use bytes::Bytes;
use domain::Digest;
use futures::stream::BoxStream;
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobFault {
    #[error("nothing was uploaded for this intent")]
    Absent,
    #[error("the upload is larger than {most} bytes")]
    TooLarge { most: u64 },
    #[error("the uploaded bytes are {found}, not {asked}")]
    Mismatch { asked: Digest, found: Digest },
    /// The next byte to send is this one.
    #[error("the upload stands at byte {offset}")]
    Elsewhere { offset: u64 },
    #[error("somebody else is uploading to the same place right now")]
    Busy,
    #[error("the store has no room left")]
    NoRoom,
    #[error("the upload broke off")]
    Interrupted,
    #[error("the artifact store does not answer: {0}")]
    Unavailable(String),
}

/// Which blob: the place it has in the store, and the intent it was uploaded for. Two uploads never share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobName {
    /// `projects/…/artifacts/…`, as in the blob's address.
    pub key: String,
    pub intent: Uuid,
}

#[derive(Debug, Clone)]
pub enum Blobs {
    Disk(Disk),
    S3(S3),
}

impl Blobs {
    /// Takes what was uploaded, if it is these bytes and no more than these many. Answers its size. What was taken before
    /// is looked at again and stays.
    pub async fn accept(&self, name: &BlobName, digest: &Digest, most: u64) -> Result<u64, BlobFault> {
        match self {
            Blobs::Disk(disk) => disk.accept(name, digest, most).await,
            Blobs::S3(s3) => s3.accept(name, digest, most).await,
        }
    }

    /// Reads what was taken once more. Whatever was uploaded since stays where it is.
    pub async fn check(&self, name: &BlobName, digest: &Digest) -> Result<u64, BlobFault> {
        match self {
            Blobs::Disk(disk) => disk.check(name, digest).await,
            Blobs::S3(s3) => s3.check(name, digest).await,
        }
    }

    /// The bytes of an accepted blob.
    pub async fn read(
        &self,
        name: &BlobName,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobFault>>, BlobFault> {
        match self {
            Blobs::Disk(disk) => disk.read(name).await,
            Blobs::S3(s3) => s3.read(name).await,
        }
    }

    /// Gone already is well.
    pub async fn delete(&self, name: &BlobName) -> Result<(), BlobFault> {
        match self {
            Blobs::Disk(disk) => disk.delete(name).await,
            Blobs::S3(s3) => s3.delete(name).await,
        }
    }
}

fn agree(asked: &Digest, found: Digest) -> Result<(), BlobFault> {
    if *asked == found { Ok(()) } else { Err(BlobFault::Mismatch { asked: asked.clone(), found }) }
}
