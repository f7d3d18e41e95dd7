//! Which runs' rows somebody holds at this moment. A lock that is waited for in vain may be on something else, a whole table: then
//! the database is in trouble, and not one run.

use std::collections::HashSet;

use uuid::Uuid;

use crate::database::Shelf;

/// Those of the runs whose rows are free. Where that cannot be told, all: whoever tries learns more.
pub(crate) async fn free_among(shelf: &Shelf, runs: Vec<Uuid>) -> HashSet<Uuid> {
    let looked = async {
        let mut tx = shelf.begin().await?;
        let free = sqlx::query_scalar!(
            "select id from engine.run where id = any($1) order by id for update skip locked",
            &runs
        )
        .fetch_all(&mut *tx)
        .await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(free)
    };
    let free = shelf.in_time(looked).await;
    free.unwrap_or_else(|_unknown| runs.clone()).into_iter().collect()
}

pub(crate) async fn is_held(shelf: &Shelf, run: Uuid) -> bool {
    !free_among(shelf, vec![run]).await.contains(&run)
}
