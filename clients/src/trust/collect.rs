//! What lies in a registry beside an image and may vouch for it: cosign's `.sig` and `.att` tags, and sigstore bundles that
//! name the image as their subject, listed by the registry or, where it has no such list, by the index under the
//! fallback tag. Whoever may push may put anything there, so little is read and nothing is believed yet.

use domain::Digest;
use serde::Deserialize;
use serde_json::Value;

use super::dsse::Envelope;
use super::simple_signing::{self, Candidate};
use crate::registry::{Manifest, RegistryFault, Repository};

/// More than these beside one image are not looked at, and none may be larger.
const MOST: usize = 32;
const LARGEST: usize = 256 * 1024;

pub(super) const ENVELOPE: &str = "application/vnd.dsse.envelope.v1+json";
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";

#[derive(Default)]
pub(super) struct Candidates {
    pub(super) simple: Vec<Candidate>,
    pub(super) attestations: Vec<Attested>,
    pub(super) bundles: Vec<Attested>,
}

pub(super) struct Attested {
    /// The digest of the manifest that holds it.
    pub(super) manifest: Digest,
    pub(super) envelope: Envelope,
}

#[derive(Deserialize)]
struct Layers {
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
struct Listed {
    manifests: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: Digest,
    #[serde(default)]
    artifact_type: Option<String>,
    #[serde(default)]
    annotations: Option<Value>,
}

pub(super) async fn of(repository: &Repository, subject: &Digest) -> Result<Candidates, RegistryFault> {
    let mut found = Candidates::default();
    let tag = format!("sha256-{}", subject.hex());
    if let Some(manifest) = readable(repository.find_manifest(&format!("{tag}.sig")).await)? {
        found.simple = signatures(repository, &manifest).await?;
    }
    if let Some(manifest) = readable(repository.find_manifest(&format!("{tag}.att")).await)? {
        found.attestations = envelopes(repository, &manifest, ENVELOPE).await?;
    }
    for bundle in bundles(repository, subject, &tag).await? {
        found.bundles.extend(envelopes(repository, &bundle, BUNDLE).await?);
    }
    Ok(found)
}

async fn signatures(repository: &Repository, manifest: &Manifest) -> Result<Vec<Candidate>, RegistryFault> {
    let mut found = Vec::new();
    for layer in layers(manifest, simple_signing::PAYLOAD_TYPE) {
        let annotation = layer.annotations.as_ref().and_then(|all| all.get(simple_signing::SIGNATURE));
        let Some(signature) = annotation.and_then(Value::as_str).map(str::to_owned) else { continue };
        if let Some(payload) = readable(repository.blob(&layer.digest, LARGEST).await.map(Some))? {
            found.push(Candidate { manifest: manifest.digest.clone(), payload, signature });
        }
    }
    Ok(found)
}

async fn envelopes(
    repository: &Repository,
    manifest: &Manifest,
    media_type: &str,
) -> Result<Vec<Attested>, RegistryFault> {
    let mut found = Vec::new();
    for layer in layers(manifest, media_type) {
        let Some(bytes) = readable(repository.blob(&layer.digest, LARGEST).await.map(Some))? else {
            continue;
        };
        if let Some(envelope) = Envelope::read(&bytes) {
            found.push(Attested { manifest: manifest.digest.clone(), envelope });
        }
    }
    Ok(found)
}

fn layers(manifest: &Manifest, media_type: &str) -> Vec<Descriptor> {
    let read: Layers = serde_json::from_slice(&manifest.bytes).unwrap_or(Layers { layers: Vec::new() });
    read.layers.into_iter().filter(|layer| layer.media_type.starts_with(media_type)).take(MOST).collect()
}

async fn bundles(
    repository: &Repository,
    subject: &Digest,
    fallback: &str,
) -> Result<Vec<Manifest>, RegistryFault> {
    let listed = match readable(repository.referrers(subject).await)? {
        Some(list) => Some(list),
        None => readable(repository.find_manifest(fallback).await)?.map(|manifest| manifest.bytes),
    };
    let listed: Option<Listed> = listed.and_then(|list| serde_json::from_slice(&list).ok());
    let mut found = Vec::new();
    let wanted = |one: &Descriptor| one.artifact_type.as_deref().is_none_or(|kind| kind.starts_with(BUNDLE));
    for one in listed.into_iter().flat_map(|list| list.manifests).filter(wanted).take(MOST) {
        found.extend(readable(repository.find_manifest(one.digest.as_str()).await)?);
    }
    Ok(found)
}

/// What is there and cannot be used is as if it were not there. A registry that does not say what it has has not said that
/// it has nothing.
fn readable<T>(read: Result<Option<T>, RegistryFault>) -> Result<Option<T>, RegistryFault> {
    match read {
        Ok(found) => Ok(found),
        Err(fault) if fault.is_verdict() => Ok(None),
        Err(fault) => Err(fault),
    }
}
