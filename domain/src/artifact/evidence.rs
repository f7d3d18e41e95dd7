//! What a verification asks and what it found. Evidence is kept with the artifact, so that it can be read when the tag that
//! led to a signature has long been moved.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Digest;

/// What policy requires of an artifact, and by whom it may be vouched for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustDemands {
    pub signature: bool,
    pub provenance: bool,
    /// Public keys of the project, in PEM form, that vouch today.
    pub keys: Vec<(Uuid, String)>,
    /// Where the intent named one, only this key will do.
    pub signing_key_id: Option<Uuid>,
    /// Builders that may have built it; none means any that a key of the project vouches for.
    pub builders: Vec<String>,
    /// Where it may come from; see [`super::allows_source`].
    pub sources: Vec<String>,
}

impl TrustDemands {
    pub fn allows_builder(&self, builder: &str) -> bool {
        self.builders.is_empty() || self.builders.iter().any(|allowed| allowed == builder)
    }

    /// Whether a check that failed counts against trust, or was only made because somebody else wants to know.
    fn requires(&self, check: &CheckResult) -> bool {
        match check.check.as_str() {
            "signature" => self.signature,
            "provenance" => self.provenance,
            "signing_key" | "index" => self.signature || self.provenance,
            _ => true,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Evidence {
    pub checks: Vec<CheckResult>,
    #[serde(default)]
    pub signatures: Vec<SignatureEvidence>,
    #[serde(default)]
    pub provenance: Option<ProvenanceEvidence>,
}

impl Evidence {
    /// Every check passed, and there was at least one.
    pub fn is_good(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.passed)
    }

    /// What trust is judged by, and apart from it what failed and policy does not require.
    pub fn required_by(mut self, demands: &TrustDemands) -> (Evidence, Vec<CheckResult>) {
        let counts = |check: &CheckResult| check.passed || demands.requires(check);
        let (required, missing) = self.checks.into_iter().partition(counts);
        self.checks = required;
        (self, missing)
    }

    pub fn failures(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.passed)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CheckResult {
    /// `digest`, `source`, `signing_key`, `index`, `signature` or `provenance`.
    pub check: String,
    pub passed: bool,
    /// What is wrong, as one word for programs; `ok` where nothing is.
    pub code: String,
    pub message: String,
}

impl CheckResult {
    pub fn passed(check: &str, message: impl Into<String>) -> CheckResult {
        CheckResult { check: check.to_owned(), passed: true, code: "ok".to_owned(), message: message.into() }
    }

    /// Whether it says something of this. Without a key, or with too many children, nothing can be said of either.
    pub fn is_of(&self, what: &str) -> bool {
        [what, "signing_key", "index"].contains(&self.check.as_str())
    }

    pub fn failed(check: &str, code: &str, message: impl Into<String>) -> CheckResult {
        CheckResult { check: check.to_owned(), passed: false, code: code.to_owned(), message: message.into() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignatureEvidence {
    #[schema(value_type = String)]
    pub subject: Digest,
    /// `cosign_simple_signing` or `sigstore_bundle` of an image, `cosign_blob` of a blob.
    pub form: String,
    pub key_id: Uuid,
    /// Of the manifest that holds the signature; a blob's comes with the blob.
    #[schema(value_type = Option<String>)]
    pub manifest_digest: Option<Digest>,
    /// What was signed; of a blob, whose bytes are that, the signature as it was sent.
    pub payload: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProvenanceEvidence {
    pub key_id: Uuid,
    /// Of the manifest that holds it; a blob's comes with the blob.
    #[schema(value_type = Option<String>)]
    pub manifest_digest: Option<Digest>,
    pub predicate_type: String,
    pub builder_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_good_only_if_something_was_checked_and_nothing_failed() {
        let (good, bad) =
            (CheckResult::passed("digest", "fits"), CheckResult::failed("signature", "unsigned", "none"));
        let of = |checks: Vec<CheckResult>| Evidence { checks, ..Evidence::default() };
        assert!(!of(vec![]).is_good());
        assert!(of(vec![good.clone()]).is_good());
        let mixed = of(vec![good, bad]);
        assert!(!mixed.is_good());
        assert_eq!(mixed.failures().map(|check| check.code.as_str()).collect::<Vec<_>>(), ["unsigned"]);
    }

    #[test]
    fn what_policy_does_not_require_does_not_count_against_trust() {
        let checks = vec![
            CheckResult::passed("digest", "fits"),
            CheckResult::failed("signing_key", "no_signing_key", "none"),
            CheckResult::failed("signature", "unsigned", "none"),
            CheckResult::failed("provenance", "no_provenance", "none"),
        ];
        let found = Evidence { checks, ..Evidence::default() };
        let (judged, missing) = found.clone().required_by(&TrustDemands::default());
        assert!(judged.is_good() && missing.len() == 3);
        let demands = TrustDemands { signature: true, ..TrustDemands::default() };
        let (judged, missing) = found.required_by(&demands);
        assert_eq!((judged.failures().count(), missing.len()), (2, 1));
    }

    #[test]
    fn an_empty_list_of_builders_allows_all_and_any_other_only_its_own() {
        let mut demands = TrustDemands::default();
        assert!(demands.allows_builder("https://ci.example"));
        demands.builders = vec!["https://ci.example".to_owned()];
        assert!(
            demands.allows_builder("https://ci.example")
                && !demands.allows_builder("https://ci.example.evil")
        );
    }
}
