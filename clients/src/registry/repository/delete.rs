//! Deleting: manifests by digest, with every tag that points at them. Layers stay until the registry collects its garbage.

use domain::Digest;
use reqwest::{Method, StatusCode};
use serde::Deserialize;

use super::fault::refused;
use super::{RegistryFault, Repository};
use crate::registry::scope::Action;

/// Lists are as long as whoever may push likes. What is beyond goes with what nobody registered.
const MOST_LISTED: usize = 256;

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

    /// The manifest that this one says it is about; none where it is about none, or gone.
    pub async fn subject(&self, digest: &Digest) -> Result<Option<Digest>, RegistryFault> {
        let manifest = self.find_manifest(digest.as_str()).await?;
        Ok(manifest.and_then(|manifest| subject_of(&manifest.bytes)))
    }

    /// What lies beside a manifest to vouch for it: signatures, attestations, and the bundles that name it as their
    /// subject. Whoever may push decides what lies there, so this says nothing about who else needs it.
    pub async fn beside(&self, digest: &Digest) -> Result<Vec<Digest>, RegistryFault> {
        let tag = format!("sha256-{}", digest.hex());
        let mut found = Vec::new();
        for name in [format!("{tag}.sig"), format!("{tag}.att")] {
            found.extend(self.find_manifest(&name).await?.map(|beside| beside.digest));
        }
        let fallback = self.find_manifest(&tag).await?;
        let lists = [self.referrers(digest).await?, fallback.as_ref().map(|list| list.bytes.clone())];
        let mut listed: Vec<Digest> = lists.iter().flatten().flat_map(|list| named_by(list)).collect();
        listed.sort_unstable();
        listed.dedup();
        listed.truncate(MOST_LISTED);
        for bundle in listed {
            let manifest = self.find_manifest(bundle.as_str()).await?;
            // A list may name anything; only what says itself that it belongs here does.
            found.extend(
                manifest.filter(|it| subject_of(&it.bytes).as_ref() == Some(digest)).map(|it| it.digest),
            );
        }
        found.extend(fallback.map(|list| list.digest));
        Ok(found)
    }
}

#[derive(Deserialize)]
struct Descriptor {
    digest: Digest,
}

/// What cannot be read names nothing.
fn named_by(list: &[u8]) -> Vec<Digest> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        manifests: Vec<Descriptor>,
    }
    let list: Option<List> = serde_json::from_slice(list).ok();
    list.into_iter().flat_map(|list| list.manifests).map(|listed| listed.digest).collect()
}

/// The manifest that a manifest says it is about.
fn subject_of(manifest: &[u8]) -> Option<Digest> {
    #[derive(Deserialize)]
    struct About {
        subject: Descriptor,
    }
    serde_json::from_slice::<About>(manifest).ok().map(|about| about.subject.digest)
}
