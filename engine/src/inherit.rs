//! A run that took a target over from a stuck holder first undoes what the holder still owed. The holder's function is
//! replayed without writing to learn its undos; each is then a step of the successor's own journal, under the holder's
//! idempotency key. When all are done the holder ends `cancelled`.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::activity::{Call, idempotency_key};
use crate::checkpoint::Rest;
use crate::claim::Claimed;
use crate::core::{Core, Found};
use crate::fault::{Fault, Halt, Stop};
use crate::journal::{Journal, StepId};
use crate::operate::{self, Cancelled};
use crate::payload;
use crate::run::{Run, child_start_key, panic_message};
use crate::state::{Cause, Op, RunState, StepState};
use crate::unwind::{Noted, Undo};
use crate::workers::Crew;

pub(crate) async fn settle_debts<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    holder: Uuid,
    run: &mut Run<E>,
) -> Result<(), Halt> {
    let ghost = match crew.engine.db.in_time(replay(crew, holder, run)).await {
        Ok(Holder::Stuck(ghost)) => ghost,
        Ok(Holder::Ended) => return Ok(()),
        Ok(Holder::Unknown(detail)) => {
            let wake_at = Some(run.core.clock.after(LOOK_AGAIN));
            let rest = Rest {
                wake_at,
                detail: Some(detail),
                ..Rest::new(RunState::Queued, Some(Cause::UnknownVersion))
            };
            return Err(run.core.rest(rest).await);
        }
        Err(_database) => return Err(Stop::Lost.into()),
    };
    // What its function no longer reaches nobody here can undo, and it must not be forgotten with the holder.
    let reached: Vec<String> = ghost.noted.iter().map(|noted| noted.id().to_string()).collect();
    let remaining: Vec<String> =
        ghost.core.journal.owed().into_iter().filter(|step| !reached.contains(step)).collect();
    if !remaining.is_empty() {
        let problem = "the run that was taken over no longer reaches steps that it began";
        let detail = json!({"problem": problem, "run": holder, "remaining": remaining});
        return Err(run.core.quarantine(Cause::Nondeterministic, detail).await);
    }
    for noted in ghost.noted.iter().rev() {
        match noted {
            Noted::Activity { id, undo } if ghost.core.journal.owes(id) => {
                run.pay(holder, ghost.core.epoch, id, undo.as_ref()).await?;
            }
            Noted::Child { id } if ghost.core.journal.owes(id) => pay_child(crew, holder, id, run).await?,
            _ => {}
        }
    }
    run.transact_for("close_superseded_run", holder, move |conn| close(conn, holder)).await
}

/// What a stuck child owes is paid as its parent's is. One that is still going back tells its own parent when it ends, not us, so
/// it is looked at again shortly.
async fn pay_child<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    holder: Uuid,
    step: &StepId,
    run: &mut Run<E>,
) -> Result<(), Halt> {
    run.core.obey().await?;
    match operate::cancel_child(&crew.engine, &child_start_key(holder, step)).await {
        Ok(Cancelled::Ended) => Ok(()),
        Ok(Cancelled::Stuck { child }) => Box::pin(settle_debts(crew, child, run)).await,
        Ok(Cancelled::Going) => {
            let wake_at = Some(run.core.clock.after(Duration::from_secs(1)));
            let rest = Rest { wake_at, ..Rest::new(RunState::Waiting, Some(Cause::WaitingForRun)) };
            Err(run.core.rest(rest).await)
        }
        Err(_database) => Err(Stop::Lost.into()),
    }
}

/// What became of the run whose target was taken over.
enum Holder<E> {
    Ended,
    /// It owes what was begun and not undone.
    Stuck(Box<Run<E>>),
    /// Only a process that knows its function can tell what it owes; says what is not known here.
    Unknown(String),
}

/// How long until another process is given the chance to know better.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// The holder's function, run over its journal up to where it stopped.
async fn replay<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    holder: Uuid,
    run: &Run<E>,
) -> sqlx::Result<Holder<E>> {
    let mut session = crew.engine.db.drives.session().await?;
    let row = sqlx::query!(
        r#"select kind, version, input::text as "input!", epoch, finished_at, engine.now() as "now!"
           from engine.run where id = $1"#,
        holder
    )
    .fetch_one(&mut *session)
    .await?;
    let mut journals = Journal::load(&mut session, &[holder]).await?;
    session.commit().await?;
    if row.finished_at.is_some() {
        return Ok(Holder::Ended);
    }
    let journal = journals.remove(&holder).unwrap_or_default();
    let unreadable = journal.unreadable().map(ToOwned::to_owned);
    let known = crew.registry.find(&row.kind, row.version).filter(|_| unreadable.is_none());
    let Some(definition) = known else {
        let about = json!({"run": holder, "kind": row.kind, "version": row.version, "journal": unreadable});
        return Ok(Holder::Unknown(json!({ "holder": about }).to_string()));
    };
    let claimed = Claimed {
        id: holder,
        kind: row.kind,
        version: row.version,
        org_id: run.core.org_id,
        project_id: run.core.project_id,
        correlation_id: run.core.correlation_id.to_string(),
        trace_id: None,
        traceparent: None,
        target: None,
        parent: None,
        inherits: None,
        input: String::new(),
        epoch: row.epoch,
        // No row has this position, so whatever the ghost tried to write would be fenced.
        seq: -1,
        unwinding: true,
        pivoted: false,
        cancelling: false,
        signals: 0,
        request: None,
        claims: 0,
        now: row.now,
        journal,
        kept: Vec::new(),
    };
    let core = Core::new(
        Arc::clone(&crew.engine),
        Arc::clone(&crew.committer),
        crew.id,
        Arc::clone(&run.core.reins),
        definition.kind(),
        None,
        claimed,
    );
    let mut ghost = Run::new(core, Arc::clone(&crew.env));
    // However it ends, by a panic too, what it noted on the way is what was begun.
    let _ = AssertUnwindSafe(definition.call(&row.input, &mut ghost)).catch_unwind().await;
    Ok(Holder::Stuck(Box::new(ghost)))
}

impl<E: Send + Sync + 'static> Run<E> {
    async fn pay(&mut self, holder: Uuid, epoch: i64, step: &StepId, undo: &dyn Undo<E>) -> Result<(), Halt> {
        let id = debt(holder, step);
        let hash = payload::hash("undo");
        match self.core.look(&id, &hash).await? {
            Found::Answered(_) => return Ok(()),
            Found::New => self.core.open(&id, Op::Activity, false, hash, None),
            Found::Open => self.next_attempt(&id),
        }
        loop {
            self.core.note(&id, StepState::Running, None, None);
            self.core.go_on(&id, false, Some(undo.timeout())).await?;
            let (started, attempt) =
                (self.core.clock.now(), self.core.journal.get(&id).map_or(1, |e| e.attempt));
            let call = Call {
                run: holder,
                epoch,
                attempt,
                idempotency_key: idempotency_key(holder, step, true),
                correlation_id: Arc::clone(&self.core.correlation_id),
                trace_id: self.core.trace_id.clone(),
                traceparent: self.core.traceparent.clone(),
                cancelled: self.core.reins.token(),
            };
            let env = Arc::clone(&self.env);
            self.core.point(&id, false, "before-effect")?;
            let effect = tokio::time::timeout(undo.timeout(), undo.undo(&env, &call));
            let ended = tokio::select! {
                ended = AssertUnwindSafe(effect).catch_unwind() => ended,
                () = self.core.reins.pulled(true) => {
                    self.core.tried(&id, false, attempt, started, "cancelled", None);
                    self.core.obey().await?;
                    self.next_attempt(&id);
                    continue;
                }
            };
            self.core.point(&id, false, "after-effect")?;
            let fault = match ended {
                Ok(Ok(Ok(()))) => {
                    self.core.tried(&id, false, attempt, started, "succeeded", None);
                    self.core.note(&id, StepState::Succeeded, Some("null".into()), None);
                    return Ok(());
                }
                Ok(Ok(Err(fault))) => fault,
                Ok(Err(_elapsed)) => Fault::retry("timed_out", "the undo did not answer in time"),
                Err(panic) => Fault::retry("panicked", panic_message(&*panic)),
            };
            self.core.failed(&id, started, "retry", &fault, undo.rule()).await?;
            self.next_attempt(&id);
        }
    }

    fn next_attempt(&mut self, id: &StepId) {
        if let Some(entry) = self.core.journal.get_mut(id) {
            entry.attempt += 1;
        }
    }
}

fn debt(holder: Uuid, step: &StepId) -> StepId {
    StepId { name: "undo_of_superseded_run", key: format!("{holder}/{step}") }
}

fn close(conn: &mut PgConnection, holder: Uuid) -> BoxFuture<'_, Result<(), Fault>> {
    Box::pin(async move {
        sqlx::query!(
            "insert into engine.journal (run_id, seq, epoch, token, at, progress, correlation_id, trace_id, events)
             select r.id, (select max(j.seq) + 1 from engine.journal j where j.run_id = r.id), r.epoch, gen_random_uuid(),
                    engine.now(), true, r.correlation_id, r.trace_id,
                    json_agg(json_build_object('e', 'settle', 'name', s.name, 'key', s.key, 'state', 'compensated',
                        'attempt', s.attempt, 'undo_attempt', s.undo_attempt, 'finished_at', engine.now()) order by s.seq)
             from engine.run r cross join lateral engine.steps_of(r.id) s
             where r.id = $1 and r.state = 'stuck' and s.undoable and s.state not in ('skipped', 'compensated')
             group by r.id",
            holder
        )
        .execute(&mut *conn)
        .await?;
        sqlx::query!(
            "update engine.run set state = 'cancelled', finished_at = engine.now(), updated_at = engine.now(),
                    cause = null, cause_detail = null
             where id = $1 and state = 'stuck'",
            holder
        )
        .execute(conn)
        .await?;
        Ok(())
    })
}
