//! Deploying and decommissioning survive being struck anywhere: crashed at each write, failed at each effect, on the way
//! there and on the way back. A node answers all the while.

mod catalog;
mod changes;
mod instance;
mod node;
mod smoke;
mod update;

use engine::testing::{Check, check_workflow};
use uuid::Uuid;
use workflows::instance::decommission::DecommissionInstance;
use workflows::instance::deploy::DeployInstance;

use self::catalog::furnish;
use self::instance::{begin_anew, left};
use crate::support::database::TestDatabase;

const ORG: Uuid = Uuid::from_u128(0xA);
const PROJECT: Uuid = Uuid::from_u128(1);
const NODE: Uuid = Uuid::from_u128(0x17);
const ALLOCATION: Uuid = Uuid::from_u128(0x18);
const INSTANCE: Uuid = Uuid::from_u128(0x19);
const ACCOUNT: Uuid = Uuid::from_u128(0x20);
const PULL: Uuid = Uuid::from_u128(0x21);
/// The versions in the catalog: number, artifact, and what its image is made of.
const VERSIONS: [(&str, Uuid, &str); 2] =
    [("1.0.0", Uuid::from_u128(0x22), "struck"), ("1.1.0", Uuid::from_u128(0x23), "struck next")];
/// Thirty-two bytes: the key of the node, the same in every process of the story.
const SEED: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n-----END PRIVATE KEY-----\n";

#[tokio::test(flavor = "multi_thread")]
async fn deploying_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: DeployInstance { account: ACCOUNT, pull: PULL, ..DeployInstance::new(INSTANCE, 1) },
        fresh_env: |engine| begin_anew(engine, "requested", false),
        leftovers: left,
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

/// As a retry does, after whatever the node still has is gone.
#[tokio::test(flavor = "multi_thread")]
async fn deploying_again_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    let again = DeployInstance { clears: Some(NODE), ..DeployInstance::new(INSTANCE, 1) };
    check_workflow(Check {
        database: database.options.clone(),
        workflow: DeployInstance { account: ACCOUNT, pull: PULL, ..again },
        fresh_env: |engine| begin_anew(engine, "requested", false),
        leftovers: left,
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decommissioning_survives_being_struck_anywhere() {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow(Check {
        database: database.options.clone(),
        workflow: DecommissionInstance { instance: INSTANCE, generation: 3 },
        fresh_env: |engine| begin_anew(engine, "running", true),
        leftovers: left,
        while_waiting: |_, _| Box::pin(async {}),
    })
    .await;
    database.drop().await;
}
