//! Lists manifests that were pushed long ago and that no registration has, with what each vouches for. It only reads, so
//! it may be repeated and has nothing to undo. What the registry does not show now is left for the next look.

use std::time::Duration;

use engine::{Activity, Call, Fault};
use serde::{Deserialize, Serialize};
use store::registry_pushes::{self, Stray};

use crate::Env;

/// As many as one look deals with.
const MOST: i64 = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListStrays {
    /// Since they were pushed last.
    pub older_seconds: u64,
}

impl Activity for ListStrays {
    const NAME: &'static str = "list_strays";
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    type Output = Vec<Stray>;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Vec<Stray>, Fault> {
        let mut conn = env.pool().begin().await?;
        let older = Duration::from_secs(self.older_seconds).as_secs_f64();
        let strays = registry_pushes::strays(&mut conn, older, MOST).await?;
        drop(conn);
        let mut known = Vec::new();
        for mut stray in strays {
            // Tags tell what most vouch for; the others say it themselves.
            if stray.vouches_for.is_none() {
                let Ok(digest) = stray.digest.parse() else { continue };
                match env.registry()?.repository(&stray.repository).subject(&digest).await {
                    Ok(subject) => stray.vouches_for = subject,
                    Err(fault) => {
                        tracing::warn!(%fault, digest = %digest, "what a manifest vouches for cannot be read");
                        continue;
                    }
                }
            }
            known.push(stray);
        }
        Ok(known)
    }
}
