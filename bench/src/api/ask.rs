//! The client: as many connections as it is told, each asking again as soon as it is answered. It does little more than
//! move bytes, so that what is measured is the server.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures::future::try_join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use crate::failure::Failure;

/// As the server asks of those whom it turns away.
const COME_AGAIN: Duration = Duration::from_secs(1);

/// Whom to ask, and in which words.
#[derive(Debug, Clone)]
pub struct Target {
    pub address: SocketAddr,
    request: Vec<u8>,
}

impl Target {
    /// `authorization` is the header as it is sent.
    pub fn get(address: SocketAddr, path: &str, authorization: &str) -> Target {
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\nauthorization: {authorization}\r\n\r\n"
        );
        Target { address, request: request.into_bytes() }
    }

    pub fn post(address: SocketAddr, path: &str, authorization: &str, body: &str) -> Target {
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\nauthorization: {authorization}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        Target { address, request: request.into_bytes() }
    }

    /// A form, of somebody who has nothing to show yet.
    pub fn form(address: SocketAddr, path: &str, form: &str) -> Target {
        let length = form.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\naccept: application/json\r\n\
             content-type: application/x-www-form-urlencoded\r\ncontent-length: {length}\r\n\r\n{form}"
        );
        Target { address, request: request.into_bytes() }
    }

    /// As it is sent.
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// The body of one answer.
    pub async fn body(&self) -> Result<String, Failure> {
        let mut line = Line::open(self.address).await?;
        let body = line.ask(&self.request).await?.to_vec();
        String::from_utf8(body).map_err(|_| Failure::Setup("an answer is not text".into()))
    }

    /// The time each answer took, in milliseconds, of all that were asked for within `time`.
    pub async fn ask_for(&self, time: Duration, connections: usize) -> Result<Vec<f64>, Failure> {
        let mut lines = Vec::new();
        for _ in 0..connections {
            lines.push(Line::open(self.address).await?);
        }
        let until = Instant::now() + time;
        let asking = lines.into_iter().map(|line| {
            let request = self.request.clone();
            async move {
                tokio::spawn(keep_asking(line, request, until))
                    .await
                    .map_err(|e| Failure::Setup(e.to_string()))?
            }
        });
        Ok(try_join_all(asking).await?.concat())
    }
}

async fn keep_asking(mut line: Line, request: Vec<u8>, until: Instant) -> Result<Vec<f64>, Failure> {
    let mut took = Vec::new();
    loop {
        let began = Instant::now();
        if began >= until {
            return Ok(took);
        }
        line.ask(&request).await?;
        took.push(began.elapsed().as_secs_f64() * 1e3);
    }
}

/// One connection that is kept open.
pub struct Line {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Line {
    pub async fn open(address: SocketAddr) -> Result<Line, Failure> {
        let stream =
            TcpStream::connect(address).await.map_err(Failure::io(format!("connect to {address}")))?;
        stream.set_nodelay(true).map_err(Failure::io("send at once"))?;
        Ok(Line { stream, buffer: Vec::with_capacity(16 << 10) })
    }

    /// The body of the answer, which must be a 200 or a 201.
    pub async fn ask(&mut self, request: &[u8]) -> Result<&[u8], Failure> {
        self.stream.write_all(request).await.map_err(Failure::io("send a request"))?;
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await.map_err(Failure::io("read an answer"))?;
            if read == 0 {
                return Err(Failure::Setup("the server hung up".into()));
            }
            let Some(body) = body_of(&self.buffer)? else { continue };
            return Ok(&self.buffer[body..]);
        }
    }

    /// The same by somebody who comes again when the server is too busy. Answers how often that was, too.
    pub async fn ask_until_answered(&mut self, request: &[u8]) -> Result<(Value, usize), Failure> {
        for busy in 0.. {
            match self.ask(request).await {
                Ok(body) => return Ok((serde_json::from_slice(body).unwrap_or_default(), busy)),
                Err(Failure::Busy(_)) => sleep(COME_AGAIN).await,
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::Interrupted)
    }
}

/// Where the body begins, once all of it is there.
fn body_of(answer: &[u8]) -> Result<Option<usize>, Failure> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = String::from_utf8_lossy(&answer[..end]);
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or_else(|| Failure::Setup("an answer without a length".into()))?;
    let said = || String::from_utf8_lossy(answer).into_owned();
    match head.split(' ').nth(1) {
        _ if answer.len() < end + 4 + length => Ok(None),
        Some("200" | "201") => Ok(Some(end + 4)),
        Some("503") => Err(Failure::Busy(said())),
        _ => Err(Failure::Setup(format!("refused: {}", said()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_length_has_come() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(body_of(answer).unwrap(), Some(answer.len() - 2));
        assert_eq!(body_of(&answer[..answer.len() - 1]).unwrap(), None);
        assert_eq!(body_of(b"HTTP/1.1 200 OK\r\nContent").unwrap(), None);
        let busy = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}";
        assert!(matches!(body_of(busy), Err(Failure::Busy(_))));
        assert_eq!(body_of(&busy[..busy.len() - 1]).unwrap(), None);
        assert!(body_of(b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n").is_err());
    }
}
