//! Whether a blob is to be trusted: its bytes are read and hashed again, and where policy asks for a signature, the one that
//! came with it must be of these bytes. Nothing describes where a blob was built, so where policy asks for that it is not
//! trusted.

use domain::Digest;
use domain::artifact::{CheckResult, Evidence, SignatureEvidence, TrustDemands};

use super::{detached, keys, signers};
use crate::blobs::{BlobFault, BlobName, Blobs};

/// `Err` says that the store could not be asked, which is no verdict.
pub async fn examine_blob(
    blobs: &Blobs,
    name: &BlobName,
    digest: &Digest,
    signature: Option<&str>,
    demands: &TrustDemands,
) -> Result<Evidence, BlobFault> {
    let mut evidence = Evidence::default();
    evidence.checks.push(match blobs.check(name, digest).await {
        Ok(_) => CheckResult::passed("digest", format!("the store has the bytes of {digest}")),
        Err(fault @ (BlobFault::Absent | BlobFault::Mismatch { .. })) => {
            CheckResult::failed("digest", "digest_mismatch", fault.to_string())
        }
        Err(fault) => return Err(fault),
    });
    if demands.signature {
        signed(digest, signature, demands, &mut evidence);
    }
    if demands.provenance {
        evidence.checks.push(CheckResult::failed("provenance", "no_provenance", "a blob has no provenance"));
    }
    Ok(evidence)
}

fn signed(digest: &Digest, signature: Option<&str>, demands: &TrustDemands, evidence: &mut Evidence) {
    let Some(signature) = signature else {
        let why = format!("no signature of {digest} came with it");
        return evidence.checks.push(CheckResult::failed("signature", "unsigned", why));
    };
    let keys = keys(demands, evidence);
    match detached::verify(signature, digest, &signers(&keys, demands)) {
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
