//! What a version says about its instances: which `config` and `placement_intent` they may have, which packages, and
//! how their config reaches the container.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::package::{MAX_PACKAGES, package_problem};
use super::problem::Problem;
use super::profile::{LaunchParameter, RuntimeProfile};
use super::resources::Amount;
use super::user_schema;
use super::version::Version;

/// What `config` becomes on its way into the container: variables, and words that follow the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaunchValues {
    pub env: Vec<(String, String)>,
    pub arguments: Vec<String>,
}

/// What a launch asks for; `None` takes what is usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub gpu_count: Option<u32>,
    pub cpu_cores: Option<u32>,
    pub memory_gib: Option<u32>,
}

/// What an instance gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Granted {
    pub gpu_count: u32,
    pub cpu_cores: u32,
    pub memory_gib: u32,
}

impl Version {
    /// What an instance gets, or why it cannot have what the launch asks for.
    pub fn grant(&self, wanted: Wanted) -> Result<Granted, Vec<Problem>> {
        let bounds =
            self.runtime_profile.as_ref().map(|profile| profile.resources.clone()).unwrap_or_default();
        let mut found = Vec::new();
        let mut settle = |name: &str, bounds: Amount, wanted: Option<u32>| {
            let number = wanted.unwrap_or(bounds.default);
            if !bounds.allows(number) {
                let most = bounds.max.map(|max| format!(" and at most {max}")).unwrap_or_default();
                found.push(Problem::at(format!("/{name}"), format!("must be at least {}{most}", bounds.min)));
            }
            number
        };
        let granted = Granted {
            gpu_count: settle("gpu_count", bounds.gpu_count, wanted.gpu_count),
            cpu_cores: settle("cpu_cores", bounds.cpu_cores, wanted.cpu_cores),
            memory_gib: settle("memory_gib", bounds.memory_gib, wanted.memory_gib),
        };
        if found.is_empty() { Ok(granted) } else { Err(found) }
    }

    /// The image variants that a launch may choose from, in the order of the artifacts.
    pub fn variants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.artifacts.iter().filter_map(|slot| slot.variant.as_deref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// All that is wrong with an instance's `config`. A version without a schema takes none.
    pub fn config_problems(&self, config: &Value) -> Vec<Problem> {
        let schema = match &self.config_schema {
            Some(schema) => Value::Object(schema.clone()),
            None => json!({ "type": "object", "additionalProperties": false }),
        };
        user_schema::instance_problems(&schema, config)
    }

    /// All that is wrong with an instance's `placement_intent`. Without a schema it names one allocation.
    pub fn placement_problems(&self, intent: &Value) -> Vec<Problem> {
        let schema = match &self.placement_schema {
            Some(schema) => Value::Object(schema.clone()),
            None => json!({
                "type": "object",
                "properties": { "allocation_id": { "type": "string", "format": "uuid" } },
                "required": ["allocation_id"],
                "additionalProperties": false,
            }),
        };
        user_schema::instance_problems(&schema, intent)
    }

    /// All that is wrong with the packages a launch adds.
    pub fn package_problems(&self, added: &[String]) -> Vec<Problem> {
        let own = self.runtime_profile.as_ref().and_then(|profile| profile.packages.as_ref());
        let Some(own) = own else {
            let refused = Problem::at("", "is not taken: this version installs no packages");
            return if added.is_empty() { Vec::new() } else { vec![refused] };
        };
        let mut found = Vec::new();
        if own.len() + added.len() > MAX_PACKAGES {
            let room = MAX_PACKAGES.saturating_sub(own.len());
            found
                .push(Problem::at("", format!("must have at most {room} packages beside the version's own")));
        }
        for (place, specifier) in added.iter().enumerate() {
            if let Some(why) = package_problem(specifier) {
                found.push(Problem::at(format!("/{place}"), why));
            }
        }
        found
    }

    /// The config with the defaults that its schema gives for fields that are not there.
    pub fn effective_config(&self, config: &Value) -> Value {
        let mut config = config.clone();
        if let Some(schema) = &self.config_schema {
            fill_defaults(&mut config, schema);
        }
        config
    }

    /// What becomes of a config that was found right.
    pub fn launch_values(&self, config: &Value) -> LaunchValues {
        let config = self.effective_config(config);
        self.runtime_profile.as_ref().map(|profile| profile.launch_values(&config)).unwrap_or_default()
    }
}

impl RuntimeProfile {
    /// What becomes of a config that has its defaults already.
    pub fn launch_values(&self, config: &Value) -> LaunchValues {
        let mut values = LaunchValues::default();
        for parameter in &self.launch_parameters {
            values.add(parameter, &config[parameter.name.as_str()]);
        }
        values
    }
}

impl LaunchValues {
    fn add(&mut self, parameter: &LaunchParameter, value: &Value) {
        if value.is_null() {
            return;
        }
        if let Some(name) = &parameter.env {
            self.env.push((name.clone(), worded(value)));
        }
        let Some(word) = &parameter.argument else { return };
        match value {
            Value::Bool(true) => self.arguments.push(word.clone()),
            Value::Bool(false) => {}
            Value::Array(items) => {
                for item in items {
                    self.arguments.extend([word.clone(), worded(item)]);
                }
            }
            other => self.arguments.extend([word.clone(), worded(other)]),
        }
    }
}

/// Text as it is, everything else as JSON.
fn worded(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Objects inside objects have their defaults too, but only where the object is there.
fn fill_defaults(value: &mut Value, schema: &Map<String, Value>) {
    let Some(object) = value.as_object_mut() else { return };
    let Some(Value::Object(properties)) = schema.get("properties") else { return };
    for (name, property) in properties {
        if let Some(default) = property.get("default") {
            object.entry(name).or_insert_with(|| default.clone());
        }
        if let (Some(inner), Some(property)) = (object.get_mut(name), property.as_object()) {
            fill_defaults(inner, property);
        }
    }
}

#[cfg(test)]
mod tests;
