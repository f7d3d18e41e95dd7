//! The JSON Schema (2020-12) of manifests, made from the types, for editors and for our own validation.
//!
//! A package has `app` and `version`; a flat manifest has the fields of both side by side, and a few words of its own.
//! Documented variants become an `enum` with descriptions, and fields that may be left out are not `null` either: both
//! make editors and our messages say what people expect.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::app::Manifest;

/// The dialect of our schema and of those inside manifests.
pub const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

pub(super) const PACKAGE: &str = "Manifest";
pub(super) const FLAT: &str = "FlatManifest";

/// The schema of both forms.
pub fn schema() -> &'static Value {
    static SCHEMA: LazyLock<Value> = LazyLock::new(build);
    &SCHEMA
}

/// The schema of one form: `PACKAGE` or `FLAT`.
pub(super) fn schema_of(form: &str) -> Value {
    json!({ "$schema": DIALECT, "$ref": format!("#/$defs/{form}"), "$defs": schema()["$defs"] })
}

fn build() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut package = generator.into_root_schema_for::<Manifest>().to_value();
    tidy(&mut package);
    let mut defs = match package["$defs"].take() {
        Value::Object(defs) => defs,
        _ => Map::new(),
    };
    for name in ["$schema", "$defs"] {
        package.as_object_mut().map(|package| package.remove(name));
    }
    allow_schema_keyword(&mut package);
    add_flat(&mut defs);
    defs.insert(PACKAGE.to_owned(), package);
    json!({
        "$schema": DIALECT,
        "title": "GPUaaS app manifest",
        "description": "What an app team writes down so that its app can be reviewed, deployed and billed: a package of `app` and `version`, or the flat form with the fields of both.",
        "if": { "anyOf": [
            { "required": ["app"] },
            { "properties": { "version": { "type": "object" } }, "required": ["version"] },
        ] },
        "then": { "$ref": format!("#/$defs/{PACKAGE}") },
        "else": { "$ref": format!("#/$defs/{FLAT}") },
        "$defs": defs,
    })
}

/// The flat form is made from the halves of a package, so that it cannot fall behind.
fn add_flat(defs: &mut Map<String, Value>) {
    let resources = extended(
        &defs["Resources"],
        json!({
            "min_memory_mib": { "type": "integer", "minimum": 1, "maximum": 67_108_864, "description": "The least memory; becomes `memory_gib.min`, rounded up." },
            "min_vcpu": { "type": "integer", "minimum": 1, "maximum": 65536, "description": "The fewest cores; becomes `cpu_cores.min`." },
        }),
    );
    let profile = extended(
        &defs["RuntimeProfile"],
        json!({
            "image_ref": { "type": "string", "maxLength": 512, "description": "The image by digest; equal to `artifact_ref`." },
            "resources": { "$ref": "#/$defs/FlatResources" },
        }),
    );
    let mut flat = extended(&defs["App"], defs["Version"]["properties"].clone());
    flat = extended(
        &flat,
        json!({
            "artifact_kind": { "$ref": "#/$defs/ArtifactKind", "description": "What `artifact_ref` is." },
            "artifact_ref": { "type": "string", "maxLength": 512, "description": "The image by digest: `registry/repository@sha256:…`." },
            "runtime_profile": { "$ref": "#/$defs/FlatRuntimeProfile" },
        }),
    );
    flat["title"] = json!("Flat manifest");
    flat["description"] = json!("An app and one version of it, with the fields of both side by side.");
    flat["required"] = json!(["slug", "display_name", "version"]);
    allow_schema_keyword(&mut flat);
    defs.insert("FlatResources".to_owned(), resources);
    defs.insert("FlatRuntimeProfile".to_owned(), profile);
    defs.insert(FLAT.to_owned(), flat);
}

fn extended(schema: &Value, more: Value) -> Value {
    let mut extended = schema.clone();
    if let (Some(properties), Value::Object(more)) = (extended["properties"].as_object_mut(), more) {
        properties.extend(more);
    }
    extended
}

/// Editors find the schema of a file by a `$schema` in it.
fn allow_schema_keyword(schema: &mut Value) {
    schema["properties"]["$schema"] =
        json!({ "type": "string", "description": "The schema that editors check this file with." });
}

fn tidy(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        one_of_words(object);
        without_null(object);
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(tidy),
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// `oneOf` constants is what schemars makes of documented variants; editors show an `enum` better.
fn one_of_words(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.get("oneOf") else { return };
    let mut words = Vec::new();
    let mut told = Vec::new();
    for branch in branches {
        match (&branch["const"], &branch["enum"]) {
            (Value::String(word), _) => words.push(word.clone()),
            (_, Value::Array(several)) => {
                words.extend(several.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => return,
        }
        told.resize(words.len(), branch["description"].as_str().unwrap_or_default().to_owned());
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), json!("string"));
    schema.insert("enum".to_owned(), json!(words));
    schema.insert("enumDescriptions".to_owned(), json!(told));
}

fn without_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else { return };
    branches.retain(|branch| branch["type"] != "null");
    if let [Value::Object(only)] = branches.as_slice() {
        let only = only.clone();
        schema.remove("anyOf");
        schema.extend(only);
    }
}
