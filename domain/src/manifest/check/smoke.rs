//! The instance that a version's own tests ask can be launched from the manifest alone: nobody is there to be asked for its
//! config, its place or its credentials.

use serde_json::{Value, json};

use crate::manifest::author::Author;
use crate::manifest::check::Findings;
use crate::manifest::spot::Spot;
use crate::manifest::user_schema;

pub(super) fn check(author: &Author<'_>, found: &mut Findings) {
    let smoke = author.version.at("smoke");
    let given = author.version.at("smoke_config");
    if smoke.items().is_empty() {
        if given.exists() {
            found.refuse(given.misplaced("is for versions with `smoke`"));
        }
        return;
    }
    config(author, &smoke, &given, found);
    placement(author, &smoke, found);
    credentials(author, &smoke, found);
}

/// The schema at this place, unless there is something wrong with it, which is said elsewhere.
fn sound(schema: &Spot<'_>) -> Option<Value> {
    let value = schema.value().filter(|value| value.is_object())?;
    user_schema::problems(value, schema.pointer()).is_empty().then(|| value.clone())
}

fn config(author: &Author<'_>, smoke: &Spot<'_>, given: &Spot<'_>, found: &mut Findings) {
    let declared = author.version.at("config_schema");
    let schema = match declared.exists() {
        true => sound(&declared),
        false => Some(json!({ "type": "object", "additionalProperties": false })),
    };
    let Some(schema) = schema else { return };
    match given.value() {
        Some(value) if value.is_object() => {
            for problem in user_schema::instance_problems(&schema, value) {
                found.refuse(problem.below(given.pointer()));
            }
        }
        // Another type is said elsewhere.
        Some(_) => {}
        None => {
            for problem in user_schema::instance_problems(&schema, &json!({})) {
                let why = format!("cannot be asked: config{} {}", problem.pointer, problem.message);
                found.refuse(smoke.problem(format!("{why}; give it in `smoke_config`")));
            }
        }
    }
}

/// The tests run on whichever allocation fits.
fn placement(author: &Author<'_>, smoke: &Spot<'_>, found: &mut Findings) {
    let Some(schema) = sound(&author.version.at("placement_schema")) else { return };
    let anywhere = json!({ "allocation_id": uuid::Uuid::nil() });
    for problem in user_schema::instance_problems(&schema, &anywhere) {
        let why = format!("cannot be asked: placement_intent{} {}", problem.pointer, problem.message);
        found.refuse(smoke.problem(format!("{why}, and the tests only choose an allocation")));
    }
}

fn credentials(author: &Author<'_>, smoke: &Spot<'_>, found: &mut Findings) {
    for class in author.version.at("runtime_requirements").at("credential_classes").items() {
        if class.at("required").value() == Some(&Value::Bool(true)) {
            let name = class.at("class").text().unwrap_or_default();
            let why = format!("cannot be asked: every launch must name the credential `{name}`");
            found.refuse(smoke.problem(why));
        }
    }
}
