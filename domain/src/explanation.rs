//! What a version asks of whoever deploys it and gives in return, read from its manifest alone.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::allocation::CapacityShape;
use crate::manifest::{AccessCredentialKind, Amount, Exposure, Manifest, MeteringKind, Resources};
use crate::runtime::{ControlPlaneScope, OperatingMode, RuntimeBackend};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionExplanation)]
pub struct Explanation {
    pub app_slug: String,
    pub version: String,
    pub runtime_backend: RuntimeBackend,
    pub supported: Vec<SupportedPair>,
    /// Fields of an instance's `config`.
    pub parameters: Vec<Parameter>,
    /// Fields of an instance's `placement_intent`; empty where it only names an allocation.
    pub placement: Vec<Parameter>,
    pub credentials: Vec<CredentialNeed>,
    /// What the app team's controller logs in with while it sets machines up.
    pub bootstrap_access_credential: Option<AccessCredentialKind>,
    pub ports: Vec<ExplainedPort>,
    pub needs: Needs,
    pub artifacts: Vec<ExplainedArtifact>,
    pub trust: Trust,
    pub price: Price,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SupportedPair {
    pub operating_mode: OperatingMode,
    pub control_plane_scope: ControlPlaneScope,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionParameter)]
pub struct Parameter {
    pub name: String,
    /// A JSON type, or several; null where the schema does not say.
    pub kind: Value,
    pub required: bool,
    pub default: Option<Value>,
    /// The only values it may have, where they are few.
    pub choices: Option<Vec<Value>>,
    pub description: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CredentialNeed {
    pub class: String,
    pub required: bool,
    pub description: Option<String>,
    /// The environment variable in which the app finds it.
    pub env: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedPort {
    pub name: String,
    pub container: u16,
    pub expose: Exposure,
}

/// What an allocation must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionNeeds)]
pub struct Needs {
    /// Shapes of allocations that will do; empty means any.
    pub capacity_shapes: Vec<CapacityShape>,
    /// Without them the app cannot start.
    pub min_gpu_count: u32,
    /// Accelerators that will do; empty means any.
    pub accelerators: Vec<String>,
    pub exclusive_node: bool,
    /// What an instance gets, and the bounds within which it may ask; null where the app team's controller decides.
    pub gpu_count: Option<Amount>,
    pub cpu_cores: Option<Amount>,
    pub memory_gib: Option<Amount>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedArtifact {
    pub name: String,
    pub artifact_kind: String,
    pub variant: Option<String>,
    /// The only digest that may be registered for it, where the manifest says so.
    pub expected_digest: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionTrust)]
pub struct Trust {
    /// Nothing runs by a tag.
    pub digest_only: bool,
    /// Whether the manifest itself names every digest.
    pub digests_in_manifest: bool,
}

/// What is counted besides the allocation. What a unit costs is in the price list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = VersionPrice)]
pub struct Price {
    /// Null where nothing but the allocation is paid for.
    pub metering: Option<MeteringKind>,
    pub unit: Option<String>,
    pub counted_by: Option<CountedBy>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    Platform,
    App,
}

impl Explanation {
    pub fn of(manifest: &Manifest) -> Explanation {
        let (app, version) = (&manifest.app, &manifest.version);
        let pair =
            |(operating_mode, control_plane_scope)| SupportedPair { operating_mode, control_plane_scope };
        Explanation {
            app_slug: app.slug.clone(),
            version: version.version.clone(),
            runtime_backend: app.runtime_backend,
            supported: app.supported_modes.pairs().map(pair).collect(),
            parameters: version.config_schema.as_ref().map(parameters).unwrap_or_default(),
            placement: version.placement_schema.as_ref().map(parameters).unwrap_or_default(),
            credentials: credentials(manifest),
            bootstrap_access_credential: version.runtime_requirements.bootstrap_access_credential,
            ports: ports(manifest),
            needs: needs(manifest),
            artifacts: artifacts(manifest),
            trust: Trust {
                digest_only: true,
                digests_in_manifest: version.artifacts.iter().all(|slot| slot.expected_digest.is_some()),
            },
            price: price(manifest),
        }
    }
}

/// The top of the schema: what a form would show.
fn parameters(schema: &Map<String, Value>) -> Vec<Parameter> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let fields = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, field): (&String, &Value)| Parameter {
        name: name.clone(),
        kind: said(schema, field, "type").cloned().unwrap_or_default(),
        required: required.contains(&name.as_str()),
        default: said(schema, field, "default").cloned(),
        choices: said(schema, field, "enum").and_then(Value::as_array).cloned(),
        description: said(schema, field, "description").and_then(Value::as_str).map(str::to_owned),
    };
    fields.into_iter().flatten().map(parameter).collect()
}

/// As many references as one may lead to another. Accepted schemas have no circles, but this reads whatever is stored.
const MAX_REFERENCES: usize = 32;

/// What a field says itself, or else what it refers to says.
fn said<'a>(schema: &'a Map<String, Value>, field: &'a Value, keyword: &str) -> Option<&'a Value> {
    let referred = |field: &&'a Value| {
        let pointer = field.get("$ref")?.as_str()?.strip_prefix("#/")?;
        let (name, rest) = pointer.split_once('/')?;
        schema.get(name)?.pointer(&format!("/{rest}"))
    };
    let mut chain = std::iter::successors(Some(field), referred).take(MAX_REFERENCES);
    chain.find_map(|field| field.get(keyword))
}

fn credentials(manifest: &Manifest) -> Vec<CredentialNeed> {
    let classes = &manifest.version.runtime_requirements.credential_classes;
    let need = |class: &crate::manifest::CredentialClass| CredentialNeed {
        class: class.class.clone(),
        required: class.required,
        description: class.description.clone(),
        env: class.env.clone(),
    };
    classes.iter().map(need).collect()
}

fn ports(manifest: &Manifest) -> Vec<ExplainedPort> {
    let ports = manifest.version.runtime_profile.iter().flat_map(|profile| profile.ports.iter().enumerate());
    ports
        .map(|(place, port)| ExplainedPort {
            name: port.endpoint_name(place),
            container: port.container,
            expose: port.expose,
        })
        .collect()
}

fn needs(manifest: &Manifest) -> Needs {
    let compatibility = &manifest.version.compatibility;
    let amount = |of: fn(&Resources) -> Amount| {
        manifest.version.runtime_profile.as_ref().map(|profile| of(&profile.resources))
    };
    Needs {
        capacity_shapes: compatibility.requires_capacity_shape.clone(),
        min_gpu_count: compatibility.min_gpu_count,
        accelerators: compatibility.supported_accelerators.clone(),
        exclusive_node: compatibility.requires_exclusive_node,
        gpu_count: amount(|resources| resources.gpu_count),
        cpu_cores: amount(|resources| resources.cpu_cores),
        memory_gib: amount(|resources| resources.memory_gib),
    }
}

fn artifacts(manifest: &Manifest) -> Vec<ExplainedArtifact> {
    let explained = |slot: &crate::manifest::ArtifactSlot| ExplainedArtifact {
        name: slot.name.clone(),
        artifact_kind: slot.artifact_kind.as_str().to_owned(),
        variant: slot.variant.clone(),
        expected_digest: slot.expected_digest.clone(),
    };
    manifest.version.artifacts.iter().map(explained).collect()
}

fn price(manifest: &Manifest) -> Price {
    let metering = manifest.version.metering.as_ref();
    Price {
        metering: metering.map(|metering| metering.kind),
        unit: metering.map(|metering| metering.unit.clone()),
        counted_by: metering.map(|metering| match metering.kind {
            MeteringKind::SessionSeconds | MeteringKind::GpuSeconds => CountedBy::Platform,
            MeteringKind::Tokens | MeteringKind::Requests | MeteringKind::Custom => CountedBy::App,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_shared_is_explained_where_it_is_used() {
        let schema = json!({
            "properties": {
                "size": { "$ref": "#/$defs/size", "description": "Of the cache." },
                "loop": { "$ref": "#/$defs/loop" },
                "odd": { "$ref": "#/$defs/a~1b" },
            },
            "$defs": {
                "size": { "$ref": "#/$defs/number", "default": 3, "description": "Any size." },
                "number": { "type": "integer", "enum": [1, 3] },
                "loop": { "$ref": "#/$defs/loop" },
                "a/b": { "type": ["string", "null"] },
            },
        });
        let told = parameters(schema.as_object().unwrap());
        let of = |name: &str| told.iter().find(|parameter| parameter.name == name).unwrap();
        let size = of("size");
        assert_eq!((&size.kind, &size.default), (&json!("integer"), &Some(json!(3))));
        assert_eq!(
            (&size.choices, size.description.as_deref()),
            (&Some(vec![json!(1), json!(3)]), Some("Of the cache."))
        );
        assert_eq!((&of("loop").kind, &of("odd").kind), (&Value::Null, &json!(["string", "null"])));
    }

    #[test]
    fn a_manifest_explains_itself() {
        let manifest: Manifest = serde_json::from_value(json!({
            "app": { "slug": "notes", "display_name": "Notes", "runtime_backend": "launchable_oci" },
            "version": {
                "version": "1.2.0", "runtime_backend": "launchable_oci",
                "artifacts": [{ "name": "runtime", "source_type": "oci_registry", "variant": "cpu" }],
                "runtime_profile": {
                    "kind": "launchable_oci", "ports": [{ "container": 8888 }],
                    "resources": { "gpu_count": { "min": 0, "default": 1, "max": 4 } },
                },
                "config_schema": {
                    "type": "object", "required": ["model"],
                    "properties": { "model": { "type": "string" }, "depth": { "type": "integer", "default": 3, "enum": [1, 3] } },
                },
                "runtime_requirements": { "credential_classes": [{ "class": "hub", "required": true, "env": "HUB" }] },
                "metering": { "kind": "tokens", "unit": "tokens" },
            },
        }))
        .unwrap();
        let told = serde_json::to_value(Explanation::of(&manifest)).unwrap();
        let of = |name: &str| {
            let all = told["parameters"].as_array().unwrap();
            all.iter().find(|parameter| parameter["name"] == name).cloned().unwrap()
        };
        assert_eq!((&of("model")["required"], &of("depth")["required"]), (&json!(true), &json!(false)));
        assert_eq!((&of("depth")["default"], &of("depth")["choices"]), (&json!(3), &json!([1, 3])));
        assert_eq!(told["ports"], json!([{ "name": "http", "container": 8888, "expose": "private" }]));
        assert_eq!(told["needs"]["gpu_count"], json!({ "min": 0, "default": 1, "max": 4 }));
        assert_eq!(told["credentials"][0]["class"], "hub");
        assert_eq!(told["price"], json!({ "metering": "tokens", "unit": "tokens", "counted_by": "app" }));
        assert_eq!(told["trust"]["digests_in_manifest"], false);
        assert_eq!(
            told["supported"],
            json!([{ "operating_mode": "tenant_dedicated", "control_plane_scope": "project" }])
        );
    }
}
