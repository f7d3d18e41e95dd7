//! What policy requires of an artifact today, and by whom it may be vouched for, read at one moment.

use domain::PolicyKey;
use domain::artifact::{TrustDemands, builders_among, sources_among};
use sqlx::PgConnection;

use crate::app_artifacts::AppArtifact;
use crate::policies::{self, Subject};
use crate::signing_keys;

/// What an artifact of somebody must come with.
#[derive(Clone, Copy, Debug)]
pub struct Required {
    pub signature: bool,
    pub provenance: bool,
}

pub async fn required(conn: &mut PgConnection, of: Subject) -> sqlx::Result<Required> {
    let signature = policies::flag(conn, PolicyKey::SignatureRequired, of).await?;
    let provenance = policies::flag(conn, PolicyKey::ProvenanceRequired, of).await?;
    Ok(Required { signature, provenance })
}

pub async fn of(conn: &mut PgConnection, artifact: &AppArtifact) -> sqlx::Result<TrustDemands> {
    let subject = artifact.policy_subject();
    let Required { signature, provenance } = required(conn, subject).await?;
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
        signature,
        provenance,
        keys: keys.into_iter().map(|key| (key.id, key.public_key)).collect(),
        signing_key_id,
        builders: builders_among(&sources),
        sources: sources_among(&sources),
    })
}
