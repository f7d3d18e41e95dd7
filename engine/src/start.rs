//! Starting a run on the caller's transaction: its row, and its job unless it begins right here. A start key answers the same run
//! however often it is used; a target has at most one active run and at most one successor.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::admission;
use crate::berth::Berth;
use crate::claim::Claimed;
use crate::engine::{Engine, EngineError, Inner, RunHandle};
use crate::fault::Fault;
use crate::journal::Journal;
use crate::payload;
use crate::registry::Workflow;
use crate::state::RunState;
use crate::supersede;
use crate::trace;

/// The epoch of a run's first owner.
pub(crate) const FIRST_EPOCH: i64 = 1;

/// Everything about a start but the workflow itself.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The nil uuid for the platform's own runs.
    pub project_id: Uuid,
    pub org_id: Option<Uuid>,
    pub correlation_id: String,
    /// The span that starts it, as W3C names it.
    pub traceparent: Option<String>,
    pub start_key: Option<String>,
    /// What the run acts on; one active run per target.
    pub target: Option<String>,
    /// Take the target over: the holder is asked to cancel and this run waits for its end.
    pub supersede: bool,
    pub retry_of: Option<Uuid>,
}

#[derive(Debug)]
pub struct Started {
    pub id: Uuid,
    pub kind: &'static str,
    /// True when the start key, or a successor already waiting for the target, answered an earlier run.
    pub existing: bool,
    /// The run this one waits for, if it supersedes one.
    pub waits_for: Option<Uuid>,
    engine: Engine,
    berth: Option<Berth>,
}

impl Started {
    /// Call after the commit: the run begins here and now if this process has room for it, and else wherever a worker
    /// is free. Forgetting it costs latency, nothing else.
    pub fn begin(&mut self) {
        match self.berth.take() {
            Some(berth) => berth.cast_off(),
            None => self.engine.wake(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("run {} already acts on this target", .0.id)]
    TargetBusy(RunHandle),
    #[error("the project has too many runs waiting to start")]
    Backlog,
    #[error("the database does not keep up; try again shortly")]
    Pressure,
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<sqlx::Error> for StartError {
    fn from(error: sqlx::Error) -> StartError {
        StartError::Engine(EngineError::Database(error))
    }
}

/// A run row about to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct NewRun {
    pub(crate) kind: String,
    pub(crate) version: i32,
    pub(crate) input: String,
    pub(crate) org_id: Option<Uuid>,
    pub(crate) project_id: Uuid,
    pub(crate) correlation_id: String,
    pub(crate) traceparent: Option<String>,
    pub(crate) start_key: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) parent: Option<(Uuid, String)>,
    pub(crate) retry_of: Option<Uuid>,
}

impl NewRun {
    pub(crate) fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref().and_then(trace::trace_id)
    }

    /// What its driver knows of a run that nobody has driven yet.
    fn claimed(&self, id: Uuid, now: DateTime<Utc>) -> Claimed {
        Claimed {
            id,
            kind: self.kind.clone(),
            version: self.version,
            org_id: self.org_id,
            project_id: self.project_id,
            correlation_id: self.correlation_id.clone(),
            trace_id: self.trace_id().map(str::to_owned),
            traceparent: self.traceparent.clone(),
            target: self.target.clone(),
            parent: self.parent.clone(),
            inherits: None,
            input: self.input.clone(),
            epoch: FIRST_EPOCH,
            seq: 0,
            unwinding: false,
            pivoted: false,
            cancelling: false,
            signals: 0,
            request: None,
            claims: 1,
            now,
            journal: Journal::default(),
            kept: Vec::new(),
        }
    }
}

impl Engine {
    /// Commit, then call `begin` on what this returns.
    pub async fn start<W: Workflow>(
        &self,
        conn: &mut PgConnection,
        workflow: &W,
        options: Start,
    ) -> Result<Started, StartError> {
        let settings = &self.inner.settings;
        let input = payload::encode(workflow, settings.max_input, settings)
            .map_err(|error| EngineError::Payload { what: "workflow's input", error })?;
        let supersede = options.supersede;
        let new = NewRun {
            kind: W::NAME.to_owned(),
            version: W::VERSION,
            input,
            org_id: options.org_id,
            project_id: options.project_id,
            correlation_id: options.correlation_id,
            traceparent: options.traceparent,
            start_key: options.start_key,
            target: options.target,
            parent: None,
            retry_of: options.retry_of,
        };
        let mut berth = self.berth(&new);
        let (id, existing, waits_for) = self.start_new(conn, &new, supersede, &mut berth).await?;
        Ok(Started { id, kind: W::NAME, existing, waits_for, engine: self.clone(), berth })
    }

    fn berth(&self, new: &NewRun) -> Option<Berth> {
        if !self.inner.admission.uncrowded() {
            return None;
        }
        Berth::at(self.inner.host()?, &new.kind, new.version)
    }

    pub(crate) async fn start_new(
        &self,
        conn: &mut PgConnection,
        new: &NewRun,
        supersede: bool,
        berth: &mut Option<Berth>,
    ) -> Result<(Uuid, bool, Option<Uuid>), StartError> {
        // Asked before the database is: one that does not keep up is spared the question.
        if self.inner.is_pressed() {
            return Err(StartError::Pressure);
        }
        self.inner.admission.look(conn).await?;
        if self.inner.admission.everybody_is_pressed() {
            return Err(StartError::Pressure);
        }
        loop {
            if let Some(id) = insert_or_refuse(&self.inner, conn, new, berth).await? {
                return Ok((id, false, None));
            }
            if let Some(key) = &new.start_key
                && let Some(id) = sqlx::query_scalar!("select id from engine.run where start_key = $1", key)
                    .fetch_optional(&mut *conn)
                    .await?
            {
                return Ok((id, true, None));
            }
            let Some(target) = &new.target else { continue };
            // Locked, so that the holder cannot end between this look and the successor's insert.
            let Some(holder) = holder_of(conn, target).await? else { continue };
            if !supersede {
                return Err(StartError::TargetBusy(holder));
            }
            if let Some((id, existing)) = supersede::succeed(&self.inner, conn, new, &holder).await? {
                return Ok((id, existing, (!existing).then_some(holder.id)));
            }
        }
    }
}

async fn insert_or_refuse(
    engine: &Inner,
    conn: &mut PgConnection,
    new: &NewRun,
    berth: &mut Option<Berth>,
) -> Result<Option<Uuid>, StartError> {
    let admit = engine.admission.admit(conn, new.project_id).await?;
    if !admit && admission::backlog_reached(conn, new.project_id, engine.settings.project_backlog).await? {
        return Err(StartError::Backlog);
    }
    if !admit {
        *berth = None;
    }
    let row = insert_row(conn, new, admit, berth.as_ref().map(Berth::owner)).await?;
    if row.is_none() && admit {
        engine.admission.freed(new.project_id);
    }
    match (berth.as_mut(), row) {
        (Some(berth), Some((id, now))) => berth.board(new.claimed(id, now)),
        _ => *berth = None,
    }
    Ok(row.map(|(id, _)| id))
}

/// A start that cannot be refused for load: the parent already holds its place in the world.
pub(crate) async fn insert(engine: &Inner, conn: &mut PgConnection, new: &NewRun) -> Result<(), Fault> {
    let admit = engine.admission.admit(conn, new.project_id).await?;
    insert_row(conn, new, admit, None).await?;
    Ok(())
}

/// The new run and the time, or `None` when a unique rule said no: the start key is known, or the target has a holder.
/// A run with an owner holds its place without a job in the queue.
async fn insert_row(
    conn: &mut PgConnection,
    new: &NewRun,
    admit: bool,
    owner: Option<Uuid>,
) -> sqlx::Result<Option<(Uuid, DateTime<Utc>)>> {
    let id = Uuid::now_v7();
    let job = admit.then(admission::new_job);
    let (parent, parent_step) = new.parent.clone().unzip();
    let row = sqlx::query!(
        r#"
        insert into engine.run (id, kind, version, org_id, project_id, correlation_id, trace_id, start_key, target,
            holds_target, parent_id, parent_step, retry_of, input, queued_job, queued_at, wake_at, owner, state, epoch,
            claims, started_at, created_at, updated_at, traceparent)
        select $1, $2, $3, $4, $5, $6, $7, $8, $9, $9::text is not null, $10, $11, $12, $13::text::jsonb, $14,
            case when $14::text is not null then clock.now end, case when $14::text is null then clock.now end,
            $15, case when $15::uuid is null then 'queued' else 'running' end,
            case when $15::uuid is null then 0 else $16::bigint end, case when $15::uuid is null then 0 else 1 end,
            case when $15::uuid is not null then clock.now end, clock.now, clock.now, $17
        from (select engine.now() as now) clock
        on conflict do nothing
        returning created_at
        "#,
        id,
        new.kind,
        new.version,
        new.org_id,
        new.project_id,
        new.correlation_id,
        new.trace_id(),
        new.start_key,
        new.target,
        parent,
        parent_step,
        new.retry_of,
        new.input,
        job,
        owner,
        FIRST_EPOCH,
        new.traceparent
    )
    .fetch_optional(&mut *conn)
    .await?;
    if let (Some(_), Some(job), None) = (&row, &job, owner) {
        admission::push(conn, job, id).await?;
    }
    Ok(row.map(|r| (id, r.created_at)))
}

async fn holder_of(conn: &mut PgConnection, target: &str) -> sqlx::Result<Option<RunHandle>> {
    let row = sqlx::query!(
        "select id, kind, state, project_id, correlation_id from engine.run where target = $1 and holds_target for update",
        target
    )
    .fetch_optional(conn)
    .await?;
    row.map(|r| {
        let state: RunState = r.state.parse().map_err(|e| sqlx::Error::Decode(Box::new(e)))?;
        Ok(RunHandle {
            id: r.id,
            kind: r.kind,
            state,
            project_id: r.project_id,
            correlation_id: r.correlation_id,
        })
    })
    .transpose()
}
