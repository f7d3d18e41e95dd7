//! What is told of every move of a version: one audit entry and one event, in the transaction of the move.

use domain::EventType;
use domain::canary::Canary;
use domain::event::NewEvent;
use domain::version_status::{VersionAction, VersionStatus};
use engine::Fault;
use serde_json::json;
use sqlx::PgConnection;
use store::app_versions::AppVersion;
use store::audit::{self, NewEntry};
use store::outbox;

use crate::action::Requester;
use crate::told::Told;

/// Where an action led.
pub(super) struct Moved<'a> {
    pub(super) action: VersionAction,
    pub(super) to: VersionStatus,
    /// Whom the canary is open to; how many are on its list is told, not who.
    pub(super) canary: Option<&'a Canary>,
}

/// `version` is what it was before the move.
pub(super) async fn tell(
    conn: &mut PgConnection,
    version: &AppVersion,
    moved: &Moved<'_>,
    by: &Requester,
    told: &Told,
) -> Result<(), Fault> {
    let (org_id, project_id) = version.owner();
    let kind = event(moved);
    let listed =
        |canary: &Canary| json!({ "percent": canary.percent, "listed_projects": canary.project_ids.len() });
    let entry = NewEntry {
        org_id: Some(org_id),
        project_id: Some(project_id),
        actor_id: Some(by.actor_id),
        actor_type: Some(by.actor_type.as_str()),
        actor_role: by.actor_role.clone(),
        action: kind.as_str().trim_start_matches("apps.").to_owned(),
        target: format!("version:{}", version.id),
        before: Some(json!({ "status": version.status })),
        after: Some(json!({ "status": moved.to, "canary": moved.canary.map(listed) })),
        reason: by.reason.clone(),
        correlation_id: told.correlation_id.clone(),
        ..NewEntry::default()
    };
    audit::insert(conn, &entry).await?;
    let data = json!({
        "id": version.id, "app_slug": version.slug, "version": version.version, "status": moved.to,
        "previous_status": version.status, "reason": by.reason, "canary": moved.canary.map(listed),
    });
    let event = NewEvent::of_project(version.owner(), kind, version.id, &data, told.thread());
    outbox::insert(conn, &event).await?;
    Ok(())
}

fn event(moved: &Moved<'_>) -> EventType {
    match moved.to {
        VersionStatus::Draft => EventType::VersionRegistered,
        VersionStatus::Staged if moved.action == VersionAction::Rollback => EventType::VersionCanaryHalted,
        VersionStatus::Staged => EventType::VersionStaged,
        VersionStatus::Canary => EventType::VersionCanaryStarted,
        VersionStatus::Active => EventType::VersionActivated,
        VersionStatus::Deprecated => EventType::VersionDeprecated,
        VersionStatus::Retired => EventType::VersionRetired,
    }
}
