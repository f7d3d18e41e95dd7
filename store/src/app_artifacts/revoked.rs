//! Revocation is of bytes: it holds for every registration of them for the app, for every index that names them and, where
//! an index is revoked, for everything it names.

use domain::Digest;
use sqlx::PgConnection;
use uuid::Uuid;

use super::{AppArtifact, manifests};

/// Every registration that may run the bytes of this one, itself among them, held still. Its home is held before.
pub async fn of_same_bytes(
    conn: &mut PgConnection,
    artifact: &AppArtifact,
) -> sqlx::Result<Vec<AppArtifact>> {
    let bytes: Vec<String> = manifests(conn, artifact.id).await?.iter().map(Digest::to_string).collect();
    sqlx::query_as!(
        AppArtifact,
        "select id, org_id, project_id, app_slug, app_version, artifact_name, variant, artifact_kind, source_type,
                repository, source_uri, tag, digest, media_type, size_bytes, visibility, lifecycle_state, trust_state,
                channels, evidence, signature, provenance, intent_id, created_by, correlation_id, created_at, updated_at, deleted_at
         from app_artifacts
         where project_id = $1 and app_slug = $2 and (digest = any ($3) or children && $3)
         order by id for update",
        artifact.project_id,
        artifact.app_slug,
        &bytes
    )
    .fetch_all(conn)
    .await
}

/// Whoever names one of its bytes is refused from now on: its own manifest and, of an index, all that it names.
pub async fn revoke_bytes(conn: &mut PgConnection, id: Uuid) -> sqlx::Result<()> {
    sqlx::query!("update app_artifacts set revoked_bytes = children || digest where id = $1", id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Whether any of these was revoked for the app. Their home is held, so none is while the caller registers.
pub async fn any_revoked(
    conn: &mut PgConnection,
    project_id: Uuid,
    app_slug: &str,
    digests: &[String],
) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select 1 from app_artifacts
               where project_id = $1 and app_slug = $2 and (digest = any ($3) or revoked_bytes && $3)
                 and trust_state = 'revoked') as "revoked!""#,
        project_id,
        app_slug,
        digests
    )
    .fetch_one(conn)
    .await
}
