//! Whether a blob is to be trusted: its bytes are read and hashed again. Blobs carry no signatures, so where policy asks for
//! one they are not trusted.

use domain::Digest;
use domain::artifact::{CheckResult, Evidence, TrustDemands};

use crate::blobs::{BlobFault, BlobName, Blobs};

/// `Err` says that the store could not be asked, which is no verdict.
pub async fn examine_blob(
    blobs: &Blobs,
    name: &BlobName,
    digest: &Digest,
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
        evidence.checks.push(CheckResult::failed("signature", "unsigned", "a blob has no signature"));
    }
    if demands.provenance {
        evidence.checks.push(CheckResult::failed("provenance", "no_provenance", "a blob has no provenance"));
    }
    Ok(evidence)
}
