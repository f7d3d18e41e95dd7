//! Reading artifacts.

use domain::artifact::{Lifecycle, Trust};
use sqlx::{PgConnection, QueryBuilder};
use uuid::Uuid;

use super::{AppArtifact, Slot};
use crate::Slice;

/// What a reader of the list asks for; every field narrows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub app_slug: Option<String>,
    pub app_version: Option<String>,
    pub artifact_name: Option<String>,
    pub digest: Option<String>,
    pub lifecycle: Option<Lifecycle>,
    pub trust: Option<Trust>,
    pub channel: Option<String>,
}

const COLUMNS: &str = "id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind, source_type,
    repository, source_uri, tag, digest, media_type, size_bytes, visibility, lifecycle_state, trust_state, channels,
    evidence, signature, provenance, intent_id, created_by, correlation_id, created_at, updated_at, deleted_at";

pub async fn list(
    conn: &mut PgConnection,
    project_id: Uuid,
    filter: &Filter,
    slice: Slice,
) -> sqlx::Result<Vec<AppArtifact>> {
    let mut query = QueryBuilder::new(format!("select {COLUMNS} from app_artifacts where project_id = "));
    query.push_bind(project_id);
    for (column, wanted) in [
        ("app_slug", filter.app_slug.as_deref()),
        ("app_version", filter.app_version.as_deref()),
        ("artifact_name", filter.artifact_name.as_deref()),
        ("digest", filter.digest.as_deref()),
        ("lifecycle_state", filter.lifecycle.map(Lifecycle::as_str)),
        ("trust_state", filter.trust.map(Trust::as_str)),
    ] {
        if let Some(wanted) = wanted {
            query.push(" and ").push(column).push(" = ").push_bind(wanted.to_owned());
        }
    }
    if let Some(channel) = &filter.channel {
        query.push(" and ").push_bind(channel.clone()).push(" = any (channels)");
    }
    if let Some(after) = slice.after {
        query.push(" and id > ").push_bind(after);
    }
    query.push(" order by id limit ").push_bind(slice.limit);
    query.build_query_as().fetch_all(conn).await
}

pub async fn find(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AppArtifact>> {
    sqlx::query_as!(
        AppArtifact,
        "select id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind, source_type,
                repository, source_uri, tag, digest, media_type, size_bytes, visibility, lifecycle_state, trust_state,
                channels, evidence, signature, provenance, intent_id, created_by, correlation_id, created_at, updated_at, deleted_at
         from app_artifacts where id = $1",
        id
    )
    .fetch_optional(conn)
    .await
}

/// Held still until the transaction ends: whoever begins to use it and whoever ends its life take turns here.
pub async fn find_locked(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<Option<AppArtifact>> {
    sqlx::query_as!(
        AppArtifact,
        "select id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind, source_type,
                repository, source_uri, tag, digest, media_type, size_bytes, visibility, lifecycle_state, trust_state,
                channels, evidence, signature, provenance, intent_id, created_by, correlation_id, created_at, updated_at, deleted_at
         from app_artifacts where id = $1 for update",
        id
    )
    .fetch_optional(conn)
    .await
}

/// The same bytes registered for the same slot before. What was retired and deleted may be registered again.
pub async fn find_published(
    conn: &mut PgConnection,
    slot: &Slot<'_>,
    digest: &str,
) -> sqlx::Result<Option<Uuid>> {
    sqlx::query_scalar!(
        "select id from app_artifacts
         where app_slug = $1 and app_version = $2 and artifact_name = $3 and coalesce(variant, '') = coalesce($4, '')
           and digest = $5 and deleted_at is null",
        slot.app_slug,
        slot.app_version,
        slot.artifact_name,
        slot.variant,
        digest
    )
    .fetch_optional(conn)
    .await
}
