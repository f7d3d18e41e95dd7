//! Judges the gates of a version's next move. It only reads, so it may be repeated and has nothing to undo.

use domain::version_gate::{Check, Gate, gates, red};
use domain::version_status::VersionAction;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_versions::{self, AppVersion};
use store::version_facts;
use uuid::Uuid;

use crate::Env;

/// What a move can be refused for before anything is done for it. A red smoke gate passes where the move itself can turn it
/// green: a canary begins with the manifest's tests.
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
        let facts = version_facts::of(&mut tx, &version).await?;
        tx.rollback().await?;
        let can_smoke = self.action == VersionAction::Canary && facts.can_smoke;
        let judged = gates(self.action, &facts);
        let wrong = red(&judged).into_iter().filter(|gate| !(can_smoke && gate.check == Check::SmokePassed));
        refused(wrong.collect())?;
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
    refused(red(&judged))?;
    Ok(judged)
}

fn refused(wrong: Vec<&Gate>) -> Result<(), Fault> {
    let why: Vec<&str> = wrong.iter().map(|gate| gate.message.as_str()).collect();
    if why.is_empty() { Ok(()) } else { Err(Fault::terminal("gate_red", why.join(" "))) }
}
