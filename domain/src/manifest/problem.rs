//! What is wrong with a manifest, and where: a JSON Pointer, a sentence, and the place in the text where there is one.

use std::fmt::{self, Write};

use serde::Serialize;
use utoipa::ToSchema;

use super::document::{Document, Position};

/// One thing that is wrong, or doubtful.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = ManifestProblem)]
pub struct Problem {
    /// A JSON Pointer into the document as it was sent.
    pub pointer: String,
    /// Completes a sentence that begins with the pointer.
    pub message: String,
    /// The line of the text, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The character of the line, counted from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// It is the field's name that is wrong, not its value.
    #[serde(skip)]
    names: bool,
}

impl Problem {
    pub(super) fn at(pointer: impl AsRef<str>, message: impl Into<String>) -> Problem {
        Problem {
            pointer: pointer.as_ref().to_owned(),
            message: message.into(),
            line: None,
            column: None,
            names: false,
        }
    }

    /// A field that should not be there.
    pub(super) fn of_name(pointer: impl AsRef<str>, message: impl Into<String>) -> Problem {
        Problem { names: true, ..Problem::at(pointer, message) }
    }

    /// What is wrong with a value, said of the place where the value stands.
    pub(super) fn below(self, place: &Pointer) -> Problem {
        Problem { pointer: format!("{}{}", place.as_str(), self.pointer), ..self }
    }

    pub(super) fn standing(mut self, at: Position) -> Problem {
        (self.line, self.column) = (Some(at.line), Some(at.column));
        self
    }

    /// Looks its place up, unless it has one.
    pub(super) fn placed(self, document: &Document) -> Problem {
        if self.line.is_some() {
            return self;
        }
        let at = match self.names {
            true => document.position_of_name(&self.pointer),
            false => document.position(&self.pointer),
        };
        match at {
            Some(at) => self.standing(at),
            None => self,
        }
    }
}

/// `3:7: /app/slug is required`, as compilers say it.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}: ")?;
        }
        for c in self.pointer.chars() {
            // Names come from outside, and a terminal obeys what it is sent.
            if c.is_control() { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
        }
        if !self.pointer.is_empty() {
            f.write_char(' ')?;
        }
        f.write_str(&self.message)
    }
}

/// A JSON Pointer (RFC 6901) that grows as a reader descends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pointer(String);

impl Pointer {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn field(&self, name: &str) -> Pointer {
        Pointer(format!("{}/{}", self.0, name.replace('~', "~0").replace('/', "~1")))
    }

    pub(super) fn item(&self, place: usize) -> Pointer {
        Pointer(format!("{}/{place}", self.0))
    }

    /// The names and numbers of a pointer, from the outside in.
    pub(super) fn steps(pointer: &str) -> impl Iterator<Item = String> + '_ {
        pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"))
    }
}

impl AsRef<str> for Pointer {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
