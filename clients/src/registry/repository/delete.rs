//! Deleting: manifests by digest, with every tag that points at them. Layers stay until the registry collects its garbage.

use domain::Digest;
use reqwest::{Method, StatusCode};
use serde::Deserialize;

use super::{Manifest, RegistryFault, Repository, refused};
use crate::registry::scope::Action;

impl Repository {
    /// The manifest and every tag that points at it. Gone already is well.
    pub async fn delete_manifest(&self, digest: &Digest) -> Result<(), RegistryFault> {
        let request = self.request(Method::DELETE, &format!("manifests/{digest}"));
        let answer = self.send(request, &[Action::Delete]).await?;
        match answer.status() {
            StatusCode::ACCEPTED | StatusCode::NOT_FOUND => Ok(()),
            _ => Err(refused(answer).await),
        }
    }

    /// What lies beside a manifest to vouch for it: signatures, attestations, and the bundles that a list there names.
    /// Whoever may push decides what lies there, so this says nothing about who else needs it.
    pub async fn beside(&self, digest: &Digest) -> Result<Vec<Digest>, RegistryFault> {
        let tag = format!("sha256-{}", digest.hex());
        let mut found = Vec::new();
        for name in [format!("{tag}.sig"), format!("{tag}.att"), tag] {
            let Some(beside) = self.find_manifest(&name).await? else { continue };
            found.extend(named_by(&beside));
            found.push(beside.digest);
        }
        Ok(found)
    }
}

/// What cannot be read names nothing.
fn named_by(list: &Manifest) -> Vec<Digest> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        manifests: Vec<Listed>,
    }
    #[derive(Deserialize)]
    struct Listed {
        digest: Digest,
    }
    let list: Option<List> = serde_json::from_slice(&list.bytes).ok();
    list.into_iter().flat_map(|list| list.manifests).map(|listed| listed.digest).collect()
}
