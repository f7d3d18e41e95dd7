//! Secrets at rest. A sealed secret names the key that sealed it, so keys can be rotated: the first key seals, every
//! key opens. It is bound to the row it belongs to, so it cannot be moved to another row and opened there.
//!
//! The form is `v1.<key id>.<base64url of nonce and ciphertext>`, XChaCha20-Poly1305 with a random nonce.

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use domain::Secret;
use rand::RngCore;
use zeroize::Zeroizing;

const VERSION: &str = "v1";
const NONCE_BYTES: usize = 24;

/// None of these says anything about the secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    #[error("there is no sealing key")]
    NoKey,
    #[error(
        "line {line} is not `key-id base64-of-32-bytes`, with a key id of 1 to 64 characters of [A-Za-z0-9_-]"
    )]
    BadKey { line: usize },
    #[error("key id `{0}` appears twice")]
    KeyTwice(String),
    #[error("the sealed secret cannot be read")]
    Unreadable,
    #[error("the secret was sealed with key `{0}`, which is not among the sealing keys")]
    UnknownKey(String),
    #[error("the sealed secret was changed, or belongs to another row")]
    Tampered,
    #[error("the secret cannot be sealed")]
    Unsealable,
}

#[derive(Clone)]
pub struct Sealer {
    keys: Vec<(String, XChaCha20Poly1305)>,
}

impl Sealer {
    /// Keys as an operator keeps them: one `key-id base64` on a line, the newest first; `#` begins a comment.
    pub fn from_lines(text: &str) -> Result<Sealer, SealFault> {
        let mut keys: Vec<(String, XChaCha20Poly1305)> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (id, cipher) = read_key(line).ok_or(SealFault::BadKey { line: at + 1 })?;
            if keys.iter().any(|(known, _)| *known == id) {
                return Err(SealFault::KeyTwice(id));
            }
            keys.push((id, cipher));
        }
        if keys.is_empty() { Err(SealFault::NoKey) } else { Ok(Sealer { keys }) }
    }

    /// A line for [`Sealer::from_lines`] with a new key.
    pub fn generate_line(id: &str) -> Secret<String> {
        let mut key = Zeroizing::new([0; 32]);
        rand::rng().fill_bytes(key.as_mut());
        Secret::new(format!("{id} {}\n", BASE64_STANDARD.encode(key.as_ref())))
    }

    /// `bound_to` names the row and column; opening must name the same.
    pub fn seal(&self, secret: &Secret<Vec<u8>>, bound_to: &str) -> Result<String, SealFault> {
        let (id, cipher) = self.keys.first().ok_or(SealFault::NoKey)?;
        let mut sealed = vec![0; NONCE_BYTES];
        rand::rng().fill_bytes(&mut sealed);
        let nonce = XNonce::try_from(sealed.as_slice()).map_err(|_| SealFault::Unsealable)?;
        let payload = Payload { msg: secret.expose(), aad: &additional_data(id, bound_to) };
        sealed.extend(cipher.encrypt(&nonce, payload).map_err(|_| SealFault::Unsealable)?);
        Ok(format!("{VERSION}.{id}.{}", BASE64_URL_SAFE_NO_PAD.encode(sealed)))
    }

    pub fn open(&self, sealed: &str, bound_to: &str) -> Result<Secret<Vec<u8>>, SealFault> {
        let (id, body) = parts(sealed).ok_or(SealFault::Unreadable)?;
        let known = self.keys.iter().find(|(known, _)| known == id);
        let (_, cipher) = known.ok_or_else(|| SealFault::UnknownKey(id.to_owned()))?;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(body).map_err(|_| SealFault::Unreadable)?;
        let (nonce, ciphertext) = bytes.split_at_checked(NONCE_BYTES).ok_or(SealFault::Unreadable)?;
        let nonce = XNonce::try_from(nonce).map_err(|_| SealFault::Unreadable)?;
        let payload = Payload { msg: ciphertext, aad: &additional_data(id, bound_to) };
        cipher.decrypt(&nonce, payload).map(Secret::new).map_err(|_| SealFault::Tampered)
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(id, _)| id)).finish()
    }
}

fn read_key(line: &str) -> Option<(String, XChaCha20Poly1305)> {
    let (id, key) = line.split_once(char::is_whitespace)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let well_named = (1..=64).contains(&id.len()) && id.chars().all(plain);
    let key = Zeroizing::new(BASE64_STANDARD.decode(key.trim()).ok()?);
    let cipher = XChaCha20Poly1305::new_from_slice(&key).ok()?;
    well_named.then(|| (id.to_owned(), cipher))
}

fn parts(sealed: &str) -> Option<(&str, &str)> {
    let (version, rest) = sealed.split_once('.')?;
    if version == VERSION { rest.split_once('.') } else { None }
}

/// Everything about a sealed secret that is readable is also sealed against change.
fn additional_data(id: &str, bound_to: &str) -> Vec<u8> {
    format!("{VERSION}.{id}.{bound_to}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealer(lines: &[&Secret<String>]) -> Sealer {
        Sealer::from_lines(&lines.iter().map(|line| line.expose().as_str()).collect::<String>()).unwrap()
    }

    fn secret() -> Secret<Vec<u8>> {
        Secret::new(b"hunter2".to_vec())
    }

    #[test]
    fn a_sealed_secret_opens_in_its_own_row_only() {
        let sealer = sealer(&[&Sealer::generate_line("a")]);
        let sealed = sealer.seal(&secret(), "webhooks/1/secret").unwrap();
        assert!(sealed.starts_with("v1.a."), "{sealed}");
        assert_eq!(sealer.open(&sealed, "webhooks/1/secret").unwrap().expose(), b"hunter2");
        assert_eq!(sealer.open(&sealed, "webhooks/2/secret").unwrap_err(), SealFault::Tampered);
        assert_ne!(sealer.seal(&secret(), "webhooks/1/secret").unwrap(), sealed, "never the same twice");
    }

    #[test]
    fn after_rotation_old_secrets_open_and_the_newest_key_seals() {
        let (old, new) = (Sealer::generate_line("old"), Sealer::generate_line("new"));
        let sealed = sealer(&[&old]).seal(&secret(), "row").unwrap();
        let both = sealer(&[&new, &old]);
        assert_eq!(both.open(&sealed, "row").unwrap().expose(), b"hunter2");
        let again = both.seal(&secret(), "row").unwrap();
        assert!(again.starts_with("v1.new."), "{again}");
        let alone = sealer(&[&new]);
        assert_eq!(alone.open(&sealed, "row").unwrap_err(), SealFault::UnknownKey("old".to_owned()));
    }

    #[test]
    fn any_change_is_noticed() {
        let sealer = sealer(&[&Sealer::generate_line("a"), &Sealer::generate_line("b")]);
        let sealed = sealer.seal(&secret(), "row").unwrap();
        for at in "v1.a.".len()..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert!(sealer.open(std::str::from_utf8(&changed).unwrap(), "row").is_err(), "byte {at}");
        }
        assert_eq!(sealer.open(&sealed.replace("v1.a.", "v1.b."), "row").unwrap_err(), SealFault::Tampered);
        for nonsense in ["", "hunter2", "v1.a", "v1.a.", "v1.a.AAAA", "v2.a.AAAA"] {
            assert_eq!(sealer.open(nonsense, "row").unwrap_err(), SealFault::Unreadable, "{nonsense}");
        }
    }

    #[test]
    fn keys_are_read_with_comments_and_mistakes_name_their_line() {
        let line = Sealer::generate_line("2026-11");
        assert!(Sealer::from_lines(&format!("# newest first\n\n{}", line.expose())).is_ok());
        assert_eq!(Sealer::from_lines("# none\n").unwrap_err(), SealFault::NoKey);
        assert_eq!(Sealer::from_lines("\na c2hvcnQ=\n").unwrap_err(), SealFault::BadKey { line: 2 });
        let twice = format!("{0}{0}", line.expose());
        assert_eq!(Sealer::from_lines(&twice).unwrap_err(), SealFault::KeyTwice("2026-11".to_owned()));
    }

    #[test]
    fn neither_keys_nor_secrets_are_printed() {
        let line = Sealer::generate_line("a");
        let key = line.expose().split_whitespace().nth(1).unwrap().to_owned();
        let printed = format!("{:?} {:?} {line:?}", sealer(&[&line]), secret());
        assert!(!printed.contains(&key) && !printed.contains("hunter2"), "{printed}");
    }
}
