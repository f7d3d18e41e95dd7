//! An answer as JSON. It is written into a vector with room from the start: axum's own buffer grows in small steps, which
//! costs a list more than its words do.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::ApiError;

/// Most answers fit.
const ROOM: usize = 1024;

pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let mut body = Vec::with_capacity(ROOM);
        match serde_json::to_writer(&mut body, &self.0) {
            Ok(()) => {
                ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
            }
            Err(error) => ApiError::internal(&error).into_response(),
        }
    }
}
