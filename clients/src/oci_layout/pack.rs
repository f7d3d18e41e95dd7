//! From files and settings to an image layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{
    CONFIG, Descriptor, INDEX, INDEX_FILE, LAYER, LayoutFault, MANIFEST, VERSION, VERSION_FILE, digest_of,
    tar,
};

/// Reproducible images have no birthday.
const EPOCH: &str = "1970-01-01T00:00:00Z";

/// What an image holds and how it starts.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pub files: Vec<FileEntry>,
    /// `amd64`, `arm64`: the names Go has for them.
    pub architecture: String,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub ports: Vec<u16>,
    /// `uid:gid`; apps need not be root.
    pub user: String,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct FileEntry {
    /// From the root of the image, without a leading `/`.
    pub path: String,
    pub executable: bool,
    pub bytes: Vec<u8>,
}

/// Writes the image as a layout into a folder, which is made anew, and says what it wrote.
pub fn pack(image: &Image, folder: &Path) -> Result<Descriptor, LayoutFault> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| LayoutFault::Io { path, error }
    };
    let blobs = folder.join("blobs/sha256");
    if folder.join(VERSION_FILE).exists() {
        fs::remove_dir_all(folder).map_err(failed(folder))?;
    }
    fs::create_dir_all(&blobs).map_err(failed(&blobs))?;
    let write = |media_type: &str, bytes: &[u8]| -> Result<Descriptor, LayoutFault> {
        let digest = digest_of(bytes);
        let path = blobs.join(digest.trim_start_matches("sha256:"));
        fs::write(&path, bytes).map_err(failed(&path))?;
        Ok(Descriptor { media_type: media_type.to_owned(), digest, size: bytes.len() as u64 })
    };
    let layer = write(LAYER, &tar::archive(&image.files))?;
    let config = write(CONFIG, config(image, &layer.digest).to_string().as_bytes())?;
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    let manifest = write(MANIFEST, manifest.to_string().as_bytes())?;
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest] });
    for (name, text) in [(INDEX_FILE, index.to_string()), (VERSION_FILE, VERSION.to_owned())] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(manifest)
}

/// An uncompressed layer has one digest for what it is and what it unpacks to.
fn config(image: &Image, layer: &str) -> Value {
    let env: Vec<String> = image.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let ports: BTreeMap<String, Value> =
        image.ports.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
    json!({
        "created": EPOCH,
        "architecture": image.architecture,
        "os": "linux",
        "config": {
            "User": image.user,
            "ExposedPorts": ports,
            "Env": env,
            "Entrypoint": image.entrypoint,
            "Cmd": image.command,
            "WorkingDir": "/",
            "Labels": image.labels,
        },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
        "history": [{ "created": EPOCH, "created_by": "gpuaas" }],
    })
}
