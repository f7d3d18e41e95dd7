//! A signer of tasks that has grown old hands over to a new one, and those that did so long ago are believed no more: one
//! transaction. Done again right away it finds a signer that is new.

use chrono::TimeDelta;
use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use store::task_signers;

use crate::Env;
use crate::task_signers::SignerFault;

/// What a signer signed last is on its way for minutes; nodes that were away longer have its last word.
const GRACE: TimeDelta = TimeDelta::days(7);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RotateSigner {
    pub signs_for_seconds: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Rotated {
    pub handed_over: bool,
    pub retired: u64,
}

impl Activity for RotateSigner {
    const NAME: &'static str = "rotate_signer";
    type Env = Env;
    type Output = Rotated;

    async fn run(&self, env: &Env, _: &Call) -> Result<Rotated, Fault> {
        let age = i64::try_from(self.signs_for_seconds).ok().and_then(TimeDelta::try_seconds);
        let mut tx = env.pool().begin().await?;
        let rotated = env.signers()?.rotate(&mut tx, age.unwrap_or(TimeDelta::MAX)).await;
        let handed_over = rotated.map_err(|fault| match fault {
            SignerFault::Database(error) => error.into(),
            other => Fault::needs_operator("signer", other.to_string()),
        })?;
        let retired = task_signers::retire(&mut tx, GRACE).await?;
        tx.commit().await?;
        Ok(Rotated { handed_over, retired })
    }
}
