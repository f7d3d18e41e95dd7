//! Who is in a canary, and when it has failed.
//!
//! A project's place is a stable hash of version and project: growing the percentage only ever adds projects, and no
//! project flips back and forth. Different versions begin with different projects, so nobody is always first.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

/// The projects that may deploy a version before everybody may.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Canary {
    /// Out of a hundred projects.
    #[schema(minimum = 0, maximum = 100)]
    pub percent: u8,
    /// Projects that are in whatever the percentage.
    pub project_ids: Vec<Uuid>,
}

impl Canary {
    pub fn includes(&self, version: Uuid, project: Uuid) -> bool {
        self.project_ids.contains(&project) || place(version, project) < self.percent
    }
}

/// From 0 to 99, evenly spread over projects. It must never change: running canaries depend on it.
fn place(version: Uuid, project: Uuid) -> u8 {
    let digest = Sha256::new().chain_update(version.as_bytes()).chain_update(project.as_bytes()).finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    (number % 100) as u8
}

/// How the deployments of a canary went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Samples {
    pub succeeded: u32,
    pub failed: u32,
}

impl Samples {
    pub fn all(self) -> u32 {
        self.succeeded.saturating_add(self.failed)
    }

    pub fn failure_rate(self) -> f64 {
        if self.all() == 0 { 0.0 } else { f64::from(self.failed) / f64::from(self.all()) }
    }
}

/// What policy says about canaries.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Tolerance {
    pub max_failure_rate: f64,
    pub min_samples: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing can be said yet.
    TooFew,
    Healthy,
    /// More failed than is tolerated: the canary goes back.
    Failed,
}

/// A rate at the bound is still tolerated.
pub fn judge(samples: Samples, tolerance: Tolerance) -> Verdict {
    if samples.all() < tolerance.min_samples {
        Verdict::TooFew
    } else if samples.failure_rate() > tolerance.max_failure_rate {
        Verdict::Failed
    } else {
        Verdict::Healthy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id() -> impl Strategy<Value = Uuid> {
        any::<u128>().prop_map(Uuid::from_u128)
    }

    proptest! {
        #[test]
        fn a_project_stays_in_as_the_percentage_grows(version in id(), project in id(), from in 0_u8..=100, to in 0_u8..=100) {
            let (less, more) = (from.min(to), from.max(to));
            let canary = |percent| Canary { percent, project_ids: vec![] };
            prop_assert!(!canary(less).includes(version, project) || canary(more).includes(version, project));
        }

        #[test]
        fn nobody_is_in_at_none_and_everybody_at_a_hundred(version in id(), project in id()) {
            let (all, listed) = (Canary { percent: 100, project_ids: vec![] }, Canary { percent: 0, project_ids: vec![project] });
            prop_assert!(!Canary::default().includes(version, project));
            prop_assert!(all.includes(version, project) && listed.includes(version, project));
        }

        #[test]
        fn more_failures_never_heal(succeeded in 0_u32..500, failed in 0_u32..500, bound in 0.0_f64..=1.0) {
            let tolerance = Tolerance { max_failure_rate: bound, min_samples: 20 };
            let verdict = |failed| judge(Samples { succeeded, failed }, tolerance);
            prop_assert!(verdict(failed) != Verdict::Failed || verdict(failed + 1) == Verdict::Failed);
        }
    }

    #[test]
    fn the_hash_is_the_one_that_running_canaries_were_selected_by() {
        let version = Uuid::from_u128(0x0197_0000_0000_7000_8000_0000_0000_0001);
        let places: Vec<u8> = (0..8).map(|n| place(version, Uuid::from_u128(n))).collect();
        assert_eq!(places, PLACES);
    }

    const PLACES: [u8; 8] = [89, 29, 63, 94, 80, 33, 25, 56];

    #[test]
    fn the_percentage_is_about_kept() {
        let version = Uuid::from_u128(7);
        let canary = Canary { percent: 10, project_ids: vec![] };
        let inside = (0..10_000).filter(|n| canary.includes(version, Uuid::from_u128(*n))).count();
        assert!((850..1150).contains(&inside), "{inside} of 10,000");
    }

    #[test]
    fn a_canary_fails_past_its_bound_and_not_before_enough_is_known() {
        let tolerance = Tolerance { max_failure_rate: 0.1, min_samples: 20 };
        let verdict = |succeeded, failed| judge(Samples { succeeded, failed }, tolerance);
        assert_eq!(verdict(0, 19), Verdict::TooFew);
        assert_eq!(verdict(18, 2), Verdict::Healthy);
        assert_eq!(verdict(17, 3), Verdict::Failed);
        assert_eq!(judge(Samples::default(), Tolerance { min_samples: 0, ..tolerance }), Verdict::Healthy);
    }
}
