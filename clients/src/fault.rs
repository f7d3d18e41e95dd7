//! Why a token is not accepted. A fault never quotes the token: it may be shown, logged and audited as it is.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    #[error("no token was sent")]
    Missing,
    #[error("the token is not valid: {0}")]
    Invalid(&'static str),
    /// Genuine, and not for us.
    #[error("the token is meant for another audience")]
    WrongAudience,
    #[error("the token has expired")]
    Expired,
    /// Says nothing about the token: the keys to judge it by cannot be had at the moment.
    #[error("the keys of issuer {issuer} cannot be read: {why}")]
    IssuerUnavailable { issuer: String, why: String },
}
