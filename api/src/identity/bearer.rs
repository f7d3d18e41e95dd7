//! The `Authorization: Bearer` header, and the digest under which a token is known without being kept.

use axum::http::{HeaderMap, header};
use domain::ErrorCode;
use sha2::{Digest as _, Sha256};

use crate::error::ApiError;

pub(super) type Digest = [u8; 32];

pub(super) fn token(headers: &HeaderMap) -> Result<&str, ApiError> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let missing = || ApiError::plain(ErrorCode::TokenMissing);
    let value = given.next().ok_or_else(missing)?;
    if given.next().is_some() {
        return Err(ApiError::new(ErrorCode::TokenInvalid, "Authorization must appear once."));
    }
    let (scheme, token) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(missing)?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.is_empty() {
        return Err(missing());
    }
    Ok(token)
}

pub(super) fn digest(token: &str) -> Digest {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn sent(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (header::AUTHORIZATION, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_scheme_is_read_whatever_its_case() {
        assert_eq!(token(&sent(&["Bearer abc"])).unwrap(), "abc");
        assert_eq!(token(&sent(&["bearer  abc"])).unwrap(), "abc");
    }

    #[test]
    fn other_schemes_and_empty_tokens_are_missing_tokens() {
        for values in [&[][..], &["Basic YTpi"], &["Bearer"], &["Bearer "], &["abc"]] {
            assert_eq!(token(&sent(values)).unwrap_err().code, ErrorCode::TokenMissing, "{values:?}");
        }
    }

    #[test]
    fn two_tokens_are_none() {
        assert_eq!(token(&sent(&["Bearer a", "Bearer b"])).unwrap_err().code, ErrorCode::TokenInvalid);
    }
}
