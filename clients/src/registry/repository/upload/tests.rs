//! A registry that is slow, stands still, or breaks connections off, and remembers uploads or not.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpSocket;

use super::PART;
use crate::clock::SystemClock;
use crate::registry::{Authority, Registry, RegistryFault, Repository, TokenServer};

const MIB: usize = 1 << 20;

/// Longer than a busy machine may stand still: in such a story, only the server breaks anything off.
const LONG: Duration = Duration::from_secs(20);

/// How it behaves, and what it was sent.
#[derive(Default)]
struct Slow {
    /// For every MiB.
    pause: Duration,
    /// It reads so much and then nothing for ever.
    stands_still_at: Option<usize>,
    /// It breaks off once it has so much, once.
    breaks_at: Option<usize>,
    /// What broke off within a part is forgotten.
    forgets: bool,
    uploads: usize,
    bytes: Vec<u8>,
    kept: Option<Vec<u8>>,
    /// The first byte of everything that was sent.
    offsets: Vec<usize>,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Slow>>);

impl Server {
    fn that(slow: Slow) -> Server {
        Server(Arc::new(Mutex::new(slow)))
    }

    fn state(&self) -> MutexGuard<'_, Slow> {
        self.0.lock().unwrap()
    }

    /// A repository of it, whose uploads may stand still for so long. Little fits between the two: what the sender could
    /// send, the server has read, or nearly.
    async fn repository(&self, patience: Duration) -> Repository {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 << 10).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(16).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let clock = Arc::new(SystemClock);
        let authority = Authority::from_pem(Authority::generate_key().unwrap().expose(), clock.clone());
        let tokens = TokenServer::new(authority.unwrap(), "issuer", "service", clock);
        let registry = Registry::new(&url, "registry", tokens, None).unwrap();
        registry.repository("a/b").patient_for(patience)
    }

    /// Whether all of it arrived.
    async fn read(&self, body: Body) -> bool {
        let mut chunks = body.into_data_stream();
        while let Some(chunk) = chunks.next().await {
            let Ok(chunk) = chunk else { return false };
            let (pause, breaks) = {
                let mut state = self.state();
                state.bytes.extend_from_slice(&chunk);
                let has = state.bytes.len();
                if state.stands_still_at.is_some_and(|at| has >= at) {
                    (Duration::MAX, false)
                } else {
                    let breaks = state.breaks_at.is_some_and(|at| has >= at);
                    (state.pause.mul_f64(chunk.len() as f64 / MIB as f64), breaks)
                }
            };
            if breaks {
                let mut state = self.state();
                state.breaks_at = None;
                if state.forgets {
                    state.uploads += 1;
                }
                return false;
            }
            tokio::time::sleep(pause).await;
        }
        true
    }
}

async fn serve(
    State(server): State<Server>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let place = |server: &Server| {
        let state = server.state();
        let last = state.bytes.len().saturating_sub(1);
        [("location", format!("/v2/a/b/blobs/uploads/{}", state.uploads)), ("range", format!("0-{last}"))]
    };
    let known = uri.path().ends_with(&format!("/uploads/{}", server.state().uploads));
    match method {
        Method::HEAD if server.state().kept.is_some() => StatusCode::OK.into_response(),
        Method::POST => {
            let mut state = server.state();
            state.uploads += 1;
            state.bytes.clear();
            drop(state);
            (StatusCode::ACCEPTED, place(&server)).into_response()
        }
        Method::GET if known => (StatusCode::NO_CONTENT, place(&server)).into_response(),
        Method::PATCH | Method::PUT if known => {
            let range = headers.get("content-range").and_then(|value| value.to_str().ok());
            let first =
                range.and_then(|range| range.split_once('-')).and_then(|(first, _)| first.parse().ok());
            let has = server.state().bytes.len();
            server.state().offsets.push(first.unwrap_or_default());
            if first.unwrap_or_default() != has {
                return StatusCode::RANGE_NOT_SATISFIABLE.into_response();
            }
            if !server.read(body).await {
                return (StatusCode::SERVICE_UNAVAILABLE, [("connection", "close")]).into_response();
            }
            if method == Method::PATCH {
                return (StatusCode::ACCEPTED, place(&server)).into_response();
            }
            let mut state = server.state();
            state.kept = Some(state.bytes.clone());
            StatusCode::CREATED.into_response()
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at / 997 % 251) as u8).collect()
}

fn same(kept: Option<&Vec<u8>>, sent: &[u8]) -> bool {
    kept.is_some_and(|kept| Sha256::digest(kept) == Sha256::digest(sent))
}

#[tokio::test]
async fn an_upload_may_take_as_long_as_it_moves() {
    let server = Server::that(Slow { pause: Duration::from_millis(150), ..Slow::default() });
    let patience = Duration::from_secs(2);
    let (repository, sent) = (server.repository(patience).await, bytes(24 * MIB));
    let began = Instant::now();
    repository.push_bytes(&sent).await.expect("it moves");
    assert!(began.elapsed() > patience, "it took {:?}, which proves nothing", began.elapsed());
    assert!(same(server.state().kept.as_ref(), &sent));
}

#[tokio::test]
async fn an_upload_that_stands_still_is_given_up() {
    let server = Server::that(Slow { stands_still_at: Some(MIB), ..Slow::default() });
    let repository = server.repository(Duration::from_millis(300)).await;
    let fault = repository.push_bytes(&bytes(24 * MIB)).await.unwrap_err();
    assert!(matches!(&fault, RegistryFault::Unavailable(why) if why.contains("nothing moved")), "{fault}");
}

#[tokio::test]
async fn an_upload_that_broke_off_goes_on_where_the_registry_stands() {
    let part = usize::try_from(PART).unwrap();
    let server = Server::that(Slow { breaks_at: Some(part + MIB), ..Slow::default() });
    let (repository, sent) = (server.repository(LONG).await, bytes(part + 2 * MIB));
    repository.push_bytes(&sent).await.expect("it goes on");
    let state = server.state();
    assert!(same(state.kept.as_ref(), &sent));
    assert_eq!((state.uploads, &state.offsets[..2]), (1, &[0, part][..]));
    assert!(state.offsets[2] > part, "only what was missing is sent again: {:?}", state.offsets);
}

#[tokio::test]
async fn an_upload_that_the_registry_forgot_begins_anew() {
    let server = Server::that(Slow { breaks_at: Some(2 * MIB), forgets: true, ..Slow::default() });
    let (repository, sent) = (server.repository(LONG).await, bytes(3 * MIB));
    repository.push_bytes(&sent).await.expect("it begins anew");
    let state = server.state();
    assert!(same(state.kept.as_ref(), &sent));
    assert_eq!(state.offsets, [0, 0]);
}
