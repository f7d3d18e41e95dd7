//! The contract with an app team's controller: its two components differ, and placement names what it looks for.

use crate::manifest::author::Author;
use crate::manifest::check::Findings;

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let contract = author.version.at("external_worker_contract");
    let (root, child) = (contract.at("root"), contract.at("child_operation"));
    let key = child.at("component_key");
    if let (Some(one), Some(other)) = (root.at("component_key").text(), key.text())
        && one == other
    {
        found.refuse(key.problem("must differ from the root's component_key"));
    }
    let placement = author.version.at("placement_schema");
    if !placement.at("properties").exists() {
        return;
    }
    for spot in [root.at("allocation_id_key"), child.at("allocation_ids_key")] {
        if spot.text().is_some_and(|name| !placement.at("properties").at(name).exists()) {
            found.warn(
                spot.problem("is not a field of placement_schema; launches cannot see that they may give it"),
            );
        }
    }
}
