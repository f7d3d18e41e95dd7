//! What the journal's lines come to, and the judgement of a task by it. Pure: the file is `journal.rs`'s.

use std::collections::{BTreeMap, HashMap, HashSet};

use node_protocol::{Envelope, Generations, Outcome, Refusal};
use uuid::Uuid;

use super::{Entry, Verdict};

/// So many tasks and so many removed instances are remembered. Of older ones the tasks have long been told, and nothing that is
/// signed for them is in time any more.
pub(super) const REMEMBERED: usize = 10_000;

#[derive(Default)]
pub(super) struct Memory {
    tasks: HashMap<String, Known>,
    /// Keys in the order they were begun.
    order: Vec<String>,
    /// The newest generation seen of each instance.
    newest: BTreeMap<Uuid, i64>,
    removed: BTreeMap<Uuid, Vec<Generations>>,
    /// Instances of which anything was removed, in the order in which it first was.
    buried: Vec<Uuid>,
    sequence: i64,
}

struct Known {
    task_id: Uuid,
    instance_id: Option<Uuid>,
    generation: i64,
    epoch: i64,
    outcome: Option<Outcome>,
    told: bool,
}

impl Memory {
    pub(super) fn take(&mut self, entry: Entry) {
        match entry {
            Entry::Begun { key, task_id, instance_id, generation, epoch } => {
                if let Some(instance) = instance_id {
                    let newest = self.newest.entry(instance).or_default();
                    *newest = (*newest).max(generation);
                }
                let known = Known { task_id, instance_id, generation, epoch, outcome: None, told: false };
                if self.tasks.insert(key.clone(), known).is_none() {
                    self.order.push(key);
                }
            }
            Entry::Finished { key, outcome } => {
                if let Some(known) = self.tasks.get_mut(&key) {
                    known.outcome = Some(outcome);
                }
            }
            Entry::Told { key } => {
                if let Some(known) = self.tasks.get_mut(&key) {
                    known.told = true;
                }
            }
            Entry::Removed { instance_id, generations } => {
                let removed = self.removed.entry(instance_id).or_default();
                if removed.is_empty() {
                    self.buried.push(instance_id);
                }
                if !removed.iter().any(|which| which.cover(generations)) {
                    removed.retain(|which| !generations.cover(*which));
                    removed.push(generations);
                }
            }
            Entry::Reported { sequence } => self.sequence = self.sequence.max(sequence),
        }
    }

    /// A known key is answered from memory. Taking away is never refused for being late: what is gone stays gone.
    pub(super) fn judge(&self, task: &Envelope, needs: Option<i64>) -> Verdict {
        if let Some(known) = self.tasks.get(&task.idempotency_key) {
            if task.epoch < known.epoch {
                return Verdict::Refuse(Refusal::StaleEpoch);
            }
            if let Some(outcome) = &known.outcome {
                return Verdict::Known(outcome.clone());
            }
        }
        let Some(instance) = task.instance_id else { return Verdict::Do };
        if self.newest.get(&instance).is_some_and(|newest| task.generation < *newest) {
            return Verdict::Refuse(Refusal::StaleGeneration);
        }
        let mut removed = self.removed.get(&instance).into_iter().flatten();
        if needs.is_some_and(|needed| removed.any(|which| which.contain(needed))) {
            return Verdict::Refuse(Refusal::Removed);
        }
        Verdict::Do
    }

    /// Whether it was begun and nobody knows yet what became of it.
    pub(super) fn is_open(&self, key: &str) -> bool {
        self.tasks.get(key).is_some_and(|known| known.outcome.is_none())
    }

    pub(super) fn sequence(&self) -> i64 {
        self.sequence
    }

    pub(super) fn untold(&self) -> Vec<(Uuid, String, Outcome)> {
        let all = self.order.iter().filter_map(|key| Some((key, self.tasks.get(key)?)));
        let untold = all.filter(|(_, known)| !known.told);
        untold.filter_map(|(key, known)| Some((known.task_id, key.clone(), known.outcome.clone()?))).collect()
    }

    pub(super) fn owes(&self, key: &str) -> bool {
        self.tasks.get(key).is_some_and(|known| !known.told && known.outcome.is_some())
    }

    /// Lets go of what is beyond what is remembered. What was not told yet is kept.
    pub(super) fn forget(&mut self) {
        let beyond = self.order.len().saturating_sub(REMEMBERED);
        let old: Vec<String> = self.order.drain(..beyond).collect();
        let (told, kept): (Vec<String>, Vec<String>) =
            old.into_iter().partition(|key| self.tasks.get(key).is_none_or(|known| known.told));
        for key in told {
            self.tasks.remove(&key);
        }
        self.order.splice(..0, kept);
        let beyond = self.buried.len().saturating_sub(REMEMBERED);
        for instance in self.buried.drain(..beyond) {
            self.removed.remove(&instance);
        }
        let known: HashSet<Uuid> = self.tasks.values().filter_map(|known| known.instance_id).collect();
        self.newest.retain(|instance, _| known.contains(instance));
    }

    /// The shortest log that comes to the same.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![Entry::Reported { sequence: self.sequence }];
        for key in &self.order {
            let Some(known) = self.tasks.get(key) else { continue };
            let Known { task_id, instance_id, generation, epoch, .. } = *known;
            entries.push(Entry::Begun { key: key.clone(), task_id, instance_id, generation, epoch });
            if let Some(outcome) = &known.outcome {
                entries.push(Entry::Finished { key: key.clone(), outcome: outcome.clone() });
            }
            if known.told {
                entries.push(Entry::Told { key: key.clone() });
            }
        }
        for instance_id in &self.buried {
            let removed = self.removed.get(instance_id).into_iter().flatten();
            let removed =
                removed.map(|which| Entry::Removed { instance_id: *instance_id, generations: *which });
            entries.extend(removed);
        }
        entries
    }
}
