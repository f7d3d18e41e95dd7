//! A wire over which one question is heard and not answered: it breaks as the answer comes, and is whole again for the next
//! connection.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub struct Mute {
    pub url: String,
    has_lost: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl Mute {
    /// `platform` is where the wire leads, and `words` are how the question begins, such as `POST /things HTTP`.
    pub async fn before(platform: &str, words: &str) -> Mute {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let address: SocketAddr = listener.local_addr().expect("an address");
        let platform = platform.trim_start_matches("http://").to_owned();
        let (words, has_lost) = (words.to_owned(), Arc::new(AtomicBool::new(false)));
        let lost = Arc::clone(&has_lost);
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&platform).await else { continue };
                tokio::spawn(carry(client, server, words.clone(), Arc::clone(&lost)));
            }
        });
        Mute { url: format!("http://{address}"), has_lost, accepting }
    }

    pub fn has_lost(&self) -> bool {
        self.has_lost.load(Ordering::SeqCst)
    }
}

impl Drop for Mute {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// One question at a time, as HTTP/1.1 has them; both ends are dropped where the answer is lost.
async fn carry(mut client: TcpStream, mut server: TcpStream, words: String, has_lost: Arc<AtomicBool>) {
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let (mut question, mut answer) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut was_asked = false;
    loop {
        tokio::select! {
            read = from_client.read(&mut question) => {
                let Ok(read @ 1..) = read else { return };
                was_asked |= question[..read].starts_with(words.as_bytes()) && !has_lost.load(Ordering::SeqCst);
                if to_server.write_all(&question[..read]).await.is_err() {
                    return;
                }
            }
            read = from_server.read(&mut answer) => {
                let Ok(read @ 1..) = read else { return };
                if was_asked {
                    has_lost.store(true, Ordering::SeqCst);
                    return;
                }
                if to_client.write_all(&answer[..read]).await.is_err() {
                    return;
                }
            }
        }
    }
}
