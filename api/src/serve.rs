//! Serving a listener until told to stop, then letting the requests in flight end. A connection on which the head of a
//! request takes too long is closed, so that slow callers cannot hold on to it for nothing.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::router::{probes, router};
use crate::state::State;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A server ends in two moves, so that whoever sends it requests can see it coming.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// From here on `/readyz` says no, and long polls and streams end. Requests are still taken.
    pub announced: CancellationToken,
    /// No more requests are taken; those under way are answered.
    pub begun: CancellationToken,
}

/// Serves the API until its ending has begun, then answers what is left; the caller bounds how long that may take. `extra`
/// are routes of other protocols beside ours.
pub async fn serve(
    listener: TcpListener,
    state: State,
    extra: Router,
    ending: Ending,
) -> Result<(), ServeError> {
    let app = router(state.clone(), extra);
    answer(listener, state, app, ending).await
}

/// The same of a process that has no API: it only says how it is.
pub async fn serve_probes(listener: TcpListener, state: State, ending: Ending) -> Result<(), ServeError> {
    let app = probes(state.clone());
    answer(listener, state, app, ending).await
}

async fn answer(
    mut listener: TcpListener,
    state: State,
    app: Router,
    ending: Ending,
) -> Result<(), ServeError> {
    let connections = GracefulShutdown::new();
    let patience = state.receive_within;
    loop {
        // The trait's `accept` waits a moment and tries again when the process has no file descriptors left.
        let (stream, peer) = tokio::select! {
            () = ending.announced.cancelled(), if !state.draining.is_cancelled() => {
                state.drain();
                continue;
            }
            () = ending.begun.cancelled() => break,
            accepted = Listener::accept(&mut listener) => accepted,
        };
        tokio::spawn(converse(stream, peer, app.clone(), patience, connections.watcher()));
    }
    drop(listener);
    state.drain();
    connections.shutdown().await;
    Ok(())
}

/// One connection, from its first request to its last.
async fn converse(stream: TcpStream, peer: SocketAddr, app: Router, patience: Duration, watcher: Watcher) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "answers may leave a little later");
    }
    let app = app.map_request(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(patience);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}
