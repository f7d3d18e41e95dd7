//! One attempt to sign in, between the two visits of a browser. All of it rests with the browser, in a cookie: a secret,
//! from which everything the issuer is shown is derived, and the page to go on to.
//!
//! Nothing is kept here, so an attempt that is never finished costs nothing, and any process may finish it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clients::oidc::code_flow;

use super::session::{derived, random};

/// Where to go without another wish.
const HOME: &str = "/console/";
const LONGEST_WISH: usize = 1024;

pub(super) struct Attempt {
    secret: String,
    pub(super) return_to: String,
    pub(super) state: String,
    nonce: String,
    verifier: String,
}

impl Attempt {
    pub(super) fn begin(return_to: Option<&str>) -> Attempt {
        Attempt::of(random(), return_to.unwrap_or(HOME))
    }

    pub(super) fn from_cookie(value: &str) -> Option<Attempt> {
        let (secret, return_to) = value.split_once('.')?;
        let return_to = String::from_utf8(BASE64_URL_SAFE_NO_PAD.decode(return_to).ok()?).ok()?;
        (secret.len() == 43).then(|| Attempt::of(secret.to_owned(), &return_to))
    }

    fn of(secret: String, return_to: &str) -> Attempt {
        let return_to = if is_ours(return_to) { return_to } else { HOME };
        Attempt {
            state: derived("state", &secret),
            nonce: derived("nonce", &secret),
            verifier: derived("verifier", &secret),
            return_to: return_to.to_owned(),
            secret,
        }
    }

    pub(super) fn cookie(&self) -> String {
        format!("{}.{}", self.secret, BASE64_URL_SAFE_NO_PAD.encode(&self.return_to))
    }

    pub(super) fn as_asked(&self) -> code_flow::Attempt<'_> {
        code_flow::Attempt { state: &self.state, nonce: &self.nonce, verifier: &self.verifier }
    }
}

/// A page of the console and nothing else: no other site, however the address is spelled, and no way out by `..`.
fn is_ours(path: &str) -> bool {
    let plain = |c: char| c.is_ascii_graphic() && c != '\\';
    path.starts_with(HOME)
        && path.len() <= LONGEST_WISH
        && path.chars().all(plain)
        && !path.split(['/', '?', '#']).any(|part| part == ".." || part.eq_ignore_ascii_case("%2e%2e"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_survives_its_cookie_and_no_two_are_alike() {
        let attempt = Attempt::begin(Some("/console/platform/runs?status=stuck"));
        let again = Attempt::from_cookie(&attempt.cookie()).unwrap();
        assert_eq!((again.state, again.nonce), (attempt.state.clone(), attempt.nonce));
        assert_eq!(again.return_to, "/console/platform/runs?status=stuck");
        assert_ne!(Attempt::begin(None).state, attempt.state);
    }

    #[test]
    fn what_the_issuer_sees_does_not_tell_the_verifier() {
        let attempt = Attempt::begin(None);
        let words = [&attempt.state, &attempt.nonce, &attempt.verifier, &attempt.secret];
        for (at, word) in words.iter().enumerate() {
            assert_eq!(word.len(), 43);
            assert!(!words[..at].contains(word));
        }
    }

    #[test]
    fn nobody_is_sent_to_another_site() {
        for wish in [
            "https://evil.test/",
            "//evil.test/console/",
            "/\\evil.test",
            "/console/../realms/gpuaas",
            "/console/%2E%2e/api",
            "/console/\r\nSet-Cookie: a=b",
            "/api/v1/me",
            "javascript:alert(1)",
            "",
        ] {
            assert_eq!(Attempt::begin(Some(wish)).return_to, HOME, "{wish:?}");
            let planted = format!("{}.{}", "s".repeat(43), BASE64_URL_SAFE_NO_PAD.encode(wish));
            assert_eq!(Attempt::from_cookie(&planted).unwrap().return_to, HOME, "{wish:?}");
        }
    }
}
