//! Judges the gates of a version's next move. It only reads, so it may be repeated and has nothing to undo.

use domain::version_gate::{Gate, gates, red};
use domain::version_status::VersionAction;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_versions::{self, AppVersion};
use store::version_facts;
use uuid::Uuid;

use crate::Env;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckGates {
    pub version_id: Uuid,
    pub action: VersionAction,
}

impl Activity for CheckGates {
    const NAME: &'static str = "check_gates";
    type Env = Env;
    type Output = Vec<Gate>;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Vec<Gate>, Fault> {
        let mut tx = env.pool().begin().await?;
        let version = app_versions::lock(&mut tx, self.version_id).await?;
        let version = version.ok_or_else(|| Fault::terminal("version_not_found", "the version is gone"))?;
        let judged = judge(&mut tx, &version, self.action).await?;
        tx.rollback().await?;
        Ok(judged)
    }
}

/// Every gate of the action; a red one is a fault that says which and why.
pub async fn judge(
    conn: &mut PgConnection,
    version: &AppVersion,
    action: VersionAction,
) -> Result<Vec<Gate>, Fault> {
    let judged = gates(action, &version_facts::of(conn, version).await?);
    let wrong: Vec<&str> = red(&judged).iter().map(|gate| gate.message.as_str()).collect();
    if wrong.is_empty() { Ok(judged) } else { Err(Fault::terminal("gate_red", wrong.join(" "))) }
}
