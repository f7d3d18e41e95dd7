//! Recovery, repeated in every process: dead incarnations lose their runs, lost steps and lost jobs are found, and all
//! of it is safe to do twice.

use std::sync::atomic::Ordering::Relaxed;

use sqlx::PgConnection;
use tracing::{info, warn};

use crate::database::Shelf;
use crate::engine::Inner;

/// One sweep.
pub(crate) async fn reap(engine: &Inner, shelf: &Shelf) -> sqlx::Result<()> {
    let mut tx = shelf.begin().await?;
    let dead = sqlx::query_scalar!(
        "update engine.incarnation set died_at = clock_timestamp()
         where died_at is null and expires_at <= clock_timestamp() returning name"
    )
    .fetch_all(&mut *tx)
    .await?;
    tx.commit().await?;
    engine.stats.processes_reaped.fetch_add(dead.len() as u64, Relaxed);
    let mut tx = shelf.begin().await?;
    let runs = free_runs_of_the_dead(&mut tx).await?;
    tx.commit().await?;
    if !dead.is_empty() || runs > 0 {
        engine.stats.runs_reaped.fetch_add(runs, Relaxed);
        warn!(processes = ?dead, runs, "processes died; their runs go back to the queue");
    }
    let mut tx = shelf.begin().await?;
    take_lost_steps(engine, &mut tx).await?;
    requeue_lost_jobs(&mut tx).await?;
    tx.commit().await
}

/// Frees whatever dead processes own. Their jobs go back to the queue, so recovery needs no admission; a run that came
/// by no job becomes ready. Asked on every sweep, because a statement of a dying process may commit just after it was
/// declared dead, and because a row that somebody holds is passed over.
pub(crate) async fn free_runs_of_the_dead(conn: &mut PgConnection) -> sqlx::Result<u64> {
    let freed = sqlx::query!(
        "update engine.run r set owner = null, cause = 'lease_lost', updated_at = engine.now(),
                queued_job = case when queued then r.queued_job end, queued_at = case when queued then r.queued_at end,
                wake_at = case when not queued then engine.now() end
         from (select o.id, exists (select from apalis.jobs j where j.id = o.queued_job) as queued
               from engine.run o
               where o.owner in (select id from engine.incarnation where died_at is not null)
               order by o.id for update of o skip locked) owned
         where r.id = owned.id"
    )
    .execute(&mut *conn)
    .await?;
    sqlx::query!(
        "update apalis.jobs set status = 'Pending', lock_by = null, lock_at = null
         where lock_by in (select name from engine.incarnation where died_at is not null)
           and status in ('Queued', 'Running')"
    )
    .execute(conn)
    .await?;
    Ok(freed.rows_affected())
}

/// A step far past its timeout counts as lost even if its owner lives, and so does a drive that was not heard of for as long
/// and is in no step: the epoch rises, so the owner is fenced.
async fn take_lost_steps(engine: &Inner, conn: &mut PgConnection) -> sqlx::Result<()> {
    let lost = sqlx::query_scalar!(
        "update engine.run set epoch = epoch + 1, owner = null, queued_job = null, queued_at = null,
                wake_at = engine.now(), cause = 'lease_lost', updated_at = engine.now()
         where id in (
             select run.id from engine.run where run.owner is not null
               -- Who waits for the database is not silent by itself.
               and not exists (select from engine.incarnation i where i.id = run.owner and i.pressed_since is not null)
               -- What was written in an epoch before is not of this owner, of whom only the claim is known then.
               and coalesce((select case when j.epoch = run.epoch then coalesce(j.deadline_at, j.at) end
                             from engine.journal j where j.run_id = run.id order by j.seq desc limit 1), run.updated_at)
                   + make_interval(secs => $1) < (select engine.now())
             order by run.id for update skip locked)
         returning id",
        engine.settings.lost_step_grace.as_secs_f64()
    )
    .fetch_all(conn)
    .await?;
    if !lost.is_empty() {
        warn!(runs = ?lost, "runs were not heard of for too long and are taken from their owner");
        engine.stats.runs_reaped.fetch_add(lost.len() as u64, Relaxed);
    }
    Ok(())
}

/// A run that names a job the queue does not have gets a new one; a job that was fetched long ago and never begun, its
/// fetch's answer having been lost, goes back to the queue.
async fn requeue_lost_jobs(conn: &mut PgConnection) -> sqlx::Result<()> {
    let lost = sqlx::query_scalar!(
        "update engine.run set queued_job = null, queued_at = null, wake_at = engine.now()
         where id in (
             select r.id from engine.run r
             where r.queued_job is not null and r.owner is null and r.queued_at < (select engine.now()) - interval '5 seconds'
               and not exists (select 1 from apalis.jobs j
                               where j.id = r.queued_job and j.status in ('Pending', 'Queued', 'Running'))
             order by r.id for update of r skip locked)
         returning id"
    )
    .fetch_all(&mut *conn)
    .await?;
    if !lost.is_empty() {
        info!(runs = ?lost, "runs without a job were made ready again");
    }
    sqlx::query!(
        "update apalis.jobs j set status = 'Pending', lock_by = null, lock_at = null
         where j.status = 'Queued' and j.lock_at < now() - interval '5 seconds'
           and exists (select 1 from engine.run r where r.queued_job = j.id and r.owner is null)"
    )
    .execute(&mut *conn)
    .await?;
    // Nobody can claim by a job that no run names; whoever fetched it failed to drop it.
    sqlx::query!(
        "delete from apalis.jobs j
         where j.job_type = 'drive' and j.status = 'Queued' and j.lock_at < now() - interval '5 seconds'
           and not exists (select 1 from engine.run r where r.queued_job = j.id)"
    )
    .execute(conn)
    .await?;
    Ok(())
}
