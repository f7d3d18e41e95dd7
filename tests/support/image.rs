//! Images as small as they can be: an OCI layout on disk that every tool accepts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use domain::Digest;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::cluster::Folder;

pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The layout, and the digest of the one manifest in it.
pub struct Image {
    folder: Folder,
    pub digest: Digest,
    pub manifest: Vec<u8>,
}

pub fn digest(bytes: &[u8]) -> Digest {
    Digest::from_sha256(Sha256::digest(bytes).into())
}

impl Image {
    /// One whose layer has about so many bytes, which no compression makes fewer.
    pub fn weighing(bytes: usize) -> Image {
        let mut seed = 1_u64;
        let letters = std::iter::repeat_with(|| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'!' + (seed >> 58) as u8)
        });
        // Six bits of chance in every letter.
        Image::saying(&letters.take(bytes * 4 / 3).collect::<String>())
    }

    /// Two images of different words are different images.
    pub fn saying(words: &str) -> Image {
        let folder = Folder::new();
        fs::create_dir_all(folder.0.join("layout/blobs/sha256")).unwrap();
        fs::write(folder.0.join("words"), words).unwrap();
        let layer = folder.0.join("layer.tar.gz");
        run(Command::new("tar").arg("-czf").arg(&layer).arg("-C").arg(&folder.0).arg("words"));
        let plain = Command::new("gzip").arg("-dc").arg(&layer).output().unwrap().stdout;
        let mut image = Image { folder, digest: digest(b""), manifest: Vec::new() };
        let layer = image.keep(&fs::read(layer).unwrap(), "application/vnd.oci.image.layer.v1.tar+gzip");
        let config = json!({
            "architecture": "amd64", "os": "linux", "config": {},
            "rootfs": { "type": "layers", "diff_ids": [digest(&plain)] },
        });
        let config = image.keep(config.to_string().as_bytes(), "application/vnd.oci.image.config.v1+json");
        let manifest =
            json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
        image.manifest = manifest.to_string().into_bytes();
        let entry = image.keep(&image.manifest.clone(), MANIFEST);
        image.digest = digest(&image.manifest);
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
        fs::write(image.layout().join("index.json"), index.to_string()).unwrap();
        fs::write(image.layout().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        image
    }

    /// Both as one image for two architectures: the layout, which is in this one's folder.
    pub fn beside(&self, other: &Image) -> PathBuf {
        for blob in other.blobs() {
            self.keep(&blob, "");
        }
        let entries = [self.keep(&self.manifest, MANIFEST), self.keep(&other.manifest, MANIFEST)];
        let both = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": entries });
        let both = self.keep(both.to_string().as_bytes(), INDEX);
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [both] });
        fs::write(self.layout().join("index.json"), index.to_string()).unwrap();
        self.layout()
    }

    /// The same once more in an index of its own, as tools write it that put layouts into layouts.
    pub fn within_an_index(&self) -> PathBuf {
        let path = self.layout().join("index.json");
        let outer = self.keep(&fs::read(&path).unwrap(), INDEX);
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [outer] });
        fs::write(path, index.to_string()).unwrap();
        self.layout()
    }

    pub fn layout(&self) -> PathBuf {
        self.folder.0.join("layout")
    }

    /// Every blob the manifest names.
    pub fn blobs(&self) -> Vec<Vec<u8>> {
        let manifest: Value = serde_json::from_slice(&self.manifest).unwrap();
        let layers = manifest["layers"].as_array().unwrap().iter();
        let named = layers.chain([&manifest["config"]]).map(|d| d["digest"].as_str().unwrap().to_owned());
        named.map(|digest| fs::read(self.blob(&digest)).unwrap()).collect()
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.layout().join("blobs").join(digest.replace(':', "/"))
    }

    fn keep(&self, bytes: &[u8], media_type: &str) -> Value {
        let digest = digest(bytes);
        fs::write(self.blob(digest.as_str()), bytes).unwrap();
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }
}

fn run(command: &mut Command) {
    assert!(command.status().is_ok_and(|status| status.success()), "{command:?}");
}

/// What skopeo says, and whether it did what it was asked.
pub struct Said {
    pub done: bool,
    pub words: String,
}

/// `name` is `host:port/repository:tag` or `…@digest`.
pub async fn push(image: &Image, name: &str, credential: Option<(&str, &str)>) -> Said {
    skopeo("dest", &format!("oci:{}", image.layout().display()), &format!("docker://{name}"), credential)
        .await
}

pub async fn pull(name: &str, into: &Path, credential: Option<(&str, &str)>) -> Said {
    skopeo("src", &format!("docker://{name}"), &format!("oci:{}:it", into.display()), credential).await
}

async fn skopeo(side: &str, from: &str, to: &str, credential: Option<(&str, &str)>) -> Said {
    let mut command = tokio::process::Command::new("skopeo");
    command.args(["--insecure-policy", "copy", &format!("--{side}-tls-verify=false")]);
    match credential {
        Some((username, password)) => command.arg(format!("--{side}-creds={username}:{password}")),
        None => command.arg(format!("--{side}-no-creds")),
    };
    let said = command.args([from, to]).output().await.expect("skopeo runs");
    Said { done: said.status.success(), words: String::from_utf8_lossy(&said.stderr).into_owned() }
}
