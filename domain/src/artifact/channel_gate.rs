//! What a channel asks of an artifact besides trust. `artifact.channel_gates` says it per channel:
//! `{"prod": {"after": ["staging"], "signature": true, "provenance": true}}`.

use serde::Deserialize;
use serde_json::Value;

use super::{Channel, CheckResult, Evidence};

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
    /// Everything that keeps it shut, in sentences; nothing when it is open. `missing` is what was looked for on behalf of the
    /// gate alone and not found: an index of which one child is unsigned has signatures, and is not signed.
    pub fn judge(&self, reached: &[String], evidence: &Evidence, missing: &[CheckResult]) -> Vec<String> {
        let lacks = |what: &str| missing.iter().find(|check| check.is_of(what));
        let mut shut = Vec::new();
        for channel in &self.after {
            if !reached.iter().any(|one| one == channel.as_str()) {
                shut.push(format!("it must reach {channel} first"));
            }
        }
        if self.signature && (evidence.signatures.is_empty() || lacks("signature").is_some()) {
            shut.push(because("the channel takes signed artifacts only", lacks("signature")));
        }
        if self.provenance && (evidence.provenance.is_none() || lacks("provenance").is_some()) {
            shut.push(because("the channel takes artifacts with provenance only", lacks("provenance")));
        }
        shut
    }
}

fn because(asked: &str, missing: Option<&CheckResult>) -> String {
    missing.map_or_else(|| asked.to_owned(), |check| format!("{asked}: {}", check.message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_gate_opens_when_all_it_asks_for_is_there() {
        let gates = json!({ "prod": { "after": ["staging"], "signature": true } });
        let none = Evidence::default();
        assert!(of(&gates, Channel::Dev).judge(&[], &none, &[]).is_empty());
        assert_eq!(of(&gates, Channel::Prod).judge(&[], &none, &[]).len(), 2);
        assert_eq!(of(&gates, Channel::Prod).judge(&["staging".to_owned()], &none, &[]).len(), 1);
        let gate = of(&json!({ "prod": { "after": ["staging"] } }), Channel::Prod);
        assert!(gate.judge(&["dev".to_owned(), "staging".to_owned()], &none, &[]).is_empty());
        let missing = [CheckResult::failed("signature", "unsigned", "one child is not signed")];
        assert!(gate.judge(&["staging".to_owned()], &none, &missing).is_empty(), "it did not ask");
    }

    #[test]
    fn a_gate_that_cannot_be_read_is_shut() {
        assert_eq!(
            of(&json!({ "prod": "yes" }), Channel::Prod).judge(&[], &Evidence::default(), &[]).len(),
            5
        );
    }
}
