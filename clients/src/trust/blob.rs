//! Whether a blob is to be trusted: its bytes are read and hashed again, and where policy asks for a signature or for where it
//! was built, what came with it must be of these bytes.

use domain::Digest;
use domain::artifact::{self, CheckResult, Evidence, SignatureEvidence, TrustDemands};

use super::dsse::Envelope;
use super::{Named, Wrong, built, described, detached, keys, signers, source};
use crate::blobs::{BlobFault, BlobName, Blobs};

/// What came with a blob and may vouch for it, as it was sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Vouchers<'a> {
    pub signature: Option<&'a str>,
    /// A DSSE envelope, alone or in a bundle.
    pub provenance: Option<&'a str>,
}

/// `Err` says that the store could not be asked, which is no verdict.
pub async fn examine_blob(
    blobs: &Blobs,
    name: &BlobName,
    digest: &Digest,
    vouchers: Vouchers<'_>,
    demands: &TrustDemands,
) -> Result<Evidence, BlobFault> {
    let mut evidence = Evidence::default();
    evidence.checks.push(source(&format!("{}{}", artifact::STORE, name.key), demands));
    evidence.checks.push(match blobs.check(name, digest).await {
        Ok(_) => CheckResult::passed("digest", format!("the store has the bytes of {digest}")),
        Err(fault @ (BlobFault::Absent | BlobFault::Mismatch { .. })) => {
            CheckResult::failed("digest", "digest_mismatch", fault.to_string())
        }
        Err(fault) => return Err(fault),
    });
    let asked = (demands.signature && vouchers.signature.is_some())
        || (demands.provenance && vouchers.provenance.is_some());
    let keys = if asked { keys(demands, &mut evidence) } else { Vec::new() };
    if demands.signature {
        signed(digest, vouchers.signature, &signers(&keys, demands), &mut evidence);
    }
    if demands.provenance {
        match provenance(digest, vouchers.provenance, &keys, demands) {
            Ok(found) => described(digest, None, found, &mut evidence),
            Err((code, why)) => evidence.checks.push(CheckResult::failed("provenance", code, why)),
        }
    }
    Ok(evidence)
}

fn provenance(
    digest: &Digest,
    text: Option<&str>,
    keys: &[Named],
    demands: &TrustDemands,
) -> Result<(uuid::Uuid, super::Statement), Wrong> {
    let none = || ("no_provenance", format!("no provenance of {digest} came with it"));
    let envelope = Envelope::read(text.ok_or_else(none)?.as_bytes());
    let unreadable = || ("bad_attestation", format!("the provenance of {digest} is no DSSE envelope"));
    built(&envelope.ok_or_else(unreadable)?, digest, keys, demands)?.ok_or_else(none)
}

fn signed(digest: &Digest, signature: Option<&str>, signers: &[Named], evidence: &mut Evidence) {
    let Some(signature) = signature else {
        let why = format!("no signature of {digest} came with it");
        return evidence.checks.push(CheckResult::failed("signature", "unsigned", why));
    };
    match detached::verify(signature, digest, signers) {
        Ok(key_id) => {
            let told = format!("{digest} is signed by key {key_id}");
            evidence.checks.push(CheckResult::passed("signature", told));
            evidence.signatures.push(SignatureEvidence {
                subject: digest.clone(),
                form: "cosign_blob".to_owned(),
                key_id,
                manifest_digest: None,
                payload: signature.to_owned(),
            });
        }
        Err((code, why)) => evidence.checks.push(CheckResult::failed("signature", code, why)),
    }
}
