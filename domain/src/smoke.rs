//! What became of a version's own tests on a fresh instance: a verdict for each request, or why none could be made.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// One request of the manifest's tests, as it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SmokeVerdict {
    /// The test's name in the manifest.
    pub name: String,
    pub passed: bool,
    /// The status that was answered, if anything answered.
    pub status: Option<u16>,
    /// What was wrong; of a verdict that nobody could give, why.
    pub message: Option<String>,
}

/// Kept with the run, and shown at the gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmokeEvidence {
    /// The instance that was made for the tests and is gone since.
    pub app_instance_id: Uuid,
    /// Why nothing could be asked.
    pub trouble: Option<String>,
    pub requests: Vec<SmokeVerdict>,
}

impl SmokeEvidence {
    /// Tests that nobody ran did not pass.
    pub fn passed(&self) -> bool {
        self.trouble.is_none() && !self.requests.is_empty() && self.requests.iter().all(|one| one.passed)
    }

    /// What went wrong: each request that failed, by its name.
    pub fn failures(&self) -> String {
        let failed = self.requests.iter().filter(|one| !one.passed).map(|one| {
            format!("`{}` {}", one.name, one.message.as_deref().unwrap_or("was not answered as expected"))
        });
        let all: Vec<String> = self.trouble.iter().cloned().chain(failed).collect();
        all.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(name: &str, message: Option<&str>) -> SmokeVerdict {
        let (name, message) = (name.to_owned(), message.map(str::to_owned));
        SmokeVerdict { name, passed: message.is_none(), status: Some(200), message }
    }

    #[test]
    fn only_tests_that_were_all_answered_well_passed() {
        let none = SmokeEvidence { app_instance_id: Uuid::nil(), trouble: None, requests: vec![] };
        assert!(!none.passed());
        let good = SmokeEvidence { requests: vec![verdict("up", None)], ..none.clone() };
        assert!(good.passed());
        let never = SmokeEvidence { trouble: Some("the image is gone".to_owned()), ..good };
        assert!(!never.passed());
        let requests =
            vec![verdict("up", None), verdict("greets", Some("answered 500 where 200 is expected"))];
        let bad = SmokeEvidence { requests, ..none };
        assert!(!bad.passed());
        assert_eq!(bad.failures(), "`greets` answered 500 where 200 is expected");
    }
}
