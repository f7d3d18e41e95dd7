//! Whether an artifact is to be trusted: who signed it, and where it was built. Signatures are read from the registry in the
//! forms cosign writes them, checked with the project's own keys, and bound to the digest inside what was signed.
//!
//! Nothing is believed because of where it lies: tags can be moved by whoever may push, so a signature that was found is
//! kept with its own digest as evidence.

mod blob;
mod collect;
mod detached;
mod dsse;
mod key;
mod provenance;
mod sign;
mod simple_signing;

pub use blob::{Vouchers, examine_blob};
pub use dsse::{Envelope, Statement};
pub use key::{KeyFault, PublicKey};
pub use provenance::{Provenance, ProvenanceFault};
pub use sign::{SignerKey, SignerKeyFault, sign};

use domain::Digest;
use domain::artifact::{
    self, CheckResult, Evidence, MOST_CHILDREN, ProvenanceEvidence, SignatureEvidence, TrustDemands,
};
use serde::Deserialize;
use uuid::Uuid;

use self::collect::Candidates;
use crate::registry::{Manifest, RegistryFault, Repository};

/// The verdict on a manifest and, where it is an index, on every manifest it names. `Err` says that the registry could
/// not be asked, which is no verdict.
pub async fn examine(
    repository: &Repository,
    digest: &Digest,
    demands: &TrustDemands,
) -> Result<Evidence, RegistryFault> {
    let mut evidence = Evidence::default();
    evidence.checks.push(source(&repository.name, demands));
    let manifest = match repository.manifest(digest.as_str()).await {
        Ok(manifest) => manifest,
        Err(fault) if !fault.is_verdict() => return Err(fault),
        Err(fault) => {
            evidence.checks.push(CheckResult::failed("digest", "digest_mismatch", fault.to_string()));
            return Ok(evidence);
        }
    };
    evidence.checks.push(CheckResult::passed("digest", format!("the registry has the bytes of {digest}")));
    if !demands.signature && !demands.provenance {
        return Ok(evidence);
    }
    let keys = keys(demands, &mut evidence);
    let signers = signers(&keys, demands);
    for subject in subjects(repository, &manifest, &mut evidence).await? {
        let candidates = collect::of(repository, &subject).await?;
        if demands.signature {
            signature(&subject, &candidates, &signers, &mut evidence);
        }
        // An index is described by one provenance; its children are named in it or have none.
        if demands.provenance && subject == *digest {
            provenance(&subject, &candidates, &keys, demands, &mut evidence);
        }
    }
    Ok(evidence)
}

/// A key of the project together with the name evidence knows it by.
#[derive(Clone)]
struct Named {
    id: Uuid,
    key: PublicKey,
}

fn keys(demands: &TrustDemands, evidence: &mut Evidence) -> Vec<Named> {
    let read = demands
        .keys
        .iter()
        .filter_map(|(id, pem)| PublicKey::from_pem(pem).ok().map(|key| Named { id: *id, key }));
    let keys: Vec<Named> = read.collect();
    if keys.is_empty() {
        let why = "the project has no signing key, so nobody can vouch for its artifacts";
        evidence.checks.push(CheckResult::failed("signing_key", "no_signing_key", why));
    }
    keys
}

/// Where the intent named a key, the others may describe the artifact, and not sign it.
fn signers(keys: &[Named], demands: &TrustDemands) -> Vec<Named> {
    let is_named = |key: &&Named| demands.signing_key_id.is_none_or(|named| named == key.id);
    keys.iter().filter(is_named).cloned().collect()
}

/// Where it comes from, by the list of those it may come from.
fn source(named: &str, demands: &TrustDemands) -> CheckResult {
    if artifact::allows_source(&demands.sources, named) {
        return CheckResult::passed("source", format!("{named} is a source that policy allows"));
    }
    let why = format!("{named} is not among the sources that policy allows");
    CheckResult::failed("source", "source_not_allowed", why)
}

/// The manifest itself, and the children of an index: a node runs one of those. Each must be an image, whatever the index
/// says of it: what lies below it would be run without a look.
async fn subjects(
    repository: &Repository,
    manifest: &Manifest,
    evidence: &mut Evidence,
) -> Result<Vec<Digest>, RegistryFault> {
    let mut subjects = vec![manifest.digest.clone()];
    let children = children(&manifest.bytes).unwrap_or_default();
    if children.len() > MOST_CHILDREN {
        let why = format!("the index names {} manifests, and {MOST_CHILDREN} are looked at", children.len());
        evidence.checks.push(CheckResult::failed("index", "too_many_manifests", why));
        return Ok(subjects);
    }
    for child in children {
        let wrong = match repository.manifest(child.as_str()).await {
            Ok(found) => artifact::check_child(&child, &found.bytes).err().map(|why| ("nested_index", why)),
            Err(fault) if fault.is_verdict() => Some(("missing_manifest", fault.to_string())),
            Err(fault) => return Err(fault),
        };
        if let Some((code, why)) = wrong {
            evidence.checks.push(CheckResult::failed("index", code, format!("the index {why}")));
        }
        subjects.push(child);
    }
    Ok(subjects)
}

fn children(manifest: &[u8]) -> Option<Vec<Digest>> {
    #[derive(Deserialize)]
    struct Index {
        manifests: Vec<Child>,
    }
    #[derive(Deserialize)]
    struct Child {
        digest: Digest,
    }
    let index: Index = serde_json::from_slice(manifest).ok()?;
    Some(index.manifests.into_iter().map(|child| child.digest).collect())
}

/// One good signature is enough; without any, the best reason why none is good.
fn signature(subject: &Digest, candidates: &Candidates, signers: &[Named], evidence: &mut Evidence) {
    let mut worst = ("unsigned", format!("no signature of {subject} is in the registry"));
    for candidate in &candidates.simple {
        match simple_signing::verify(candidate, subject, signers) {
            Ok(key) => {
                let payload = String::from_utf8_lossy(&candidate.payload).into_owned();
                let form = "cosign_simple_signing";
                return accept(subject, form, key, &candidate.manifest, payload, evidence);
            }
            Err(why) => worst = why,
        }
    }
    for candidate in &candidates.bundles {
        match dsse::signed_statement(&candidate.envelope, subject, signers) {
            Ok((key, statement)) if statement.is_signature() => {
                let payload = candidate.envelope.payload.clone();
                return accept(subject, "sigstore_bundle", key, &candidate.manifest, payload, evidence);
            }
            Ok(_) => {}
            Err(why) => worst = why,
        }
    }
    evidence.checks.push(CheckResult::failed("signature", worst.0, worst.1));
}

fn accept(
    subject: &Digest,
    form: &str,
    key: Uuid,
    manifest: &Digest,
    payload: String,
    evidence: &mut Evidence,
) {
    evidence.checks.push(CheckResult::passed("signature", format!("{subject} is signed by key {key}")));
    evidence.signatures.push(SignatureEvidence {
        subject: subject.clone(),
        form: form.to_owned(),
        key_id: key,
        manifest_digest: Some(manifest.clone()),
        payload,
    });
}

fn provenance(
    subject: &Digest,
    candidates: &Candidates,
    keys: &[Named],
    demands: &TrustDemands,
    evidence: &mut Evidence,
) {
    let mut worst = ("no_provenance", format!("no provenance of {subject} is in the registry"));
    for candidate in candidates.attestations.iter().chain(&candidates.bundles) {
        match built(&candidate.envelope, subject, keys, demands) {
            Ok(Some(found)) => {
                return described(subject, Some(candidate.manifest.clone()), found, evidence);
            }
            Ok(None) => {}
            Err(why) => worst = why,
        }
    }
    evidence.checks.push(CheckResult::failed("provenance", worst.0, worst.1));
}

/// Who built it, as a key of the project says; none where the envelope is no provenance.
fn built(
    envelope: &Envelope,
    subject: &Digest,
    keys: &[Named],
    demands: &TrustDemands,
) -> Result<Option<(Uuid, Statement)>, Wrong> {
    let (key, statement) = dsse::signed_statement(envelope, subject, keys)?;
    match statement.builder() {
        Some(builder) if !demands.allows_builder(builder) => {
            let why = format!("{subject} was built by {builder}, which is not on the allow-list");
            Err(("builder_not_allowed", why))
        }
        Some(_) => Ok(Some((key, statement))),
        None => Ok(None),
    }
}

fn described(
    subject: &Digest,
    manifest_digest: Option<Digest>,
    (key_id, statement): (Uuid, Statement),
    evidence: &mut Evidence,
) {
    let builder_id = statement.builder().unwrap_or_default().to_owned();
    let told = format!("{subject} was built by {builder_id}");
    evidence.checks.push(CheckResult::passed("provenance", told));
    let predicate_type = statement.predicate_type;
    evidence.provenance = Some(ProvenanceEvidence { key_id, manifest_digest, predicate_type, builder_id });
}

/// A machine's word for what is wrong, and a person's.
type Wrong = (&'static str, String);

#[cfg(test)]
mod tests;
