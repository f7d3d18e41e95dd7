//! The relay opens what it can and shares what it has: a network without an address, and an instance that holds on to connections,
//! keep nobody else from the platform.

use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use uuid::Uuid;

use super::serve::MOST_CONVERSATIONS;
use super::*;

/// Each test has an address of its own: the port is always the same.
fn network(last: u8) -> Network {
    Network { gateway: Ipv4Addr::new(127, 0, 77, last).into(), prefix: 8 }
}

fn relay() -> Relay {
    // No client is built without a provider; an error says that one is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let identity = Identity {
        node_id: Uuid::nil(),
        name: "gpu-1".to_owned(),
        platform: "http://127.0.0.1:1".to_owned(),
        issuer: "gpuaas".to_owned(),
        driver: "docker".to_owned(),
        token_digest: None,
    };
    Relay::new(&identity).unwrap()
}

async fn connected(network: Network) -> TcpStream {
    TcpStream::connect((network.gateway, PORT)).await.expect("somebody listens")
}

/// What is not the public API is refused here, so that no platform is needed to be answered.
async fn asks(stream: &mut TcpStream) -> String {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: relay\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test]
async fn a_network_that_cannot_be_listened_on_keeps_no_other_from_the_platform() {
    let relay = relay();
    let nowhere = Network { gateway: Ipv4Addr::new(203, 0, 113, 1).into(), prefix: 24 };
    let opened = relay.open_all(vec![nowhere, network(1)]).await;
    assert!(opened.is_err(), "the trouble is told");
    assert!(asks(&mut connected(network(1)).await).await.starts_with("HTTP/1.1 404"));
}

#[tokio::test]
async fn an_instance_that_holds_on_to_connections_gets_no_more_than_its_share() {
    let relay = relay();
    relay.open(network(2)).await.unwrap();
    let mut idle = Vec::new();
    for _ in 0..MOST_CONVERSATIONS {
        idle.push(connected(network(2)).await);
    }
    let mut more = connected(network(2)).await;
    let answer = asks(&mut more);
    tokio::pin!(answer);
    assert!(timeout(Duration::from_millis(300), &mut answer).await.is_err(), "it waits for its turn");
    idle.pop();
    assert!(answer.await.starts_with("HTTP/1.1 404"), "which comes when another ends");
}

#[tokio::test]
async fn an_instance_that_sends_heads_and_no_bodies_keeps_no_other_waiting() {
    let relay = relay();
    let [slow, other] = [3, 4].map(network);
    for network in [slow, other] {
        relay.open(network).await.unwrap();
    }
    let head = "POST /api/v1/me HTTP/1.1\r\nhost: relay\r\nconnection: close\r\ncontent-length: 2\r\n\r\n";
    let mut begun = Vec::new();
    for _ in 0..MOST_CONVERSATIONS {
        let mut stream = connected(slow).await;
        stream.write_all(head.as_bytes()).await.unwrap();
        begun.push(stream);
    }
    let mut stream = connected(other).await;
    stream.write_all(format!("{head}{{}}").as_bytes()).await.unwrap();
    let mut said = String::new();
    let answered = timeout(Duration::from_secs(10), stream.read_to_string(&mut said)).await;
    assert!(
        answered.is_ok() && said.starts_with("HTTP/1.1 502"),
        "there is no platform, and it was asked: {said}"
    );
}
