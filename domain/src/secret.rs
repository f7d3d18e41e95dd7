//! `Secret<T>`: a value that may be used and must not be seen. It has no `Display` and no `Serialize`, its `Debug`
//! hides it, and its memory is wiped when it is dropped. The one way to the value is [`Secret::expose`], so that
//! every use can be found by searching for that word.

use std::fmt;

use serde::{Deserialize, Deserializer};
use zeroize::Zeroize;

use crate::redact::REDACTED;

#[derive(Clone)]
pub struct Secret<T: Zeroize>(T);

impl<T: Zeroize> Secret<T> {
    pub fn new(value: T) -> Secret<T> {
        Secret(value)
    }

    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> Drop for Secret<T> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// Secrets arrive in requests; they only must not leave in answers.
impl<'de, T: Zeroize + Deserialize<'de>> Deserialize<'de> for Secret<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret<T>, D::Error> {
        T::deserialize(deserializer).map(Secret)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Request {
        #[expect(dead_code, reason = "read by Debug")]
        user: String,
        key: Secret<String>,
    }

    #[test]
    fn a_secret_is_readable_only_where_it_is_exposed() {
        let request: Request = serde_json::from_str(r#"{"user": "ada", "key": "hunter2"}"#).unwrap();
        assert_eq!(request.key.expose(), "hunter2");
        assert_eq!(format!("{request:?}"), r#"Request { user: "ada", key: [redacted] }"#);
    }

    /// `serialized` resolves to one method only while `Secret` has no `Serialize`, else this does not compile; the
    /// same for `displayed`.
    #[test]
    fn a_secret_can_be_neither_serialized_nor_displayed() {
        trait Serialized<Marker> {
            fn serialized() {}
        }
        struct IsSerialize;
        impl<T: ?Sized> Serialized<()> for T {}
        impl<T: serde::Serialize + ?Sized> Serialized<IsSerialize> for T {}
        <Secret<String> as Serialized<_>>::serialized();

        trait Displayed<Marker> {
            fn displayed() {}
        }
        struct IsDisplay;
        impl<T: ?Sized> Displayed<()> for T {}
        impl<T: fmt::Display + ?Sized> Displayed<IsDisplay> for T {}
        <Secret<String> as Displayed<_>>::displayed();
    }

    #[test]
    fn a_dropped_secret_is_wiped() {
        struct Wiped(Rc<Cell<bool>>);
        impl Zeroize for Wiped {
            fn zeroize(&mut self) {
                self.0.set(true);
            }
        }
        let wiped = Rc::new(Cell::new(false));
        drop(Secret::new(Wiped(wiped.clone())));
        assert!(wiped.get());
    }
}
