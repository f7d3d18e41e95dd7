//! Serving a listener until told to stop, then letting the requests in flight end.

use std::future::Future;
use std::io;
use std::net::SocketAddr;

use tokio::net::TcpListener;

use crate::router::router;
use crate::state::State;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Nobody is authenticated yet, so nobody but this machine may reach the server.
    #[error("refusing to serve on {0}: without authentication only loopback addresses are safe")]
    NotLoopback(SocketAddr),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Serves until `shutdown` resolves, then drains: long polls and streams end, other requests are answered, idle
/// connections are closed. The caller bounds how long that may take.
pub async fn serve(
    listener: TcpListener,
    state: State,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        return Err(ServeError::NotLoopback(address));
    }
    let draining = state.clone();
    let stop = async move {
        shutdown.await;
        draining.drain();
    };
    axum::serve(listener, router(state)).with_graceful_shutdown(stop).await?;
    Ok(())
}
