//! What became of the last update, in a file beside the journal. It moves one way, `staged → trying → adopted | refused`, and
//! each move is on the disk before what follows from it; so whoever starts next knows where it stood, and the task that asked
//! for it is answered once.

use domain::{Digest, StatusReason};
use node_protocol::{Outcome, Output};
use serde::{Deserialize, Serialize};

use crate::home::{Home, HomeFault};

const UPDATE: &str = "update.json";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Update {
    /// The idempotency key of the task.
    pub(crate) key: String,
    pub(crate) version: String,
    pub(crate) program: Digest,
    pub(crate) stage: Stage,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The program is there, and is what the task says.
    Staged,
    /// It was started, and nobody has heard of it yet.
    Trying,
    /// It reported, and is the agent now.
    Adopted,
    /// It did not, and the one before it goes on.
    Refused { message: String },
}

impl Update {
    /// What the task is answered, once it is decided.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        match &self.stage {
            Stage::Staged | Stage::Trying => None,
            Stage::Adopted => {
                Some(Outcome::Succeeded { output: Output::Updated { version: self.version.clone() } })
            }
            Stage::Refused { message } => {
                Some(Outcome::Failed { reason: StatusReason::ReadinessTimeout, message: message.clone() })
            }
        }
    }

    pub(crate) fn now(self, stage: Stage) -> Update {
        Update { stage, ..self }
    }

    pub(crate) fn refused(self, what_happened: &str) -> Update {
        let message =
            format!("the agent of release {} was tried and given up: {what_happened}", self.version);
        self.now(Stage::Refused { message })
    }

    /// A trial whose watcher was killed. Which program is the agent is decided by the one file that says it; a trial that may
    /// have brought the machine down is not begun again.
    pub(crate) fn interrupted(self, current: Option<&Digest>) -> Update {
        if current == Some(&self.program) {
            return self.now(Stage::Adopted);
        }
        self.refused("its supervisor was killed before it had reported")
    }
}

impl Home {
    pub(crate) fn update(&self) -> Result<Option<Update>, HomeFault> {
        self.read_if_there(UPDATE)
    }

    pub(crate) fn keep_update(&self, update: &Update) -> Result<(), HomeFault> {
        self.write(UPDATE, &serde_json::to_vec_pretty(update).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trying() -> Update {
        let program = Digest::from_sha256([7; 32]);
        Update { key: "run/update/do".into(), version: "1.2.0".into(), program, stage: Stage::Trying }
    }

    #[test]
    fn a_record_reads_back_as_it_was_kept_and_is_none_before() {
        let folder = std::env::temp_dir().join(format!("gpuaas-update-{}", uuid::Uuid::now_v7()));
        let home = Home::at(&folder).unwrap();
        assert_eq!(home.update().unwrap(), None);
        for stage in [Stage::Staged, Stage::Trying, Stage::Adopted, Stage::Refused { message: "no".into() }] {
            let update = trying().now(stage);
            home.keep_update(&update).unwrap();
            assert_eq!(home.update().unwrap(), Some(update));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_what_is_decided_is_answered() {
        assert_eq!(trying().now(Stage::Staged).outcome(), None);
        assert_eq!(trying().outcome(), None);
        let updated = Outcome::Succeeded { output: Output::Updated { version: "1.2.0".into() } };
        assert_eq!(trying().now(Stage::Adopted).outcome(), Some(updated));
        let Some(Outcome::Failed { message, .. }) = trying().refused("it ended").outcome() else {
            panic!("a refused update fails its task");
        };
        assert!(message.contains("1.2.0") && message.ends_with("it ended"), "{message}");
    }

    #[test]
    fn an_interrupted_trial_is_what_the_current_program_says() {
        let other = Digest::from_sha256([8; 32]);
        assert_eq!(trying().interrupted(Some(&trying().program)).stage, Stage::Adopted);
        for current in [None, Some(&other)] {
            assert!(matches!(trying().interrupted(current).stage, Stage::Refused { .. }));
        }
    }
}
