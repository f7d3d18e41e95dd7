//! Everything a manifest must be besides having the right shape. Each file checks one part; all of them always run, on
//! the author's own document, so that one answer tells everything that is wrong, where the author wrote it.

mod artifacts;
mod isolation;
mod modes;
mod profile;
mod resources;
mod schemas;
mod smoke;
mod text;
mod topology;
mod worker;

use super::author::Author;
use super::problem::Problem;

/// What the checks found. Warnings do not stand in the way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
}

impl Findings {
    fn refuse(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    fn warn(&mut self, warning: Problem) {
        self.warnings.push(warning);
    }
}

pub(super) fn everything(author: &Author<'_>) -> Findings {
    let mut found = Findings::default();
    if author.root.value().is_none_or(|value| !value.is_object()) {
        return found;
    }
    text::check(author, &mut found);
    isolation::check(author, &mut found);
    modes::check(author, &mut found);
    artifacts::check(author, &mut found);
    profile::check(author, &mut found);
    resources::check(author, &mut found);
    topology::check(author, &mut found);
    worker::check(author, &mut found);
    schemas::check(author, &mut found);
    smoke::check(author, &mut found);
    found
}

/// Refuses every spot whose word was there before.
fn unique<'a>(
    words: impl IntoIterator<Item = (String, super::spot::Spot<'a>)>,
    message: &str,
    found: &mut Findings,
) {
    let mut seen = std::collections::HashSet::new();
    for (word, spot) in words {
        if !seen.insert(word) {
            found.refuse(spot.problem(message));
        }
    }
}
