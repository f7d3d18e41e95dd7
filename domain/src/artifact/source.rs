//! Where artifacts may come from. `artifact.source_allowlist` holds two kinds of words: addresses (`https://…`) are builders
//! that provenance may name, all others are repositories, or what their names begin with. A list without words of a kind
//! says nothing about that kind.

use serde_json::Value;

fn words(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

fn is_address(word: &str) -> bool {
    word.contains("://")
}

/// `gpuaas/apps/one` allows itself and what lies below it, not `gpuaas/apps/one-more`.
pub fn allows_source(list: &Value, repository: &str) -> bool {
    let mut named = words(list).filter(|word| !is_address(word)).peekable();
    let below = |word: &str| {
        let rest = repository.strip_prefix(word.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    named.peek().is_none() || named.any(below)
}

pub fn builders_among(list: &Value) -> Vec<String> {
    words(list).filter(|word| is_address(word)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn repositories_are_allowed_by_whole_names() {
        let list = json!(["gpuaas/apps/one", "https://ci.example"]);
        assert!(allows_source(&list, "gpuaas/apps/one") && allows_source(&list, "gpuaas/apps/one/hello"));
        assert!(!allows_source(&list, "gpuaas/apps/one-more/hello") && !allows_source(&list, "gpuaas/apps"));
        assert!(
            allows_source(&json!([]), "anything")
                && allows_source(&json!(["https://ci.example"]), "anything")
        );
    }

    #[test]
    fn builders_are_the_addresses() {
        assert_eq!(builders_among(&json!(["a/b", "https://ci.example"])), ["https://ci.example"]);
    }
}
