//! Looks again, when the run begins, at what was looked at when the instance was asked for: whether the project may still
//! use the version, and whether its artifacts are still to be trusted. Much may have changed since.

use std::time::Duration;

use clients::trust;
use domain::{ErrorCode, StatusReason};
use engine::{Activity, Call, Fault, Retry};
use serde::{Deserialize, Serialize};
use sqlx::PgConnection;
use store::app_artifacts::AppArtifact;
use store::app_instance_artifacts::{self, Standing, UsedArtifact};
use store::app_instances::{self, AppInstance, Why};
use store::deployment::{self, Purpose};
use store::{Refused, app_versions, trust_demands};
use uuid::Uuid;

use crate::Env;
use crate::env::registry_trouble;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CheckEntitlement {
    pub instance: Uuid,
}

impl Activity for CheckEntitlement {
    const NAME: &'static str = "check_entitlement";
    type Env = Env;
    type Output = ();

    async fn run(&self, env: &Env, _call: &Call) -> Result<(), Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = found(&mut tx, self.instance).await?;
        match admitted(&mut tx, &instance).await {
            Ok(()) => Ok(tx.commit().await?),
            Err(why) => {
                tx.rollback().await?;
                Err(refused(env, instance.id, why).await?)
            }
        }
    }
}

async fn admitted(conn: &mut PgConnection, instance: &AppInstance) -> Result<(), Refused> {
    let version = app_versions::hold_for_use(conn, &instance.app_slug, &instance.version).await?;
    let gone = || Refused::no(ErrorCode::VersionNotFound, "The version is gone from the catalog.");
    let version = version.ok_or_else(gone)?;
    let word = |error: domain::UnknownWord| sqlx::Error::Decode(Box::new(error));
    let pair = (
        Some(instance.operating_mode.parse().map_err(word)?),
        Some(instance.control_plane_scope.parse().map_err(word)?),
    );
    let place = (instance.org_id, instance.project_id);
    // An instance that was asked for while its version was open is not turned away because it is deprecated since.
    let admitted = deployment::admit(conn, place, &version, pair, Purpose::Return).await?;
    admitted.allows_again(&instance.resources)?;
    deployment::credentials::require(conn, instance, &admitted.manifest.version).await
}

/// The artifacts that the instance is about to run, by digest, looked at in the registry itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ResolveArtifacts {
    pub instance: Uuid,
    /// Whether it runs what ran before: the verdict of then stands, so that no registry is needed.
    pub returns: bool,
}

impl Activity for ResolveArtifacts {
    const NAME: &'static str = "resolve_artifacts";
    /// About half an hour of a registry that does not answer.
    const RETRY: Retry = Retry::times(40).at_most(Duration::from_secs(60));
    const TIMEOUT: Duration = Duration::from_secs(120);
    type Env = Env;
    /// The digests.
    type Output = Vec<String>;

    async fn run(&self, env: &Env, _call: &Call) -> Result<Vec<String>, Fault> {
        let mut tx = env.engine.pool().begin().await?;
        let instance = found(&mut tx, self.instance).await?;
        let used = app_instance_artifacts::of(&mut tx, instance.id, Standing::Target).await?;
        let purpose = if self.returns { Purpose::Return } else { Purpose::New };
        let artifacts = match deployment::still_usable(&mut tx, &used, purpose).await {
            Ok(artifacts) => artifacts,
            Err(why) => {
                tx.rollback().await?;
                return Err(refused(env, instance.id, why).await?);
            }
        };
        let mut demands = Vec::new();
        for artifact in &artifacts {
            demands.push(trust_demands::of(&mut tx, artifact).await?);
        }
        tx.commit().await?;
        if !self.returns {
            for (artifact, demands) in artifacts.iter().zip(&demands) {
                self.examine(env, artifact, demands).await?;
            }
        }
        Ok(artifacts.into_iter().map(|artifact| artifact.digest).collect())
    }
}

impl ResolveArtifacts {
    /// A registry that does not answer has given no verdict.
    async fn examine(
        &self,
        env: &Env,
        artifact: &AppArtifact,
        demands: &domain::artifact::TrustDemands,
    ) -> Result<(), Fault> {
        let repository = env.registry()?.repository(artifact.repository.as_deref().unwrap_or_default());
        let evidence = match trust::examine(&repository, &artifact.digest()?, demands).await {
            Ok(evidence) => evidence,
            Err(fault) => return Err(registry_trouble(fault)),
        };
        if evidence.is_good() {
            return Ok(());
        }
        let wrong: Vec<&str> = evidence.failures().map(|check| check.message.as_str()).collect();
        let message =
            format!("The artifact {} is not trusted: {}.", artifact.artifact_name, wrong.join("; "));
        let why = Refused::no(ErrorCode::ArtifactUntrusted, message);
        Err(refused(env, self.instance, why).await?)
    }
}

/// The images that the instance is about to run, held still, if nothing was revoked since they were resolved. What was only
/// deprecated since goes on. The instance is held before.
pub(super) async fn images(conn: &mut PgConnection, instance: Uuid) -> Result<Vec<UsedArtifact>, Refused> {
    let used = app_instance_artifacts::of(conn, instance, Standing::Target).await?;
    deployment::still_usable(conn, &used, Purpose::Return).await?;
    Ok(used)
}

async fn found(conn: &mut PgConnection, instance: Uuid) -> Result<AppInstance, Fault> {
    let found = app_instances::find(conn, instance).await?;
    found.ok_or_else(|| Fault::terminal("no_such_instance", format!("there is no instance {instance}")))
}

/// What was refused, as a fault; the instance says why, in the words of its own list.
pub(super) async fn refused(env: &Env, instance: Uuid, refused: Refused) -> Result<Fault, Fault> {
    let (code, message) = match refused {
        Refused::Database(error) => return Ok(error.into()),
        Refused::No { code, message, .. } => (code, message),
        Refused::Invalid(problems) => {
            let told: Vec<String> =
                problems.into_iter().map(|(pointer, message)| format!("{pointer} {message}")).collect();
            (ErrorCode::ValidationError, told.join("; "))
        }
    };
    let why = Why { reason: reason(code), message };
    let mut tx = env.engine.pool().begin().await?;
    app_instances::note_reason(&mut tx, instance, &why).await?;
    tx.commit().await?;
    Ok(Fault::terminal(code.as_str(), why.message))
}

fn reason(code: ErrorCode) -> StatusReason {
    match code {
        ErrorCode::EntitlementRequired | ErrorCode::PolicyDenied | ErrorCode::StateConflict => {
            StatusReason::EntitlementRevoked
        }
        ErrorCode::ArtifactUntrusted | ErrorCode::ArtifactNotDeployable | ErrorCode::ArtifactNotFound => {
            StatusReason::ArtifactRevoked
        }
        ErrorCode::AccessCredentialNotFound => StatusReason::CredentialMissing,
        ErrorCode::PlacementUnsatisfiable => StatusReason::InsufficientCapacity,
        _ => StatusReason::Internal,
    }
}
