//! How many webhooks this process delivers to at once: so many in all, and few of one project. A receiver may take long to
//! answer, and whoever waits for it has one of the engine's slots: those that are left are for everybody else's runs.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

/// One slot in so many may wait for receivers.
const SHARE: usize = 4;
/// A project with more receivers than this, all of them slow, leaves places to other projects.
const OF_ONE_PROJECT: usize = 4;

#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    /// How many each project has; those that have none are not listed.
    taken: Mutex<HashMap<Uuid, usize>>,
}

/// Given back when it is dropped, however the delivery ends.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    places: &'a Places,
    project: Uuid,
}

impl Places {
    /// For a process that drives so many runs at once.
    pub(crate) fn among(slots: usize) -> Places {
        Places { most: (slots / SHARE).max(1), taken: Mutex::default() }
    }

    /// Nobody waits for a place here, for that would take a slot as well: `None` means to come again.
    pub(crate) fn take(&self, project: Uuid) -> Option<Place<'_>> {
        let mut taken = self.taken();
        let all: usize = taken.values().sum();
        let own = taken.get(&project).copied().unwrap_or_default();
        if all >= self.most || own >= OF_ONE_PROJECT {
            return None;
        }
        taken.insert(project, own + 1);
        Some(Place { places: self, project })
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        let left = taken.get(&self.project).copied().unwrap_or_default().saturating_sub(1);
        if left == 0 {
            taken.remove(&self.project);
        } else {
            taken.insert(self.project, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    #[test]
    fn a_project_has_few_places_and_leaves_the_others_to_others() {
        let places = Places::among(256);
        let held: Vec<Place<'_>> = (0..100).filter_map(|_| places.take(SLOW)).collect();
        assert_eq!(held.len(), OF_ONE_PROJECT);
        assert!(places.take(OTHER).is_some());
        drop(held);
        assert!(places.take(SLOW).is_some(), "what was given back can be taken again");
        assert!(places.taken().is_empty(), "and whoever has none is forgotten");
    }

    #[test]
    fn all_projects_together_have_a_quarter_of_the_slots() {
        let places = Places::among(64);
        let held: Vec<Place<'_>> = (0..100).filter_map(|n| places.take(Uuid::from_u128(n))).collect();
        assert_eq!(held.len(), 16);
        drop(held);
        let few = Places::among(2);
        let one = few.take(SLOW);
        assert!(one.is_some() && few.take(OTHER).is_none(), "where slots are few, one may wait");
    }
}
