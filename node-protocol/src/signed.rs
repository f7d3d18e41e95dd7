//! Signed statements. The signature covers the exact bytes that travel, under the statement's own type, so nothing has to
//! be brought into a canonical form and a signature made for one type is worth nothing for another.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::key::{Key, PublicKey};

/// Something that can be signed. The type is part of what the signature covers.
pub trait Statement: Serialize + DeserializeOwned {
    const TYPE: &'static str;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureFault {
    #[error("the signature is not of this key, or the statement was changed")]
    Wrong,
    #[error("the statement was signed by this key and cannot be read here")]
    Unreadable,
    #[error("the statement cannot be written")]
    Unwritable,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signed {
    /// The key that signed: its thumbprint.
    pub key_id: String,
    /// The statement as JSON, in base64url.
    pub payload: String,
    /// Ed25519, in base64url.
    pub signature: String,
}

impl Signed {
    pub fn sign<T: Statement>(statement: &T, key: &Key) -> Result<Signed, SignatureFault> {
        let bytes = serde_json::to_vec(statement).map_err(|_| SignatureFault::Unwritable)?;
        let signature = key.sign(&covered(T::TYPE, &bytes));
        Ok(Signed { key_id: key.id(), payload: BASE64_URL_SAFE_NO_PAD.encode(bytes), signature })
    }

    /// What was signed, if it was signed by this key. Nothing of it is read before that is known.
    pub fn open<T: Statement>(&self, key: &PublicKey) -> Result<T, SignatureFault> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(&self.payload).map_err(|_| SignatureFault::Wrong)?;
        if !key.verifies(&covered(T::TYPE, &bytes), &self.signature) {
            return Err(SignatureFault::Wrong);
        }
        serde_json::from_slice(&bytes).map_err(|_| SignatureFault::Unreadable)
    }

    /// What the statement says, whoever signed it. For those who know by other means whose it is; whatever is kept is opened.
    pub fn said<T: Statement>(&self) -> Option<T> {
        serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(&self.payload).ok()?).ok()
    }
}

/// A statement may hold secrets, so it is not shown.
impl std::fmt::Debug for Signed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signed").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

/// The pre-authentication encoding of DSSE: lengths make it impossible to read the type as part of the payload.
fn covered(kind: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {kind} {} ", kind.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Word(String);
    impl Statement for Word {
        const TYPE: &'static str = "test.word";
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Name(String);
    impl Statement for Name {
        const TYPE: &'static str = "test.name";
    }

    #[test]
    fn what_was_signed_opens_with_its_key_alone() {
        let (key, other) = (Key::generate(), Key::generate());
        let signed = Signed::sign(&Word("hello".into()), &key).unwrap();
        assert_eq!(signed.open::<Word>(&key.public()), Ok(Word("hello".into())));
        assert_eq!(signed.open::<Word>(&other.public()), Err(SignatureFault::Wrong));
    }

    #[test]
    fn a_changed_statement_or_signature_does_not_open() {
        let key = Key::generate();
        let signed = Signed::sign(&Word("hello".into()), &key).unwrap();
        let payload = BASE64_URL_SAFE_NO_PAD.encode(r#""hellO""#);
        assert_eq!(
            Signed { payload, ..signed.clone() }.open::<Word>(&key.public()),
            Err(SignatureFault::Wrong)
        );
        let signature = Signed::sign(&Word("other".into()), &key).unwrap().signature;
        assert_eq!(
            Signed { signature, ..signed.clone() }.open::<Word>(&key.public()),
            Err(SignatureFault::Wrong)
        );
        for broken in ["", "!!", "AAAA"] {
            let signed = Signed { signature: broken.to_owned(), ..signed.clone() };
            assert_eq!(signed.open::<Word>(&key.public()), Err(SignatureFault::Wrong));
        }
    }

    #[test]
    fn a_signature_for_one_type_is_none_for_another_of_the_same_bytes() {
        let key = Key::generate();
        let signed = Signed::sign(&Word("hello".into()), &key).unwrap();
        assert_eq!(signed.open::<Name>(&key.public()), Err(SignatureFault::Wrong));
    }
}
