//! Deploying and decommissioning survive being struck anywhere: crashed at each write, failed at each effect, on the way
//! there and on the way back. A node answers all the while.

mod catalog;
mod changes;
mod instance;
mod node;
mod plans;
mod scenes;
mod smoke;
mod update;

use activities::Env;
use engine::Workflow;
use engine::testing::{Others, check_workflow_among};
use uuid::Uuid;

use self::catalog::furnish;
use self::scenes::Scene;
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

/// Whatever a workflow starts is known, and not struck with it: that has scenes of its own.
const EVERYBODY: Others<Env> = |_| workflows::registry();

async fn is_struck_anywhere<W: Workflow<Env = Env> + Clone>(scene: Scene<W>) {
    let database = TestDatabase::new().await;
    furnish(&database.pool()).await;
    check_workflow_among(scene(&database), EVERYBODY).await;
    database.drop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deploying_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::deploying).await;
}

/// As a retry does, after whatever the node still has is gone; and with a key by which somebody logs in to set it up.
#[tokio::test(flavor = "multi_thread")]
async fn deploying_again_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::deploying_again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decommissioning_survives_being_struck_anywhere() {
    is_struck_anywhere(scenes::decommissioning).await;
}
