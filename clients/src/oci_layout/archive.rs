//! Archives as container engines saved images before they wrote layouts: a list of images, each a config and layers by
//! their names. One is made a layout in its own folder, so that all else reads layouts alone.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::{
    CONFIG, Descriptor, INDEX, INDEX_FILE, LAYER, LayoutFault, MANIFEST, VERSION, VERSION_FILE, digest_of,
    digest_of_file,
};

const LIST_FILE: &str = "manifest.json";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: PathBuf,
    layers: Vec<PathBuf>,
}

/// A folder that is a layout already, or is no archive either, stays as it is.
pub fn adopt(folder: &Path) -> Result<(), LayoutFault> {
    if folder.join(VERSION_FILE).is_file() || !folder.join(LIST_FILE).is_file() {
        return Ok(());
    }
    let list = fs::read(folder.join(LIST_FILE)).map_err(|error| fault(folder, error))?;
    let list: Vec<Saved> =
        serde_json::from_slice(&list).map_err(|_| LayoutFault::NotALayout(folder.to_owned()))?;
    let [saved] = list.as_slice() else { return Err(LayoutFault::NotOneImage(list.len())) };
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).map_err(|error| fault(&blobs, error))?;
    let config = kept(folder, &saved.config, CONFIG)?;
    let layers: Result<Vec<Descriptor>, LayoutFault> =
        saved.layers.iter().map(|layer| kept(folder, layer, LAYER)).collect();
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers? });
    let manifest = manifest.to_string();
    let digest = digest_of(manifest.as_bytes());
    let entry = json!({ "mediaType": MANIFEST, "digest": digest, "size": manifest.len() });
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [entry] });
    for (path, text) in [
        (blobs.join(hex(&digest)), manifest),
        (folder.join(INDEX_FILE), index.to_string()),
        (folder.join(VERSION_FILE), VERSION.to_owned()),
    ] {
        fs::write(&path, text).map_err(|error| fault(&path, error))?;
    }
    Ok(())
}

/// The file under the name of its bytes. Layers that several images share are links within the archive; what leads out of
/// it is not followed.
fn kept(folder: &Path, name: &Path, media_type: &str) -> Result<Descriptor, LayoutFault> {
    let odd = || LayoutFault::NotALayout(folder.to_owned());
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(odd());
    }
    let root = folder.canonicalize().map_err(|error| fault(folder, error))?;
    let file = folder.join(name).canonicalize().map_err(|error| fault(name, error))?;
    if !file.starts_with(&root) {
        return Err(odd());
    }
    let (digest, size) = digest_of_file(&file).map_err(|error| fault(name, error))?;
    let place = folder.join("blobs/sha256").join(hex(&digest));
    if !place.exists() {
        fs::hard_link(&file, &place).map_err(|error| fault(&place, error))?;
    }
    Ok(Descriptor { media_type: media_type.to_owned(), digest, size })
}

fn hex(digest: &str) -> &str {
    digest.trim_start_matches("sha256:")
}

fn fault(path: &Path, error: io::Error) -> LayoutFault {
    LayoutFault::Io { path: path.to_owned(), error }
}

#[cfg(test)]
mod tests {
    use super::super::Layout;
    use super::*;

    #[test]
    fn an_archive_becomes_a_layout_with_the_bytes_it_has_and_none_from_outside() {
        let folder = std::env::temp_dir().join(format!("gpuaas-archive-{}", uuid::Uuid::new_v4().simple()));
        fs::create_dir_all(folder.join("1")).unwrap();
        fs::write(folder.join("config.json"), "{}").unwrap();
        fs::write(folder.join("1/layer.tar"), "a layer").unwrap();
        let list = |layer: &str| {
            json!([{ "Config": "config.json", "RepoTags": ["a:1"], "Layers": [layer] }]).to_string()
        };
        fs::write(folder.join(LIST_FILE), list("../../etc/hostname")).unwrap();
        assert!(adopt(&folder).is_err(), "nothing outside is taken");
        fs::write(folder.join(LIST_FILE), list("1/layer.tar")).unwrap();
        adopt(&folder).unwrap();
        adopt(&folder).unwrap();
        let layout = Layout::open(&folder).unwrap();
        let image = layout.image().unwrap();
        layout.verify(image).unwrap();
        let sizes: Vec<u64> = layout.needed_by(image).unwrap().iter().map(|part| part.size).collect();
        assert_eq!(sizes, [7, 2], "the layer and the config");
        fs::remove_dir_all(&folder).unwrap();
    }
}
