//! `[artifact_store]`: where blobs are kept, a folder of ours or a bucket that speaks S3's protocol.

use std::path::{Path, PathBuf};

use clients::blobs::{Blobs, Disk, S3, S3Settings};
use domain::Secret;

use super::auth::key_text;
use super::registry::address;
use super::{ConfigError, Values};
use crate::failure::Failure;

#[derive(Debug, Clone)]
pub enum ArtifactStore {
    Folder(PathBuf),
    Bucket(S3Settings),
}

impl ArtifactStore {
    pub(super) fn load(values: &Values) -> Result<Option<ArtifactStore>, ConfigError> {
        let folder = values.optional("artifact_store.path")?;
        let endpoint = address(values, "artifact_store.s3_endpoint")?;
        match (folder, endpoint) {
            (None, None) => Ok(None),
            (Some(folder), None) => Ok(Some(ArtifactStore::Folder(PathBuf::from(folder)))),
            (None, Some(endpoint)) => bucket(values, endpoint).map(Some),
            (Some(_), Some(_)) => {
                let why = "`artifact_store.path` is set as well; choose one";
                Err(values.wrong("artifact_store.s3_endpoint", &why))
            }
        }
    }

    pub fn folder(path: &Path) -> ArtifactStore {
        ArtifactStore::Folder(path.to_owned())
    }

    pub fn open(&self) -> Result<Blobs, Failure> {
        match self {
            ArtifactStore::Folder(path) => Disk::open(path)
                .map(Blobs::Disk)
                .map_err(|error| Failure::usage(format!("cannot keep blobs in {}: {error}", path.display()))),
            ArtifactStore::Bucket(settings) => S3::connect(settings).map(Blobs::S3).map_err(Failure::usage),
        }
    }
}

fn bucket(values: &Values, endpoint: String) -> Result<ArtifactStore, ConfigError> {
    let needed = |key: &str| {
        let why = format!("needs `{key}`");
        values.optional(key)?.ok_or_else(|| values.wrong("artifact_store.s3_endpoint", &why))
    };
    let (direct, file) = ("artifact_store.s3_secret_access_key", "artifact_store.s3_secret_access_key_file");
    let Some((_, secret)) = key_text(values, direct, file)? else {
        return Err(values.wrong("artifact_store.s3_endpoint", &format!("needs `{file}` or `{direct}`")));
    };
    Ok(ArtifactStore::Bucket(S3Settings {
        endpoint,
        region: values.text("artifact_store.s3_region")?,
        bucket: needed("artifact_store.s3_bucket")?,
        access_key_id: needed("artifact_store.s3_access_key_id")?,
        secret_access_key: Secret::new(secret.trim().to_owned()),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::load;
    use super::*;

    #[test]
    fn blobs_are_kept_in_a_folder_or_a_bucket_and_never_in_both() {
        assert!(load("", &[], &[]).unwrap().artifact_store.is_none());
        let folder = load("[artifact_store]\npath = \"/srv/blobs\"\n", &[], &[]).unwrap().artifact_store;
        assert!(matches!(folder, Some(ArtifactStore::Folder(path)) if path == Path::new("/srv/blobs")));
        let endpoint = "[artifact_store]\ns3_endpoint = \"https://s3.example\"\n";
        let of = |file: &str| load(file, &[], &[]).unwrap_err().to_string();
        assert!(of(endpoint).contains("s3_secret_access_key_file"), "{}", of(endpoint));
        assert!(of(&format!("{endpoint}path = \"/srv/blobs\"\n")).contains("choose one"));
        let secret = [("GPUAAS_ARTIFACT_STORE_S3_SECRET_ACCESS_KEY", "hunter2")];
        let whole = format!("{endpoint}s3_bucket = \"blobs\"\ns3_access_key_id = \"me\"\n");
        let config = load(&whole, &secret, &[]).unwrap();
        assert!(matches!(&config.artifact_store, Some(ArtifactStore::Bucket(_))));
        assert!(!format!("{:?}", config.artifact_store).contains("hunter2"));
    }
}
