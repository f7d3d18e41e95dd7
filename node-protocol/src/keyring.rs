//! The keys by which a node believes tasks. A signer is staged before it signs, so that every node knows it in time, and
//! stays believed for a grace period after it stopped.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::key::PublicKey;
use crate::signed::{Signed, Statement};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignerState {
    /// Known to nodes; signs nothing yet.
    Staged,
    /// The one that signs.
    Active,
    /// Signs no more; what it signed is still believed.
    Grace,
    Retired,
    /// Its key may be in the wrong hands.
    Revoked,
}

impl SignerState {
    pub const ALL: [SignerState; 5] = [
        SignerState::Staged,
        SignerState::Active,
        SignerState::Grace,
        SignerState::Retired,
        SignerState::Revoked,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            SignerState::Staged => "staged",
            SignerState::Active => "active",
            SignerState::Grace => "grace",
            SignerState::Retired => "retired",
            SignerState::Revoked => "revoked",
        }
    }

    /// Forward only, and revoked from anywhere.
    pub const fn next(self) -> &'static [SignerState] {
        match self {
            SignerState::Staged => &[SignerState::Active, SignerState::Retired, SignerState::Revoked],
            SignerState::Active => &[SignerState::Grace, SignerState::Revoked],
            SignerState::Grace => &[SignerState::Retired, SignerState::Revoked],
            SignerState::Retired => &[SignerState::Revoked],
            SignerState::Revoked => &[],
        }
    }

    pub const fn is_believed(self) -> bool {
        matches!(self, SignerState::Active | SignerState::Grace)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signer {
    pub key_id: String,
    /// The public half, as PEM.
    pub public_key: String,
    pub state: SignerState,
}

/// All signers a node should know. It rises by one with every change, so an old list cannot replace a newer one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Keyring {
    pub version: i64,
    pub signers: Vec<Signer>,
}

impl Statement for Keyring {
    const TYPE: &'static str = "application/vnd.gpuaas.keyring.v1+json";
}

impl Keyring {
    /// The key under this id, if what it signs is believed.
    pub fn believed(&self, key_id: &str) -> Option<PublicKey> {
        let signer = self.signers.iter().find(|signer| signer.key_id == key_id)?;
        let key = PublicKey::from_pem(&signer.public_key).ok()?;
        // The name must be the key's own, whatever the list says.
        (signer.state.is_believed() && key.id() == key_id).then_some(key)
    }

    /// The list that follows this one, if it is newer and signed by a key that is believed now.
    pub fn successor(&self, signed: &Signed) -> Option<Keyring> {
        let key = self.believed(&signed.key_id)?;
        signed.open::<Keyring>(&key).ok().filter(|next| next.version > self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn signer(key: &Key, state: SignerState) -> Signer {
        Signer { key_id: key.id(), public_key: key.public().to_pem().unwrap(), state }
    }

    #[test]
    fn only_the_active_signer_and_those_in_grace_are_believed() {
        let key = Key::generate();
        for state in SignerState::ALL {
            let ring = Keyring { version: 1, signers: vec![signer(&key, state)] };
            let believed = matches!(state, SignerState::Active | SignerState::Grace);
            assert_eq!(ring.believed(&key.id()).is_some(), believed, "{state:?}");
        }
    }

    #[test]
    fn a_key_cannot_go_by_another_keys_name() {
        let (key, other) = (Key::generate(), Key::generate());
        let posing = Signer { key_id: key.id(), ..signer(&other, SignerState::Active) };
        assert!(Keyring { version: 1, signers: vec![posing] }.believed(&key.id()).is_none());
    }

    #[test]
    fn a_list_is_followed_only_by_a_newer_one_that_a_believed_key_signed() {
        let (old, new) = (Key::generate(), Key::generate());
        let ring = Keyring { version: 3, signers: vec![signer(&old, SignerState::Active)] };
        let signers = vec![signer(&old, SignerState::Grace), signer(&new, SignerState::Active)];
        let next = Keyring { version: 4, signers };
        let signed = Signed::sign(&next, &old).unwrap();
        assert_eq!(ring.successor(&signed), Some(next.clone()));
        assert_eq!(ring.successor(&Signed::sign(&next, &new).unwrap()), None, "by a key not known yet");
        let older = Keyring { version: 3, ..next.clone() };
        assert_eq!(ring.successor(&Signed::sign(&older, &old).unwrap()), None, "of the same version");
    }

    #[test]
    fn states_only_go_forward() {
        for (at, state) in SignerState::ALL.into_iter().enumerate() {
            let back = |next: &SignerState| SignerState::ALL.iter().position(|s| s == next) <= Some(at);
            assert!(!state.next().iter().any(back), "{state:?}");
        }
    }
}
