//! A Postgres server with bad manners: connections through it break around a commit, so that the client cannot know
//! whether it took effect. A third of the time it did, and a third of the time it does so only when the client has long asked
//! again on another connection.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rand::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A message that ends a transaction: `commit` as a simple query, in either case, or the Sync after an extended one.
const SYNC: &[u8] = b"S\0\0\0\x04";

/// How long a message may be under way after its sender gave it up.
const LATE: Duration = Duration::from_millis(60);

pub struct Proxy {
    pub port: u16,
    /// One in so many commits is cut; 0 cuts none.
    pub one_in: Arc<AtomicU32>,
    pub cuts: Arc<AtomicU32>,
    /// Connections of an earlier era are open and lead nowhere.
    era: Arc<AtomicU32>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub async fn before(host: &str, port: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let (one_in, cuts) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (host, rate, count) = (host.to_owned(), Arc::clone(&one_in), Arc::clone(&cuts));
        let era = Arc::new(AtomicU32::new(0));
        let now = Arc::clone(&era);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect((host.as_str(), port)).await else { continue };
                let wire = Wire { era: Arc::clone(&now), of: now.load(Ordering::Relaxed) };
                tokio::spawn(carry(client, server, Arc::clone(&rate), Arc::clone(&count), wire));
            }
        });
        Proxy { port: address.port(), one_in, cuts, era, accepting }
    }

    /// As if the server's machine had gone and another come in its place: whoever is connected hears nothing ever again, not
    /// even that nobody is there.
    pub fn falls_silent(&self) {
        self.era.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A connection, and when it was made.
#[derive(Clone)]
struct Wire {
    era: Arc<AtomicU32>,
    of: u32,
}

impl Wire {
    /// Never returns once the wire leads nowhere: both ends stay open.
    async fn leads_on(&self) {
        if self.era.load(Ordering::Relaxed) != self.of {
            std::future::pending::<()>().await;
        }
    }
}

async fn carry(
    client: TcpStream,
    server: TcpStream,
    one_in: Arc<AtomicU32>,
    cuts: Arc<AtomicU32>,
    wire: Wire,
) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let answers = tokio::spawn(copy(from_server, to_client, wire.clone()));
    let _ = questions(from_client, to_server, &one_in, &cuts, &answers, &wire).await;
    answers.abort();
}

/// Passes the client's messages on until one of them is chosen to be the last.
async fn questions(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    one_in: &AtomicU32,
    cuts: &AtomicU32,
    answers: &JoinHandle<()>,
    wire: &Wire,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).await?;
        wire.leads_on().await;
        if read == 0 {
            return Ok(());
        }
        let message = &buffer[..read];
        let rate = one_in.load(Ordering::Relaxed);
        let ends =
            message.ends_with(SYNC) || message.windows(6).any(|word| word.eq_ignore_ascii_case(b"commit"));
        if ends && rate > 0 && rand::rng().random_ratio(1, rate) {
            cuts.fetch_add(1, Ordering::Relaxed);
            let heard = rand::rng().random_range(0..3);
            if heard > 0 {
                // The server hears it and commits; its answer goes nowhere.
                answers.abort();
                let message = message.to_vec();
                if heard > 1 {
                    drop(from);
                    tokio::time::sleep(LATE).await;
                }
                to.write_all(&message).await?;
            }
            return Ok(());
        }
        to.write_all(message).await?;
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, wire: Wire) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read) = from.read(&mut buffer).await {
        wire.leads_on().await;
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
