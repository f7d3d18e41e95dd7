//! Stand-ins for the platform's own workflows, for stories about the requests that start them: each ends at once and has
//! no effect.

use engine::{Halt, PlannedStep, Run, Workflow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::world::World;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromoteStandIn(Value);

impl Workflow for PromoteStandIn {
    const NAME: &'static str = "version.promote";
    const PLAN: &'static [PlannedStep] = &[];
    type Env = World;

    async fn run(&self, _: &mut Run<World>) -> Result<(), Halt> {
        Ok(())
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RetireStandIn(Value);

impl Workflow for RetireStandIn {
    const NAME: &'static str = "version.retire";
    const PLAN: &'static [PlannedStep] = &[];
    type Env = World;

    async fn run(&self, _: &mut Run<World>) -> Result<(), Halt> {
        Ok(())
    }
}
