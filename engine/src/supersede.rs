//! What the end of one run means to others: its parent is signalled and the target's successor becomes active, in the
//! same transaction. And how a successor comes to wait: it asks the holder to cancel.

use futures::future::BoxFuture;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::admission;
use crate::alone::{self, Alone, Together};
use crate::checkpoint::{Checkpoint, Fate};
use crate::committer::Verdict;
use crate::core::Core;
use crate::engine::{Inner, RunHandle};
use crate::fault::Reason;
use crate::operate;
use crate::run::Ended;
use crate::signal;
use crate::start::NewRun;
use crate::state::RunState;

/// Writes a run's last checkpoint, or the one that sticks it, and tells whom it concerns.
pub(crate) async fn end(core: &Core, checkpoint: Checkpoint) -> Option<Verdict> {
    let tell = TellOthers { core, fate: checkpoint.fate.clone() };
    let ended = match alone::write(core, &checkpoint, &tell).await {
        Alone::Moved(moved, _) => Some(Verdict::Moved(moved)),
        Alone::Verdict(verdict) => Some(verdict),
        Alone::Fault(fault) => Some(Verdict::Refused(fault.to_string())),
        Alone::Ended => None,
    };
    core.engine.bell.ring();
    ended
}

/// What a parent hears; nothing when the run is only stuck. Why a run unwound was written when it turned back, so the row
/// knows it and its last checkpoint may not.
async fn news(conn: &mut PgConnection, run: Uuid, fate: &Fate) -> sqlx::Result<Option<String>> {
    let Fate::Finish { state, output, .. } = fate else { return Ok(None) };
    let error =
        sqlx::query_scalar!("select error::text from engine.run where id = $1", run).fetch_one(conn).await?;
    let output: Option<Value> = output.as_deref().and_then(|o| serde_json::from_str(o).ok());
    let error: Option<Reason> = error.as_deref().and_then(|e| serde_json::from_str(e).ok());
    Ok(serde_json::to_string(&Ended { state: *state, output, error }).ok())
}

struct TellOthers<'a> {
    core: &'a Core,
    fate: Fate,
}

impl Together for TellOthers<'_> {
    fn after<'c>(&'c self, conn: &'c mut PgConnection) -> BoxFuture<'c, sqlx::Result<()>> {
        let core = self.core;
        Box::pin(async move {
            if let Some(target) = &core.target {
                pass_target_on(&core.engine, conn, core.run, target).await?;
            }
            let Some((parent, step)) = &core.parent else { return Ok(()) };
            match news(conn, core.run, &self.fate).await? {
                Some(news) => {
                    signal::deliver(&core.engine, conn, *parent, step, &core.run.to_string(), &news).await?;
                }
                None => operate::set_undo_going(&core.engine, conn, *parent).await?,
            }
            Ok(())
        })
    }
}

/// Makes the waiting successor the holder. A stuck holder lets go, and what it still owes passes to the successor: who took
/// debts over goes on to the end, because turned back it would leave them to nobody. A run that never held its target, because
/// it was cancelled while it waited for that, has nothing to pass on: another holds it.
pub(crate) async fn pass_target_on(
    engine: &Inner,
    conn: &mut PgConnection,
    holder: Uuid,
    target: &str,
) -> sqlx::Result<()> {
    let successor = sqlx::query!(
        "select id, project_id, state from engine.run where target = $1 and succeeds_holder
           and not exists (select from engine.run other where other.target = $1 and other.holds_target and other.id <> $2)
         for update",
        target,
        holder
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(successor) = successor else { return Ok(()) };
    let stuck = sqlx::query!(
        "update engine.run set holds_target = false where id = $1 and finished_at is null returning id",
        holder
    )
    .fetch_optional(&mut *conn)
    .await?;
    sqlx::query!(
        "update engine.run set holds_target = true, succeeds_holder = false, inherits = $2, updated_at = engine.now(),
                pivoted = pivoted or $2::uuid is not null,
                cause = case when state = 'paused' then cause end,
                cause_detail = case when state = 'paused' then cause_detail end
         where id = $1",
        successor.id,
        stuck.map(|r| r.id)
    )
    .execute(&mut *conn)
    .await?;
    if successor.state == RunState::Paused.as_str() {
        return Ok(());
    }
    admission::admit_or_ready(engine, conn, successor.id, successor.project_id).await
}

/// Accepts a run as the target's one successor; a second asker gets the first one's run. `None` where that was cancelled just
/// now: ask again.
pub(crate) async fn succeed(
    engine: &Inner,
    conn: &mut PgConnection,
    new: &NewRun,
    holder: &RunHandle,
) -> sqlx::Result<Option<(Uuid, bool)>> {
    let waits_for = json!({"run": holder.id, "kind": holder.kind}).to_string();
    let inserted = sqlx::query_scalar!(
        r#"insert into engine.run (id, kind, version, org_id, project_id, correlation_id, trace_id, start_key, target,
               succeeds_holder, retry_of, input, cause, cause_detail, traceparent)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, true, $10, $11::text::jsonb, 'waiting_for_run', $12::text::jsonb, $13)
           on conflict do nothing returning id"#,
        Uuid::now_v7(),
        new.kind,
        new.version,
        new.org_id,
        new.project_id,
        new.correlation_id,
        new.trace_id(),
        new.start_key,
        new.target,
        new.retry_of,
        new.input,
        waits_for,
        new.traceparent
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(id) = inserted else {
        let first = sqlx::query_scalar!(
            "select id from engine.run where target = $1 and succeeds_holder",
            new.target
        )
        .fetch_optional(conn)
        .await?;
        return Ok(first.map(|first| (first, true)));
    };
    if holder.state == RunState::Stuck {
        pass_target_on(engine, conn, holder.id, new.target.as_deref().unwrap_or_default()).await?;
    } else {
        operate::ask_to_cancel(engine, conn, holder.id).await?;
        operate::set_undo_going(engine, conn, holder.id).await?;
    }
    Ok(Some((id, false)))
}
