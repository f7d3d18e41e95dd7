//! Passwords for the registry: random, told once, and known to the platform by their hash alone.

use domain::Secret;
use rand::Rng;
use rand::distr::Alphanumeric;
use sha2::{Digest, Sha256};

/// 256 random bits and more, in letters and digits alone: some clients mangle anything else.
const LENGTH: usize = 43;

#[derive(Debug)]
pub struct Password {
    pub secret: Secret<String>,
    /// What is kept of it.
    pub hash: Vec<u8>,
}

impl Password {
    pub fn generate() -> Password {
        let text: String = rand::rng().sample_iter(Alphanumeric).take(LENGTH).map(char::from).collect();
        Password { hash: Sha256::digest(&text).to_vec(), secret: Secret::new(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_alike_and_the_hash_is_the_passwords() {
        let (one, other) = (Password::generate(), Password::generate());
        assert_ne!(one.secret.expose(), other.secret.expose());
        assert_eq!(one.hash, Sha256::digest(one.secret.expose()).to_vec());
        assert_eq!(one.secret.expose().len(), LENGTH);
    }
}
