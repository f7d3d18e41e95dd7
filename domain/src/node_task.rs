//! The states of a task for a node. A task is handed out as often as its lease runs out, and finished once.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    Queued,
    /// A node works on it, or did until its lease ran out.
    HandedOut,
    Succeeded,
    Failed,
    /// The node would not do it: unknown, forged, expired or fenced off.
    Refused,
    /// The run that wanted it turned back before any node took it.
    Withdrawn,
}

impl TaskStatus {
    pub const ALL: [TaskStatus; 6] = [
        TaskStatus::Queued,
        TaskStatus::HandedOut,
        TaskStatus::Succeeded,
        TaskStatus::Failed,
        TaskStatus::Refused,
        TaskStatus::Withdrawn,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            TaskStatus::Queued => "queued",
            TaskStatus::HandedOut => "handed_out",
            TaskStatus::Succeeded => "succeeded",
            TaskStatus::Failed => "failed",
            TaskStatus::Refused => "refused",
            TaskStatus::Withdrawn => "withdrawn",
        }
    }

    /// A task that was handed out once cannot be withdrawn: the node may have done it already.
    pub const fn next(self) -> &'static [TaskStatus] {
        match self {
            TaskStatus::Queued => &[TaskStatus::HandedOut, TaskStatus::Withdrawn],
            TaskStatus::HandedOut => {
                &[TaskStatus::HandedOut, TaskStatus::Succeeded, TaskStatus::Failed, TaskStatus::Refused]
            }
            TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Refused | TaskStatus::Withdrawn => &[],
        }
    }

    pub fn may_become(self, next: TaskStatus) -> bool {
        self.next().contains(&next)
    }

    pub const fn is_finished(self) -> bool {
        self.next().is_empty()
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TaskStatus {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<TaskStatus, UnknownWord> {
        let known = TaskStatus::ALL.into_iter().find(|status| status.as_str() == word);
        known.ok_or_else(|| UnknownWord::new(word, "a task's status"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_may_have_begun_is_never_withdrawn() {
        let before: Vec<_> =
            TaskStatus::ALL.into_iter().filter(|s| s.may_become(TaskStatus::Withdrawn)).collect();
        assert_eq!(before, [TaskStatus::Queued]);
    }

    #[test]
    fn a_finished_task_stays_as_it_is() {
        for status in [TaskStatus::Succeeded, TaskStatus::Failed, TaskStatus::Refused, TaskStatus::Withdrawn]
        {
            assert!(status.is_finished() && TaskStatus::ALL.into_iter().all(|next| !status.may_become(next)));
        }
    }

    #[test]
    fn words_parse_back() {
        for status in TaskStatus::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
    }
}
