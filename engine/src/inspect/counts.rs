//! How many runs are alive, by state and by cause. Finished runs are not counted: there is no end to them.

use sqlx::PgConnection;

use super::word;
use crate::state::{Cause, RunState};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveCount {
    pub state: RunState,
    /// `None` for the runs that advance.
    pub cause: Option<Cause>,
    pub runs: i64,
}

/// Costs one pass over the live runs; callers keep the answer for some seconds.
pub async fn counts(conn: &mut PgConnection) -> sqlx::Result<Vec<LiveCount>> {
    let rows = sqlx::query!(
        r#"select run.state, why.code as "code?", count(*) as "runs!"
           from engine.run left join engine.run_cause why on why.run_id = run.id
           where run.finished_at is null group by run.state, why.code"#
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(LiveCount {
                state: word(&row.state)?,
                cause: row.code.as_deref().map(word).transpose()?,
                runs: row.runs,
            })
        })
        .collect()
}
