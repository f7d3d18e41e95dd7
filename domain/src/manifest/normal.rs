//! From the author's document to the normal form: one shape, every default written out, numbers in one spelling.
//!
//! It runs only on documents without problems, works on JSON values, and changes nothing in a document that is normal
//! already. What was left out follows from what is there: the unit of metering from its kind, the usual amount of
//! something from its least.

use serde_json::{Map, Value, json};

use super::artifact::ArtifactSlot;
use super::author::Form;
use super::reference::Reference;

/// The fields of a flat manifest that belong to the app.
const OF_APP: [&str; 7] =
    ["slug", "display_name", "description", "category", "runtime_backend", "supported_modes", "ui"];
const MIB_PER_GIB: u64 = 1024;

pub(super) fn normal(mut value: Value, form: Form) -> Value {
    if let Some(object) = value.as_object_mut() {
        object.remove("$schema");
    }
    let mut package = match form {
        Form::Package => value,
        Form::Flat => packaged(value),
    };
    fill(&mut package);
    spell_numbers(&mut package);
    package
}

/// Sorts the fields of a flat manifest into the two halves of a package.
fn packaged(flat: Value) -> Value {
    let Value::Object(fields) = flat else { return Value::Null };
    let (mut app, mut version) = (Map::new(), Map::new());
    for (name, value) in fields {
        let half = if OF_APP.contains(&name.as_str()) { &mut app } else { &mut version };
        half.insert(name, value);
    }
    let kind = version.get("runtime_profile").and_then(|profile| profile.get("kind")).cloned();
    if let Some(kind) = kind {
        app.entry("runtime_backend").or_insert(kind);
    }
    name_image(&mut version);
    if let Some(resources) =
        version.get_mut("runtime_profile").and_then(|profile| profile.get_mut("resources"))
    {
        rename_least(resources, "min_memory_mib", "memory_gib", MIB_PER_GIB);
        rename_least(resources, "min_vcpu", "cpu_cores", 1);
    }
    json!({ "app": app, "version": version })
}

/// The image that a flat manifest names becomes what it expects of the artifact `runtime`.
fn name_image(version: &mut Map<String, Value>) {
    let kind = version.remove("artifact_kind");
    let artifact = version.remove("artifact_ref");
    let profile = version.get_mut("runtime_profile").and_then(Value::as_object_mut);
    let image = artifact.or_else(|| profile.and_then(|profile| profile.remove("image_ref")));
    if let Some(profile) = version.get_mut("runtime_profile").and_then(Value::as_object_mut) {
        profile.remove("image_ref");
    }
    if kind.is_none() && image.is_none() {
        return;
    }
    let slots = version.entry("artifacts").or_insert_with(|| json!([]));
    let Some(slots) = slots.as_array_mut() else { return };
    if !slots.iter().any(|slot| slot["name"] == ArtifactSlot::RUNTIME) {
        slots.insert(0, json!({ "name": ArtifactSlot::RUNTIME }));
    }
    for slot in slots.iter_mut().filter(|slot| slot["name"] == ArtifactSlot::RUNTIME) {
        let Some(slot) = slot.as_object_mut() else { continue };
        if let Some(kind) = &kind {
            slot.entry("artifact_kind").or_insert(kind.clone());
        }
        let Some(reference) =
            image.as_ref().and_then(Value::as_str).and_then(|text| Reference::parse(text).ok())
        else {
            continue;
        };
        slot.entry("repository").or_insert(json!(reference.repository));
        if let Some(digest) = reference.digest {
            slot.entry("expected_digest").or_insert(json!(digest));
        }
    }
}

fn rename_least(resources: &mut Value, old: &str, new: &str, divisor: u64) {
    let Some(resources) = resources.as_object_mut() else { return };
    let Some(least) = resources.remove(old).as_ref().and_then(whole) else { return };
    let amount = resources.entry(new).or_insert_with(|| json!({}));
    amount["min"] = json!(least.div_ceil(divisor));
}

fn fill(package: &mut Value) {
    let backend = package["app"]["runtime_backend"].clone();
    let least_gpus = whole(&package["version"]["compatibility"]["min_gpu_count"]).unwrap_or(0);
    let Some(version) = package["version"].as_object_mut() else { return };
    version.insert("runtime_backend".to_owned(), backend);
    for slot in version.get_mut("artifacts").and_then(Value::as_array_mut).into_iter().flatten() {
        let source = if slot["artifact_kind"] == "blob" { "artifact_store" } else { "oci_registry" };
        set_default(slot, "source_type", json!(source));
    }
    if let Some(metering) = version.get_mut("metering") {
        let kind = metering["kind"].clone();
        set_default(metering, "unit", kind);
    }
    let first_port = first_port(version.get("runtime_profile"));
    for test in version.get_mut("smoke").and_then(Value::as_array_mut).into_iter().flatten() {
        set_default(test, "port", first_port.clone());
    }
    if let Some(profile) = version.get_mut("runtime_profile") {
        fill_health(profile, &first_port);
        set_default(profile, "resources", json!({}));
        fill_amount(&mut profile["resources"], "gpu_count", least_gpus);
        fill_amount(&mut profile["resources"], "cpu_cores", 1);
        fill_amount(&mut profile["resources"], "memory_gib", 1);
    }
}

fn first_port(profile: Option<&Value>) -> Value {
    profile.map_or(Value::Null, |profile| profile["ports"][0]["container"].clone())
}

/// An app that listens is ready once it accepts connections, unless it says more.
fn fill_health(profile: &mut Value, first_port: &Value) {
    if !first_port.is_null() {
        set_default(profile, "health", json!({ "kind": "tcp" }));
    }
    let Some(health) = profile.get_mut("health") else { return };
    if health["kind"] == "http" {
        set_default(health, "path", json!("/"));
    }
    if health["kind"] != "heartbeat" {
        set_default(health, "port", first_port.clone());
    }
}

/// The least is what is said, but never less than `least`; the usual is the least, unless said otherwise.
fn fill_amount(resources: &mut Value, name: &str, least: u64) {
    set_default(resources, name, json!({}));
    let amount = &mut resources[name];
    let min = whole(&amount["min"]).unwrap_or(least).max(least);
    amount["min"] = json!(min);
    set_default(amount, "default", json!(min));
}

fn set_default(object: &mut Value, name: &str, value: Value) {
    if let Some(object) = object.as_object_mut()
        && !value.is_null()
    {
        object.entry(name).or_insert(value);
    }
}

/// `1.0` and `1` are the same number, so they are written the same way.
fn spell_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(whole) = as_integer(number.as_f64()) {
                *value = json!(whole);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spell_numbers),
        Value::Object(fields) => fields.values_mut().for_each(spell_numbers),
        _ => {}
    }
}

/// Only where every reader of JSON agrees on the integer.
fn as_integer(number: Option<f64>) -> Option<i64> {
    let exact = 9_007_199_254_740_992.0;
    number.filter(|n| n.fract() == 0.0 && n.abs() <= exact).map(|n| n as i64)
}

fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| as_integer(value.as_f64()).and_then(|n| u64::try_from(n).ok()))
}
