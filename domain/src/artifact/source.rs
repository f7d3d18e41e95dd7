//! Where artifacts may come from. `artifact.source_allowlist` holds three kinds of words: `artifact_store://…` are places of
//! blobs, other addresses (`https://…`) are builders that provenance may name, and all the rest are repositories. Places and
//! repositories allow what lies below them too. A list without words of a kind says nothing about that kind.

use serde_json::Value;

use super::STORE;

fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn is_builder(word: &str) -> bool {
    word.contains("://") && !is_place(word)
}

fn is_place(word: &str) -> bool {
    word.starts_with(STORE)
}

/// `gpuaas/apps/one` allows itself and what lies below it, not `gpuaas/apps/one-more`. A source is a repository, or where a
/// blob is.
pub fn allows_source(sources: &[String], source: &str) -> bool {
    let mut named = sources.iter().filter(|word| is_place(word) == is_place(source)).peekable();
    let below = |word: &String| {
        let rest = source.strip_prefix(word.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    named.peek().is_none() || named.any(below)
}

/// Repositories, and places of blobs.
pub fn sources_among(list: &Value) -> Vec<String> {
    words(list).filter(|word| !is_builder(word)).map(str::to_owned).collect()
}

pub fn builders_among(list: &Value) -> Vec<String> {
    words(list).filter(|word| is_builder(word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repositories_are_allowed_by_whole_names() {
        let allows = |list: &Value, source: &str| allows_source(&sources_among(list), source);
        let list = json!(["gpuaas/apps/one", "https://ci.example"]);
        assert!(allows(&list, "gpuaas/apps/one") && allows(&list, "gpuaas/apps/one/hello"));
        assert!(!allows(&list, "gpuaas/apps/one-more/hello") && !allows(&list, "gpuaas/apps"));
        assert!(allows(&json!([]), "anything") && allows(&json!(["https://ci.example"]), "anything"));
    }

    #[test]
    fn places_of_blobs_are_a_kind_of_their_own() {
        let list = sources_among(&json!(["gpuaas/apps/one", "artifact_store://projects/1/artifacts/hello"]));
        assert!(allows_source(&list, "artifact_store://projects/1/artifacts/hello/1.0.0/weights"));
        assert!(!allows_source(&list, "artifact_store://projects/1/artifacts/hello-more/1.0.0/weights"));
        assert!(allows_source(&["gpuaas/apps/one".to_owned()], "artifact_store://projects/1/artifacts/x"));
        assert!(allows_source(&["artifact_store://projects/1".to_owned()], "gpuaas/apps/one"));
    }

    #[test]
    fn builders_are_the_addresses() {
        let list = json!(["a/b", "https://ci.example", "artifact_store://projects"]);
        assert_eq!(builders_among(&list), ["https://ci.example"]);
    }
}
