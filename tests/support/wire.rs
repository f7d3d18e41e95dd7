//! The wire between an agent and the platform, as networks fail: cut, so that whoever sends is told; hung, so that nobody is
//! told anything; or carrying one way only. What a wire that hung had swallowed is gone, and so is its connection when it heals.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Open,
    /// Connections break, and new ones are not taken.
    Cut,
    /// Whatever is sent either way is swallowed.
    Hung,
    /// What the agent asks is heard; no answer comes.
    AnswersLost,
    /// Nothing that the agent asks is heard.
    QuestionsLost,
}

impl Mode {
    fn carries(self, way: Way) -> bool {
        match self {
            Mode::Open => true,
            Mode::Cut | Mode::Hung => false,
            Mode::AnswersLost => way == Way::Questions,
            Mode::QuestionsLost => way == Way::Answers,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Questions,
    Answers,
}

pub struct Wire {
    pub url: String,
    mode: watch::Sender<Mode>,
    accepting: JoinHandle<()>,
}

impl Wire {
    /// To a platform at this address, such as `http://127.0.0.1:80`.
    pub async fn to(platform: &str) -> Wire {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (mode, seen) = watch::channel(Mode::Open);
        let platform = platform.trim_start_matches("http://").to_owned();
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *seen.borrow() == Mode::Cut {
                    continue;
                }
                let Ok(server) = TcpStream::connect(&platform).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let (there, back) = (seen.clone(), seen.clone());
                tokio::spawn(async move {
                    tokio::select! {
                        () = carry(from_client, to_server, Way::Questions, there) => {}
                        () = carry(from_server, to_client, Way::Answers, back) => {}
                    }
                });
            }
        });
        Wire { url, mode, accepting }
    }

    pub fn is(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Until either end closes, or the wire breaks.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, way: Way, mut mode: watch::Receiver<Mode>) {
    let mut buffer = vec![0; 64 << 10];
    let mut swallowed = false;
    loop {
        let now = *mode.borrow_and_update();
        if now == Mode::Cut || (swallowed && now == Mode::Open) {
            return;
        }
        tokio::select! {
            changed = mode.changed() => if changed.is_err() { return },
            read = from.read(&mut buffer) => match read {
                Ok(read) if read > 0 => {
                    let now = *mode.borrow();
                    if now.carries(way) {
                        if to.write_all(&buffer[..read]).await.is_err() {
                            return;
                        }
                    } else {
                        swallowed = true;
                    }
                }
                _ => return,
            },
        }
    }
}
