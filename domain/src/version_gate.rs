//! Gates: what must be true before a version moves. Which checks an action has is data, what each finds is data too:
//! people see which one is red and why, and the workflow that moves a version asks the same function.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::canary::{Samples, Tolerance, Verdict, judge};
use crate::smoke::SmokeEvidence;
use crate::version_status::VersionAction;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = VersionCheck)]
pub enum Check {
    /// The manifest passes today's validation.
    ManifestValid,
    /// Something is registered for every artifact that the manifest names, and not withdrawn since.
    ArtifactsRegistered,
    /// Every artifact passed the checks that policy requires, and is not withdrawn since.
    ArtifactsVerified,
    /// Every artifact reached a channel that active versions may use, and is not withdrawn since.
    ArtifactsPromoted,
    /// The manifest's own tests passed on a fresh instance.
    SmokePassed,
    /// The canary's deployments failed no more often than is tolerated.
    FailureRate,
    /// No instance uses the version, nor would one go back to it.
    NoReferences,
}

/// The checks of an action, in the order in which they are shown.
pub fn checks(action: VersionAction) -> &'static [Check] {
    use Check::*;
    match action {
        VersionAction::Stage => &[ManifestValid, ArtifactsRegistered],
        VersionAction::Canary => &[ManifestValid, ArtifactsVerified, SmokePassed],
        VersionAction::Publish => {
            &[ManifestValid, ArtifactsVerified, ArtifactsPromoted, SmokePassed, FailureRate]
        }
        VersionAction::Rollback | VersionAction::Deprecate => &[],
        VersionAction::Retire => &[NoReferences],
    }
}

/// What is known of a version when its gates are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// What today's validation says of its manifest.
    pub manifest_problems: Vec<String>,
    pub artifacts: Vec<NeededArtifact>,
    /// Channels that an active version's artifacts may come from.
    pub active_channels: Vec<String>,
    /// The names of the manifest's own tests.
    pub smoke_tests: Vec<String>,
    pub last_smoke: Option<SmokeRun>,
    /// Whether the owning project has an active allocation, on which they could run.
    pub can_smoke: bool,
    pub canary: Samples,
    pub tolerance: Tolerance,
    pub references: Vec<Reference>,
}

/// One artifact that the manifest names, and what would be deployed for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededArtifact {
    pub name: String,
    pub variant: Option<String>,
    /// The frozen one; before the version is frozen, the one that would be.
    pub found: Option<FoundArtifact>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundArtifact {
    pub artifact_id: Uuid,
    pub digest: String,
    pub lifecycle_state: String,
    pub trust_state: String,
    pub channels: Vec<String>,
}

impl FoundArtifact {
    /// New instances may use it, as far as its life goes.
    fn is_in_use(&self) -> bool {
        matches!(self.lifecycle_state.as_str(), "published" | "promoted")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SmokeRun {
    pub run_id: Uuid,
    pub passed: bool,
    /// What was asked and answered.
    pub evidence: Value,
}

/// An instance that uses a version, or would go back to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionReference)]
pub struct Reference {
    pub app_instance_id: Uuid,
    pub project_id: Uuid,
    pub display_name: String,
    pub status: String,
}

/// One check and what it found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionGate)]
pub struct Gate {
    pub check: Check,
    pub light: Light,
    /// One sentence.
    pub message: String,
    /// What the light was judged by.
    pub evidence: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Light {
    Green,
    Red,
    /// The check has nothing to judge here, and says why.
    NotApplicable,
}

/// Every gate of the action, judged.
pub fn gates(action: VersionAction, facts: &Facts) -> Vec<Gate> {
    checks(action).iter().map(|check| check.judge(facts)).collect()
}

/// The names of those that are red.
pub fn red(gates: &[Gate]) -> Vec<&Gate> {
    gates.iter().filter(|gate| gate.light == Light::Red).collect()
}

impl Check {
    fn judge(self, facts: &Facts) -> Gate {
        match self {
            Check::ManifestValid => manifest_valid(facts),
            Check::ArtifactsRegistered => {
                let bad = lacking(facts, FoundArtifact::is_in_use);
                of_artifacts(self, facts, bad, "is registered", "nothing is registered for")
            }
            Check::ArtifactsVerified => {
                let bad = lacking(facts, |found| found.is_in_use() && found.trust_state == "verified");
                of_artifacts(self, facts, bad, "is verified", "not verified:")
            }
            Check::ArtifactsPromoted => {
                let open = |channel: &String| facts.active_channels.contains(channel);
                let bad = lacking(facts, |found| found.is_in_use() && found.channels.iter().any(open));
                of_artifacts(self, facts, bad, "is promoted", "not promoted to a channel of active versions:")
            }
            Check::SmokePassed => smoke_passed(facts),
            Check::FailureRate => failure_rate(facts),
            Check::NoReferences => no_references(facts),
        }
    }

    fn finds(self, light: Light, message: impl Into<String>, evidence: Value) -> Gate {
        Gate { check: self, light, message: message.into(), evidence }
    }
}

fn manifest_valid(facts: &Facts) -> Gate {
    let check = Check::ManifestValid;
    match facts.manifest_problems.len() {
        0 => check.finds(Light::Green, "The manifest is valid.", json!({})),
        count => {
            let message = match count {
                1 => "The manifest has a problem.".to_owned(),
                _ => format!("The manifest has {count} problems."),
            };
            check.finds(Light::Red, message, json!({ "problems": facts.manifest_problems }))
        }
    }
}

/// The needed artifacts for which nothing was found that passes.
fn lacking(facts: &Facts, passes: impl Fn(&FoundArtifact) -> bool) -> Vec<String> {
    let bad = facts.artifacts.iter().filter(|needed| !needed.found.as_ref().is_some_and(&passes));
    bad.map(|needed| match &needed.variant {
        Some(variant) => format!("{} ({variant})", needed.name),
        None => needed.name.clone(),
    })
    .collect()
}

fn of_artifacts(check: Check, facts: &Facts, bad: Vec<String>, good: &str, wrong: &str) -> Gate {
    let evidence = json!({ "artifacts": facts.artifacts, "active_channels": facts.active_channels });
    if facts.artifacts.is_empty() {
        return check.finds(Light::NotApplicable, "The manifest names no artifacts.", evidence);
    }
    if bad.is_empty() {
        return check.finds(Light::Green, format!("Every artifact {good}."), evidence);
    }
    check.finds(
        Light::Red,
        format!("{}{} {}.", wrong[..1].to_uppercase(), &wrong[1..], bad.join(", ")),
        evidence,
    )
}

fn smoke_passed(facts: &Facts) -> Gate {
    let check = Check::SmokePassed;
    let evidence = json!({ "tests": facts.smoke_tests, "last_run": facts.last_smoke });
    let (light, message) = match &facts.last_smoke {
        _ if facts.smoke_tests.is_empty() => (Light::NotApplicable, NO_TESTS.to_owned()),
        Some(run) if run.passed => (Light::Green, "The manifest's tests passed.".to_owned()),
        _ if !facts.can_smoke => (Light::Red, NOWHERE_TO_RUN.to_owned()),
        None => (Light::Red, NOT_YET_RUN.to_owned()),
        Some(run) => (Light::Red, format!("The manifest's tests failed{}.", run.failures())),
    };
    check.finds(light, message, evidence)
}

const NO_TESTS: &str = "The manifest has no tests of its own.";
const NOT_YET_RUN: &str = "The manifest's tests have not run on this version yet; a canary begins with them.";
const NOWHERE_TO_RUN: &str = "The manifest's tests have not passed, and there is no active allocation of the owning project to smoke it on.";

impl SmokeRun {
    fn failures(&self) -> String {
        let evidence: Option<SmokeEvidence> = serde_json::from_value(self.evidence.clone()).ok();
        evidence.map(|evidence| format!(": {}", evidence.failures())).unwrap_or_default()
    }
}

fn failure_rate(facts: &Facts) -> Gate {
    let check = Check::FailureRate;
    let (samples, Tolerance { max_failure_rate, min_samples }) = (facts.canary, facts.tolerance);
    let evidence = json!({
        "succeeded": samples.succeeded, "failed": samples.failed, "failure_rate": samples.failure_rate(),
        "max_failure_rate": max_failure_rate, "min_samples": min_samples,
    });
    let counted = format!("{} of {} deployments of the canary failed", samples.failed, samples.all());
    match judge(samples, facts.tolerance) {
        // Not even if all the missing ones succeeded would the canary pass.
        Verdict::TooFew if f64::from(samples.failed) > max_failure_rate * f64::from(min_samples) => {
            let message = format!("{counted}, more than is tolerated of {min_samples}.");
            check.finds(Light::Red, message, evidence)
        }
        Verdict::TooFew => {
            let message = format!("{counted}; fewer than {min_samples} tell nothing.");
            check.finds(Light::NotApplicable, message, evidence)
        }
        Verdict::Healthy => check.finds(Light::Green, format!("{counted}."), evidence),
        Verdict::Failed => check.finds(Light::Red, format!("{counted}, more than is tolerated."), evidence),
    }
}

fn no_references(facts: &Facts) -> Gate {
    let check = Check::NoReferences;
    let evidence = json!({ "references": facts.references });
    match facts.references.len() {
        0 => check.finds(Light::Green, "No instance uses the version.", evidence),
        1 => check.finds(Light::Red, "An instance uses the version.", evidence),
        n => check.finds(Light::Red, format!("{n} instances use the version."), evidence),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            manifest_problems: vec![],
            artifacts: vec![needed("verified", &["prod"])],
            active_channels: vec!["prod".to_owned()],
            smoke_tests: vec![],
            last_smoke: None,
            can_smoke: true,
            canary: Samples::default(),
            tolerance: Tolerance { max_failure_rate: 0.1, min_samples: 20 },
            references: vec![],
        }
    }

    fn needed(trust_state: &str, channels: &[&str]) -> NeededArtifact {
        let found = FoundArtifact {
            artifact_id: Uuid::nil(),
            digest: "sha256:0".to_owned(),
            lifecycle_state: "promoted".to_owned(),
            trust_state: trust_state.to_owned(),
            channels: channels.iter().map(|&channel| channel.to_owned()).collect(),
        };
        NeededArtifact { name: "runtime".to_owned(), variant: Some("cpu".to_owned()), found: Some(found) }
    }

    fn light(check: Check, facts: &Facts) -> (Light, String) {
        let gate = check.judge(facts);
        (gate.light, gate.message)
    }

    #[test]
    fn an_artifact_that_was_withdrawn_opens_no_gate() {
        let mut facts = facts();
        for found in facts.artifacts.iter_mut().filter_map(|needed| needed.found.as_mut()) {
            found.lifecycle_state = "deprecated".to_owned();
        }
        for check in [Check::ArtifactsRegistered, Check::ArtifactsVerified, Check::ArtifactsPromoted] {
            assert_eq!(light(check, &facts).0, Light::Red, "{check:?}");
        }
    }

    #[test]
    fn an_artifact_must_be_there_then_verified_then_promoted() {
        let nothing = NeededArtifact { found: None, ..needed("", &[]) };
        for (artifact, registered, verified, promoted) in [
            (nothing, Light::Red, Light::Red, Light::Red),
            (needed("unverified", &[]), Light::Green, Light::Red, Light::Red),
            (needed("verified", &["dev"]), Light::Green, Light::Green, Light::Red),
            (needed("revoked", &["prod"]), Light::Green, Light::Red, Light::Green),
            (needed("verified", &["dev", "prod"]), Light::Green, Light::Green, Light::Green),
        ] {
            let facts = Facts { artifacts: vec![artifact.clone()], ..facts() };
            assert_eq!(light(Check::ArtifactsRegistered, &facts).0, registered, "{artifact:?}");
            assert_eq!(light(Check::ArtifactsVerified, &facts).0, verified, "{artifact:?}");
            assert_eq!(light(Check::ArtifactsPromoted, &facts).0, promoted, "{artifact:?}");
        }
        let missing = Facts { artifacts: vec![NeededArtifact { found: None, ..needed("", &[]) }], ..facts() };
        let said = light(Check::ArtifactsRegistered, &missing).1;
        assert_eq!(said, "Nothing is registered for runtime (cpu).");
    }

    #[test]
    fn tests_that_never_ran_have_not_passed() {
        let wanted = Facts { smoke_tests: vec!["models are listed".to_owned()], ..facts() };
        let ran = |passed| Facts {
            last_smoke: Some(SmokeRun { run_id: Uuid::nil(), passed, evidence: json!({}) }),
            ..wanted.clone()
        };
        assert_eq!(light(Check::SmokePassed, &facts()).0, Light::NotApplicable);
        assert_eq!(light(Check::SmokePassed, &wanted).0, Light::Red);
        assert_eq!(light(Check::SmokePassed, &ran(false)).0, Light::Red);
        assert_eq!(light(Check::SmokePassed, &ran(true)).0, Light::Green);
        let homeless = Facts { can_smoke: false, ..wanted.clone() };
        let (red, said) = light(Check::SmokePassed, &homeless);
        assert_eq!(red, Light::Red);
        assert!(said.contains("no active allocation of the owning project to smoke it on"), "{said}");
    }

    #[test]
    fn a_smoke_gate_names_the_request_that_failed() {
        let failed = json!({ "app_instance_id": Uuid::nil(), "trouble": null, "requests": [
            { "name": "it is healthy", "passed": true, "status": 200, "message": null },
            { "name": "the page greets", "passed": false, "status": 404, "message": "answered 404 where 200 is expected" },
        ]});
        let last_smoke = Some(SmokeRun { run_id: Uuid::nil(), passed: false, evidence: failed });
        let facts = Facts { smoke_tests: vec!["it is healthy".to_owned()], last_smoke, ..facts() };
        let said = light(Check::SmokePassed, &facts).1;
        assert_eq!(
            said,
            "The manifest's tests failed: `the page greets` answered 404 where 200 is expected."
        );
    }

    #[test]
    fn a_check_without_evidence_is_not_green() {
        let few = Facts { canary: Samples { succeeded: 3, failed: 2 }, ..facts() };
        let (found, said) = light(Check::FailureRate, &few);
        assert_eq!(found, Light::NotApplicable);
        assert_eq!(said, "2 of 5 deployments of the canary failed; fewer than 20 tell nothing.");
        let hopeless = Facts { canary: Samples { succeeded: 0, failed: 3 }, ..facts() };
        let (found, said) = light(Check::FailureRate, &hopeless);
        assert_eq!(found, Light::Red, "what the missing ones could not mend is known already");
        assert_eq!(said, "3 of 3 deployments of the canary failed, more than is tolerated of 20.");
        let bad = Facts { canary: Samples { succeeded: 17, failed: 3 }, ..facts() };
        assert_eq!(red(&gates(VersionAction::Publish, &bad))[0].check, Check::FailureRate);
    }

    #[test]
    fn problems_are_counted_as_people_count() {
        let said = |count| {
            let problems = vec!["/version is missing".to_owned(); count];
            light(Check::ManifestValid, &Facts { manifest_problems: problems, ..facts() }).1
        };
        assert_eq!(said(0), "The manifest is valid.");
        assert_eq!(said(1), "The manifest has a problem.");
        assert_eq!(said(2), "The manifest has 2 problems.");
    }

    #[test]
    fn whoever_refers_to_a_version_is_listed() {
        let reference = Reference {
            app_instance_id: Uuid::from_u128(7),
            project_id: Uuid::nil(),
            display_name: "notebook".to_owned(),
            status: "running".to_owned(),
        };
        let used = Facts { references: vec![reference], ..facts() };
        let gate = &gates(VersionAction::Retire, &used)[0];
        assert_eq!(gate.light, Light::Red);
        assert_eq!(gate.evidence["references"][0]["app_instance_id"], json!(Uuid::from_u128(7)));
    }
}
