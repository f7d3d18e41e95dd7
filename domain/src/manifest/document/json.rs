//! JSON with places. serde judges the text first, so what is left here is to find where each value begins.

use std::iter::Peekable;
use std::str::CharIndices;

use serde::de::IgnoredAny;

use super::{Builder, Content, Document, Field, Names, Node, Position};
use crate::manifest::problem::{Pointer, Problem};

pub(super) fn read(text: &str) -> Result<Document, Problem> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| refused(&error, None))?;
    let mut reader = Reader::new(text);
    let root = reader.value(&Pointer::default(), 1)?;
    Ok(Document { root, problems: reader.builder.problems })
}

fn refused(error: &serde_json::Error, begins: Option<Position>) -> Problem {
    // serde says the place at the end of its sentence; we say it our own way.
    let said = error.to_string();
    let sentence = said.split(" at line ").next().unwrap_or(&said);
    let at = begins.unwrap_or(Position { line: error.line().max(1), column: error.column().max(1) });
    Problem::at("", format!("is not JSON: {sentence}")).standing(at)
}

struct Reader<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
    at: Position,
    builder: Builder,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        let at = Position { line: 1, column: 1 };
        Reader { text, rest: text.char_indices().peekable(), at, builder: Builder::default() }
    }

    fn value(&mut self, pointer: &Pointer, depth: usize) -> Result<Node, Problem> {
        self.skip_space();
        let at = self.at;
        self.builder.count(at, depth)?;
        let content = match self.peek() {
            Some('{') => self.object(pointer, depth)?,
            Some('[') => self.list(pointer, depth)?,
            Some('"') => Content::Text(self.decoded(Reader::string)?),
            Some('t' | 'f') => Content::Bool(self.word() == "true"),
            Some('n') => {
                self.word();
                Content::Null
            }
            _ => Content::Number(self.decoded(Reader::word)?),
        };
        Ok(self.builder.node(at, content))
    }

    fn object(&mut self, pointer: &Pointer, depth: usize) -> Result<Content, Problem> {
        let mut names = Names::default();
        self.next();
        loop {
            self.skip_space();
            let at = self.at;
            match self.peek() {
                Some('"') => {
                    let name: String = self.decoded(Reader::string)?;
                    self.builder.check_name(&name, at)?;
                    self.skip_space();
                    self.next(); // the colon
                    let value = self.value(&pointer.field(&name), depth + 1)?;
                    self.builder.field(&mut names, pointer, Field { name, at: Some(at), value }, at);
                }
                Some(',') => self.next(),
                _ => break,
            }
        }
        self.next();
        Ok(Content::Object(names.fields))
    }

    fn list(&mut self, pointer: &Pointer, depth: usize) -> Result<Content, Problem> {
        let mut items = Vec::new();
        self.next();
        loop {
            self.skip_space();
            match self.peek() {
                Some(',') => self.next(),
                Some(']') | None => break,
                Some(_) => {
                    let item = self.value(&pointer.item(items.len()), depth + 1)?;
                    items.push(item);
                }
            }
        }
        self.next();
        Ok(Content::List(items))
    }

    /// What a token means is serde's business: escapes, surrogates, the range of numbers.
    fn decoded<T: serde::de::DeserializeOwned>(
        &mut self,
        token: impl Fn(&mut Reader<'a>) -> &'a str,
    ) -> Result<T, Problem> {
        let at = self.at;
        serde_json::from_str(token(self)).map_err(|error| refused(&error, Some(at)))
    }

    fn string(&mut self) -> &'a str {
        let begin = self.offset();
        self.next();
        while let Some(c) = self.peek() {
            self.next();
            match c {
                '\\' => self.next(),
                '"' => break,
                _ => {}
            }
        }
        self.since(begin)
    }

    /// A number or one of the three words.
    fn word(&mut self) -> &'a str {
        let begin = self.offset();
        while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
            self.next();
        }
        self.since(begin)
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
            self.next();
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest.peek().map(|(_, c)| *c)
    }

    fn next(&mut self) {
        match self.rest.next() {
            Some((_, '\n')) => self.at = Position { line: self.at.line + 1, column: 1 },
            Some(_) => self.at.column += 1,
            None => {}
        }
    }

    fn offset(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(offset, _)| *offset)
    }

    fn since(&mut self, begin: usize) -> &'a str {
        let end = self.offset();
        self.text.get(begin..end).unwrap_or_default()
    }
}
