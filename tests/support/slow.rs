//! The long versions of the stories, for nights and releases: same stories, larger numbers.

/// The number for this run of the tests: the first normally, the second under `./dev test --slow`.
pub fn short_or_slow<T>(short: T, slow: T) -> T {
    if is_slow() { slow } else { short }
}

#[expect(clippy::disallowed_methods)]
pub fn is_slow() -> bool {
    std::env::var("GPUAAS_SLOW").is_ok_and(|value| value == "1")
}
