//! What the app tells the platform: that it began, that it lives, and how many requests it answered.
//!
//! Usage is told once. A batch keeps its id and its quantity until the platform took it, so telling it again after a
//! lost answer is the same event and not a second one.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::DateTime;
use serde_json::{Value, json};

use crate::call::post;
use crate::identity::{Identity, Token};
use crate::web::Site;

const HEARTBEAT: Duration = Duration::from_secs(10);
/// Usage goes with every sixth heartbeat.
const USAGE_EVERY: u64 = 6;

pub(crate) struct Reporter {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Reporter {
    pub(crate) fn start(identity: Identity, site: Arc<Site>) -> Reporter {
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut story = Story::new(identity, site);
            let mut beat = 0;
            while stopped.recv_timeout(if beat == 0 { Duration::ZERO } else { HEARTBEAT })
                == Err(RecvTimeoutError::Timeout)
            {
                story.tell(beat % USAGE_EVERY == 0);
                beat += 1;
            }
            story.tell(true);
        });
        Reporter { stop, thread }
    }

    /// Tells the last usage; the platform gives a stopping app time for that.
    pub(crate) fn finish(self) {
        drop(self.stop);
        let _ = self.thread.join();
    }
}

struct Story {
    identity: Identity,
    site: Arc<Site>,
    token: Option<Token>,
    began: bool,
    ledger: Ledger,
}

impl Story {
    fn new(identity: Identity, site: Arc<Site>) -> Story {
        let ledger = Ledger::new(format!("{}-{}", identity.instance_id, uuid::Uuid::now_v7()));
        Story { identity, site, token: None, began: false, ledger }
    }

    /// A platform that does not listen now is told the next time.
    fn tell(&mut self, with_usage: bool) {
        if let Err(error) = self.try_tell(with_usage) {
            eprintln!("hello: the platform was not told: {error}");
        }
    }

    fn try_tell(&mut self, with_usage: bool) -> io::Result<()> {
        let instance = self.identity.instance_id.clone();
        if !self.began {
            let event = json!({ "event_type": "start_completed", "payload": { "port": 8080 } });
            self.send(&format!("/app-instances/{instance}/events"), &event)?;
            self.began = true;
        }
        self.send(&format!("/app-instances/{instance}/heartbeat"), &json!({}))?;
        if with_usage {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?.as_secs();
            if let Some(event) = self.ledger.pending(self.site.answered(), now, &instance) {
                self.send("/usage-events", &json!([event]))?;
                self.ledger.settled();
            }
        }
        Ok(())
    }

    fn send(&mut self, path: &str, body: &Value) -> io::Result<()> {
        let token = match self.token.take() {
            Some(token) if token.is_fresh() => token,
            _ => self.identity.token()?,
        };
        let path = format!("/api/v1/projects/{}{path}", token.project_id);
        let (status, answer) = post(&self.identity.base_url, &path, Some(&token.bearer), body)?;
        // A token that was refused is not tried again.
        if status != 401 {
            self.token = Some(token);
        }
        if (200..300).contains(&status) {
            return Ok(());
        }
        let code = answer["code"].as_str().unwrap_or("no code");
        Err(io::Error::other(format!("status {status}, {code}")))
    }
}

/// What was answered, what was told, and what is on its way.
struct Ledger {
    source: String,
    told: u64,
    batches: u64,
    pending: Option<(u64, Value)>,
}

impl Ledger {
    fn new(source: String) -> Ledger {
        Ledger { source, told: 0, batches: 0, pending: None }
    }

    /// The event to send: the one on its way, or a new one for what came since.
    fn pending(&mut self, answered: u64, now: u64, instance: &str) -> Option<Value> {
        if self.pending.is_none() && answered > self.told {
            let time = DateTime::from_timestamp(i64::try_from(now).ok()?, 0)?.to_rfc3339();
            let event = json!({
                "specversion": "1.0",
                "type": "app.usage",
                "source": "/apps/hello",
                "id": format!("{}-{}", self.source, self.batches),
                "time": time,
                "subject": instance,
                "data": { "usage_unit": "requests", "quantity": answered - self.told },
            });
            self.pending = Some((answered, event));
        }
        self.pending.as_ref().map(|(_, event)| event.clone())
    }

    fn settled(&mut self) {
        if let Some((told, _)) = self.pending.take() {
            (self.told, self.batches) = (told, self.batches + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_told_again_as_the_same_event_until_it_is_taken() {
        let mut ledger = Ledger::new("boot".to_owned());
        assert_eq!(ledger.pending(0, 0, "i"), None);
        let first = ledger.pending(3, 60, "i").unwrap();
        assert_eq!(ledger.pending(5, 120, "i").unwrap(), first, "a lost answer changes nothing");
        ledger.settled();
        let second = ledger.pending(5, 120, "i").unwrap();
        assert_eq!((&first["data"]["quantity"], &second["data"]["quantity"]), (&json!(3), &json!(2)));
        assert_ne!(first["id"], second["id"]);
        ledger.settled();
        assert_eq!(ledger.pending(5, 180, "i"), None);
    }
}
