//! Sending much: a request may take as long as its body moves, and is given up when nothing of it moves.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use reqwest::{Body, RequestBuilder, Response};
use tokio::sync::watch;

#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("nothing moved for {0:?}")]
    Stalled(Duration),
    #[error("the connection failed")]
    Connection(#[source] reqwest::Error),
}

/// How long whoever is sent to may stand still.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    pub between_bytes: Duration,
    /// Once they have it all: some hash it, or move it to where it stays, before they answer.
    pub for_the_answer: Duration,
}

/// `size` is how much there is in `bytes`.
pub async fn send(
    request: RequestBuilder,
    bytes: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
    size: u64,
    patience: Patience,
) -> Result<Response, Broken> {
    let (tell, mut left) = watch::channel(size);
    let told = bytes.inspect(move |chunk| {
        let sent = chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        tell.send_modify(|left| *left = left.saturating_sub(sent));
    });
    let sending = request.header("content-length", size).body(Body::wrap_stream(told)).send();
    tokio::pin!(sending);
    loop {
        let all_sent = *left.borrow_and_update() == 0;
        let limit = if all_sent { patience.for_the_answer } else { patience.between_bytes };
        tokio::select! {
            answer = &mut sending => return answer.map_err(Broken::Connection),
            Ok(()) = left.changed() => {}
            () = tokio::time::sleep(limit) => return Err(Broken::Stalled(limit)),
        }
    }
}
