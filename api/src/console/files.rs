//! The console's files, as the build put them into the binary. Everything that is not a file is a page of the console,
//! which finds its way by itself. Files of the build have their contents in their names, so browsers may keep them.

use axum::extract::{Path, State as Shared};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};

use super::message::Message;
use crate::state::State;

/// Nothing but the files of this server, no frame, no form to elsewhere; scripts and styles are files, never inline.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
const INDEX: &str = "index.html";
const FOREVER: &str = "public, max-age=31536000, immutable";

/// One file of the built console.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Relative to `/console/`.
    pub path: &'static str,
    pub media_type: &'static str,
    pub bytes: &'static [u8],
    /// The same, compressed, where that is worth it.
    pub gzip: Option<&'static [u8]>,
}

/// `/`: on to the console, or the word that there is none.
pub(super) async fn root(Shared(state): Shared<State>) -> Response {
    match find(&state, INDEX) {
        Some(_) => Redirect::to("/console/").into_response(),
        None => Message::NOT_BUILT.show(),
    }
}

pub(super) async fn page(state: Shared<State>, headers: HeaderMap) -> Response {
    any(state, Path(INDEX.to_owned()), headers).await
}

pub(super) async fn any(
    Shared(state): Shared<State>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    let is_asset = path.starts_with("assets/");
    let found = find(&state, &path).or_else(|| find(&state, INDEX).filter(|_| !is_asset));
    match found {
        Some(file) => file.answer(&headers),
        None if is_asset => StatusCode::NOT_FOUND.into_response(),
        None => Message::NOT_BUILT.show(),
    }
}

fn find(state: &State, path: &str) -> Option<File> {
    state.console.files.iter().find(|file| file.path == path).copied()
}

impl File {
    fn answer(self, headers: &HeaderMap) -> Response {
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
        let takes_gzip = accepted.is_some_and(|list| {
            list.split(',').any(|one| one.split(';').next().map(str::trim) == Some("gzip"))
        });
        let keep = if self.path.starts_with("assets/") { FOREVER } else { "no-cache" };
        let head: [(HeaderName, &'static str); 6] = [
            (header::CONTENT_TYPE, self.media_type),
            (header::CACHE_CONTROL, keep),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "same-origin"),
            (header::VARY, "accept-encoding"),
        ];
        match self.gzip.filter(|_| takes_gzip) {
            Some(gzip) => {
                let encoding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (head, encoding, gzip).into_response()
            }
            None => (head, self.bytes).into_response(),
        }
    }
}
