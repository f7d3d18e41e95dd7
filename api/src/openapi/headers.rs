//! The headers of answers, each described once; answers refer to those they carry.

use domain::ErrorCode;
use utoipa::openapi::RefOr;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::response::Response;
use utoipa::openapi::schema::{Object, Ref, Schema, Type};

use crate::endpoint::text;
use crate::router::Route;

/// Everything that an answer of ours may carry besides what HTTP itself prescribes.
pub(super) fn described() -> Vec<(&'static str, Header)> {
    let header = |about: &str, schema: RefOr<Schema>| {
        HeaderBuilder::new().description(Some(about)).schema(Some(schema)).build()
    };
    let number = || Object::with_type(Type::Integer).into();
    vec![
        ("X-Request-ID", header("The request's name: the caller's, or one that was made for it.", text())),
        (
            "X-Correlation-ID",
            header("What ties together everything the request sets off; equal to `X-Request-ID`.", text()),
        ),
        (
            "RateLimit-Policy",
            header("How often the caller may ask: `q` requests within `w` seconds.", text()),
        ),
        ("RateLimit", header("What is left of it: `r` requests, for `t` more seconds.", text())),
        ("Retry-After", header("Seconds after which asking again makes sense.", number())),
        ("Location", header("Where what was made or started can be read.", text())),
        ("ETag", header("A strong tag of this very body, for `If-Match`.", text())),
        (
            "Idempotent-Replayed",
            header("`true` on an answer that was given before to the same key and body.", text()),
        ),
        ("WWW-Authenticate", header("`Bearer`: how to come again.", text())),
    ]
}

/// Refers to the headers that this answer of the route carries.
pub(super) fn complete(answer: &mut Response, status: u16, route: &Route) {
    let mut names = vec!["X-Request-ID", "X-Correlation-ID", "RateLimit-Policy", "RateLimit"];
    if route.is_mutation() && status < 300 {
        names.push("Idempotent-Replayed");
    }
    names.extend(match status {
        201 => Some("Location"),
        401 => Some("WWW-Authenticate"),
        409 | 429 | 502 | 503 => Some("Retry-After"),
        _ => None,
    });
    if status == 202 && route.is_mutation() {
        names.extend(["Location", "Retry-After"]);
    }
    for name in names {
        refer(answer, name);
    }
}

pub(crate) fn refer(answer: &mut Response, name: &str) {
    answer.headers.insert(name.to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))));
}

/// An error as the caller of this code gets it.
pub(super) fn example(code: ErrorCode) -> serde_json::Value {
    serde_json::json!({
        "code": code, "message": code.explanation(), "correlation_id": "deploy-42", "details": {},
    })
}
