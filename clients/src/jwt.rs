//! The outside of a JWT: its header, and its signature. Which algorithm counts is decided by the key at hand and
//! never by the token, so a public key cannot be passed off as a shared secret and `none` has no meaning at all.

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Header, Validation};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::fault::TokenFault;

/// Longer ones are refused unread; real tokens stay far below.
const LONGEST: usize = 16 * 1024;

pub(crate) const WRONG_SIGNATURE: &str = "its signature does not fit";

/// A public key together with the algorithms it may be used with.
#[derive(Clone, Debug)]
pub(crate) struct VerifyingKey {
    pub(crate) key: DecodingKey,
    pub(crate) algorithms: Vec<Algorithm>,
}

pub(crate) fn header(token: &str) -> Result<Header, TokenFault> {
    if token.is_empty() {
        return Err(TokenFault::Missing);
    }
    if token.len() > LONGEST {
        return Err(TokenFault::Invalid("it is too long"));
    }
    let header = jsonwebtoken::decode_header(token)
        .map_err(|_| TokenFault::Invalid("it is not a JWT with a signature we know"))?;
    if header.alg.family() == AlgorithmFamily::Hmac {
        return Err(TokenFault::Invalid("it is signed with a shared secret, and we share none"));
    }
    // An extension that must be understood and is not (RFC 7515, 4.1.11).
    match header.extras.get::<serde_json::Value>("crit") {
        Ok(None) => Ok(header),
        _ => Err(TokenFault::Invalid("its header asks for an extension we do not have")),
    }
}

/// The claims of a token that `key` signed.
pub(crate) fn signed<T: DeserializeOwned>(
    token: &str,
    header: &Header,
    key: &VerifyingKey,
) -> Result<T, TokenFault> {
    if !key.algorithms.contains(&header.alg) {
        return Err(TokenFault::Invalid("its algorithm does not fit its key"));
    }
    let decoded = jsonwebtoken::decode(token, &key.key, &signature_only(header.alg));
    decoded.map(|token| token.claims).map_err(|error| {
        TokenFault::Invalid(match error.kind() {
            ErrorKind::Json(_) | ErrorKind::Utf8(_) => "its claims cannot be read",
            _ => WRONG_SIGNATURE,
        })
    })
}

/// Who claims to have issued the token: a hint for finding keys, proven only by its signature.
pub(crate) fn claimed_issuer(token: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Hint {
        iss: String,
    }
    let short_enough = token.len() <= LONGEST;
    short_enough
        .then(|| jsonwebtoken::dangerous::insecure_decode_claims::<Hint>(token).ok())?
        .map(|hint| hint.iss)
}

/// The claims are judged by `Terms`, with our clock.
fn signature_only(algorithm: Algorithm) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.required_spec_claims.clear();
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation
}
