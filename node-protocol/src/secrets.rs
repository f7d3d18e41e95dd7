//! What a task needs and nobody may read: it is sealed at rest, travels inside the signed envelope, and is wiped when it
//! is dropped. It has no readable form.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secrets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull: Option<PullCredential>,
    /// Environment variables beside those of the workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Good for one repository, for a short time.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PullCredential {
    pub username: String,
    pub password: String,
}

impl Secrets {
    pub fn is_empty(&self) -> bool {
        self.pull.is_none() && self.env.is_empty()
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.env.values_mut().for_each(Zeroize::zeroize);
    }
}

impl Drop for PullCredential {
    fn drop(&mut self) {
        self.password.zeroize();
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(domain::redact::REDACTED)
    }
}

impl fmt::Debug for PullCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(domain::redact::REDACTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let pull = PullCredential { username: "node".into(), password: "hunter2".into() };
        let secrets = Secrets { pull: Some(pull), env: [("KEY".into(), "hunter3".into())].into() };
        let shown = format!("{secrets:?} {:?}", secrets.pull);
        assert!(!shown.contains("hunter") && !shown.contains("node"), "{shown}");
    }
}
