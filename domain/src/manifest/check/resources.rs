//! Resources: at least ≤ usual ≤ at most, also together with what compatibility asks for.

use crate::manifest::author::{Author, Form};
use crate::manifest::check::Findings;
use crate::manifest::spot::Spot;

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let resources = author.profile().at("resources");
    let least_gpus = author.version.at("compatibility").at("min_gpu_count").number().unwrap_or(0);
    let asked = format!("compatibility.min_gpu_count, which is {least_gpus}");
    amount(&resources.at("gpu_count"), least_gpus, &asked, found);
    amount(&resources.at("cpu_cores"), 1, "one core", found);
    amount(&resources.at("memory_gib"), 1, "one GiB", found);
    if author.form == Form::Flat {
        for (old, new) in [("min_memory_mib", "memory_gib"), ("min_vcpu", "cpu_cores")] {
            if resources.at(old).exists() && resources.at(new).at("min").exists() {
                found.refuse(resources.at(old).misplaced(format!("says the same as {new}.min; keep one")));
            }
        }
    }
}

fn amount(amount: &Spot<'_>, least: u64, of: &str, found: &mut Findings) {
    let (min, usual, max) = (amount.at("min"), amount.at("default"), amount.at("max"));
    if let (Some(low), Some(high)) = (usual.number(), max.number())
        && low > high
    {
        found.refuse(usual.problem(format!("must not be more than max, which is {high}")));
    }
    if let (Some(low), Some(high)) = (min.number(), usual.number())
        && low > high
    {
        found.refuse(usual.problem(format!("must not be less than min, which is {low}")));
    }
    if let (Some(low), Some(high), None) = (min.number(), max.number(), usual.number())
        && low > high
    {
        found.refuse(max.problem(format!("must not be less than min, which is {low}")));
    }
    for spot in [&usual, &max] {
        if spot.number().is_some_and(|number| number < least) {
            found.refuse(spot.problem(format!("must not be less than {of}")));
        }
    }
}
