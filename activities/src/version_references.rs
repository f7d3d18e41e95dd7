//! Lists the instances that still use a version. It only reads, so it may be repeated and has nothing to undo.

use domain::version_gate::Reference;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use store::version_references;
use uuid::Uuid;

use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListReferences {
    pub version_id: Uuid,
}

impl Activity for ListReferences {
    const NAME: &'static str = "list_references";
    type Env = Env;
    type Output = Vec<Reference>;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Vec<Reference>, Fault> {
        let mut conn = env.pool().begin().await?;
        Ok(version_references::of_id(&mut conn, self.version_id).await?)
    }
}
