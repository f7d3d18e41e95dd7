//! A step that somebody adds to a workflow is struck by the scenes that come to it. One that none comes to is found here.

use std::collections::BTreeSet;

use activities::Env;
use engine::testing::{Check, steps_taken};
use engine::{PlannedStep, Workflow};
use workflows::allocation::ReleaseAllocation;
use workflows::instance::UpgradeInstance;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::deploy::DeployInstance;
use workflows::instance::reconcile::ReconcileInstance;

use super::EVERYBODY;
use super::catalog::furnish;
use super::scenes::{self, Scene};
use crate::support::database::TestDatabase;

struct Taken(TestDatabase);

impl Taken {
    async fn by<W: Workflow<Env = Env> + Clone>(&self, scenes: &[Scene<W>]) -> BTreeSet<String> {
        let mut taken = BTreeSet::new();
        for scene in scenes {
            let check: Check<W> = scene(&self.0);
            taken.extend(steps_taken(&check, EVERYBODY).await);
        }
        taken
    }
}

fn planned(plan: &[PlannedStep]) -> BTreeSet<String> {
    plan.iter().map(|step| step.name.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_every_plan_is_struck_in_some_scene() {
    let taken = Taken(TestDatabase::new().await);
    furnish(&taken.0.pool()).await;
    let deployed = taken.by(&[scenes::deploying as Scene<_>, scenes::deploying_again]).await;
    assert_eq!(deployed, planned(DeployInstance::PLAN));
    // Both directions of a change are one function.
    let changed = taken.by(&[
        scenes::upgrading_side_by_side as Scene<_>,
        scenes::upgrading_by_stopping_first,
        scenes::upgrading_to_the_same,
    ]);
    assert_eq!(changed.await, planned(UpgradeInstance::PLAN));
    let ended = taken.by(&[scenes::decommissioning as Scene<_>]).await;
    assert_eq!(ended, planned(DecommissionInstance::PLAN));
    let reconciled = taken.by(&[scenes::bringing_back as Scene<_>, scenes::launching_again]).await;
    assert_eq!(reconciled, planned(ReconcileInstance::PLAN));
    let released = taken.by(&[scenes::releasing as Scene<_>]).await;
    assert_eq!(released, planned(ReleaseAllocation::PLAN));
    taken.0.drop().await;
}
