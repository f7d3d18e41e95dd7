//! A door, once it is open: so many conversations at once and no more, and none with whoever takes too long to say what they
//! want. A workload that misbehaves costs the node no more than that. With the door, its conversations end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::routing::any;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::forward::{Way, forward};

/// Of one instance; the rest wait in the system's queue, which is short.
pub(super) const MOST_CONVERSATIONS: usize = 64;
/// How long the head of a request may take.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

pub(super) async fn serve(mut listener: TcpListener, way: Arc<Way>) {
    let router = Router::new().fallback(any(forward)).with_state(way);
    let (slots, mut conversations) = (Arc::new(Semaphore::new(MOST_CONVERSATIONS)), JoinSet::new());
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        // The trait's `accept` waits a moment and tries again when the process has no file descriptors left.
        let (stream, peer) = Listener::accept(&mut listener).await;
        conversations.spawn(converse(stream, peer, router.clone(), slot));
        while conversations.try_join_next().is_some() {}
    }
}

async fn converse(stream: TcpStream, peer: SocketAddr, router: Router, _slot: OwnedSemaphorePermit) {
    let app = router.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    let conversation = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    if let Err(error) = conversation.await {
        tracing::debug!(%error, "a workload's conversation ended early");
    }
}
