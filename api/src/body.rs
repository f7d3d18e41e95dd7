//! JSON bodies. What the API document says of a body is what is checked: every problem is reported at once, each
//! with a JSON Pointer, and only then is the value read into its type.

mod check;

use api_types::Invalid;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use domain::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;

/// The body limit of every route that does not say otherwise.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// A request body. An empty one without content type stands for `{}`.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned + ToSchema, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Body<T>, ApiError> {
        let media_type = MediaType::of(request.headers());
        let bytes =
            Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
                StatusCode::PAYLOAD_TOO_LARGE => ApiError::new(
                    ErrorCode::PayloadTooLarge,
                    format!("The body is larger than {MAX_BYTES} bytes."),
                ),
                _ => ApiError::new(ErrorCode::InvalidRequest, "The body could not be read to its end."),
            })?;
        match (bytes.is_empty(), media_type) {
            (true, MediaType::Absent) => read(Value::Object(serde_json::Map::new())).map(Body),
            (_, MediaType::Json) => parse(&bytes).and_then(read).map(Body),
            _ => Err(ApiError::new(ErrorCode::UnsupportedMediaType, "Send the body as application/json.")),
        }
    }
}

enum MediaType {
    Absent,
    Json,
    Other,
}

impl MediaType {
    fn of(headers: &HeaderMap) -> MediaType {
        let Some(value) = headers.get(header::CONTENT_TYPE) else { return MediaType::Absent };
        let essence = value
            .to_str()
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let is_json = essence == "application/json"
            || (essence.starts_with("application/") && essence.ends_with("+json"));
        if is_json { MediaType::Json } else { MediaType::Other }
    }
}

fn parse(bytes: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::new(ErrorCode::InvalidRequest, format!("The body is not JSON: {error}.")))
}

fn read<T: DeserializeOwned + ToSchema>(value: Value) -> Result<T, ApiError> {
    let problems = check::problems::<T>(&value);
    if !problems.is_empty() {
        return Err(ApiError::listing(ErrorCode::ValidationError, problems));
    }
    // The schema cannot say everything a type knows, such as the width of a number.
    serde_json::from_value(value).map_err(|error| {
        let problem = Invalid { pointer: String::new(), message: error.to_string() };
        ApiError::listing(ErrorCode::ValidationError, vec![problem])
    })
}
