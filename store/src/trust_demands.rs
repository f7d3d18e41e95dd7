//! What policy requires of an artifact today, and by whom it may be vouched for, read at one moment.

use domain::PolicyKey;
use domain::artifact::{TrustDemands, builders_among, sources_among};
use sqlx::PgConnection;

use crate::app_artifacts::AppArtifact;
use crate::policies::{self, Subject};
use crate::signing_keys;

pub async fn of(conn: &mut PgConnection, artifact: &AppArtifact) -> sqlx::Result<TrustDemands> {
    let subject = Subject { org: Some(artifact.org_id), project: Some(artifact.project_id), user: None };
    let signature = policies::resolve(conn, PolicyKey::SignatureRequired, subject).await?.value;
    let provenance = policies::resolve(conn, PolicyKey::ProvenanceRequired, subject).await?.value;
    let sources = policies::resolve(conn, PolicyKey::SourceAllowlist, subject).await?.value;
    let keys = signing_keys::live(conn, artifact.project_id).await?;
    let signing_key_id = sqlx::query_scalar!(
        "select i.signing_key_id from app_artifacts a join publish_intents i on i.id = a.intent_id where a.id = $1",
        artifact.id
    )
    .fetch_optional(conn)
    .await?
    .flatten();
    Ok(TrustDemands {
        signature: signature.as_bool().unwrap_or_default(),
        provenance: provenance.as_bool().unwrap_or_default(),
        keys: keys.into_iter().map(|key| (key.id, key.public_key)).collect(),
        signing_key_id,
        builders: builders_among(&sources),
        sources: sources_among(&sources),
    })
}
