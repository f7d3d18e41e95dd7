//! A word that is none of the words a closed list has, such as a state from a newer release.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{word}` is not {expected}")]
pub struct UnknownWord {
    word: String,
    expected: &'static str,
}

impl UnknownWord {
    pub fn new(word: &str, expected: &'static str) -> UnknownWord {
        UnknownWord { word: word.to_owned(), expected }
    }
}
