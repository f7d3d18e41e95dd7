//! JSON bodies. What the API document says of a body is what is checked: every problem is reported at once, each
//! with a JSON Pointer, and only then is the value read into its type.

mod check;
mod strict;

use std::time::Duration;

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

/// How long a body may take to arrive; the router puts it beside the body limit. Whoever is slower is refused, and holds
/// nothing meanwhile: bodies are read before a connection to the database is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience(pub(crate) Duration);

/// What a request can say: the bytes as they were sent, and what they mean.
pub(crate) trait ReadBody: Sized + Send {
    fn read(request: Request) -> impl Future<Output = Result<(Bytes, Self), ApiError>> + Send;
}

impl<T: DeserializeOwned + ToSchema + Send> ReadBody for T {
    async fn read(request: Request) -> Result<(Bytes, T), ApiError> {
        read(request).await
    }
}

/// The bytes as they were sent, and what they say.
pub(crate) async fn read<T: DeserializeOwned + ToSchema>(request: Request) -> Result<(Bytes, T), ApiError> {
    let (bytes, value) = read_json(request).await?;
    Ok((bytes, checked(value)?))
}

/// The bytes as they were sent, and their JSON. An empty body without content type stands for `{}`.
pub(crate) async fn read_json(request: Request) -> Result<(Bytes, Value), ApiError> {
    let media_type = MediaType::of(request.headers());
    let bytes = bytes(request).await?;
    let value = match (bytes.is_empty(), media_type) {
        (true, MediaType::Absent) => Value::Object(serde_json::Map::new()),
        (_, MediaType::Json) => parse(&bytes)?,
        _ => {
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType, "Send the body as application/json."));
        }
    };
    Ok((bytes, value))
}

/// What a request says, and the same request again: for handlers that must look around before they change anything.
pub(crate) async fn peek<T: DeserializeOwned + ToSchema>(request: Request) -> Result<(T, Request), ApiError> {
    let (bytes, request) = copy(request).await?;
    let mut looked = Request::new(bytes.into());
    *looked.headers_mut() = request.headers().clone();
    *looked.extensions_mut() = request.extensions().clone();
    let (_, value) = read(looked).await?;
    Ok((value, request))
}

/// The bytes of the body, and the same request again.
pub(crate) async fn copy(request: Request) -> Result<(Bytes, Request), ApiError> {
    let (head, body) = request.into_parts();
    let mut taken = Request::new(body);
    *taken.extensions_mut() = head.extensions.clone();
    let bytes = bytes(taken).await?;
    Ok((bytes.clone(), Request::from_parts(head, bytes.into())))
}

pub(crate) async fn bytes(request: Request) -> Result<Bytes, ApiError> {
    let Some(Patience(patience)) = request.extensions().get().copied() else {
        return Err(ApiError::internal(&"a route without the body's limits"));
    };
    let refused = |why: &str| ApiError::new(ErrorCode::InvalidRequest, why);
    let read = tokio::time::timeout(patience, Bytes::from_request(request, &())).await;
    let whole = read.map_err(|_| refused("The body took too long to arrive."))?;
    whole.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::new(ErrorCode::PayloadTooLarge, format!("The body is larger than {MAX_BYTES} bytes."))
        }
        _ => refused("The body could not be read to its end."),
    })
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
    strict::from_slice(bytes)
        .map_err(|error| ApiError::new(ErrorCode::InvalidRequest, format!("The body is not JSON: {error}.")))
}

/// The value as a `T`, or everything that is wrong with it.
fn checked<T: DeserializeOwned + ToSchema>(value: Value) -> Result<T, ApiError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_that_never_comes_is_not_waited_for() {
        let trickle = futures::stream::pending::<Result<Vec<u8>, std::convert::Infallible>>();
        let mut request = Request::new(axum::body::Body::from_stream(trickle));
        request.extensions_mut().insert(Patience(Duration::from_millis(1)));
        let refused = bytes(request).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::InvalidRequest);
    }
}
