//! History is kept for a while and goes in small bites: attempts by whole days, finished runs a few hundred at a time.

use sqlx::types::Uuid;

use crate::database::Shelf;
use crate::engine::Inner;
use crate::inspect::queue_is_quiet;

const BITE: i64 = 500;

/// So much is taken away at once by those who have other things to do.
pub(crate) const A_FEW: usize = 10 * BITE as usize;

/// One pass: idempotent, run by every process every ten minutes or so. Ends once `most` runs are gone; answers how many are.
/// No bite waits for ever for a server that is gone: recovery comes after it.
pub(crate) async fn sweep(engine: &Inner, shelf: &Shelf, most: usize) -> sqlx::Result<usize> {
    shelf.in_time(make_days(shelf)).await?;
    // A reader in the way is no reason to wait: the partition goes another time.
    if let Err(error) = shelf.in_time(drop_old_days(engine, shelf)).await {
        tracing::info!(%error, "an old partition is in use and stays for now");
    }
    let mut gone = 0;
    loop {
        let bite = shelf.in_time(delete_runs(engine, shelf)).await?;
        gone += bite;
        if bite < BITE as usize || gone >= most {
            break;
        }
    }
    shelf.in_time(tidy_up(shelf)).await?;
    Ok(gone)
}

async fn make_days(shelf: &Shelf) -> sqlx::Result<()> {
    let mut tx = shelf.begin().await?;
    sqlx::query!("select engine.make_partitions(7)").fetch_one(&mut *tx).await?;
    tx.commit().await
}

/// What belongs to no run.
async fn tidy_up(shelf: &Shelf) -> sqlx::Result<()> {
    let mut tx = shelf.begin().await?;
    // Jobs no run names any more, left by drives that were fenced off.
    sqlx::query!(
        "delete from apalis.jobs j where j.job_type = 'drive' and j.run_at < now() - interval '10 minutes'
           and not exists (select 1 from engine.run r where r.queued_job = j.id)"
    )
    .execute(&mut *tx)
    .await?;
    // A tick is kept to tell that it was; missed ones are looked for no further back than this.
    sqlx::query!("delete from engine.tick where nominal < engine.now() - interval '7 days'")
        .execute(&mut *tx)
        .await?;
    sqlx::query!("delete from engine.incarnation where died_at < clock_timestamp() - interval '1 day'")
        .execute(&mut *tx)
        .await?;
    sqlx::query!(
        "delete from apalis.workers w where not exists (select 1 from engine.incarnation i where i.name = w.id)
           and w.last_seen < now() - interval '1 day'
           and not exists (select 1 from apalis.jobs j where j.lock_by = w.id)"
    )
    .execute(&mut *tx)
    .await?;
    // An upgrade of the queue may bring its trigger back; only the schema's owner can switch it off again.
    if !queue_is_quiet(&mut tx).await? {
        tracing::error!("the queue's NOTIFY trigger is on and serialises every start: run `gpuaas migrate`");
    }
    tx.commit().await
}

async fn drop_old_days(engine: &Inner, shelf: &Shelf) -> sqlx::Result<()> {
    let mut tx = shelf.begin().await?;
    sqlx::query!("select engine.drop_partitions($1)", engine.settings.keep_attempt_days)
        .fetch_one(&mut *tx)
        .await?;
    // What came before its day had a partition.
    sqlx::query!(
        "delete from engine.attempt_default where at < engine.now() - make_interval(days => $1)",
        engine.settings.keep_attempt_days
    )
    .execute(&mut *tx)
    .await?;
    tx.commit().await
}

async fn delete_runs(engine: &Inner, shelf: &Shelf) -> sqlx::Result<usize> {
    let mut tx = shelf.begin().await?;
    let gone: Vec<Uuid> = sqlx::query_scalar!(
        "delete from engine.run where id in (
             select id from engine.run where finished_at < (select engine.now()) - make_interval(secs => $1)
             order by finished_at limit $2 for update skip locked) returning id",
        engine.settings.keep_runs.as_secs_f64(),
        BITE
    )
    .fetch_all(&mut *tx)
    .await?;
    sqlx::query!("delete from engine.journal where run_id = any($1)", &gone).execute(&mut *tx).await?;
    sqlx::query!("delete from engine.signal where run_id = any($1)", &gone).execute(&mut *tx).await?;
    tx.commit().await?;
    Ok(gone.len())
}
