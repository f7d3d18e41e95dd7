//! Serving a listener until told to stop, then letting the requests in flight end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;

use crate::router::router;
use crate::state::State;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves until `shutdown` resolves, then drains: long polls and streams end, other requests are answered, idle
/// connections are closed. The caller bounds how long that may take. `extra` are routes of other protocols beside ours.
pub async fn serve(
    listener: TcpListener,
    state: State,
    extra: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let draining = state.clone();
    let stop = async move {
        shutdown.await;
        draining.drain();
    };
    let service = router(state, extra).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(stop).await?;
    Ok(())
}
