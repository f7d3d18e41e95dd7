//! What is told of every move of an artifact: one audit entry and one event, in the transaction of the move.

use domain::EventType;
use domain::event::NewEvent;
use engine::Fault;
use sqlx::PgConnection;
use store::app_artifacts::{self, AppArtifact};
use store::audit::{self, NewEntry};
use store::outbox;

use crate::action::Requester;
use crate::told::Told;

/// `before` is what it was before the move.
pub(super) async fn tell(
    conn: &mut PgConnection,
    before: &AppArtifact,
    kind: EventType,
    by: &Requester,
    told: &Told,
) -> Result<(), Fault> {
    let after = app_artifacts::find(conn, before.id).await?.unwrap_or_else(|| before.clone()).told();
    let entry = NewEntry {
        org_id: Some(before.org_id),
        project_id: Some(before.project_id),
        actor_id: Some(by.actor_id),
        actor_type: Some(by.actor_type.as_str()),
        actor_role: by.actor_role.clone(),
        action: kind.as_str().trim_start_matches("apps.").to_owned(),
        target: format!("artifact:{}", before.id),
        before: Some(before.told()),
        after: Some(after.clone()),
        reason: by.reason.clone(),
        correlation_id: told.correlation_id.clone(),
        ..NewEntry::default()
    };
    audit::insert(conn, &entry).await?;
    outbox::insert(conn, &NewEvent::of_project(before.owner(), kind, before.id, &after, told.thread()))
        .await?;
    Ok(())
}
