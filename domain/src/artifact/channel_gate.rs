//! What a channel asks of an artifact besides trust. `artifact.channel_gates` says it per channel:
//! `{"prod": {"after": ["staging"], "signature": true, "provenance": true}}`.

use serde::Deserialize;
use serde_json::Value;

use super::{Channel, Evidence};

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ChannelGate {
    /// Channels it must have reached before.
    pub after: Vec<Channel>,
    pub signature: bool,
    pub provenance: bool,
}

/// The gate of a channel. One that cannot be read is shut: it asks for everything.
pub fn of(gates: &Value, channel: Channel) -> ChannelGate {
    match gates.get(channel.as_str()) {
        None => ChannelGate::default(),
        Some(gate) => serde_json::from_value(gate.clone()).unwrap_or_else(|_| ChannelGate {
            after: Channel::ALL.into_iter().filter(|other| *other != channel).collect(),
            signature: true,
            provenance: true,
        }),
    }
}

impl ChannelGate {
    /// Everything that keeps it shut, in sentences; nothing when it is open.
    pub fn judge(&self, reached: &[String], evidence: &Evidence) -> Vec<String> {
        let mut shut = Vec::new();
        for channel in &self.after {
            if !reached.iter().any(|one| one == channel.as_str()) {
                shut.push(format!("it must reach {channel} first"));
            }
        }
        if self.signature && evidence.signatures.is_empty() {
            shut.push("the channel takes signed artifacts only".to_owned());
        }
        if self.provenance && evidence.provenance.is_none() {
            shut.push("the channel takes artifacts with provenance only".to_owned());
        }
        shut
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gate_opens_when_all_it_asks_for_is_there() {
        let gates = json!({ "prod": { "after": ["staging"], "signature": true } });
        let none = Evidence::default();
        assert!(of(&gates, Channel::Dev).judge(&[], &none).is_empty());
        assert_eq!(of(&gates, Channel::Prod).judge(&[], &none).len(), 2);
        assert_eq!(of(&gates, Channel::Prod).judge(&["staging".to_owned()], &none).len(), 1);
        let gate = of(&json!({ "prod": { "after": ["staging"] } }), Channel::Prod);
        assert!(gate.judge(&["dev".to_owned(), "staging".to_owned()], &none).is_empty());
    }

    #[test]
    fn a_gate_that_cannot_be_read_is_shut() {
        assert_eq!(of(&json!({ "prod": "yes" }), Channel::Prod).judge(&[], &Evidence::default()).len(), 5);
    }
}
