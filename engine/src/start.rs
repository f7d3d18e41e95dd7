//! Starting a run on the caller's transaction: run row and job in one statement. A start key answers the same run
//! however often it is used; a target has at most one active run and at most one successor.

use sqlx::PgConnection;
use uuid::Uuid;

use crate::admission::{self, QUEUE};
use crate::engine::{Engine, EngineError, Inner, RunHandle};
use crate::fault::Fault;
use crate::payload;
use crate::registry::Workflow;
use crate::state::RunState;
use crate::supersede;

/// Everything about a start but the workflow itself.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The nil uuid for the platform's own runs.
    pub project_id: Uuid,
    pub org_id: Option<Uuid>,
    pub correlation_id: String,
    pub trace_id: Option<String>,
    pub start_key: Option<String>,
    /// What the run acts on; one active run per target.
    pub target: Option<String>,
    /// Take the target over: the holder is asked to cancel and this run waits for its end.
    pub supersede: bool,
    pub retry_of: Option<Uuid>,
}

#[derive(Debug, Clone)]
pub struct Started {
    pub id: Uuid,
    pub kind: &'static str,
    /// True when the start key, or a successor already waiting for the target, answered an earlier run.
    pub existing: bool,
    /// The run this one waits for, if it supersedes one.
    pub waits_for: Option<Uuid>,
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
    pub(crate) trace_id: Option<String>,
    pub(crate) start_key: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) parent: Option<(Uuid, String)>,
    pub(crate) retry_of: Option<Uuid>,
}

impl Engine {
    /// Commit, then call `wake`.
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
            trace_id: options.trace_id,
            start_key: options.start_key,
            target: options.target,
            parent: None,
            retry_of: options.retry_of,
        };
        let (id, existing, waits_for) = self.start_new(conn, &new, supersede).await?;
        Ok(Started { id, kind: W::NAME, existing, waits_for })
    }

    pub(crate) async fn start_new(
        &self,
        conn: &mut PgConnection,
        new: &NewRun,
        supersede: bool,
    ) -> Result<(Uuid, bool, Option<Uuid>), StartError> {
        if self.pressure().is_some() {
            return Err(StartError::Pressure);
        }
        loop {
            if let Some(id) = insert_or_refuse(&self.inner, conn, new).await? {
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
            let (id, existing) = supersede::succeed(&self.inner, conn, new, &holder).await?;
            return Ok((id, existing, (!existing).then_some(holder.id)));
        }
    }
}

async fn insert_or_refuse(
    engine: &Inner,
    conn: &mut PgConnection,
    new: &NewRun,
) -> Result<Option<Uuid>, StartError> {
    let admit = engine.admission.admit(conn, new.project_id).await?;
    if !admit && admission::backlog_reached(conn, new.project_id, engine.settings.project_backlog).await? {
        return Err(StartError::Backlog);
    }
    let id = insert_row(conn, new, admit).await?;
    if id.is_none() && admit {
        engine.admission.freed(new.project_id);
    }
    Ok(id)
}

/// A start that cannot be refused for load: the parent already holds its place in the world.
pub(crate) async fn insert(engine: &Inner, conn: &mut PgConnection, new: &NewRun) -> Result<(), Fault> {
    let admit = engine.admission.admit(conn, new.project_id).await?;
    insert_row(conn, new, admit).await?;
    Ok(())
}

/// `None` when a unique rule said no: the start key is known, or the target has a holder.
async fn insert_row(conn: &mut PgConnection, new: &NewRun, admit: bool) -> sqlx::Result<Option<Uuid>> {
    let id = Uuid::now_v7();
    let job = admit.then(admission::new_job);
    let (parent, parent_step) = new.parent.clone().unzip();
    sqlx::query_scalar!(
        r#"
        with started as (
            insert into engine.run (id, kind, version, org_id, project_id, correlation_id, trace_id, start_key, target,
                holds_target, parent_id, parent_step, retry_of, input, queued_job, queued_at, wake_at)
            select $1, $2, $3, $4, $5, $6, $7, $8, $9, $9::text is not null, $10, $11, $12, $13::text::jsonb, $14,
                case when $14::text is not null then clock.now end, case when $14::text is null then clock.now end
            from (select engine.now() as now) clock
            on conflict do nothing
            returning id
        ), queued as (
            insert into apalis.jobs (id, job_type, job, run_at)
            select $14, $15, convert_to(id::text, 'UTF8'), now() from started where $14::text is not null
        )
        select id from started
        "#,
        id,
        new.kind,
        new.version,
        new.org_id,
        new.project_id,
        new.correlation_id,
        new.trace_id,
        new.start_key,
        new.target,
        parent,
        parent_step,
        new.retry_of,
        new.input,
        job,
        QUEUE
    )
    .fetch_optional(conn)
    .await
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
