//! OCI image layouts: images as folders, made and read without a container engine.
//!
//! Packing is deterministic: the same files and settings give the same digest on every machine, because times are zero,
//! names are sorted, owners are root and layers are not compressed. Reading believes nothing that is not hashed.

mod archive;
mod pack;
mod tar;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

pub use archive::adopt;
pub use pack::{FileEntry, Image, pack};

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

const VERSION_FILE: &str = "oci-layout";
const VERSION: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
const INDEX_FILE: &str = "index.json";
/// The largest manifest or index that is read into memory, as registries have it.
const LONGEST_MANIFEST: u64 = 4 << 20;

#[derive(Debug, thiserror::Error)]
pub enum LayoutFault {
    #[error("{path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{0} is not an OCI image layout")]
    NotALayout(PathBuf),
    #[error("the layout holds {0} images; one is expected")]
    NotOneImage(usize),
    #[error("{0} is not a sha256 digest")]
    NotADigest(String),
    #[error("the blob {digest} is not what its name says")]
    Damaged { digest: String },
    #[error("the manifest {digest} cannot be read: {error}")]
    Manifest { digest: String, error: serde_json::Error },
}

/// What OCI says of a blob: its type, its digest and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    #[serde(rename = "mediaType")]
    pub media_type: String,
    pub digest: String,
    pub size: u64,
}

/// A layout on disk.
#[derive(Clone, Debug)]
pub struct Layout {
    folder: PathBuf,
    images: Vec<Descriptor>,
}

/// The parts of manifests and indexes that name other blobs.
#[derive(Deserialize)]
struct Names {
    #[serde(default)]
    manifests: Vec<Descriptor>,
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Vec<Descriptor>,
}

impl Layout {
    pub fn open(folder: &Path) -> Result<Layout, LayoutFault> {
        let version = folder.join(VERSION_FILE);
        if !version.is_file() {
            return Err(LayoutFault::NotALayout(folder.to_owned()));
        }
        let path = folder.join(INDEX_FILE);
        let bytes = fs::read(&path).map_err(|error| LayoutFault::Io { path: path.clone(), error })?;
        let names: Names =
            serde_json::from_slice(&bytes).map_err(|_| LayoutFault::NotALayout(folder.to_owned()))?;
        Ok(Layout { folder: folder.to_owned(), images: names.manifests })
    }

    /// The one image that the layout holds.
    pub fn image(&self) -> Result<&Descriptor, LayoutFault> {
        match self.images.as_slice() {
            [only] => Ok(only),
            several => Err(LayoutFault::NotOneImage(several.len())),
        }
    }

    /// Everything an image needs besides its own manifest, in the order of pushing: what is named comes first.
    pub fn needed_by(&self, image: &Descriptor) -> Result<Vec<Descriptor>, LayoutFault> {
        let mut needed = Vec::new();
        let names = self.names(image)?;
        for manifest in names.manifests {
            needed.extend(self.needed_by(&manifest)?);
            needed.push(manifest);
        }
        needed.extend(names.layers);
        needed.extend(names.config);
        Ok(needed)
    }

    fn names(&self, manifest: &Descriptor) -> Result<Names, LayoutFault> {
        let bytes = self.manifest_bytes(manifest)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| LayoutFault::Manifest { digest: manifest.digest.clone(), error })
    }

    /// The bytes of a manifest or index, hashed.
    pub fn manifest_bytes(&self, manifest: &Descriptor) -> Result<Vec<u8>, LayoutFault> {
        let damaged = || LayoutFault::Damaged { digest: manifest.digest.clone() };
        if manifest.size > LONGEST_MANIFEST {
            return Err(damaged());
        }
        let path = self.blob_path(&manifest.digest)?;
        let bytes = fs::read(&path).map_err(|error| LayoutFault::Io { path, error })?;
        if bytes.len() as u64 != manifest.size || digest_of(&bytes) != manifest.digest {
            return Err(damaged());
        }
        Ok(bytes)
    }

    /// Where the bytes of a blob are.
    pub fn blob_path(&self, digest: &str) -> Result<PathBuf, LayoutFault> {
        let hex = digest.strip_prefix("sha256:").filter(|hex| is_hex(hex));
        let hex = hex.ok_or_else(|| LayoutFault::NotADigest(digest.to_owned()))?;
        Ok(self.folder.join("blobs/sha256").join(hex))
    }

    /// Hashes every blob of an image, without holding any in memory.
    pub fn verify(&self, image: &Descriptor) -> Result<(), LayoutFault> {
        self.manifest_bytes(image)?;
        for blob in self.needed_by(image)? {
            let path = self.blob_path(&blob.digest)?;
            let (digest, size) = digest_of_file(&path).map_err(|error| LayoutFault::Io { path, error })?;
            if digest != blob.digest || size != blob.size {
                return Err(LayoutFault::Damaged { digest: blob.digest });
            }
        }
        Ok(())
    }
}

fn is_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn digest_of(bytes: &[u8]) -> String {
    named(&Sha256::digest(bytes))
}

fn digest_of_file(path: &Path) -> io::Result<(String, u64)> {
    let (mut file, mut hash, mut size) = (File::open(path)?, Sha256::new(), 0);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((named(&hash.finalize()), size)),
            read => {
                hash.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
}

fn named(hash: &[u8]) -> String {
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

#[cfg(test)]
mod tests;
