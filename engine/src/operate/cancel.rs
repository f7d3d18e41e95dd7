//! Turning runs back: a run that is asked for by a person or by whoever takes its target over, a child by its parent, and the
//! pause of an undo that somebody else waits for. With a living owner it is a request; without one it is done at once.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::admission;
use crate::engine::Inner;

/// Leaves the request with the owner, or turns an ownerless run back at once.
pub(crate) async fn ask_to_cancel(engine: &Inner, conn: &mut PgConnection, run: Uuid) -> sqlx::Result<()> {
    engine.admission.leave();
    // A run past its pivot goes on to its end: whoever asked waits for that. One that has yet to take its target over never
    // does: it owes nothing, and the place of the successor is free for the next who asks.
    let turned = sqlx::query!(
        r#"update engine.run set request = 'cancel', cancelling = true,
               state = case when owner is null then 'compensating' else state end,
               unwinding = unwinding or owner is null,
               succeeds_holder = succeeds_holder and owner is not null,
               cause = case when owner is null then null else cause end,
               cause_detail = case when owner is null then null else cause_detail end,
               updated_at = case when owner is null then engine.now() else updated_at end
           where id = $1 and finished_at is null and not pivoted and not unwinding
           returning owner is null as "ownerless!", queued_job is null as "jobless!", project_id"#,
        run
    )
    .fetch_optional(&mut *conn)
    .await?;
    match turned {
        Some(r) if r.ownerless && r.jobless => {
            admission::admit_or_ready(engine, conn, run, r.project_id).await
        }
        _ => Ok(()),
    }
}

/// Ends the pause of a run that is being undone: that is what whoever takes its target over asks for. An owner may have heard of
/// the pause already, and obey it after this; the request that it finds instead is left on the row, and ends that pause too.
/// One that waits for a child, or is about to, looks again whether that is still going back: no rest passes by the count.
pub(crate) async fn set_undo_going(engine: &Inner, conn: &mut PgConnection, run: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "update engine.run set signals = signals + 1 where id = $1 and finished_at is null and unwinding",
        run
    )
    .execute(&mut *conn)
    .await?;
    let going = sqlx::query!(
        r#"update engine.run set request = case when owner is not null then 'cancel' end,
               state = case when owner is null then 'compensating' else state end,
               cause = case when owner is null then null else cause end,
               cause_detail = case when owner is null then null else cause_detail end,
               claims = case when owner is null then 0 else claims end,
               updated_at = case when owner is null then engine.now() else updated_at end
           where id = $1 and finished_at is null and unwinding
             and (state = 'paused' or request = 'pause'
                  or (state = 'compensating' and cause = 'waiting_for_run' and owner is null and queued_job is null))
           returning owner is null as "ownerless!", project_id"#,
        run
    )
    .fetch_optional(&mut *conn)
    .await?;
    match going {
        Some(r) if r.ownerless => admission::admit_or_ready(engine, conn, run, r.project_id).await,
        _ => Ok(()),
    }
}

/// How far a child is that was asked to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancelled {
    /// Or it never was.
    Ended,
    Going,
    /// An undo of its failed for good, and somebody must see to what it still owes.
    Stuck {
        child: Uuid,
    },
}

/// Cancels a child by its start key.
pub(crate) async fn cancel_child(engine: &Inner, start_key: &str) -> sqlx::Result<Cancelled> {
    engine.db.in_time(try_cancel_child(engine, start_key)).await
}

async fn try_cancel_child(engine: &Inner, start_key: &str) -> sqlx::Result<Cancelled> {
    let mut tx = engine.db.drives.begin().await?;
    let child = sqlx::query!(
        r#"select id, finished_at is not null as "ended!", state = 'stuck' as "stuck!"
           from engine.run where start_key = $1 for update"#,
        start_key
    )
    .fetch_optional(&mut *tx)
    .await?;
    let cancelled = match child {
        Some(child) if child.stuck => Cancelled::Stuck { child: child.id },
        Some(child) if !child.ended => {
            ask_to_cancel(engine, &mut tx, child.id).await?;
            Cancelled::Going
        }
        _ => Cancelled::Ended,
    };
    tx.commit().await?;
    Ok(cancelled)
}

/// Whether somebody waits to take the run's target over.
pub(crate) async fn is_awaited(engine: &Inner, target: &str) -> sqlx::Result<bool> {
    let mut session = engine.db.drives.session().await?;
    let awaited = sqlx::query_scalar!(
        r#"select exists (select from engine.run where target = $1 and succeeds_holder) as "awaited!""#,
        target
    )
    .fetch_one(&mut *session)
    .await?;
    session.commit().await?;
    Ok(awaited)
}
