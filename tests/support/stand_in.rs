//! Stand-ins for the platform's own workflows, for stories about the requests that start them: each ends at once and has
//! no effect.

use engine::{Halt, PlannedStep, Registry, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::world::World;

const NAMES: [&str; 6] = [
    "version.promote",
    "version.retire",
    "artifact.promote",
    "artifact.deprecate",
    "artifact.retire",
    "billing.rerate",
];

/// Of the workflow whose name has this place in the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct StandIn<const PLACE: usize>(Value);

impl<const PLACE: usize> Workflow for StandIn<PLACE> {
    const NAME: &'static str = NAMES[PLACE];
    const PLAN: &'static [PlannedStep] = &[];
    type Env = World;

    async fn run(&self, _: &mut Run<World>) -> Result<(), Halt> {
        Ok(())
    }
}

pub fn with_stand_ins(registry: Registry<World>) -> Registry<World> {
    registry
        .with::<StandIn<0>>()
        .with::<StandIn<1>>()
        .with::<StandIn<2>>()
        .with::<StandIn<3>>()
        .with::<StandIn<4>>()
        .with::<StandIn<5>>()
}
