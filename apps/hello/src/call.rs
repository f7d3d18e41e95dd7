//! Calls to the platform: JSON over plain HTTP/1.1. The address is the node agent's relay on the instance's own
//! network, which speaks TLS to the platform in our stead.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST_ANSWER: u64 = 1 << 20;

/// Sends JSON and reads the status and what came back; a body that is no JSON counts as null.
pub(crate) fn post(base: &str, path: &str, token: Option<&str>, body: &Value) -> io::Result<(u16, Value)> {
    let host = base
        .strip_prefix("http://")
        .map(|rest| rest.trim_end_matches('/'))
        .ok_or_else(|| io::Error::other("the relay must be a plain http:// address"))?;
    let with_port = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    let address = with_port.to_socket_addrs()?.next().ok_or_else(|| io::Error::other("no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let body = body.to_string();
    let bearer = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: hello/{}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{bearer}connection: close\r\n\r\n{body}",
        env!("CARGO_PKG_VERSION"),
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    understood(&String::from_utf8_lossy(&answer))
}

fn understood(answer: &str) -> io::Result<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| io::Error::other("the answer is not HTTP"))?;
    let chunked = head.to_ascii_lowercase().contains("\r\ntransfer-encoding: chunked");
    let body = if chunked { unchunked(body) } else { body.to_owned() };
    Ok((status, serde_json::from_str(&body).unwrap_or_default()))
}

/// The chunks without their sizes; a cut one ends it.
fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16).unwrap_or(0);
        let Some(chunk) = after.get(..size).filter(|chunk| !chunk.is_empty()) else { break };
        body.push_str(chunk);
        rest = after.get(size..).and_then(|after| after.strip_prefix("\r\n")).unwrap_or_default();
    }
    body
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn plain_and_chunked_answers_are_understood() {
        let plain = "HTTP/1.1 201 Created\r\ncontent-length: 7\r\n\r\n{\"a\":1}";
        assert_eq!(understood(plain).unwrap(), (201, json!({ "a": 1 })));
        let chunked =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n";
        assert_eq!(understood(chunked).unwrap(), (200, json!({ "a": 1 })));
        assert_eq!(understood("HTTP/1.1 503 Busy\r\n\r\nno").unwrap(), (503, Value::Null));
        assert!(understood("nonsense").is_err());
    }

    #[test]
    fn only_a_plain_address_is_called() {
        assert!(post("https://example.com", "/", None, &Value::Null).is_err());
    }
}
