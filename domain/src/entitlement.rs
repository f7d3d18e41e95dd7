//! What a project may do with an app: the intersection of what the manifest, the platform, the organization and the
//! project each allow. A layer can only take away, and what it took away is told with its name.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runtime::{ControlPlaneScope, OperatingMode};

/// From the outermost to the innermost. An inner layer lives with what the outer ones left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EntitlementLayer)]
pub enum Layer {
    Manifest,
    Platform,
    Org,
    Project,
}

/// What one layer allows. Where it says nothing it takes nothing away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PolicyOverrides)]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_operating_modes: Option<BTreeSet<OperatingMode>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_control_plane_scopes: Option<BTreeSet<ControlPlaneScope>>,
    /// The most GPUs one instance may ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 65536)]
    pub max_gpu_count: Option<u32>,
}

/// What is left when every layer has had its say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = EffectivePolicy)]
pub struct Effective {
    pub operating_modes: BTreeSet<OperatingMode>,
    pub control_plane_scopes: BTreeSet<ControlPlaneScope>,
    /// Without one the allocation is the limit.
    pub max_gpu_count: Option<u32>,
    /// What is missing from the lists above, and because of whom.
    pub removed: Vec<Removal>,
}

/// Something that is not allowed, and the outermost layer that does not allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = PolicyRemoval)]
pub struct Removal {
    pub layer: Layer,
    #[serde(flatten)]
    pub option: Choice,
}

/// One thing a layer can take away, or an override can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(tag = "field", content = "value")]
#[schema(as = PolicyChoice)]
pub enum Choice {
    #[serde(rename = "allowed_operating_modes")]
    Mode(OperatingMode),
    #[serde(rename = "allowed_control_plane_scopes")]
    Scope(ControlPlaneScope),
    /// More GPUs than this.
    #[serde(rename = "max_gpu_count")]
    GpusAbove(u32),
}

impl Limits {
    /// What the platform itself allows: instances it runs for several tenants only where somebody switched that on.
    pub fn where_platform_managed_is(enabled: bool) -> Limits {
        if enabled {
            return Limits::default();
        }
        Limits {
            allowed_operating_modes: Some([OperatingMode::TenantDedicated].into()),
            allowed_control_plane_scopes: Some(
                [ControlPlaneScope::Project, ControlPlaneScope::Tenant].into(),
            ),
            max_gpu_count: None,
        }
    }

    fn allows_mode(&self, mode: OperatingMode) -> bool {
        self.allowed_operating_modes.as_ref().is_none_or(|allowed| allowed.contains(&mode))
    }

    fn allows_scope(&self, scope: ControlPlaneScope) -> bool {
        self.allowed_control_plane_scopes.as_ref().is_none_or(|allowed| allowed.contains(&scope))
    }
}

impl Effective {
    /// Whether an instance may have this mode and scope.
    pub fn allows(&self, mode: OperatingMode, scope: ControlPlaneScope) -> bool {
        mode.supports(scope)
            && self.operating_modes.contains(&mode)
            && self.control_plane_scopes.contains(&scope)
    }

    /// Every pair of mode and scope an instance may have.
    pub fn pairs(&self) -> Vec<(OperatingMode, ControlPlaneScope)> {
        let all = OperatingMode::ALL.into_iter();
        let all = all.flat_map(|mode| ControlPlaneScope::ALL.map(|scope| (mode, scope)));
        all.filter(|(mode, scope)| self.allows(*mode, *scope)).collect()
    }

    /// What of an override goes beyond this, each with the layer that forbids it.
    pub fn widened_by(&self, asked: &Limits) -> Vec<Removal> {
        let modes = asked.allowed_operating_modes.iter().flatten().map(|mode| Choice::Mode(*mode));
        let scopes = asked.allowed_control_plane_scopes.iter().flatten().map(|scope| Choice::Scope(*scope));
        let mut beyond: Vec<Removal> = modes
            .chain(scopes)
            .filter_map(|option| self.removed.iter().find(|removal| removal.option == option).copied())
            .collect();
        if let (Some(asked), Some(most)) = (asked.max_gpu_count, self.max_gpu_count)
            && asked > most
        {
            let bound = Choice::GpusAbove(most);
            beyond.extend(self.removed.iter().find(|removal| removal.option == bound).copied());
        }
        beyond
    }
}

/// The intersection of all layers, whatever their order here.
pub fn narrow(layers: &[(Layer, Limits)]) -> Effective {
    let mut layers: Vec<&(Layer, Limits)> = layers.iter().collect();
    layers.sort_by_key(|(layer, _)| *layer);
    let forbids = |allowed: &dyn Fn(&Limits) -> bool| {
        layers.iter().find(|(_, limits)| !allowed(limits)).map(|(layer, _)| *layer)
    };
    let mut left = Effective {
        operating_modes: BTreeSet::new(),
        control_plane_scopes: BTreeSet::new(),
        max_gpu_count: None,
        removed: Vec::new(),
    };
    for mode in OperatingMode::ALL {
        match forbids(&|limits| limits.allows_mode(mode)) {
            None => _ = left.operating_modes.insert(mode),
            Some(layer) => left.removed.push(Removal { layer, option: Choice::Mode(mode) }),
        }
    }
    for scope in ControlPlaneScope::ALL {
        match forbids(&|limits| limits.allows_scope(scope)) {
            None => _ = left.control_plane_scopes.insert(scope),
            Some(layer) => left.removed.push(Removal { layer, option: Choice::Scope(scope) }),
        }
    }
    left.max_gpu_count = layers.iter().filter_map(|(_, limits)| limits.max_gpu_count).min();
    if let Some(most) = left.max_gpu_count {
        let layer = layers.iter().find(|(_, limits)| limits.max_gpu_count == Some(most));
        left.removed
            .extend(layer.map(|(layer, _)| Removal { layer: *layer, option: Choice::GpusAbove(most) }));
    }
    left
}

#[cfg(test)]
mod tests;
