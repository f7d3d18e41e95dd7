//! The public half of an SSH key, as a line for `authorized_keys`. A private key in OpenSSH's own form carries it in the clear, so
//! nothing secret is read for it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// The kinds of keys that nodes take.
const KINDS: [&str; 6] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
];

/// Of a private key in OpenSSH's form, or of a public one; `None` where the text is neither. Whatever a line says besides kind and
/// key is left out: options and comments are nobody's to bring along.
pub fn public_line(text: &str) -> Option<String> {
    let text = text.trim();
    let blob = match text.strip_prefix(BEGIN) {
        Some(rest) => inside(rest.trim_end().strip_suffix(END)?)?,
        None => BASE64_STANDARD.decode(text.split_whitespace().nth(1)?).ok()?,
    };
    let kind = std::str::from_utf8(word(&blob)?.0).ok()?;
    let says_so = text.starts_with(BEGIN) || text.split_whitespace().next() == Some(kind);
    (says_so && KINDS.contains(&kind)).then(|| format!("{kind} {}", BASE64_STANDARD.encode(&blob)))
}

/// The public half: after the names of cipher and key derivation, its options and the count of keys.
fn inside(armored: &str) -> Option<Vec<u8>> {
    let packed: String = armored.split_whitespace().collect();
    let bytes = BASE64_STANDARD.decode(packed).ok()?;
    let mut rest = bytes.strip_prefix(MAGIC)?;
    for _ in 0..3 {
        rest = word(rest)?.1;
    }
    let (count, rest) = rest.split_at_checked(4)?;
    (count == [0, 0, 0, 1]).then(|| word(rest).map(|(blob, _)| blob.to_vec()))?
}

/// A length, and so many bytes; and what comes after them.
fn word(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_at_checked(4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?);
    rest.split_at_checked(usize::try_from(length).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPA53UZmLwL8uXlWib0nmXVEADmHCDUW2hHWVjzwGT4H";

    /// A private key as OpenSSH writes it, with nothing in its secret part.
    fn private() -> String {
        let blob = BASE64_STANDARD.decode(PUBLIC.split_whitespace().nth(1).unwrap()).unwrap();
        let mut bytes = MAGIC.to_vec();
        let mut add = |word: &[u8]| {
            bytes.extend(u32::try_from(word.len()).unwrap().to_be_bytes());
            bytes.extend(word);
        };
        for word in ["none", "none", ""] {
            add(word.as_bytes());
        }
        bytes.extend([0, 0, 0, 1]);
        for word in [blob.as_slice(), b"nothing"] {
            bytes.extend(u32::try_from(word.len()).unwrap().to_be_bytes());
            bytes.extend(word);
        }
        let mut armored = BASE64_STANDARD.encode(bytes);
        armored.insert(70, '\n');
        format!("{BEGIN}\n{armored}\n{END}\n")
    }

    #[test]
    fn both_halves_come_to_the_same_line() {
        assert_eq!(public_line(&private()).as_deref(), Some(PUBLIC));
        assert_eq!(public_line(&format!("{PUBLIC} me@home\n")).as_deref(), Some(PUBLIC));
    }

    #[test]
    fn what_is_no_key_is_none() {
        let with_options = format!("command=\"sh\" {PUBLIC}");
        let posing = PUBLIC.replacen("ssh-ed25519", "ssh-rsa", 1);
        let whole = private();
        let cut = &whole[..whole.len() / 2];
        for text in ["", "hunter2", "ssh-ed25519", "ssh-ed25519 AAAA", cut, &with_options, &posing] {
            assert_eq!(public_line(text), None, "{text}");
        }
    }
}
