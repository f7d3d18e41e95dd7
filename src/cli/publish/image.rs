//! An image from an OCI layout, or from the container engine of this machine: pushed blob by blob, each only if the registry
//! lacks it, and signed as cosign does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use api_types::PublishIntent;
use clients::oci_layout::{Descriptor, Layout, adopt};
use clients::registry::{Pushed, Repository};
use clients::trust::{SignerKey, sign};
use domain::artifact::{MANIFEST_TYPES, check_child};
use domain::{Digest, Secret};
use serde::Deserialize;
use uuid::Uuid;

use super::Said;
use crate::cli::client::{self, Client};
use crate::cli::output;
use crate::cli::progress::Progress;
use crate::failure::Failure;

pub struct Image {
    layout: Layout,
    manifest: Descriptor,
    pub digest: Digest,
    /// Of all that is in it.
    pub size: u64,
    /// Where a tar file was unpacked; goes with the command.
    unpacked: Option<PathBuf>,
}

/// What names an image of the engine, before the name the engine knows it by.
const OF_ENGINE: &str = "docker:";

impl Image {
    pub fn open(source: &str) -> Result<Image, Failure> {
        if let Some(name) = source.strip_prefix(OF_ENGINE) {
            return Image::of_engine(name);
        }
        let path = Path::new(source);
        let unpacked = if path.is_dir() { None } else { Some(unpack(path)?) };
        Image::read(path, unpacked)
    }

    /// As Docker's own client saves it.
    fn of_engine(name: &str) -> Result<Image, Failure> {
        let archive = temporary();
        let saved = Command::new("docker")
            .args(["image", "save", "--output"])
            .arg(&archive)
            .args(["--", name])
            .output();
        let unpacked = match saved {
            Ok(said) if said.status.success() => unpack(&archive),
            Ok(said) => Err(Failure::usage(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
            Err(error) => Err(Failure::usage(format!("docker cannot be run: {error}"))),
        };
        let _ = std::fs::remove_file(&archive);
        Image::read(&archive, Some(unpacked?))
    }

    fn read(path: &Path, unpacked: Option<PathBuf>) -> Result<Image, Failure> {
        let layout = Layout::open(unpacked.as_deref().unwrap_or(path)).map_err(Failure::usage)?;
        let manifest = layout.image().map_err(Failure::usage)?.clone();
        let digest = manifest.digest.parse().map_err(Failure::usage)?;
        layout.verify(&manifest).map_err(Failure::usage)?;
        let parts = layout.needed_by(&manifest).map_err(Failure::usage)?;
        for child in parts.iter().filter(|part| MANIFEST_TYPES.contains(&part.media_type.as_str())) {
            let bytes = layout.manifest_bytes(child).map_err(Failure::usage)?;
            let named: Digest = child.digest.parse().map_err(Failure::usage)?;
            check_child(&named, &bytes).map_err(|why| Failure::usage(format!("the image {why}")))?;
        }
        let size = parts.iter().map(|part| part.size).sum();
        Ok(Image { layout, manifest, digest, size, unpacked })
    }

    pub async fn push(&self, repository: &Repository, tag: Option<&str>) -> Result<(), Failure> {
        for part in self.layout.needed_by(&self.manifest).map_err(Failure::usage)? {
            if MANIFEST_TYPES.contains(&part.media_type.as_str()) {
                self.push_manifest(repository, &part, &part.digest).await?;
            } else {
                self.push_blob(repository, &part).await?;
            }
        }
        self.push_manifest(repository, &self.manifest, &self.manifest.digest).await?;
        if let Some(tag) = tag {
            self.push_manifest(repository, &self.manifest, tag).await?;
        }
        Ok(())
    }

    async fn push_manifest(
        &self,
        to: &Repository,
        manifest: &Descriptor,
        as_name: &str,
    ) -> Result<(), Failure> {
        let bytes = self.layout.manifest_bytes(manifest).map_err(Failure::usage)?;
        to.push_manifest(as_name, &manifest.media_type, &bytes).await.map_err(Failure::server)?;
        Ok(())
    }

    async fn push_blob(&self, to: &Repository, blob: &Descriptor) -> Result<(), Failure> {
        let path = self.layout.blob_path(&blob.digest).map_err(Failure::usage)?;
        let digest: Digest = blob.digest.parse().map_err(Failure::usage)?;
        let progress = Arc::new(Progress::new(&short(&digest), blob.size, 0));
        let pushed =
            to.push_blob(&digest, blob.size, |part| Arc::clone(&progress).part(path.clone(), part)).await;
        match pushed.map_err(Failure::server)? {
            Pushed::Sent => progress.done(),
            Pushed::There => output::say(&format!("{} is there already", short(&digest))),
        }
        Ok(())
    }

    /// Signs, and puts its provenance beside it.
    pub(super) async fn vouch(&self, repository: &Repository, said: &Said) -> Result<(), Failure> {
        if let Some(key) = &said.key {
            self.sign(repository, key).await?;
        }
        if let Some(provenance) = &said.provenance {
            provenance.attach(repository, &self.digest).await.map_err(Failure::server)?;
            output::say(&format!("attached the provenance of {}", short(&self.digest)));
        }
        Ok(())
    }

    /// The manifest and, where it is an index, every manifest below it: a node runs one of those.
    async fn sign(&self, repository: &Repository, key: &SignerKey) -> Result<(), Failure> {
        let parts = self.layout.needed_by(&self.manifest).map_err(Failure::usage)?;
        let below = parts.iter().filter(|part| MANIFEST_TYPES.contains(&part.media_type.as_str()));
        for manifest in below.chain([&self.manifest]) {
            let digest: Digest = manifest.digest.parse().map_err(Failure::usage)?;
            sign(repository, &digest, key).await.map_err(Failure::server)?;
            output::say(&format!("signed {}", short(&digest)));
        }
        Ok(())
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Some(folder) = &self.unpacked {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// As much of a digest as people tell them apart by.
fn short(digest: &Digest) -> String {
    digest.as_str().chars().take(19).collect()
}

fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("gpuaas-image-{}", Uuid::new_v4().simple()))
}

fn unpack(archive: &Path) -> Result<PathBuf, Failure> {
    let folder = temporary();
    let failed = |why: String| Failure::usage(format!("cannot unpack {}: {why}", archive.display()));
    std::fs::create_dir(&folder).map_err(|error| failed(error.to_string()))?;
    let unpacked = Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&folder).output();
    match unpacked {
        Ok(said) if said.status.success() => adopt(&folder).map(|()| folder).map_err(Failure::usage),
        Ok(said) => Err(failed(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// The repository of an intent, spoken to with the credential that its token opens, once.
pub async fn open_repository(client: &Client, intent: &PublishIntent) -> Result<Repository, Failure> {
    #[derive(Deserialize)]
    struct Opened {
        data: Credential,
    }
    #[derive(Deserialize)]
    struct Credential {
        username: String,
        password: Secret<String>,
        registry: String,
    }
    let odd = || Failure::server("the platform answered an intent without a credential");
    let wrapped = intent.credential.as_ref().ok_or_else(odd)?;
    let (token, name) =
        (wrapped.token.as_ref().ok_or_else(odd)?, intent.repository.as_deref().ok_or_else(odd)?);
    let url = client.address(&wrapped.unwrap_path);
    let answer = client::http()?.post(&url).header("x-vault-token", token).send().await;
    let answer = answer.map_err(|error| client::unreachable(&url, &error))?;
    if !answer.status().is_success() {
        return Err(Failure::server(format!(
            "the credential cannot be fetched ({}): somebody else may have; find out who, then try again",
            answer.status()
        )));
    }
    let Opened { data } = answer.json().await.map_err(Failure::server)?;
    let url = format!("{}://{}", scheme(&data.registry), data.registry);
    Repository::with_credential(&url, name, &data.username, data.password).map_err(Failure::server)
}

/// As container engines have it: plain HTTP is for this machine alone.
fn scheme(host: &str) -> &'static str {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if name == "localhost" || name == "[::1]" || name.starts_with("127.") { "http" } else { "https" }
}
