//! `PUT /uploads/{token}`: the bytes of a blob, where blobs are kept on a disk of ours. The address is told with an intent
//! and is all that an upload needs. `HEAD` tells how much is there; `PUT` with `Content-Range` goes on after it, without
//! one begins anew. How large an upload may be is the intent's to say.

use std::time::Duration;

use api_types::UploadProgress;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use clients::blobs::{BlobFault, Blobs, Disk, Part};
use domain::{Digest, ErrorCode};
use futures::{Stream, StreamExt, stream};
use sha2::{Digest as _, Sha256};
use store::publish_intents::{self, OpenUpload};

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::json::Json;
use crate::state::State;

const OFFSET: &str = "upload-offset";

pub(crate) fn look() -> Endpoint {
    Endpoint::new("get_upload_offset", "How much of an upload is there", tell)
        .answers_nothing("`Upload-Offset` is the next byte to send.")
        .refuses(&[ErrorCode::UploadNotFound])
        .takes_its_time()
        .proves_itself()
}

pub(crate) fn write() -> Endpoint {
    Endpoint::new("upload", "Bytes of a blob", take)
        .bytes()
        .header(
            "Content-Range",
            "`bytes FIRST-LAST/TOTAL` goes on with an upload; without it the upload begins anew.",
        )
        .answers::<UploadProgress>(200, "How much is there now, and the digest once it is all.")
        .refuses(&[
            ErrorCode::UploadNotFound,
            ErrorCode::StateConflict,
            ErrorCode::OperationInProgress,
            ErrorCode::PayloadTooLarge,
            ErrorCode::DigestMismatch,
        ])
        .takes_its_time()
        .proves_itself()
}

async fn tell(Shared(state): Shared<State>, Path(token): Path<String>) -> Result<Response, ApiError> {
    let (disk, upload) = (disk(&state)?, open(&state, &token).await?);
    let offset = disk.offset(upload.intent_id).await.map_err(refused)?;
    Ok((StatusCode::NO_CONTENT, [(OFFSET, offset.to_string())]).into_response())
}

async fn take(
    Shared(state): Shared<State>,
    Path(token): Path<String>,
    request: Request,
) -> Result<Response, ApiError> {
    let part = part(request.headers())?;
    let (disk, upload) = (disk(&state)?, open(&state, &token).await?);
    let most = u64::try_from(upload.max_bytes).unwrap_or_default();
    let body = arriving(request.into_body(), state.receive_within);
    let written = disk.write(upload.intent_id, part, most, body).await.map_err(refused)?;
    if let (Some(found), Some(expected)) = (&written.digest, &upload.expected_digest)
        && found.as_str() != expected
    {
        let asked: Digest = expected.parse().map_err(|error| ApiError::internal(&error))?;
        return Err(refused(BlobFault::Mismatch { asked, found: found.clone() }));
    }
    let body = UploadProgress { upload_offset: written.offset, digest: written.digest };
    Ok(([(OFFSET, written.offset.to_string())], Json(body)).into_response())
}

/// Buckets take uploads themselves, by addresses of their own.
fn disk(state: &State) -> Result<&Disk, ApiError> {
    match state.depot()?.blobs.as_ref() {
        Some(Blobs::Disk(disk)) => Ok(disk),
        _ => Err(ApiError::plain(ErrorCode::UploadNotFound)),
    }
}

async fn open(state: &State, token: &str) -> Result<OpenUpload, ApiError> {
    let mut tx = state.read().await?;
    let found = publish_intents::open_upload(&mut tx, &Sha256::digest(token)).await?;
    tx.rollback().await?;
    found.ok_or_else(|| ApiError::plain(ErrorCode::UploadNotFound))
}

/// The body, given up on when nothing arrives for too long.
fn arriving(body: Body, patience: Duration) -> impl Stream<Item = Result<Bytes, ()>> {
    stream::unfold(body.into_data_stream(), move |mut body| async move {
        match tokio::time::timeout(patience, body.next()).await {
            Ok(None) => None,
            Ok(Some(chunk)) => Some((chunk.map_err(|_| ()), body)),
            Err(_) => Some((Err(()), body)),
        }
    })
}

/// `bytes FIRST-LAST/TOTAL`, with `*` for a total that is not known yet.
fn part(headers: &HeaderMap) -> Result<Part, ApiError> {
    let Some(value) = headers.get(header::CONTENT_RANGE) else { return Ok(Part::Whole) };
    let wrong =
        || ApiError::new(ErrorCode::InvalidRequest, "Content-Range must be `bytes FIRST-LAST/TOTAL`.");
    let range = value.to_str().ok().and_then(|text| text.strip_prefix("bytes ")).ok_or_else(wrong)?;
    let (range, total) = range.split_once('/').ok_or_else(wrong)?;
    let (first, last) = range.split_once('-').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let (first, last) = (number(first)?, number(last)?);
    let total = if total == "*" { None } else { Some(number(total)?) };
    if last < first || total.is_some_and(|total| last >= total) {
        return Err(wrong());
    }
    Ok(Part::Range { first, last, total })
}

pub(crate) fn refused(fault: BlobFault) -> ApiError {
    let message = fault.to_string();
    match fault {
        BlobFault::Absent => ApiError::invalid("/digest", message),
        BlobFault::TooLarge { most } => {
            ApiError::new(ErrorCode::PayloadTooLarge, message).with("max_bytes", most)
        }
        BlobFault::Mismatch { asked, found } => ApiError::new(ErrorCode::DigestMismatch, message)
            .with("asked", asked.as_str())
            .with("found", found.as_str()),
        BlobFault::Elsewhere { offset } => {
            ApiError::new(ErrorCode::StateConflict, message).with("upload_offset", offset)
        }
        BlobFault::Busy => ApiError::new(ErrorCode::OperationInProgress, message).retry_after(1),
        BlobFault::Interrupted => ApiError::new(ErrorCode::InvalidRequest, message),
        BlobFault::NoRoom => ApiError::unavailable("The artifact store has no room left."),
        BlobFault::Unavailable(why) => {
            tracing::warn!(why, "the artifact store failed");
            ApiError::unavailable("The artifact store does not answer right now.")
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(value: &'static str) -> Option<Part> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_RANGE, HeaderValue::from_static(value));
        part(&headers).ok()
    }

    #[test]
    fn ranges_are_read_as_they_are_written_or_not_at_all() {
        assert_eq!(part(&HeaderMap::new()).unwrap(), Part::Whole);
        assert_eq!(read("bytes 0-9/10"), Some(Part::Range { first: 0, last: 9, total: Some(10) }));
        assert_eq!(read("bytes 5-9/*"), Some(Part::Range { first: 5, last: 9, total: None }));
        for wrong in ["bytes 9-0/10", "bytes 0-10/10", "bytes 0-9", "0-9/10", "bytes -9/10", "bytes 0-x/10"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
