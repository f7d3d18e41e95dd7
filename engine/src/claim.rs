//! Taking a run: owner and epoch change in one guarded write, and the journal comes with it.
//!
//! A job whose run has another job by now, is owned, at rest for good or finished claims nothing; the job is then
//! simply done. A process whose lease ended claims nothing either.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use crate::journal::{Journal, Kept};
use crate::payload;

/// What a driver knows of its run from the start.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) id: Uuid,
    pub(crate) kind: String,
    pub(crate) version: i32,
    pub(crate) org_id: Option<Uuid>,
    pub(crate) project_id: Uuid,
    pub(crate) correlation_id: String,
    pub(crate) trace_id: Option<String>,
    pub(crate) traceparent: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) parent: Option<(Uuid, String)>,
    pub(crate) inherits: Option<Uuid>,
    pub(crate) input: String,
    pub(crate) epoch: i64,
    pub(crate) seq: i32,
    pub(crate) unwinding: bool,
    pub(crate) pivoted: bool,
    pub(crate) cancelling: bool,
    pub(crate) signals: i32,
    pub(crate) request: Option<String>,
    pub(crate) claims: i32,
    pub(crate) now: DateTime<Utc>,
    pub(crate) journal: Journal,
    pub(crate) kept: Vec<Kept>,
}

/// A run to claim, by the job that names it. Every try has a token of its own and knows those before it: it finds a claim again
/// whose answer was lost, and a try that reaches the server late does not take the run from the one after it.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) run: Uuid,
    pub(crate) job: String,
    pub(crate) token: Uuid,
    earlier: Vec<Uuid>,
}

impl Wanted {
    pub(crate) fn new(run: Uuid, job: String) -> Wanted {
        Wanted { run, job, token: Uuid::new_v4(), earlier: Vec::new() }
    }

    /// Nobody knows whether the last try was or will be carried out.
    pub(crate) fn try_again(&mut self) {
        self.earlier.push(std::mem::replace(&mut self.token, Uuid::new_v4()));
    }

    fn tokens(&self) -> Vec<Uuid> {
        let mut all = self.earlier.clone();
        all.push(self.token);
        all
    }
}

/// Claims the runs of these jobs; those that could not be claimed are absent from the answer.
pub(crate) async fn claim(
    conn: &mut PgConnection,
    owner: Uuid,
    asked: &[&Wanted],
) -> sqlx::Result<HashMap<Uuid, Claimed>> {
    let ids: Vec<Uuid> = asked.iter().map(|w| w.run).collect();
    let jobs: Vec<&str> = asked.iter().map(|w| w.job.as_str()).collect();
    let tokens: Vec<Uuid> = asked.iter().map(|w| w.token).collect();
    // Tokens are random, so those of all runs may stand in one list.
    let earlier: Vec<Uuid> = asked.iter().flat_map(|w| &w.earlier).copied().collect();
    let rows = sqlx::query!(
        r#"
        with clock as materialized (select engine.now() as now),
        -- Locked, so that a process is not declared dead, and its runs freed, while it claims one more.
        alive as materialized (
            select 1 from engine.incarnation i
            where i.id = $3 and i.died_at is null and i.expires_at > clock_timestamp() for share
        )
        update engine.run r set
            epoch = r.epoch + 1,
            owner = $3,
            token = asked.token,
            state = case when r.unwinding then 'compensating' else 'running' end,
            started_at = coalesce(r.started_at, clock.now),
            updated_at = clock.now,
            claims = case when exists (select from engine.journal j where j.run_id = r.id and j.seq >= r.claimed_at_seq and j.progress)
                          then 1 else r.claims + 1 end,
            claimed_at_seq = coalesce((select max(j.seq) + 1 from engine.journal j where j.run_id = r.id), 0),
            wake_at = null,
            cause = null,
            cause_detail = null
        from unnest($1::uuid[], $2::text[], $4::uuid[]) as asked (id, job, token) cross join clock
        where r.id = asked.id and r.queued_job is not distinct from asked.job
          and (r.owner is null or (r.owner = $3 and r.token = any($5)))
          and r.state not in ('stuck', 'succeeded', 'failed', 'compensated', 'cancelled')
          and exists (select 1 from alive)
        returning r.id, r.kind, r.version, r.org_id, r.project_id, r.correlation_id, r.trace_id, r.traceparent, r.target, r.parent_id,
            r.parent_step, r.inherits, r.input::text as "input!", r.epoch, r.unwinding, r.pivoted, r.cancelling, r.signals, r.request,
            r.claims, clock.now as "now!"
        "#,
        &ids,
        &jobs as &[&str],
        owner,
        &tokens,
        &earlier
    )
    .fetch_all(&mut *conn)
    .await?;

    let begun: Vec<Uuid> = rows.iter().filter(|r| r.epoch > 1 || r.signals > 0).map(|r| r.id).collect();
    let mut journals = Journal::load(&mut *conn, &begun).await?;
    let mut kept = Kept::load(conn, &begun).await?;
    Ok(rows
        .into_iter()
        .map(|r| {
            let journal = journals.remove(&r.id).unwrap_or_default();
            let claimed = Claimed {
                id: r.id,
                kind: r.kind,
                version: r.version,
                org_id: r.org_id,
                project_id: r.project_id,
                correlation_id: r.correlation_id,
                trace_id: r.trace_id,
                traceparent: r.traceparent,
                target: r.target,
                parent: r.parent_id.zip(r.parent_step),
                inherits: r.inherits,
                input: r.input,
                epoch: r.epoch,
                seq: journal.next_seq(),
                unwinding: r.unwinding,
                pivoted: r.pivoted,
                cancelling: r.cancelling,
                signals: r.signals,
                request: r.request,
                claims: r.claims,
                now: r.now,
                journal,
                kept: kept.remove(&r.id).unwrap_or_default(),
            };
            (r.id, claimed)
        })
        .collect())
}

/// The run rests without having been driven, until an operator moves it or it is time to try again; its job is done with.
pub(crate) async fn set_aside(
    conn: &mut PgConnection,
    owner: Uuid,
    wanted: &Wanted,
    why: &str,
    again: Option<Duration>,
) -> sqlx::Result<()> {
    let detail =
        json!({"problem": "the run cannot be claimed", "error": payload::clip(why, 1024)}).to_string();
    sqlx::query!(
        "with aside as (
             update engine.run set owner = null, queued_job = null, queued_at = null, cause_detail = $5::text::jsonb,
                    state = case when $6::float8 is null then 'paused' when unwinding then 'compensating' else 'queued' end,
                    cause = case when $6::float8 is null then 'crash_loop' else 'backoff' end,
                    wake_at = engine.now() + make_interval(secs => $6::float8), updated_at = engine.now()
             where id = $1 and queued_job = $2 and (owner is null or (owner = $3 and token = any($4))) returning id
         ) delete from apalis.jobs where id = $2 and exists (select 1 from aside)",
        wanted.run,
        wanted.job,
        owner,
        &wanted.tokens(),
        detail,
        again.map(|again| again.as_secs_f64())
    )
    .execute(conn)
    .await?;
    Ok(())
}
