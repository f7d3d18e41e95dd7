//! The reference: a process with one axum route that answers the bytes it was given.

use std::net::SocketAddr;

use axum::Router;
use axum::http::header;
use axum::routing::get;
use axum::serve::ListenerExt;
use clap::Args;
use tokio::net::TcpListener;

use super::read::PATH;
use crate::failure::Failure;

#[derive(Debug, Args)]
pub struct BareArgs {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    body: String,
}

/// The child's side: answers until it is killed.
pub async fn run(args: BareArgs) -> Result<bool, Failure> {
    let body = args.body;
    let answer = move || {
        let body = body.clone();
        async move { ([(header::CONTENT_TYPE, "application/json")], body) }
    };
    let listener = TcpListener::bind(args.listen).await.map_err(Failure::io("listen"))?;
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new().route(PATH, get(answer));
    axum::serve(listener, router).await.map_err(Failure::io("serve"))?;
    Ok(true)
}
