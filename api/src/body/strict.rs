//! JSON read without guessing: a name that appears twice in an object is an error, because two readers could take
//! different ones of its values.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub(super) fn from_slice(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice::<Strict>(bytes).map(|strict| strict.0)
}

/// Up to here every whole number is a floating-point number of its own.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(Reader).map(Strict)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        // To JSON Schema 2.0 is an integer.
        let whole = value.fract() == 0.0 && value.abs() < LARGEST_EXACT;
        let number = if whole { Some(Number::from(value as i64)) } else { Number::from_f64(value) };
        number.map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((name, Strict(value))) = fields.next_entry::<String, Strict>()? {
            if object.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("the name {name:?} appears twice")));
            }
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unambiguous_is_read_as_ever() {
        for text in
            [r#"{"a":[1,-2,3.5,true,null,"x"],"b":{"a":{}}}"#, "7", "18446744073709551615", r#""é\n""#]
        {
            let plain: Value = serde_json::from_str(text).unwrap();
            assert_eq!(from_slice(text.as_bytes()).unwrap(), plain, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_integers_however_they_are_written() {
        for (text, number) in [("88.0", 88), ("-0.0", 0), ("1e3", 1000)] {
            assert_eq!(from_slice(text.as_bytes()).unwrap(), Value::from(number), "{text}");
        }
        assert!(from_slice(b"1e300").unwrap().is_f64());
    }

    #[test]
    fn a_name_that_appears_twice_is_an_error_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"b":{"a":1,"x":2,"a":3}}]"#, r#"{"a":1,"\u0061":2}"#] {
            assert!(from_slice(text.as_bytes()).unwrap_err().to_string().contains("appears twice"), "{text}");
        }
    }

    #[test]
    fn numbers_without_bounds_and_depths_without_end_are_errors() {
        assert!(from_slice(b"1e400").is_err());
        assert!(from_slice("[".repeat(10_000).as_bytes()).is_err());
    }
}
