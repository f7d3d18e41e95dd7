//! A manifest as the body of a request: YAML or JSON, by its content type. What comes out is the normal form; what is
//! wrong is told all at once, with lines and columns.

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use domain::ErrorCode;
use domain::manifest::{self, Accepted, Format, Rejected};
use serde_json::json;

use crate::body;
use crate::error::ApiError;

pub(crate) const MEDIA_TYPES: [&str; 2] = ["application/json", "application/yaml"];

/// The bytes as they were sent, and the manifest they are.
pub(crate) async fn read(request: Request) -> Result<(Bytes, Accepted), ApiError> {
    let format = format(request.headers()).ok_or_else(|| {
        let message = format!("Send the manifest as {}.", MEDIA_TYPES.join(" or "));
        ApiError::new(ErrorCode::UnsupportedMediaType, message)
    })?;
    let bytes = body::bytes(request).await?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| ApiError::new(ErrorCode::InvalidRequest, "The manifest is not UTF-8 text."))?;
    let accepted = manifest::read(text, format).map_err(refused)?;
    Ok((bytes, accepted))
}

fn refused(rejected: Rejected) -> ApiError {
    let message = match rejected.problems.as_slice() {
        [only] => format!("{} {}", only.pointer, only.message).trim_start().to_owned(),
        several => format!("The manifest has {} problems.", several.len()),
    };
    let error = ApiError::new(ErrorCode::ValidationError, message).with("errors", json!(rejected.problems));
    if rejected.warnings.is_empty() { error } else { error.with("warnings", json!(rejected.warnings)) }
}

fn format(headers: &HeaderMap) -> Option<Format> {
    let said = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let essence = said.split(';').next()?.trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Some(Format::Json),
        "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => Some(Format::Yaml),
        other if other.ends_with("+json") => Some(Format::Json),
        other if other.ends_with("+yaml") => Some(Format::Yaml),
        _ => None,
    }
}
