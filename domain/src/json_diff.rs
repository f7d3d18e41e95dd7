//! What changed between two JSON values, for people: one line per leaf that was added, removed or changed.
//!
//! Lists are compared place by place. Whoever reads the pointers can follow them into either value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// A JSON Pointer.
    pub pointer: String,
    pub kind: DifferenceKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DifferenceKind {
    Added,
    Removed,
    Changed,
}

/// In the order of the pointers' values; nothing when both are equal.
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&mut found, "", Some(before), Some(after));
    found
}

fn compare(found: &mut Vec<Difference>, at: &str, before: Option<&Value>, after: Option<&Value>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            for name in names(before, after) {
                let inside = format!("{at}/{}", escaped(name));
                compare(found, &inside, before.get(name), after.get(name));
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for place in 0..before.len().max(after.len()) {
                compare(found, &format!("{at}/{place}"), before.get(place), after.get(place));
            }
        }
        (before, after) => found.push(Difference {
            pointer: at.to_owned(),
            kind: match (before, after) {
                (None, _) => DifferenceKind::Added,
                (_, None) => DifferenceKind::Removed,
                _ => DifferenceKind::Changed,
            },
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// Of both, each once: first those of `before`, then those that are new.
fn names<'a>(before: &'a Map<String, Value>, after: &'a Map<String, Value>) -> Vec<&'a String> {
    before.keys().chain(after.keys().filter(|name| !before.contains_key(*name))).collect()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_leaf_that_differs_is_told_once_with_both_values() {
        let before = json!({ "a": 1, "b": { "c": [1, 2], "x/y": 0 }, "gone": true });
        let after = json!({ "a": 1, "b": { "c": [1, 3, 4], "x/y": 1 }, "new": { "deep": [] } });
        let told: Vec<_> =
            differences(&before, &after).into_iter().map(|d| (d.pointer, d.before, d.after)).collect();
        assert_eq!(
            told,
            [
                ("/b/c/1".to_owned(), Some(json!(2)), Some(json!(3))),
                ("/b/c/2".to_owned(), None, Some(json!(4))),
                ("/b/x~1y".to_owned(), Some(json!(0)), Some(json!(1))),
                ("/gone".to_owned(), Some(json!(true)), None),
                ("/new".to_owned(), None, Some(json!({ "deep": [] }))),
            ]
        );
    }

    #[test]
    fn pointers_lead_to_the_values_they_tell_of() {
        let (before, after) = (json!({ "~": [{ "a/b": 1 }] }), json!({ "~": [{ "a/b": 2 }] }));
        let told = differences(&before, &after);
        assert_eq!(told.len(), 1);
        assert_eq!(before.pointer(&told[0].pointer), told[0].before.as_ref());
        assert_eq!(after.pointer(&told[0].pointer), told[0].after.as_ref());
    }

    #[test]
    fn equal_values_do_not_differ() {
        let value = json!({ "a": [null, { "b": 1.5 }] });
        assert_eq!(differences(&value, &value.clone()), []);
    }
}
