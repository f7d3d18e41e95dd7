//! The cheapest look at a run: has anything about it changed? Long polls and streams ask this often.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::{outstanding, word};
use crate::state::{Cause, RunState};

/// Two equal pulses mean that nothing an operator sees of the run has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    pub state: RunState,
    pub project_id: Uuid,
    pub epoch: i64,
    pub seq: i32,
    /// What an operator asked for and the run has not obeyed yet.
    pub request: Option<String>,
    pub cause: Option<Cause>,
    pub updated_at: DateTime<Utc>,
}

pub async fn pulse(conn: &mut PgConnection, run: Uuid) -> sqlx::Result<Option<Pulse>> {
    let row = sqlx::query!(
        r#"select run.state, run.project_id, run.epoch, run.unwinding, run.request, run.updated_at,
                  coalesce((select max(j.seq) + 1 from engine.journal j where j.run_id = run.id), 0) as "seq!",
                  (select code from engine.run_cause where run_id = run.id) as cause
           from engine.run where run.id = $1"#,
        run,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let state = word(&row.state)?;
        Ok(Pulse {
            state,
            project_id: row.project_id,
            epoch: row.epoch,
            seq: row.seq,
            request: outstanding(row.request, state, row.unwinding),
            cause: row.cause.as_deref().map(word).transpose()?,
            updated_at: row.updated_at,
        })
    })
    .transpose()
}
