//! What whoever goes away in the middle of something leaves behind for those who come after.

use std::time::Duration;

use futures::FutureExt;

use crate::support::story::{Story, quick};

/// As a browser does that goes to another page. However far a begin had come, the one connection there is must not be in the
/// middle of it for the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_nobody_waits_for_any_more_is_none_for_the_next() {
    let story = Story::idle(engine::Settings { api_connections: 1, ..quick() }, None).await;
    let pool = story.engine.pool();
    pool.begin().await.unwrap().commit().await.unwrap();
    for looks in 0..20 {
        // Its connection is given back by a task of its own.
        while pool.bare().num_idle() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut given_up = Box::pin(pool.snapshot());
        for _ in 0..looks % 4 {
            if given_up.as_mut().now_or_never().is_some() {
                break;
            }
        }
        drop(given_up);
        let mut next = pool.begin().await.unwrap();
        let state = "select current_setting('transaction_read_only') || ' ' || current_setting('transaction_isolation')";
        let state: String = sqlx::query_scalar(state).fetch_one(&mut *next).await.unwrap();
        assert_eq!(state, "off read committed", "after {looks}");
        next.commit().await.unwrap();
    }
    story.end().await;
}
