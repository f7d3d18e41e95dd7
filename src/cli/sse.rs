//! Server-sent events, read from whatever pieces they arrive in. A stream that breaks off is taken up again where it was.

use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::sleep;

use super::client::Client;
use crate::failure::Failure;

const RECONNECT: Duration = Duration::from_secs(1);
/// How often in a row a stream may bring nothing before its server is given up.
const PATIENCE: u32 = 30;

/// One event: its name, its data, and the id to come back with.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub data: String,
    pub id: Option<String>,
    /// How many streams broke off before the one that brought it: after the first, what was told may be told again.
    pub stream: u32,
}

impl Event {
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        serde_json::from_str(&self.data).map_err(|error| {
            Failure::server(format!("an event is not understood: {error}; this command may be too old"))
        })
    }
}

/// The path of a stream together with what is asked of it.
pub fn with_query(path: &str, query: &[(&str, String)]) -> String {
    let pairs = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    if pairs.is_empty() { path.to_owned() } else { format!("{path}?{pairs}") }
}

/// Every event of a stream after the last that was seen, until one of them brings the answer.
pub async fn follow<T>(
    client: &Client,
    path: &str,
    mut last: Option<String>,
    mut take: impl FnMut(&Event) -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    let (mut fruitless, mut stream) = (0, 0);
    loop {
        match read_one(client, path, stream, &mut last, &mut take).await {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => fruitless = 0,
            Err(failure) if last.is_none() || failure.answer.is_some() => return Err(failure),
            Err(failure) if fruitless >= PATIENCE => return Err(failure),
            Err(_) => fruitless += 1,
        }
        stream += 1;
        sleep(RECONNECT).await;
    }
}

/// One stream to its end: the answer, or nothing if it has not come.
async fn read_one<T>(
    client: &Client,
    path: &str,
    number: u32,
    last: &mut Option<String>,
    take: &mut impl FnMut(&Event) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    let mut stream = client.open_stream(path, last.as_deref()).await?;
    let mut reader = Reader::default();
    let broken = |_| Failure::server("the stream broke off");
    while let Some(bytes) = stream.chunk().await.map_err(broken)? {
        reader.push(&bytes);
        while let Some(mut event) = reader.next() {
            event.stream = number;
            let answer = take(&event)?;
            if event.id.is_some() {
                *last = event.id;
            }
            if answer.is_some() {
                return Ok(answer);
            }
        }
    }
    Ok(None)
}

#[derive(Debug, Default)]
struct Reader {
    pending: Vec<u8>,
}

impl Reader {
    fn push(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
    }

    /// The next event that has arrived as a whole. Comments, such as heartbeats, are none.
    fn next(&mut self) -> Option<Event> {
        loop {
            let end = self.pending.windows(2).position(|two| two == b"\n\n")?;
            let block: Vec<u8> = self.pending.drain(..end + 2).collect();
            if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                return Some(event);
            }
        }
    }
}

fn parse(block: &str) -> Option<Event> {
    let mut event = Event { name: "message".to_owned(), data: String::new(), id: None, stream: 0 };
    let mut data = Vec::new();
    for line in block.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => event.name = value.to_owned(),
            "data" => data.push(value),
            "id" => event.id = Some(value.to_owned()),
            _ => {}
        }
    }
    event.data = data.join("\n");
    (!data.is_empty()).then_some(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_whole_however_they_arrive_and_comments_are_none() {
        let mut reader = Reader::default();
        let text = ": heartbeat\n\nevent: step\ndata: {\"a\":\ndata: 1}\nid: 7\n\nevent: run\ndata: {}\n\n";
        let mut events = Vec::new();
        for byte in text.bytes() {
            reader.push(&[byte]);
            events.extend(reader.next());
        }
        let event = |name: &str, data: &str, id: Option<&str>| Event {
            name: name.into(),
            data: data.into(),
            id: id.map(str::to_owned),
            stream: 0,
        };
        assert_eq!(events, [event("step", "{\"a\":\n1}", Some("7")), event("run", "{}", None)]);
    }
}
