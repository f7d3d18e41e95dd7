//! Where an instance can stand: every allocation against every predicate, each with what is required and what is there.
//! A refusal shows the whole matrix, so that nobody has to guess which of many reasons it was.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::manifest::Compatibility;
use crate::{AllocationStatus, CapacityShape, NodeStatus};

/// What an instance asks of the allocation it stands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Empty means any.
    pub shapes: Vec<CapacityShape>,
    /// Empty means any, none included.
    pub accelerators: Vec<String>,
    /// The least an allocation must have, whatever of it the instance takes.
    pub min_gpu_count: u32,
    /// Nothing else may stand on the node.
    pub exclusive: bool,
    pub gpu_count: u32,
    pub cpu_cores: u32,
    pub memory_gib: u32,
    /// A port of the node that must be the instance's.
    pub host_port: Option<u16>,
}

/// What the server decided that an instance gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub gpu_count: u32,
    pub cpu_cores: u32,
    pub memory_gib: u32,
    pub host_port: Option<u16>,
}

/// How the new version takes the old one's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ChangeStrategy)]
pub enum Strategy {
    /// The old one serves until the new one is healthy.
    SideBySide,
    /// Both do not fit: the old one is stopped first, and started again if the new one fails.
    StopThenStart,
}

/// An allocation as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub allocation_id: Uuid,
    pub status: AllocationStatus,
    pub node: NodeStatus,
    pub shape: CapacityShape,
    pub accelerator: Option<String>,
    pub total: Amounts,
    /// What instances hold of it.
    pub taken: Amounts,
    /// Other instances on its node, whoever's.
    pub neighbours: u32,
    /// Those among them that may have no neighbours.
    pub loners: u32,
    /// Whether somebody holds the port that is asked for.
    pub port_is_held: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    pub gpu_count: u32,
    pub cpu_cores: u32,
    pub memory_gib: u32,
}

/// One allocation's row of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Row {
    pub allocation_id: Uuid,
    pub fits: bool,
    pub predicates: Vec<Predicate>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PlacementPredicate)]
pub struct Predicate {
    pub name: String,
    pub required: String,
    pub actual: String,
    pub holds: bool,
}

impl Candidate {
    /// As it were if an instance gave back what it holds of it.
    #[must_use]
    pub fn without(mut self, own: &Grant) -> Candidate {
        self.taken.gpu_count = self.taken.gpu_count.saturating_sub(own.gpu_count);
        self.taken.cpu_cores = self.taken.cpu_cores.saturating_sub(own.cpu_cores);
        self.taken.memory_gib = self.taken.memory_gib.saturating_sub(own.memory_gib);
        // Only its own port can be asked for together with its own share.
        self.port_is_held &= own.host_port.is_none();
        self
    }
}

impl Wanted {
    /// What a version and what its instance gets ask for together.
    pub fn of(compatibility: &Compatibility, grant: Grant) -> Wanted {
        Wanted {
            shapes: compatibility.requires_capacity_shape.clone(),
            accelerators: compatibility.supported_accelerators.clone(),
            min_gpu_count: compatibility.min_gpu_count,
            exclusive: compatibility.requires_exclusive_node,
            gpu_count: grant.gpu_count,
            cpu_cores: grant.cpu_cores,
            memory_gib: grant.memory_gib,
            host_port: grant.host_port,
        }
    }
}

/// Every allocation against every predicate, in the order of the allocations.
pub fn matrix(wanted: &Wanted, candidates: &[Candidate]) -> Vec<Row> {
    candidates.iter().map(|candidate| row(wanted, candidate)).collect()
}

fn row(wanted: &Wanted, has: &Candidate) -> Row {
    let predicates = vec![
        is("allocation_status", AllocationStatus::Active.as_str(), has.status.as_str()),
        is("node_status", NodeStatus::Active.as_str(), has.node.as_str()),
        among("capacity_shape", wanted.shapes.iter().map(|s| s.as_str()).collect(), has.shape.as_str()),
        among(
            "accelerator",
            wanted.accelerators.iter().map(String::as_str).collect(),
            has.accelerator.as_deref().unwrap_or("none"),
        ),
        at_least("min_gpu_count", wanted.min_gpu_count, has.total.gpu_count),
        at_least("free_gpu_count", wanted.gpu_count, has.total.gpu_count.saturating_sub(has.taken.gpu_count)),
        at_least("free_cpu_cores", wanted.cpu_cores, has.total.cpu_cores.saturating_sub(has.taken.cpu_cores)),
        at_least(
            "free_memory_gib",
            wanted.memory_gib,
            has.total.memory_gib.saturating_sub(has.taken.memory_gib),
        ),
        alone("exclusive_node", wanted.exclusive, has.neighbours),
        shared("shared_node", has.loners),
        port(wanted.host_port, has.port_is_held),
    ];
    Row { allocation_id: has.allocation_id, fits: predicates.iter().all(|p| p.holds), predicates }
}

fn predicate(name: &str, required: String, actual: String, holds: bool) -> Predicate {
    Predicate { name: name.to_owned(), required, actual, holds }
}

fn is(name: &str, required: &str, actual: &str) -> Predicate {
    predicate(name, required.to_owned(), actual.to_owned(), required == actual)
}

fn among(name: &str, allowed: Vec<&str>, actual: &str) -> Predicate {
    let holds = allowed.is_empty() || allowed.contains(&actual);
    let required = if allowed.is_empty() { "any".to_owned() } else { allowed.join(" or ") };
    predicate(name, required, actual.to_owned(), holds)
}

fn at_least(name: &str, required: u32, actual: u32) -> Predicate {
    predicate(name, format!("at least {required}"), actual.to_string(), actual >= required)
}

fn alone(name: &str, required: bool, neighbours: u32) -> Predicate {
    let words = if required { "no other instance" } else { "any" };
    predicate(name, words.to_owned(), format!("{neighbours} others"), !required || neighbours == 0)
}

fn shared(name: &str, loners: u32) -> Predicate {
    let required = "no instance that needs the node alone".to_owned();
    predicate(name, required, format!("{loners} such"), loners == 0)
}

fn port(wanted: Option<u16>, held: bool) -> Predicate {
    let required = wanted.map_or_else(|| "any".to_owned(), |port| format!("{port} free"));
    let actual = if wanted.is_some() && held { "held by an instance" } else { "free" };
    predicate("host_port", required, actual.to_owned(), wanted.is_none() || !held)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u128) -> Candidate {
        Candidate {
            allocation_id: Uuid::from_u128(id),
            status: AllocationStatus::Active,
            node: NodeStatus::Active,
            shape: CapacityShape::GpuSlice,
            accelerator: Some("nvidia".to_owned()),
            total: Amounts { gpu_count: 4, cpu_cores: 16, memory_gib: 64 },
            taken: Amounts { gpu_count: 1, cpu_cores: 4, memory_gib: 8 },
            neighbours: 1,
            loners: 0,
            port_is_held: true,
        }
    }

    fn wanted() -> Wanted {
        Wanted { gpu_count: 2, cpu_cores: 8, memory_gib: 32, ..Wanted::default() }
    }

    fn broken(wanted: &Wanted, candidate: Candidate) -> Vec<String> {
        let row = matrix(wanted, &[candidate]).remove(0);
        assert_eq!(row.fits, row.predicates.iter().all(|p| p.holds));
        row.predicates.into_iter().filter(|p| !p.holds).map(|p| p.name).collect()
    }

    #[test]
    fn every_allocation_says_whether_it_passes_everything() {
        let mut small = candidate(1);
        small.taken.gpu_count = 3;
        let rows = matrix(&wanted(), &[small, candidate(2), candidate(3)]);
        assert_eq!(rows.iter().map(|row| row.fits).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn every_predicate_can_fail_alone_and_says_what_was_there() {
        assert_eq!(broken(&wanted(), candidate(1)), Vec::<String>::new());
        let cases: [(&str, Wanted, Candidate); 11] = [
            (
                "allocation_status",
                wanted(),
                Candidate { status: AllocationStatus::Releasing, ..candidate(1) },
            ),
            ("node_status", wanted(), Candidate { node: NodeStatus::Drained, ..candidate(1) }),
            ("capacity_shape", Wanted { shapes: vec![CapacityShape::Baremetal], ..wanted() }, candidate(1)),
            ("accelerator", Wanted { accelerators: vec!["amd".into()], ..wanted() }, candidate(1)),
            ("min_gpu_count", Wanted { min_gpu_count: 5, ..wanted() }, candidate(1)),
            ("free_gpu_count", Wanted { gpu_count: 4, ..wanted() }, candidate(1)),
            ("free_cpu_cores", Wanted { cpu_cores: 13, ..wanted() }, candidate(1)),
            ("free_memory_gib", Wanted { memory_gib: 57, ..wanted() }, candidate(1)),
            ("exclusive_node", Wanted { exclusive: true, ..wanted() }, candidate(1)),
            ("shared_node", wanted(), Candidate { loners: 1, ..candidate(1) }),
            ("host_port", Wanted { host_port: Some(30_000), ..wanted() }, candidate(1)),
        ];
        for (name, wanted, candidate) in cases {
            assert_eq!(broken(&wanted, candidate), [name]);
        }
        let row = matrix(&Wanted { cpu_cores: 13, ..wanted() }, &[candidate(1)]).remove(0);
        let cpu = row.predicates.iter().find(|p| p.name == "free_cpu_cores").unwrap();
        assert_eq!((cpu.required.as_str(), cpu.actual.as_str()), ("at least 13", "12"));
    }

    #[test]
    fn all_predicates_are_shown_for_every_allocation_not_only_the_first_that_fails() {
        let mut poor = candidate(1);
        (poor.taken.gpu_count, poor.node) = (4, NodeStatus::Unavailable);
        let rows = matrix(&wanted(), &[poor, candidate(2)]);
        assert!(rows.iter().all(|row| row.predicates.len() == 11));
        assert_eq!(rows[0].predicates.iter().filter(|p| !p.holds).count(), 2);
    }
}
