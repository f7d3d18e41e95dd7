//! A value of the author's document together with where it stands, so that checks can walk and point at once.
//!
//! Walking never fails: what is not there is a spot without a value, and what has the wrong type is complained about
//! elsewhere.

use serde_json::Value;

use super::problem::{Pointer, Problem};

#[derive(Clone, Debug)]
pub(super) struct Spot<'a> {
    value: Option<&'a Value>,
    pointer: Pointer,
}

impl<'a> Spot<'a> {
    pub(super) fn root(value: &'a Value) -> Spot<'a> {
        Spot { value: Some(value), pointer: Pointer::default() }
    }

    pub(super) fn at(&self, name: &str) -> Spot<'a> {
        Spot { value: self.value.and_then(|value| value.get(name)), pointer: self.pointer.field(name) }
    }

    /// The items of a list; none if it is not one.
    pub(super) fn items(&self) -> Vec<Spot<'a>> {
        let items = self.value.and_then(Value::as_array).into_iter().flatten().enumerate();
        items.map(|(place, item)| Spot { value: Some(item), pointer: self.pointer.item(place) }).collect()
    }

    /// The fields of an object; none if it is not one.
    pub(super) fn fields(&self) -> Vec<(&'a str, Spot<'a>)> {
        let fields = self.value.and_then(Value::as_object).into_iter().flatten();
        fields
            .map(|(name, value)| {
                (name.as_str(), Spot { value: Some(value), pointer: self.pointer.field(name) })
            })
            .collect()
    }

    pub(super) fn exists(&self) -> bool {
        self.value.is_some()
    }

    pub(super) fn value(&self) -> Option<&'a Value> {
        self.value
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        self.value.and_then(Value::as_str)
    }

    pub(super) fn number(&self) -> Option<u64> {
        let number = self.value.and_then(Value::as_number)?;
        number
            .as_u64()
            .or_else(|| number.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64))
    }

    pub(super) fn is(&self, word: &str) -> bool {
        self.text() == Some(word)
    }

    pub(super) fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    pub(super) fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::at(&self.pointer, message)
    }

    /// The field itself should not be there.
    pub(super) fn misplaced(&self, message: impl Into<String>) -> Problem {
        Problem::of_name(&self.pointer, message)
    }
}
