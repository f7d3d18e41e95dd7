//! How a version gets into the catalog, whoever brings it: an administrator directly, or a team through review.

use domain::EventType;
use domain::VersionStatus;
use domain::event::{NewEvent, Thread};
use domain::manifest::Manifest;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_versions::{self, AppVersion, NewVersion};
use crate::{apps, outbox};

/// A manifest on its way into the catalog.
pub struct Registration<'a> {
    pub manifest: &'a Manifest,
    /// Organization and project that own the app, should it be new.
    pub owner: (Uuid, Uuid),
    pub by: Uuid,
    pub thread: Thread<'a>,
}

#[derive(Debug)]
pub enum Registered {
    /// A new draft, or other content for one.
    Draft(AppVersion),
    /// The version has this very content already.
    Same(AppVersion),
    /// The version has left draft with other content.
    Frozen(AppVersion),
    /// The slug belongs to another project.
    OtherOwner,
}

/// Rows of the catalog are locked app first.
pub async fn register(conn: &mut PgConnection, new: &Registration<'_>) -> sqlx::Result<Registered> {
    let (manifest, slug) = (written(new.manifest)?, &new.manifest.app.slug);
    let number = &new.manifest.version.version;
    let app = apps::ensure_locked(conn, slug, new.owner, &manifest["app"]).await?;
    if app.owner() != new.owner {
        return Ok(Registered::OtherOwner);
    }
    let digest = new.manifest.digest();
    let version = NewVersion {
        app_id: app.id,
        version: number,
        manifest: &manifest,
        content_digest: &digest,
        registered_by: new.by,
    };
    match app_versions::find_locked(conn, slug, number).await? {
        Some(same) if same.content_digest == digest => return Ok(Registered::Same(same)),
        Some(frozen) if frozen.status != VersionStatus::Draft => return Ok(Registered::Frozen(frozen)),
        Some(draft) => _ = app_versions::replace_draft(conn, draft.id, &version).await?,
        None => _ = app_versions::insert(conn, &version).await?,
    }
    let registered = app_versions::find_locked(conn, slug, number).await?.ok_or(sqlx::Error::RowNotFound)?;
    tell(conn, &registered, new.thread).await?;
    Ok(Registered::Draft(registered))
}

/// The normal form as it is stored.
pub fn written(manifest: &Manifest) -> sqlx::Result<Value> {
    serde_json::to_value(manifest).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}

async fn tell(conn: &mut PgConnection, version: &AppVersion, thread: Thread<'_>) -> sqlx::Result<()> {
    let data = json!({
        "id": version.id, "app_slug": version.slug, "version": version.version, "status": version.status,
        "content_digest": version.content_digest,
    });
    let kind = EventType::VersionRegistered;
    let event = NewEvent::of_project(version.owner(), kind, version.id, &data, thread);
    outbox::insert(conn, &event).await?;
    Ok(())
}
