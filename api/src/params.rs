//! Query parameters, read by name. All problems are reported together, and a parameter nobody asked for is one of
//! them: a misspelt filter must not quietly return everything.

use std::fmt::Display;
use std::str::FromStr;

use api_types::Invalid;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use domain::ErrorCode;

use crate::error::ApiError;

pub(crate) struct Params {
    pairs: Vec<(String, String)>,
    asked: Vec<&'static str>,
    problems: Vec<Invalid>,
}

impl Params {
    /// The value as it was sent. An empty one is a problem: it comes of a variable that was never set, and whoever
    /// names a filter does not want everything.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<String> {
        self.asked.push(name);
        let mut values = self.pairs.iter().filter(|(given, _)| given == name).map(|(_, value)| value.clone());
        let (value, more) = (values.next(), values.next());
        if more.is_some() {
            self.problem(name, "may be given only once");
        }
        if value.as_deref() == Some("") {
            self.problem(name, "must not be empty");
        }
        value.filter(|value| !value.is_empty())
    }

    pub(crate) fn parsed<T: FromStr>(&mut self, name: &'static str, expected: impl Display) -> Option<T> {
        let text = self.text(name)?;
        let value = text.parse().ok();
        if value.is_none() {
            self.problem(name, format!("must be {expected}"));
        }
        value
    }

    /// Comma-separated values.
    pub(crate) fn list<T: FromStr>(&mut self, name: &'static str, expected: impl Display) -> Vec<T> {
        let text = self.text(name).unwrap_or_default();
        let words: Vec<&str> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
        let values: Vec<T> = words.iter().filter_map(|word| word.parse().ok()).collect();
        if values.len() < words.len() {
            self.problem(name, format!("must be {expected}"));
        }
        values
    }

    /// For a list that is always whole: its parameters are those of every list, and it has no second page.
    pub(crate) fn only_page(&mut self) {
        let rule = "a number from 1 to 200";
        if self.parsed::<u16>("limit", rule).is_some_and(|limit| !(1..=200).contains(&limit)) {
            self.problem("limit", format!("must be {rule}"));
        }
        if self.text("cursor").is_some() {
            self.problem("cursor", "is not a cursor of this list");
        }
    }

    pub(crate) fn problem(&mut self, name: &str, message: impl Into<String>) {
        self.problems.push(Invalid { pointer: format!("/{name}"), message: message.into() });
    }

    /// Call when every parameter of the route has been read.
    pub(crate) fn finish(mut self) -> Result<(), ApiError> {
        let strangers: Vec<String> = self
            .pairs
            .iter()
            .map(|(name, _)| name.clone())
            .filter(|name| !self.asked.contains(&name.as_str()))
            .collect();
        for name in strangers {
            let known = if self.asked.is_empty() { "none".to_owned() } else { self.asked.join(", ") };
            self.problem(&name, format!("is not a parameter of this route; known: {known}"));
        }
        if self.problems.is_empty() {
            Ok(())
        } else {
            Err(ApiError::listing(ErrorCode::InvalidRequest, self.problems))
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Params, ApiError> {
        let Query(pairs) = Query::<Vec<(String, String)>>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| ApiError::new(ErrorCode::InvalidRequest, rejection.body_text()))?;
        // What is no text was replaced while decoding; it must not match something that is.
        if pairs.iter().any(|(name, value)| name.contains('\u{FFFD}') || value.contains('\u{FFFD}')) {
            return Err(ApiError::new(
                ErrorCode::InvalidRequest,
                "The query holds bytes that are not UTF-8.",
            ));
        }
        Ok(Params { pairs, asked: Vec::new(), problems: Vec::new() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn params(pairs: &[(&str, &str)]) -> Params {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Params { pairs, asked: Vec::new(), problems: Vec::new() }
    }

    #[test]
    fn all_problems_are_listed_at_once() {
        let mut given = params(&[("limit", "many"), ("kind", "a"), ("kind", "b"), ("colour", "red")]);
        assert_eq!(given.parsed::<u32>("limit", "a number"), None);
        given.text("kind");
        let error = given.finish().unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidRequest);
        let pointers: Vec<&str> = error.details["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["pointer"].as_str().unwrap())
            .collect();
        assert_eq!(pointers, ["/limit", "/kind", "/colour"]);
    }

    #[test]
    fn an_empty_filter_does_not_mean_everything() {
        for name in ["kind", "since", "status"] {
            let mut given = params(&[(name, "")]);
            given.text("kind");
            given.parsed::<u8>("since", "a number");
            given.list::<u8>("status", "numbers");
            let error = given.finish().unwrap_err();
            let problems = json!([{"pointer": format!("/{name}"), "message": "must not be empty"}]);
            assert_eq!(error.details["errors"], problems);
        }
    }

    #[test]
    fn one_bad_word_spoils_a_list() {
        let mut given = params(&[("n", "1,x,3")]);
        given.list::<u8>("n", "numbers");
        assert!(given.finish().is_err());
    }
}
