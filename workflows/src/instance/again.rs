//! Trying an ended run of an instance again, for those who ask for the run and not for the instance: legal when its action is,
//! and under a new generation, because the node has buried what was undone.

use domain::event::NewEvent;
use engine::{Asker, NotAgain};
use sqlx::PgConnection;
use store::app_instances::{self, AppInstance};
use store::outbox;
use uuid::Uuid;

use super::change::Shift;
use super::{begin_change, change_told};
use crate::action::{Action, Refused, Subject};

/// The instance, held still, if the action is legal now.
pub(super) async fn held_for<A: Action<Subject = AppInstance>>(
    conn: &mut PgConnection,
    instance: Uuid,
) -> Result<AppInstance, NotAgain> {
    let held = app_instances::find_locked(conn, instance).await?;
    let held = held.ok_or_else(|| NotAgain::Refused("the instance is gone".to_owned()))?;
    if A::is_legal(&held) {
        return Ok(held);
    }
    let why = format!("{} is not possible while the instance is {}", A::VERB, held.state());
    Err(NotAgain::Refused(why))
}

/// The same change once more, and the world is told that it was asked for.
pub(super) async fn change<A: Action<Subject = AppInstance>>(
    conn: &mut PgConnection,
    old: Shift,
    by: &Asker,
) -> Result<Shift, NotAgain> {
    let instance = held_for::<A>(conn, old.instance).await?;
    let begun = begin_change(conn, &instance, old.way, Some(old.version), old.artifact_id).await;
    let shift = begun.map_err(refused)?;
    let (kind, data) = change_told(&instance, &shift);
    let thread = by.correlation_id.as_str();
    let event = NewEvent::of_project(instance.owner(), kind, instance.id, &data, thread);
    outbox::insert(conn, &event).await?;
    Ok(shift)
}

pub(super) fn refused(refused: Refused) -> NotAgain {
    match refused {
        Refused::No { message, .. } => NotAgain::Refused(message),
        Refused::Invalid(problems) => {
            let words: Vec<String> =
                problems.into_iter().map(|(pointer, message)| format!("{pointer} {message}")).collect();
            NotAgain::Refused(words.join("; "))
        }
        Refused::Database(error) => NotAgain::Database(error),
    }
}
