//! A SHA-256 digest in its one canonical form, `sha256:` and 64 lower-case hexadecimal digits. Two digests are the same
//! bytes exactly if they are the same text.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The rule as the API document says it.
pub const PATTERN: &str = "^sha256:[0-9a-f]{64}$";

const PREFIX: &str = "sha256:";
const HEX_DIGITS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(String);

impl Digest {
    pub fn from_sha256(bytes: [u8; 32]) -> Digest {
        use fmt::Write;
        let mut text = String::with_capacity(PREFIX.len() + HEX_DIGITS);
        text.push_str(PREFIX);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Digest(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to_sha256(&self) -> [u8; 32] {
        let digit = |byte: u8| if byte.is_ascii_digit() { byte - b'0' } else { byte - b'a' + 10 };
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(self.hex().as_bytes().chunks(2)) {
            *byte = pair.iter().fold(0, |byte, hex| byte << 4 | digit(*hex));
        }
        bytes
    }

    /// The digits alone.
    pub fn hex(&self) -> &str {
        &self.0[PREFIX.len()..]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `sha256:` and 64 lower-case hexadecimal digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        let digits = text.strip_prefix(PREFIX).ok_or(NotADigest)?;
        let canonical = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if digits.len() == HEX_DIGITS && digits.bytes().all(canonical) {
            Ok(Digest(text.to_owned()))
        } else {
            Err(NotADigest)
        }
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_canonical_form_is_a_digest() {
        let good = format!("sha256:{}", "0a".repeat(32));
        assert_eq!(good.parse::<Digest>().map(|digest| digest.to_string()), Ok(good.clone()));
        for bad in [
            "",
            "latest",
            "sha256:",
            &"0a".repeat(32),
            &good.to_uppercase(),
            &good.replace('a', "A"),
            &good[..good.len() - 1],
            &format!("{good}0"),
            &format!(" {good}"),
            &good.replace("sha256", "sha512"),
        ] {
            assert_eq!(bad.parse::<Digest>(), Err(NotADigest), "{bad:?}");
        }
    }

    #[test]
    fn a_digest_is_made_of_its_bytes() {
        let digest = Digest::from_sha256([0xab; 32]);
        assert_eq!(digest.as_str(), format!("sha256:{}", "ab".repeat(32)));
        assert_eq!(digest.hex().len(), 64);
        let all: [u8; 32] = std::array::from_fn(|at| (at * 8) as u8);
        assert_eq!(Digest::from_sha256(all).to_sha256(), all);
    }
}
