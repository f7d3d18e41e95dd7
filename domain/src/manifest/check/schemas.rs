//! The schemas inside a manifest are schemas, and small enough to check instances with.

use crate::manifest::author::Author;
use crate::manifest::check::Findings;
use crate::manifest::user_schema;

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    for name in ["config_schema", "placement_schema"] {
        let spot = author.version.at(name);
        // Anything else has the wrong type, which is said elsewhere.
        if let Some(schema) = spot.value().filter(|value| value.is_object()) {
            found.problems.extend(user_schema::problems(schema, spot.pointer()));
        }
    }
}
