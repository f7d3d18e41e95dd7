//! Lists manifests that were pushed long ago and that no registration has, with what each vouches for. It only reads, so
//! it may be repeated and has nothing to undo.

use std::time::Duration;

use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use store::registry_pushes::{self, Stray};

use crate::Env;
use crate::env::registry_trouble;

/// As many as one look deals with.
const MOST: i64 = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListStrays {
    /// Since they were pushed last.
    pub older_seconds: u64,
}

impl Activity for ListStrays {
    const NAME: &'static str = "list_strays";
    /// About half an hour of a registry that does not answer; the next look finds the same.
    const RETRY: Retry = Retry::times(40).at_most(Duration::from_secs(60));
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    type Output = Vec<Stray>;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Vec<Stray>, Fault> {
        let mut conn = env.pool().acquire().await?;
        let older = Duration::from_secs(self.older_seconds).as_secs_f64();
        let mut strays = registry_pushes::strays(&mut conn, older, MOST).await?;
        drop(conn);
        // Tags tell what most vouch for; the others say it themselves.
        for stray in strays.iter_mut().filter(|stray| stray.vouches_for.is_none()) {
            let Ok(digest) = stray.digest.parse() else { continue };
            let repository = env.registry()?.repository(&stray.repository);
            stray.vouches_for = repository.subject(&digest).await.map_err(registry_trouble)?;
        }
        Ok(strays)
    }
}
