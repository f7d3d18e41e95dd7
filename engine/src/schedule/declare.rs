//! A program says which schedules it has each time it starts: new ones come, changed ones change, and those of its own workflows
//! that it no longer has go. What another release has beside it stays.

use sqlx::PgConnection;
use tracing::info;

use super::{Missed, Overlap, Schedule, ScheduleError, next_after};
use crate::engine::Engine;
use crate::payload;
use crate::registry::{Kind, Workflow};

impl Engine {
    /// Declares a schedule and answers its name. A changed cron takes effect from now; a paused schedule stays paused.
    pub async fn ensure_schedule<W: Workflow>(
        &self,
        conn: &mut PgConnection,
        schedule: &Schedule,
        workflow: &W,
    ) -> Result<&'static str, ScheduleError> {
        let settings = &self.inner.settings;
        let input = payload::encode(workflow, settings.max_input, settings)
            .map_err(|error| ScheduleError::Input(W::NAME, error))?;
        let now = sqlx::query_scalar!(r#"select engine.now() as "now!""#).fetch_one(&mut *conn).await?;
        let next = next_after(schedule.cron, now)?;
        sqlx::query!(
            "insert into engine.schedule as s (name, kind, version, cron, input, missed, overlap, next_at)
             values ($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8)
             on conflict (name) do update set kind = excluded.kind, version = excluded.version, input = excluded.input,
                 missed = excluded.missed, overlap = excluded.overlap, cron = excluded.cron,
                 next_at = case when s.cron = excluded.cron then s.next_at else excluded.next_at end",
            schedule.name,
            W::NAME,
            W::VERSION,
            schedule.cron,
            input,
            schedule.missed as Missed,
            schedule.overlap as Overlap,
            next
        )
        .execute(conn)
        .await?;
        Ok(schedule.name)
    }

    /// Removes schedules of known workflows that are not declared, and answers their names. A workflow that is not known belongs
    /// to another release; and while a process lives that knows more than this one, nothing goes, because that release may have
    /// declared the others too. The next start looks again.
    pub async fn forget_schedules(
        &self,
        conn: &mut PgConnection,
        declared: &[&str],
        known: &[Kind],
    ) -> sqlx::Result<Vec<String>> {
        let (kinds, versions): (Vec<String>, Vec<i32>) =
            known.iter().map(|kind| (kind.name.to_owned(), kind.version)).unzip();
        let gone = sqlx::query_scalar!(
            "with known as (select k.kind, k.version from unnest($2::text[], $3::int[]) as k (kind, version))
             delete from engine.schedule s
             where s.name <> all($1::text[])
               and exists (select from known k where k.kind = s.kind and k.version = s.version)
               and not exists (
                   select from engine.capability able join engine.incarnation living on living.id = able.incarnation_id
                   where living.died_at is null and living.expires_at > clock_timestamp()
                     and not exists (select from known k where k.kind = able.kind and k.version = able.version))
             returning s.name",
            declared as &[&str],
            &kinds,
            &versions
        )
        .fetch_all(conn)
        .await?;
        if !gone.is_empty() {
            info!(schedules = ?gone, "schedules that this release no longer has were removed");
        }
        Ok(gone)
    }
}
