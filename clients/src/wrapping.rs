//! Handing a secret over so that it can be fetched once: the receiver gets a token first, and the token opens the secret a
//! single time. Either Vault keeps the secret, or our own database does, sealed so that neither a copy of the table nor
//! the table together with the sealing keys opens it: the key of each row is made from its token, which nobody keeps.

mod embedded;
mod vault;

pub use embedded::{Wrapped, Wrapper, token_hash};
pub use vault::{Vault, VaultFault};

/// Who keeps wrapped secrets.
#[derive(Debug, Clone)]
pub enum Wrapping {
    Embedded(Wrapper),
    Vault(Vault),
}
