//! A wire that breaks once, after so many bytes of whoever sends, and is whole again for the next connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub struct Cutter {
    pub address: SocketAddr,
    left: Arc<AtomicI64>,
    accepting: JoinHandle<()>,
}

impl Cutter {
    /// `host` is where the wire leads.
    pub async fn before(host: &str, after: i64) -> Cutter {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (host, left) = (host.to_owned(), Arc::new(AtomicI64::new(after)));
        let budget = Arc::clone(&left);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&host).await else { continue };
                tokio::spawn(carry(client, server, Arc::clone(&budget)));
            }
        });
        Cutter { address, left, accepting }
    }

    pub fn has_cut(&self) -> bool {
        self.left.load(Ordering::Relaxed) <= 0
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Both ends of the connection are dropped where it is cut.
async fn carry(client: TcpStream, server: TcpStream, left: Arc<AtomicI64>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let answers = tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read) = from_client.read(&mut buffer).await {
        let before = left.fetch_sub(i64::try_from(read).unwrap_or_default(), Ordering::Relaxed);
        let cut = before > 0 && before <= i64::try_from(read).unwrap_or_default();
        if read == 0 || to_server.write_all(&buffer[..read]).await.is_err() || cut {
            break;
        }
    }
    answers.abort();
}
