//! Server-sent events, read from whatever pieces they arrive in.

/// One event: its name, its data, and the id to come back with.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    pub data: String,
    pub id: Option<String>,
}

#[derive(Debug, Default)]
pub struct Reader {
    pending: Vec<u8>,
}

impl Reader {
    pub fn push(&mut self, bytes: &[u8]) {
        self.pending.extend(bytes);
    }

    /// The next event that has arrived as a whole. Comments, such as heartbeats, are none.
    pub fn next(&mut self) -> Option<Event> {
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
    let mut event = Event { name: "message".to_owned(), data: String::new(), id: None };
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
        };
        assert_eq!(events, [event("step", "{\"a\":\n1}", Some("7")), event("run", "{}", None)]);
    }
}
