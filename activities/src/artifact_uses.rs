//! Lists who still uses an artifact. It only reads, so it may be repeated and has nothing to undo.

use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use store::app_artifacts::{self, Uses};
use uuid::Uuid;

use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListUses {
    pub artifact_id: Uuid,
}

impl Activity for ListUses {
    const NAME: &'static str = "list_uses";
    type Env = Env;
    type Output = Uses;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Uses, Fault> {
        let mut conn = env.pool().begin().await?;
        match app_artifacts::find(&mut conn, self.artifact_id).await? {
            Some(artifact) => Ok(app_artifacts::uses(&mut conn, &artifact).await?),
            None => Ok(Uses::default()),
        }
    }
}
