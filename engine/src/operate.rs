//! Operators ask, drivers obey. Pause and cancel leave a request on the row when the run has a living owner, and act at
//! once when it has none. Retry and resume are compare-and-set from paused or stuck. Every act is recorded.

mod again;
mod cancel;

pub(crate) use cancel::{Cancelled, ask_to_cancel, cancel_child, is_awaited, set_undo_going};

use chrono::TimeDelta;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::admission;
use crate::engine::{Engine, Inner, RunHandle};
use crate::start::StartError;
use crate::state::RunState;

/// Who asks, and why.
#[derive(Debug, Clone)]
pub struct Asker {
    pub actor: String,
    pub reason: Option<String>,
    pub correlation_id: String,
}

#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    #[error("there is nothing by that id")]
    NotFound,
    #[error("{why}")]
    Conflict { state: RunState, allowed: Vec<&'static str>, why: String },
    /// Another run would have had to begin.
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// What the row tells about what may be asked of it.
struct Standing {
    handle: RunHandle,
    owned: bool,
    wakes: bool,
    pivoted: bool,
    unwinding: bool,
    cancelling: bool,
    silent: TimeDelta,
}

/// What an operator may ask of such a run. The engine decides again when asked: the run may have moved on. One that `wakes` has a
/// time or a job; where it is paused all the same, it is tried again by itself, and that can be stopped.
pub fn allowed_actions(state: RunState, wakes: bool, pivoted: bool, unwinding: bool) -> Vec<&'static str> {
    let mut allowed = match state {
        RunState::Queued | RunState::Running | RunState::Waiting | RunState::Compensating => vec!["pause"],
        RunState::Paused if wakes => vec!["retry", "resume", "pause"],
        RunState::Paused | RunState::Stuck => vec!["retry", "resume"],
        RunState::Failed | RunState::Compensated | RunState::Cancelled => vec!["retry"],
        RunState::Succeeded => vec![],
    };
    if !state.is_terminal() && !pivoted && !unwinding {
        allowed.push("cancel");
    }
    allowed
}

impl Standing {
    fn allowed(&self) -> Vec<&'static str> {
        allowed_actions(self.handle.state, self.wakes, self.pivoted, self.unwinding)
    }

    fn refuse(&self, act: &str) -> OperateError {
        let why = match act {
            "cancel" if self.pivoted => "the run is past its point of no return".to_owned(),
            "cancel" if self.unwinding => "the run is already being undone".to_owned(),
            "pause" if self.cancelling && !self.unwinding => "the run is about to be undone".to_owned(),
            _ => format!("cannot {act} a run that is {}", self.handle.state),
        };
        OperateError::Conflict { state: self.handle.state, allowed: self.allowed(), why }
    }

    /// Whoever asked learns when to ask again, or that asking is not needed.
    fn refuse_force(&self, patience: TimeDelta) -> OperateError {
        let why = if self.owned {
            let left = patience.checked_sub(&self.silent).unwrap_or(patience);
            format!(
                "its owner spoke {} s ago, and a run is taken from its owner after {} s of silence: ask again in {} s",
                self.silent.num_seconds().max(0),
                patience.num_seconds(),
                left.num_seconds() + 1
            )
        } else {
            format!("the run is {} and nobody drives it: there is nobody to take it from", self.handle.state)
        };
        OperateError::Conflict { state: self.handle.state, allowed: self.allowed(), why }
    }
}

impl Engine {
    /// Stops the run where it is, or where it would be tried again by itself; resumed, it goes on, and is tried again as before.
    pub async fn pause(
        &self,
        conn: &mut PgConnection,
        run: Uuid,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let run = standing(conn, run).await?;
        if !run.allowed().contains(&"pause") || (run.cancelling && !run.unwinding && !run.pivoted) {
            return Err(run.refuse("pause"));
        }
        record(conn, run.handle.id, "pause", by).await?;
        if run.owned {
            self.inner.admission.leave();
            request(conn, run.handle.id, "pause").await?;
        } else {
            pause_ownerless(conn, run.handle.id).await?;
        }
        self.handle(conn, run.handle.id).await
    }

    /// Goes on from where it is; past attempts still count.
    pub async fn resume(
        &self,
        conn: &mut PgConnection,
        run: Uuid,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let run = standing(conn, run).await?;
        if !matches!(run.handle.state, RunState::Paused | RunState::Stuck) {
            return Err(run.refuse("resume"));
        }
        record(conn, run.handle.id, "resume", by).await?;
        self.set_going(conn, &run).await
    }

    /// Tries the failed step again with a fresh allowance; a finished run is started anew as another run.
    pub async fn retry(
        &self,
        conn: &mut PgConnection,
        run: Uuid,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let run = standing(conn, run).await?;
        match run.handle.state {
            RunState::Paused | RunState::Stuck => {
                record(conn, run.handle.id, "retry", by).await?;
                grant_attempts(conn, run.handle.id).await?;
                self.set_going(conn, &run).await
            }
            state if state.is_terminal() && state != RunState::Succeeded => {
                self.start_again(conn, &run, by).await
            }
            _ => Err(run.refuse("retry")),
        }
    }

    /// Turns the run back; it ends `cancelled` once everything is undone.
    pub async fn cancel(
        &self,
        conn: &mut PgConnection,
        run: Uuid,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let run = standing(conn, run).await?;
        if run.handle.state.is_terminal() || run.pivoted || run.unwinding {
            return Err(run.refuse("cancel"));
        }
        record(conn, run.handle.id, "cancel", by).await?;
        ask_to_cancel(&self.inner, conn, run.handle.id).await?;
        self.handle(conn, run.handle.id).await
    }

    /// Takes the run from an owner that was silent for long; its late writes are fenced off.
    pub async fn force(
        &self,
        conn: &mut PgConnection,
        run: Uuid,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let run = standing(conn, run).await?;
        let patience = TimeDelta::from_std(self.inner.settings.force_after).unwrap_or(TimeDelta::MAX);
        if !run.owned || run.silent < patience {
            return Err(run.refuse_force(patience));
        }
        record(conn, run.handle.id, "force", by).await?;
        self.inner.admission.leave();
        drop_job(conn, run.handle.id).await?;
        sqlx::query!(
            "update engine.run set epoch = epoch + 1, owner = null, queued_job = null, queued_at = null,
                    wake_at = engine.now(), updated_at = engine.now() where id = $1",
            run.handle.id
        )
        .execute(&mut *conn)
        .await?;
        self.handle(conn, run.handle.id).await
    }

    async fn set_going(&self, conn: &mut PgConnection, run: &Standing) -> Result<RunHandle, OperateError> {
        if let Some(heir) = heir_of(conn, run.handle.id).await? {
            let why = format!("run {heir} took over its target and undoes what it left");
            return Err(OperateError::Conflict { state: run.handle.state, allowed: Vec::new(), why });
        }
        // A cancel that was accepted is not forgotten: such a run goes on backwards.
        let back = run.unwinding || (run.cancelling && !run.pivoted);
        let state = if back { RunState::Compensating } else { RunState::Queued };
        sqlx::query!(
            "update engine.run set state = $2, unwinding = $3, cause = null, cause_detail = null, request = null,
                    claims = 0, updated_at = engine.now() where id = $1",
            run.handle.id,
            state.as_str(),
            back
        )
        .execute(&mut *conn)
        .await?;
        admission::admit_or_ready(&self.inner, conn, run.handle.id, run.handle.project_id).await?;
        self.handle(conn, run.handle.id).await
    }

    pub(crate) async fn handle(&self, conn: &mut PgConnection, run: Uuid) -> Result<RunHandle, OperateError> {
        Ok(standing(conn, run).await?.handle)
    }
}

/// A request that met its run just as it came to rest is acted on by whoever sees it next. Safe to do twice.
pub(crate) async fn obey_for_the_ownerless(engine: &Inner) -> sqlx::Result<()> {
    let mut tx = engine.db.drives.begin().await?;
    let left = sqlx::query!(
        r#"select id, request as "request!" from engine.run
           where request is not null and owner is null and finished_at is null
             and not (request = 'cancel' and (pivoted or (unwinding and cause is distinct from 'paused_by_operator')))
             and not (request = 'pause' and state in ('paused', 'stuck') and wake_at is null and queued_job is null)
           order by id for update skip locked"#
    )
    .fetch_all(&mut *tx)
    .await?;
    for run in left {
        if run.request == "cancel" {
            ask_to_cancel(engine, &mut tx, run.id).await?;
            set_undo_going(engine, &mut tx, run.id).await?;
        } else {
            pause_ownerless(&mut tx, run.id).await?;
        }
    }
    tx.commit().await
}

async fn pause_ownerless(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<()> {
    drop_job(conn, run).await?;
    sqlx::query!(
        "update engine.run set state = 'paused', cause = 'paused_by_operator', cause_detail = null, request = null,
                wake_at = null, queued_job = null, queued_at = null, updated_at = engine.now()
         where id = $1",
        run
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Tries so far no longer count against the retry rules of the steps that are not done. The caller holds the run's row.
async fn grant_attempts(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into engine.journal (run_id, seq, epoch, token, at, progress, correlation_id, trace_id, events)
         select r.id, (select max(j.seq) + 1 from engine.journal j where j.run_id = r.id), r.epoch, gen_random_uuid(),
                engine.now(), true, r.correlation_id, r.trace_id,
                json_agg(json_strip_nulls(json_build_object('e', 'settle', 'name', s.name, 'key', s.key, 'state', s.state,
                    'attempt', s.attempt, 'undo_attempt', s.undo_attempt, 'attempt_base', s.attempt, 'undo_base',
                    s.undo_attempt, 'error', s.error, 'finished_at', s.finished_at)) order by s.seq)
         from engine.run r cross join lateral engine.steps_of(r.id) s
         where r.id = $1 and s.state in ('failed', 'pending', 'ambiguous', 'running', 'compensating')
         group by r.id",
        run
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes the run's job out of the queue, where one waits there. The caller holds the run's row.
async fn drop_job(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from apalis.jobs where id = (select queued_job from engine.run where id = $1 and queued_job is not null)",
        run
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Who took the target over from a stuck run, or from its parent, and with it what is left to undo: two must not undo the same.
async fn heir_of(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select heir.id from engine.run r left join engine.run parent on parent.id = r.parent_id
         join engine.run heir on heir.target = coalesce(r.target, parent.target) and heir.holds_target
         where r.id = $1 and heir.inherits in (r.id, r.parent_id)",
        run
    )
    .fetch_optional(conn)
    .await
}

async fn standing(conn: &mut PgConnection, run: Uuid) -> Result<Standing, OperateError> {
    let r = sqlx::query!(
        r#"select r.id, r.kind, r.state, r.project_id, r.correlation_id, r.pivoted, r.unwinding, r.cancelling,
                  r.owner is not null as "owned!", (r.wake_at is not null or r.queued_job is not null) as "wakes!",
                  engine.now() - greatest(r.updated_at,
                      (select max(j.at) from engine.journal j where j.run_id = r.id)) as "silent!"
           from engine.run r where id = $1 for update"#,
        run
    )
    .fetch_optional(conn)
    .await?
    .ok_or(OperateError::NotFound)?;
    let state = r.state.parse().map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
    let handle = RunHandle {
        id: r.id,
        kind: r.kind,
        state,
        project_id: r.project_id,
        correlation_id: r.correlation_id,
    };
    let silent = TimeDelta::microseconds(r.silent.microseconds) + TimeDelta::days(i64::from(r.silent.days));
    let (pivoted, unwinding, cancelling) = (r.pivoted, r.unwinding, r.cancelling);
    Ok(Standing { handle, owned: r.owned, wakes: r.wakes, pivoted, unwinding, cancelling, silent })
}

/// What is asked of an owner is no sign of life of it, so the time of the last one stays.
async fn request(conn: &mut PgConnection, run: Uuid, what: &str) -> sqlx::Result<()> {
    sqlx::query!("update engine.run set request = $2 where id = $1", run, what).execute(conn).await?;
    Ok(())
}

async fn record(conn: &mut PgConnection, run: Uuid, act: &str, by: &Asker) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into engine.act (id, run_id, act, actor, reason, correlation_id) values ($1, $2, $3, $4, $5, $6)",
        Uuid::now_v7(),
        run,
        act,
        by.actor,
        by.reason,
        by.correlation_id
    )
    .execute(conn)
    .await?;
    Ok(())
}
