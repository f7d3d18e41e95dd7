//! Where and for whom an app runs: its backend, its operating mode, and the scope of its control plane.
//!
//! Mode and scope come in pairs, and only three pairs make sense; `supports` knows them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::word::UnknownWord;

/// What runs the app: the platform's own node agent, or a controller of the app team.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeBackend {
    /// One container, run by the node agent.
    LaunchableOci,
    /// A curated Compose stack, rendered by the platform and run by the node agent.
    DockerCompose,
    /// A Slurm cluster, run by the app team's controller.
    Slurm,
    /// A Ray cluster, run by the app team's controller.
    Ray,
    /// A Kubernetes cluster, run by the app team's controller.
    K8s,
    /// Whole machines, run by the app team's controller.
    BareMetal,
}

/// Whether a tenant has the app to itself.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OperatingMode {
    /// The tenant's own instance, on the tenant's own allocations.
    TenantDedicated,
    /// An instance that the platform runs for several tenants.
    PlatformManaged,
}

/// Whom one control plane of the app serves.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ControlPlaneScope {
    /// One project.
    Project,
    /// All projects of one organization.
    Tenant,
    /// Everybody on the platform.
    Platform,
}

/// Who shares what an instance runs on; follows from its scope.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum TenantBoundaryMode {
    ProjectIsolated,
    TenantShared,
    PlatformShared,
}

impl RuntimeBackend {
    pub const ALL: [RuntimeBackend; 6] = [
        RuntimeBackend::LaunchableOci,
        RuntimeBackend::DockerCompose,
        RuntimeBackend::Slurm,
        RuntimeBackend::Ray,
        RuntimeBackend::K8s,
        RuntimeBackend::BareMetal,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            RuntimeBackend::LaunchableOci => "launchable_oci",
            RuntimeBackend::DockerCompose => "docker_compose",
            RuntimeBackend::Slurm => "slurm",
            RuntimeBackend::Ray => "ray",
            RuntimeBackend::K8s => "k8s",
            RuntimeBackend::BareMetal => "bare_metal",
        }
    }

    /// Whether the platform's node agent runs it. Otherwise the app team's controller does.
    pub const fn runs_on_agent(self) -> bool {
        matches!(self, RuntimeBackend::LaunchableOci | RuntimeBackend::DockerCompose)
    }
}

impl OperatingMode {
    pub const ALL: [OperatingMode; 2] = [OperatingMode::TenantDedicated, OperatingMode::PlatformManaged];

    pub const fn as_str(self) -> &'static str {
        match self {
            OperatingMode::TenantDedicated => "tenant_dedicated",
            OperatingMode::PlatformManaged => "platform_managed",
        }
    }

    /// Whether an instance in this mode may have a control plane of that scope.
    pub const fn supports(self, scope: ControlPlaneScope) -> bool {
        match self {
            OperatingMode::TenantDedicated => !matches!(scope, ControlPlaneScope::Platform),
            OperatingMode::PlatformManaged => matches!(scope, ControlPlaneScope::Platform),
        }
    }
}

impl ControlPlaneScope {
    pub const ALL: [ControlPlaneScope; 3] =
        [ControlPlaneScope::Project, ControlPlaneScope::Tenant, ControlPlaneScope::Platform];

    pub const fn as_str(self) -> &'static str {
        match self {
            ControlPlaneScope::Project => "project",
            ControlPlaneScope::Tenant => "tenant",
            ControlPlaneScope::Platform => "platform",
        }
    }

    pub const fn boundary(self) -> TenantBoundaryMode {
        match self {
            ControlPlaneScope::Project => TenantBoundaryMode::ProjectIsolated,
            ControlPlaneScope::Tenant => TenantBoundaryMode::TenantShared,
            ControlPlaneScope::Platform => TenantBoundaryMode::PlatformShared,
        }
    }
}

impl TenantBoundaryMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            TenantBoundaryMode::ProjectIsolated => "project_isolated",
            TenantBoundaryMode::TenantShared => "tenant_shared",
            TenantBoundaryMode::PlatformShared => "platform_shared",
        }
    }
}

impl FromStr for RuntimeBackend {
    type Err = UnknownWord;
    fn from_str(name: &str) -> Result<RuntimeBackend, UnknownWord> {
        let named = RuntimeBackend::ALL.into_iter().find(|backend| backend.as_str() == name);
        named.ok_or_else(|| UnknownWord::new(name, "a runtime backend"))
    }
}

impl FromStr for OperatingMode {
    type Err = UnknownWord;
    fn from_str(name: &str) -> Result<OperatingMode, UnknownWord> {
        let named = OperatingMode::ALL.into_iter().find(|mode| mode.as_str() == name);
        named.ok_or_else(|| UnknownWord::new(name, "an operating mode"))
    }
}

impl FromStr for ControlPlaneScope {
    type Err = UnknownWord;
    fn from_str(name: &str) -> Result<ControlPlaneScope, UnknownWord> {
        let named = ControlPlaneScope::ALL.into_iter().find(|scope| scope.as_str() == name);
        named.ok_or_else(|| UnknownWord::new(name, "a control plane scope"))
    }
}

impl fmt::Display for RuntimeBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for OperatingMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for ControlPlaneScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_pairs_of_mode_and_scope_make_sense() {
        let pairs: Vec<String> = OperatingMode::ALL
            .into_iter()
            .flat_map(|mode| ControlPlaneScope::ALL.map(|scope| (mode, scope)))
            .filter(|(mode, scope)| mode.supports(*scope))
            .map(|(mode, scope)| format!("{mode}/{scope}"))
            .collect();
        assert_eq!(
            pairs,
            ["tenant_dedicated/project", "tenant_dedicated/tenant", "platform_managed/platform"]
        );
    }

    #[test]
    fn names_are_those_of_the_wire() {
        for backend in RuntimeBackend::ALL {
            assert_eq!(serde_json::to_value(backend).unwrap(), backend.as_str());
            assert_eq!(backend.as_str().parse(), Ok(backend));
        }
        for mode in OperatingMode::ALL {
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        for scope in ControlPlaneScope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.as_str());
            assert_eq!(scope.as_str().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope.boundary()).unwrap(), scope.boundary().as_str());
        }
        assert!("kubernetes".parse::<RuntimeBackend>().is_err());
    }
}
