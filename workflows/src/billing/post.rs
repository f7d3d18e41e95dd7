//! Rating whatever is over, transaction by transaction: a rollup and a rating anew end in the same way.

use activities::Env;
use engine::{Halt, Run};
use store::rating::{self, Posted};

/// So many windows in one transaction: enough to be quick, few enough to hold in memory whatever was used.
const BATCH: i64 = 500;
/// Then the next tick goes on.
const MOST_BATCHES: u32 = 10_000;

/// Posts until nothing is left that is over.
pub(super) async fn post_all(run: &mut Run<Env>) -> Result<Posted, Halt> {
    let mut all = Posted::default();
    for batch in 0..MOST_BATCHES {
        let correlation_id = run.correlation_id().to_owned();
        let posted: Posted = run
            .transact_for("post_windows", batch, move |conn| {
                let correlation_id = correlation_id.clone();
                Box::pin(async move { Ok(rating::post(conn, BATCH, &correlation_id).await?) })
            })
            .await?;
        if posted.is_nothing() {
            break;
        }
        all += posted;
    }
    Ok(all)
}
