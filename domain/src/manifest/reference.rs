//! References to images: a repository and a digest. Tags are refused, because they can change after review.

/// `registry/repository@sha256:…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference<'a> {
    /// The path without its registry; where the bytes are is the platform's decision.
    pub(super) repository: &'a str,
    /// `None` where the text abbreviates it (`sha256:abc…`), as examples do.
    pub(super) digest: Option<&'a str>,
}

impl<'a> Reference<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Reference<'a>, String> {
        let Some((name, digest)) = text.split_once('@') else {
            return Err(
                "must name a digest (`repository@sha256:…`): a tag can change after review".to_owned()
            );
        };
        let repository = repository(name);
        if repository.rsplit('/').next().is_some_and(|last| last.contains(':')) {
            return Err("must not have a tag beside its digest".to_owned());
        }
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._/-".contains(c);
        if repository.is_empty() || !repository.chars().all(plain) {
            return Err("must have a repository of lower-case letters, digits and `._/-`".to_owned());
        }
        Ok(Reference { repository, digest: digest_of(digest)? })
    }
}

fn digest_of(text: &str) -> Result<Option<&str>, String> {
    let wrong = || "must have a digest of `sha256:` and 64 lower-case hexadecimal digits".to_owned();
    let hex = text.strip_prefix("sha256:").ok_or_else(wrong)?;
    let is_hex = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if hex.len() == 64 && is_hex(hex) {
        return Ok(Some(text));
    }
    match hex.strip_suffix("...").or_else(|| hex.strip_suffix('…')) {
        Some(begun) if is_hex(begun) => Ok(None),
        _ => Err(wrong()),
    }
}

/// A first part with a dot or a port is a registry.
fn repository(name: &str) -> &str {
    match name.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => rest,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_named_by_repository_and_digest() {
        let digest = format!("sha256:{}", "a1".repeat(32));
        let text = format!("registry.example.com:5000/apps/hello@{digest}");
        let reference = Reference::parse(&text).unwrap();
        assert_eq!((reference.repository, reference.digest), ("apps/hello", Some(digest.as_str())));
        assert_eq!(Reference::parse("apps/hello@sha256:abc...").unwrap().digest, None);
        assert_eq!(Reference::parse("apps/hello@sha256:…").unwrap().digest, None);
    }

    #[test]
    fn tags_and_broken_digests_are_refused() {
        let digest = format!("sha256:{}", "a1".repeat(32));
        for wrong in [
            "apps/hello:latest".to_owned(),
            "apps/hello".to_owned(),
            format!("apps/hello:latest@{digest}"),
            "apps/hello@sha256:abc".to_owned(),
            format!("apps/hello@{}", digest.to_uppercase()),
            format!("apps/Hello@{digest}"),
            format!("@{digest}"),
            "apps/hello@md5:abc...".to_owned(),
        ] {
            assert!(Reference::parse(&wrong).is_err(), "{wrong}");
        }
    }
}
