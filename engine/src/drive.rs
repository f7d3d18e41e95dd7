//! Driving one run: claim it, call its workflow from the top, and deal with how that ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures::FutureExt;
use serde_json::json;
use tracing::{Instrument, error, info_span, warn};
use uuid::Uuid;

use crate::claim::Claimed;
use crate::core::Core;
use crate::failpoint::Point;
use crate::fault::{Halt, Stop};
use crate::inherit;
use crate::journal::StepId;
use crate::registry::Drivable;
use crate::run::{Run, panic_message};
use crate::state::Cause;
use crate::trace;
use crate::workers::Crew;

/// Past so many looks at a run that nobody knows, the pauses between them no longer double.
const MOST_LOOKS: i32 = 6;

/// Drives the run this job names, as far as it goes now.
pub(crate) async fn drive<E: Send + Sync + 'static>(crew: &Crew<E>, job: String, run: Uuid) {
    if let Some(faults) = &crew.engine.faults {
        // Whose run it is nobody knows yet, and a drive that has not begun can only end with its process.
        faults.strike(&Point { kind: "", step: "", undo: false, place: "before-claim" });
    }
    if crew.is_draining() {
        // It is put back with whatever else this process fetched.
        return;
    }
    let Some(claimed) = crew.committer.claim(run, job.clone()).await else {
        forget_job(crew, &job, run).await;
        return;
    };
    drive_claimed(crew, Some(job), claimed).await;
}

/// Drives a run that is ours, as far as it goes now.
pub(crate) async fn drive_claimed<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    job: Option<String>,
    claimed: Claimed,
) {
    let span = info_span!("drive", otel.name = %claimed.kind, run_id = %claimed.id, kind = %claimed.kind, correlation_id = %claimed.correlation_id,
        trace_id = claimed.trace_id.as_deref(), org_id = claimed.org_id.map(tracing::field::display),
        project_id = %claimed.project_id, target = claimed.target.as_deref(), epoch = claimed.epoch);
    if let Some(parent) = &claimed.traceparent {
        trace::continue_trace(&span, parent);
    }
    crew.engine.stats.drives.fetch_add(1, Relaxed);
    let project = claimed.project_id;
    follow(crew, job, claimed).instrument(span).await;
    crew.engine.admission.freed(project);
}

async fn follow<E: Send + Sync + 'static>(crew: &Crew<E>, job: Option<String>, claimed: Claimed) {
    let (id, claims, epoch) = (claimed.id, claimed.claims, claimed.epoch);
    let reins = crew.take_reins(id, epoch);
    let readable = claimed.journal.unreadable().is_none();
    let known = crew.registry.find(&claimed.kind, claimed.version).filter(|_| readable);
    let Some(definition) = known else {
        crew.drop_reins(id, &reins);
        put_back_unknown(crew, job.as_deref(), &claimed).await;
        return;
    };
    let (input, inherits) = (claimed.input.clone(), claimed.inherits);
    let core = Core::new(
        Arc::clone(&crew.engine),
        Arc::clone(&crew.committer),
        crew.id,
        Arc::clone(&reins),
        definition.kind(),
        job.clone(),
        claimed,
    );
    let mut run = Run::new(core, Arc::clone(&crew.env));
    let going = AssertUnwindSafe(go(crew, definition.as_ref(), &input, claims, inherits, &mut run));
    let ended = tokio::select! {
        biased;
        ended = going.catch_unwind() => ended,
        () = reins.taken_away() => Ok(Stop::Fenced.into()),
    };
    crew.drop_reins(id, &reins);
    match ended {
        Ok(Halt(Stop::Rested | Stop::Turned)) => {}
        // Lost with the lease: the next owner takes over. Lost otherwise, or crashed by a test: let go of it here.
        Ok(Halt(Stop::Crashed | Stop::Lost)) => let_go_unmoved(crew, id, epoch, 0, job.as_deref()).await,
        Ok(Halt(Stop::Fenced)) => {
            crew.engine.stats.fenced.fetch_add(1, Relaxed);
            warn!("the run was taken from this driver");
            if let Some(job) = job {
                forget_job(crew, &job, id).await;
            }
        }
        Err(panic) => {
            error!(panic = panic_message(&*panic), "the workflow panicked");
            let_go_unmoved(crew, id, epoch, claims, job.as_deref()).await;
        }
    }
}

async fn go<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    definition: &dyn Drivable<E>,
    input: &str,
    claims: i32,
    inherits: Option<Uuid>,
    run: &mut Run<E>,
) -> Halt {
    let claim = StepId { name: "", key: String::new() };
    if let Err(halt) = run.core.point(&claim, false, "after-claim") {
        return halt;
    }
    if claims > crew.engine.settings.max_claims {
        let detail = json!({"claims": claims, "problem": "the run was claimed again and again without getting further"});
        return run.core.quarantine(Cause::CrashLoop, detail).await;
    }
    if let Some(holder) = inherits.filter(|_| !run.core.unwinding)
        && let Err(halt) = inherit::settle_debts(crew, holder, run).await
    {
        return halt;
    }
    let called = match definition.call(input, run).await {
        Ok(called) => called,
        Err(error) => {
            let detail = json!({"problem": format!("the run's input cannot be read: {error}")});
            return run.core.quarantine(Cause::CrashLoop, detail).await;
        }
    };
    let halt = match called {
        Ok(()) if !run.core.unwinding => run.core.succeed().await,
        Ok(()) => Stop::Turned.into(),
        Err(halt) => halt,
    };
    if !matches!(halt, Halt(Stop::Turned)) {
        return halt;
    }
    let about = run.about.clone();
    run.unwind().instrument(about).await
}

/// Another process may know this version, or read what a newer one wrote; this one puts the run back at no attempt, and
/// without a row in its journal: it may take days until somebody knows it.
async fn put_back_unknown<E: Send + Sync + 'static>(crew: &Crew<E>, job: Option<&str>, claimed: &Claimed) {
    let unreadable = claimed.journal.unreadable();
    let detail = json!({"kind": claimed.kind, "version": claimed.version, "journal": unreadable}).to_string();
    // Looks are counted below zero, so that they become rare and are never taken for a crash loop.
    let looks = (1 - claimed.claims.min(0)).min(MOST_LOOKS);
    while !crew.ended() {
        match crew.engine.db.in_time(try_put_back(crew, job, claimed, looks, &detail)).await {
            Ok(()) => return crew.engine.rested(claimed.id),
            Err(error) => warn!(%error, "could not put a run back; trying again"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

async fn try_put_back<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    job: Option<&str>,
    claimed: &Claimed,
    looks: i32,
    detail: &str,
) -> sqlx::Result<()> {
    let mut session = crew.engine.db.drives.session().await?;
    sqlx::query!(
        "with freed as (
             update engine.run set owner = null, queued_job = null, queued_at = null, claims = -$4::int,
                    state = case when unwinding then 'compensating' else 'queued' end,
                    cause = 'unknown_version', cause_detail = $5::text::jsonb,
                    wake_at = engine.now() + make_interval(secs => (1 << $4::int)::float8), updated_at = engine.now()
             where id = $1 and owner = $2 and epoch = $3 returning id
         ) delete from apalis.jobs where id = $6 and exists (select 1 from freed)",
        claimed.id,
        crew.id,
        claimed.epoch,
        looks,
        detail,
        job
    )
    .execute(&mut *session)
    .await?;
    session.commit().await
}

/// Releases a run whose code panicked without counting it as progress, so that a crash loop is noticed.
pub(crate) async fn let_go_unmoved<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    run: Uuid,
    epoch: i64,
    claims: i32,
    job: Option<&str>,
) {
    while !crew.ended() {
        match crew.engine.db.in_time(try_let_go(crew, run, epoch, claims, job)).await {
            Ok(()) => return,
            Err(error) => warn!(%error, "could not release a run; trying again"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
}

async fn try_let_go<E: Send + Sync + 'static>(
    crew: &Crew<E>,
    run: Uuid,
    epoch: i64,
    claims: i32,
    job: Option<&str>,
) -> sqlx::Result<()> {
    let mut session = crew.engine.db.drives.session().await?;
    sqlx::query!(
        "with freed as (
             update engine.run set owner = null, queued_job = null, queued_at = null,
                    cause = 'backoff', wake_at = engine.now() + make_interval(secs => $4), updated_at = engine.now()
             where id = $1 and owner = $2 and epoch = $3 returning id
         ) delete from apalis.jobs where id = $5 and exists (select 1 from freed)",
        run,
        crew.id,
        epoch,
        f64::from(claims.min(5)),
        job
    )
    .execute(&mut *session)
    .await?;
    session.commit().await?;
    crew.engine.admission.nudge.notify_one();
    Ok(())
}

/// The job is of no use any more: its run ended, rests, or has another.
async fn forget_job<E: Send + Sync + 'static>(crew: &Crew<E>, job: &str, run: Uuid) {
    let forgotten = async {
        let mut session = crew.engine.db.drives.session().await?;
        sqlx::query!(
            "delete from apalis.jobs j where j.id = $1 and j.lock_by = $2
             and not exists (select 1 from engine.run r where r.id = $3 and r.queued_job = j.id)",
            job,
            crew.name,
            run
        )
        .execute(&mut *session)
        .await?;
        session.commit().await
    };
    if let Err(error) = crew.engine.db.in_time(forgotten).await {
        warn!(%error, "could not delete an obsolete job; retention will");
    }
}

/// A job whose payload is no run id: somebody else put it there.
pub(crate) async fn forget_nameless_job<E: Send + Sync + 'static>(crew: &Crew<E>, job: &str) {
    error!(job, "a job names no run and is dropped");
    forget_job(crew, job, Uuid::nil()).await;
}
