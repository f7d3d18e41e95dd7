//! Manifests of images, as registries keep them: what they may be called, and how much they may name.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Digest;

/// Docker's and OCI's, of one image and of an index.
pub const MANIFEST_TYPES: [&str; 4] = [
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
];

/// Engines stop at 127 layers. Whoever makes more wants to keep somebody busy.
const MOST_LAYERS: usize = 512;
pub const MOST_CHILDREN: usize = 64;

/// The manifests that a manifest names, which only an index does; or why it is not taken, in words that fit behind a
/// field's name.
pub fn check_manifest(bytes: &[u8]) -> Result<Vec<Digest>, String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        layers: Vec<IgnoredAny>,
        #[serde(default)]
        manifests: Vec<Child>,
        #[serde(default)]
        config: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Child {
        digest: Digest,
    }
    let named: Named =
        serde_json::from_slice(bytes).map_err(|_| "names a manifest that cannot be read".to_owned())?;
    match (named.layers.len(), named.manifests.len()) {
        (layers, _) if layers > MOST_LAYERS => {
            Err(format!("names a manifest with {layers} layers; at most {MOST_LAYERS} are taken"))
        }
        (_, children) if children > MOST_CHILDREN => {
            Err(format!("names an index of {children} manifests; at most {MOST_CHILDREN} are taken"))
        }
        (0, 0) if named.config.is_none() => Err("names a manifest without anything in it".to_owned()),
        _ => Ok(named.manifests.into_iter().map(|child| child.digest).collect()),
    }
}

/// What an index names must be an image: whoever looks at an index looks at what it names, and no further.
pub fn check_child(digest: &Digest, bytes: &[u8]) -> Result<(), String> {
    match check_manifest(bytes) {
        Ok(below) if below.is_empty() => Ok(()),
        Ok(_) => Err(format!(
            "names an index within an index ({digest}); publish that one by itself, or name its images directly"
        )),
        Err(why) => Err(format!("{why} ({digest})")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check_child, check_manifest};

    fn of(manifest: &serde_json::Value) -> Result<usize, String> {
        check_manifest(manifest.to_string().as_bytes()).map(|children| children.len())
    }

    #[test]
    fn images_and_indexes_of_a_sane_size_are_taken() {
        let child = json!({ "digest": format!("sha256:{}", "0".repeat(64)) });
        assert_eq!(of(&json!({ "config": {}, "layers": [{}, {}] })), Ok(0));
        assert_eq!(of(&json!({ "manifests": [child, child] })), Ok(2));
        assert!(of(&json!({ "manifests": [{ "digest": "latest" }] })).is_err());
        assert!(
            of(&json!({ "config": {}, "layers": vec![json!({}); 10_000] }))
                .unwrap_err()
                .contains("10000 layers")
        );
        assert!(of(&json!({ "manifests": vec![child; 65] })).unwrap_err().contains("65 manifests"));
        assert!(of(&json!({})).is_err() && check_manifest(b"{").is_err());
    }

    #[test]
    fn an_index_names_images_and_no_further_index() {
        let digest = format!("sha256:{}", "0".repeat(64)).parse().unwrap();
        let judged = |manifest: serde_json::Value| check_child(&digest, manifest.to_string().as_bytes());
        assert_eq!(judged(json!({ "config": {}, "layers": [{}] })), Ok(()));
        assert!(
            judged(json!({ "manifests": [{ "digest": digest }] })).unwrap_err().contains("within an index")
        );
        assert!(judged(json!({})).is_err());
    }
}
