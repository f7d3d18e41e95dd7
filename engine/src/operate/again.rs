//! A run that ended does not change any more: tried again, it is another run that says which one it repeats. Its workflow decides
//! with what. A child acted under the target of whoever started it; tried again it has no parent, so it holds that target itself.

use sqlx::PgConnection;

use super::{Asker, OperateError, Standing, record};
use crate::engine::{Engine, RunHandle};
use crate::registry::NotAgain;
use crate::start::NewRun;

impl Engine {
    pub(super) async fn start_again(
        &self,
        conn: &mut PgConnection,
        run: &Standing,
        by: &Asker,
    ) -> Result<RunHandle, OperateError> {
        let old = sqlx::query!(
            r#"with recursive line as (
                   select id, parent_id, target from engine.run where id = $1
                   union all
                   select p.id, p.parent_id, p.target from engine.run p join line c on p.id = c.parent_id where c.target is null
               )
               select kind, version, input::text as "input!", org_id, project_id, traceparent,
                      (select target from line where target is not null) as target
               from engine.run where id = $1"#,
            run.handle.id
        )
        .fetch_one(&mut *conn)
        .await?;
        // The old row is held while others are locked: nobody changes an ended run, so nobody waits for it in turn.
        let input =
            match self.kinds().iter().find(|kind| kind.name == old.kind && kind.version == old.version) {
                Some(kind) => (kind.again)(&old.input, &mut *conn, by).await,
                None => Ok(old.input),
            };
        let input = match input {
            Ok(input) => input,
            Err(NotAgain::Refused(why)) => {
                let (state, allowed) = (run.handle.state, Vec::new());
                return Err(OperateError::Conflict { state, allowed, why });
            }
            Err(NotAgain::Database(error)) => return Err(error.into()),
        };
        let new = NewRun {
            kind: old.kind,
            version: old.version,
            input,
            org_id: old.org_id,
            project_id: old.project_id,
            correlation_id: by.correlation_id.clone(),
            traceparent: old.traceparent,
            target: old.target,
            retry_of: Some(run.handle.id),
            ..NewRun::default()
        };
        let (id, _, _) = self.start_new(conn, &new, false, &mut None).await?;
        record(conn, id, "retry", by).await?;
        self.handle(conn, id).await
    }
}
