//! Says that this process answers nodes, for as long as it does. Who watches them believes a silence only after somebody
//! has listened for as long as it lasted: a platform that was away has lost nobody.

use std::time::Duration;

use engine::{Engine, Pool};
use store::listening;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use tracing::debug;

/// A third of what counts as a break.
const EVERY: Duration = Duration::from_secs(10);

/// Dropped, it stops.
pub struct Listening {
    _task: AbortOnDropHandle<()>,
}

impl Listening {
    pub fn start(engine: &Engine) -> Listening {
        Listening { _task: AbortOnDropHandle::new(tokio::spawn(say_so(engine.clone()))) }
    }
}

async fn say_so(engine: Engine) {
    let mut times = interval(EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        if let Err(error) = mark(engine.pool()).await {
            debug!(%error, "nobody knows that nodes are listened to");
        }
    }
}

async fn mark(pool: &Pool) -> sqlx::Result<()> {
    let mut tx = pool.begin().await?;
    listening::mark(&mut tx).await?;
    tx.commit().await
}
