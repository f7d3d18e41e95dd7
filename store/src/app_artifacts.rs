//! Artifacts of apps. Both states change only by [`move_lifecycle`], [`promote`] and [`move_trust`], which ask the tables
//! of legal moves and compare before they set.

mod bytes;
mod read;
mod revoked;
mod uses;

pub use bytes::{Belonging, hold, let_go, manifests, mark_deleted, may_be_gone, now};
pub use read::{Filter, find, find_locked, find_published, list};
pub use revoked::{any_revoked, of_same_bytes, revoke_bytes};
pub use uses::{Affected, NamingVersion, Reference, Totals, Uses, affected, uses};

use chrono::{DateTime, Utc};
use domain::Digest;
use domain::artifact::{Channel, Lifecycle, LifecycleMove, Trust, TrustMove};
use domain::manifest::ArtifactKind;
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::parsed;
use crate::policies::Subject;

#[derive(Clone, Debug, sqlx::FromRow)]
pub struct AppArtifact {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub app_slug: String,
    pub app_version: String,
    pub artifact_name: String,
    pub variant: Option<String>,
    pub artifact_kind: String,
    pub source_type: String,
    pub repository: Option<String>,
    pub source_uri: Option<String>,
    pub tag: Option<String>,
    pub digest: String,
    pub media_type: String,
    pub size_bytes: i64,
    pub visibility: String,
    pub lifecycle_state: String,
    pub trust_state: String,
    pub channels: Vec<String>,
    pub evidence: Value,
    /// Of a blob, as whoever published it sent it.
    pub signature: Option<String>,
    /// The same of where it was built.
    pub provenance: Option<String>,
    pub intent_id: Uuid,
    pub created_by: Uuid,
    pub correlation_id: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub deleted_at: Option<DateTime<Utc>>,
}

impl AppArtifact {
    pub fn lifecycle(&self) -> sqlx::Result<Lifecycle> {
        parsed(&self.lifecycle_state)
    }

    pub fn trust(&self) -> sqlx::Result<Trust> {
        parsed(&self.trust_state)
    }

    /// What events and the audit log tell of it.
    pub fn told(&self) -> Value {
        json!({
            "id": self.id, "app_slug": self.app_slug, "app_version": self.app_version,
            "artifact_name": self.artifact_name, "variant": self.variant, "artifact_kind": self.artifact_kind,
            "repository": self.repository, "source_uri": self.source_uri, "digest": self.digest,
            "lifecycle_state": self.lifecycle_state, "trust_state": self.trust_state, "channels": self.channels,
        })
    }

    pub fn digest(&self) -> sqlx::Result<Digest> {
        digest(&self.digest)
    }

    /// Organization and project, as events and runs want them.
    pub fn owner(&self) -> (Uuid, Uuid) {
        (self.org_id, self.project_id)
    }

    /// Where its bytes are, with those of the app's other versions.
    pub fn home(&self) -> String {
        home(self.repository.as_deref(), self.project_id, &self.app_slug)
    }

    /// By whose policies it is judged.
    pub fn policy_subject(&self) -> Subject {
        Subject { org: Some(self.org_id), project: Some(self.project_id), user: None }
    }
}

/// Images have a repository; blobs of an app are kept together.
pub fn home(repository: Option<&str>, project_id: Uuid, app_slug: &str) -> String {
    repository.map_or_else(|| format!("{project_id}/{app_slug}"), str::to_owned)
}

fn digest(text: &str) -> sqlx::Result<Digest> {
    text.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))
}

/// Which artifact of which version.
#[derive(Clone, Copy, Debug)]
pub struct Slot<'a> {
    pub app_slug: &'a str,
    pub app_version: &'a str,
    pub artifact_name: &'a str,
    pub variant: Option<&'a str>,
    pub kind: ArtifactKind,
}

pub struct NewArtifact<'a> {
    pub id: Uuid,
    pub org_id: Uuid,
    pub project_id: Uuid,
    pub slot: Slot<'a>,
    pub repository: Option<&'a str>,
    pub source_uri: Option<&'a str>,
    pub tag: Option<&'a str>,
    pub digest: &'a str,
    /// The manifests that an index names.
    pub children: &'a [String],
    pub media_type: &'a str,
    pub size_bytes: i64,
    pub signature: Option<&'a str>,
    pub provenance: Option<&'a str>,
    pub intent_id: Uuid,
    pub created_by: Uuid,
    pub correlation_id: &'a str,
}

pub async fn insert(conn: &mut PgConnection, new: &NewArtifact<'_>) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into app_artifacts (id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind,
                source_type, repository, source_uri, tag, digest, media_type, size_bytes, intent_id, created_by,
                correlation_id, children, signature, provenance)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)",
        new.id,
        new.org_id,
        new.project_id,
        new.slot.app_slug,
        new.slot.app_version,
        new.slot.artifact_name,
        new.slot.variant,
        new.slot.kind.as_str(),
        new.slot.kind.source_type().as_str(),
        new.repository,
        new.source_uri,
        new.tag,
        new.digest,
        new.media_type,
        new.size_bytes,
        new.intent_id,
        new.created_by,
        new.correlation_id,
        new.children,
        new.signature,
        new.provenance
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// In place of what came with it; what is not given stays.
pub async fn vouch(
    conn: &mut PgConnection,
    id: Uuid,
    signature: Option<&str>,
    provenance: Option<&str>,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update app_artifacts set signature = coalesce($2, signature), provenance = coalesce($3, provenance)
         where id = $1",
        id,
        signature,
        provenance
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Along the table of legal moves. False when the artifact stands elsewhere by now, or the move is not legal.
pub async fn move_lifecycle(
    conn: &mut PgConnection,
    id: Uuid,
    from: Lifecycle,
    act: LifecycleMove,
) -> sqlx::Result<bool> {
    let Ok(to) = from.after(act) else { return Ok(false) };
    let moved = sqlx::query!(
        "update app_artifacts set lifecycle_state = $3, updated_at = engine.now()
         where id = $1 and lifecycle_state = $2",
        id,
        from.as_str(),
        to.as_str()
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// To one more channel; there already is well.
pub async fn promote(
    conn: &mut PgConnection,
    id: Uuid,
    from: Lifecycle,
    channel: Channel,
) -> sqlx::Result<bool> {
    let Ok(to) = from.after(LifecycleMove::Promote) else { return Ok(false) };
    let moved = sqlx::query!(
        "update app_artifacts
         set lifecycle_state = $3, updated_at = engine.now(),
             channels = case when $4 = any (channels) then channels else channels || $4 end
         where id = $1 and lifecycle_state = $2 and trust_state <> 'revoked'",
        id,
        from.as_str(),
        to.as_str(),
        channel.as_str()
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}

/// Along the table of legal moves, with what was found.
pub async fn move_trust(
    conn: &mut PgConnection,
    id: Uuid,
    from: Trust,
    act: TrustMove,
    evidence: Option<&Value>,
) -> sqlx::Result<bool> {
    let Ok(to) = from.after(act) else { return Ok(false) };
    let moved = sqlx::query!(
        "update app_artifacts set trust_state = $3, evidence = coalesce($4, evidence), updated_at = engine.now()
         where id = $1 and trust_state = $2",
        id,
        from.as_str(),
        to.as_str(),
        evidence
    )
    .execute(conn)
    .await?;
    Ok(moved.rows_affected() == 1)
}
