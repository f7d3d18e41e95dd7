//! Text that could not be stored, or that is too long to be read by people.

use crate::manifest::author::Author;
use crate::manifest::check::Findings;
use crate::manifest::spot::Spot;

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    storable(&author.root, found);
    let hints = author.version.at("ui_hints");
    if hints.value().is_some_and(|hints| hints.to_string().len() > 64 * 1024) {
        found.refuse(hints.problem("must be at most 64 KiB"));
    }
}

/// The database keeps no NUL characters.
fn storable(spot: &Spot<'_>, found: &mut Findings) {
    if spot.text().is_some_and(|text| text.contains('\0')) {
        found.refuse(spot.problem("must not hold a NUL character"));
    }
    for (name, field) in spot.fields() {
        if name.contains('\0') {
            found.refuse(field.misplaced("must not hold a NUL character"));
        }
        storable(&field, found);
    }
    for item in spot.items() {
        storable(&item, found);
    }
}
