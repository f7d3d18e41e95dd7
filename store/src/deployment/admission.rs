//! Whether a project may use a version at all: its entitlement, then policy, then the version's own state.

use domain::ErrorCode::{EntitlementRequired, PolicyDenied, StateConflict};
use domain::entitlement::{Effective, Limits};
use domain::manifest::Manifest;
use domain::placement::Grant;
use domain::version_status::VersionStatus;
use domain::{ControlPlaneScope, OperatingMode, RuntimeBackend};
use serde_json::{Value, json};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::app_versions::AppVersion;
use crate::{Refused, effective_policy, entitlements};

/// What a version is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A new instance, or an upgrade of one.
    New,
    /// A return to what ran before: what is deprecated will still do.
    Return,
    /// A throwaway for the version's own tests, before anybody is entitled to it.
    Smoke,
}

/// The mode and scope that somebody names; what is left out is the first that is allowed.
pub(super) type Asked = (Option<OperatingMode>, Option<ControlPlaneScope>);

/// A version that the project may use, with the mode and scope its instance has.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub manifest: Manifest,
    pub operating_mode: OperatingMode,
    pub control_plane_scope: ControlPlaneScope,
    pub policy: Effective,
}

impl Admitted {
    /// Whether policy lets an instance have so much.
    pub fn allows(&self, grant: &Grant) -> Result<(), Refused> {
        match self.policy.max_gpu_count {
            Some(most) if grant.gpu_count > most => {
                let message = format!("An instance of this project may have at most {most} GPUs.");
                let refused = Refused::no(PolicyDenied, message).with("reason", "too_many_gpus");
                Err(refused.with("removed", json!(self.policy.removed)))
            }
            _ => Ok(()),
        }
    }

    /// The same of what an instance has.
    pub fn allows_again(&self, resources: &Value) -> Result<(), Refused> {
        let grant: Grant = serde_json::from_value(resources.clone())
            .map_err(|error| Refused::Database(sqlx::Error::Decode(Box::new(error))))?;
        self.allows(&grant)
    }
}

/// In the order in which things are refused: entitlement, policy, state.
pub async fn admit(
    conn: &mut PgConnection,
    place: (Uuid, Uuid),
    version: &AppVersion,
    (mode, scope): Asked,
    purpose: Purpose,
) -> Result<Admitted, Refused> {
    let overrides = match purpose {
        Purpose::Smoke => Limits::default(),
        Purpose::New | Purpose::Return => entitled(conn, place.1, version).await?,
    };
    let manifest: Manifest = serde_json::from_value(version.manifest.clone())
        .map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
    backend(manifest.version.runtime_backend)?;
    let policy = effective_policy::effective(conn, place, &manifest, &overrides).await?;
    let (operating_mode, control_plane_scope) = pair(&policy, &manifest, mode, scope)?;
    state(version, place.1, purpose)?;
    Ok(Admitted { manifest, operating_mode, control_plane_scope, policy })
}

/// What the project narrowed its entitlement to.
async fn entitled(conn: &mut PgConnection, project: Uuid, version: &AppVersion) -> Result<Limits, Refused> {
    let entitlement = entitlements::find(conn, project, version.app_id).await?;
    match entitlement.filter(|entitlement| entitlement.enabled) {
        Some(entitlement) => Ok(entitlement.overrides.0),
        None => {
            let message = format!("The project is not entitled to {}.", version.slug);
            Err(Refused::no(EntitlementRequired, message).with("app_slug", version.slug.clone()))
        }
    }
}

/// What no part of this release runs yet.
fn backend(backend: RuntimeBackend) -> Result<(), Refused> {
    if backend.runs_on_agent() {
        return Ok(());
    }
    let message = format!("This platform does not run apps of the backend {} yet.", backend.as_str());
    Err(Refused::no(PolicyDenied, message)
        .with("reason", "backend_unavailable")
        .with("runtime_backend", backend.as_str()))
}

/// Whether there are instances of this mode and scope at all, whoever's.
pub(super) fn pair_problem((mode, scope): Asked) -> Option<(String, String)> {
    let (mode, scope) = (mode?, scope?);
    let message = format!("must be one that {} supports", mode.as_str());
    (!mode.supports(scope)).then(|| ("/control_plane_scope".to_owned(), message))
}

/// The first pair that is allowed, of those that were asked for.
fn pair(
    policy: &Effective,
    manifest: &Manifest,
    mode: Option<OperatingMode>,
    scope: Option<ControlPlaneScope>,
) -> Result<(OperatingMode, ControlPlaneScope), Refused> {
    let runs_here = manifest.app.supported_modes.operating_modes.contains(&OperatingMode::TenantDedicated);
    let platforms_own = mode == Some(OperatingMode::PlatformManaged)
        || scope == Some(ControlPlaneScope::Platform)
        || (mode.is_none() && scope.is_none() && !runs_here);
    if platforms_own {
        let message = "Instances that the platform runs for several tenants are not offered here.";
        return Err(Refused::no(PolicyDenied, message).with("reason", "mode_disabled"));
    }
    let asked = |(one, other): &(OperatingMode, ControlPlaneScope)| {
        mode.is_none_or(|mode| mode == *one) && scope.is_none_or(|scope| scope == *other)
    };
    let own = |(mode, _): &(OperatingMode, ControlPlaneScope)| *mode == OperatingMode::TenantDedicated;
    policy.pairs().into_iter().filter(own).find(asked).ok_or_else(|| {
        let message = "No mode and scope that was asked for is allowed to this project.";
        let pairs: Vec<_> = policy.pairs().into_iter().filter(own).collect();
        Refused::no(PolicyDenied, message)
            .with("reason", "mode_not_allowed")
            .with("allowed_pairs", json!(pairs))
            .with("removed", json!(policy.removed))
    })
}

fn state(version: &AppVersion, project: Uuid, purpose: Purpose) -> Result<(), Refused> {
    let in_canary = || version.canary.as_ref().is_some_and(|canary| canary.includes(version.id, project));
    let open = match version.status {
        VersionStatus::Active => true,
        VersionStatus::Canary => purpose == Purpose::Smoke || in_canary(),
        VersionStatus::Deprecated => purpose == Purpose::Return,
        VersionStatus::Staged => purpose == Purpose::Smoke,
        VersionStatus::Draft | VersionStatus::Retired => false,
    };
    if open {
        return Ok(());
    }
    let (slug, number, status) = (&version.slug, &version.version, version.status);
    let message = match status {
        VersionStatus::Canary => format!("{slug} {number} is in a canary that this project is not in."),
        _ => format!("{slug} {number} is {status} and cannot be deployed."),
    };
    Err(Refused::no(StateConflict, message).with("state", status.as_str()).with("allowed_actions", json!([])))
}
