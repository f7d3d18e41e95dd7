//! Why an instance is not what it should be: a closed list, never free text. Each says whether the platform goes on by
//! itself or a person must act.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusReason {
    ImagePullFailed,
    DigestMismatch,
    ReadinessTimeout,
    NodeUnreachable,
    PortUnavailable,
    InsufficientCapacity,
    EntitlementRevoked,
    ArtifactRevoked,
    CredentialMissing,
    TaskRejected,
    WorkerLost,
    AllocationReleased,
    Internal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// Nobody need act.
    Waiting,
    /// A person must.
    Blocked,
}

impl StatusReason {
    pub const ALL: [StatusReason; 13] = [
        StatusReason::ImagePullFailed,
        StatusReason::DigestMismatch,
        StatusReason::ReadinessTimeout,
        StatusReason::NodeUnreachable,
        StatusReason::PortUnavailable,
        StatusReason::InsufficientCapacity,
        StatusReason::EntitlementRevoked,
        StatusReason::ArtifactRevoked,
        StatusReason::CredentialMissing,
        StatusReason::TaskRejected,
        StatusReason::WorkerLost,
        StatusReason::AllocationReleased,
        StatusReason::Internal,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            StatusReason::ImagePullFailed => "image_pull_failed",
            StatusReason::DigestMismatch => "digest_mismatch",
            StatusReason::ReadinessTimeout => "readiness_timeout",
            StatusReason::NodeUnreachable => "node_unreachable",
            StatusReason::PortUnavailable => "port_unavailable",
            StatusReason::InsufficientCapacity => "insufficient_capacity",
            StatusReason::EntitlementRevoked => "entitlement_revoked",
            StatusReason::ArtifactRevoked => "artifact_revoked",
            StatusReason::CredentialMissing => "credential_missing",
            StatusReason::TaskRejected => "task_rejected",
            StatusReason::WorkerLost => "worker_lost",
            StatusReason::AllocationReleased => "allocation_released",
            StatusReason::Internal => "internal",
        }
    }

    /// A node or worker that went silent may come back by itself; everything else stays as it is until a person acts.
    pub const fn kind(self) -> ReasonKind {
        match self {
            StatusReason::NodeUnreachable | StatusReason::WorkerLost => ReasonKind::Waiting,
            _ => ReasonKind::Blocked,
        }
    }
}

impl StatusReason {
    /// Whether it speaks against the version that was deployed, and not against the place it was deployed to.
    pub const fn blames_version(self) -> bool {
        matches!(
            self,
            StatusReason::ImagePullFailed | StatusReason::DigestMismatch | StatusReason::ReadinessTimeout
        )
    }
}

impl fmt::Display for StatusReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for StatusReason {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<StatusReason, UnknownWord> {
        let known = StatusReason::ALL.into_iter().find(|reason| reason.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "a status reason"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_parse_back_and_are_listed_once() {
        let mut seen = std::collections::HashSet::new();
        for reason in StatusReason::ALL {
            assert!(seen.insert(reason.as_str()), "{reason} is listed twice");
            assert_eq!(reason.as_str().parse(), Ok(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn only_silence_passes_by_itself() {
        let waiting = StatusReason::ALL.into_iter().filter(|reason| reason.kind() == ReasonKind::Waiting);
        let expected = [StatusReason::NodeUnreachable, StatusReason::WorkerLost];
        assert_eq!(waiting.collect::<Vec<_>>(), expected);
    }
}
