//! YAML 1.2 with places, as much of it as JSON can hold. Anchors, aliases and tags are refused: they hide what a
//! reviewer should see, and aliases make small texts into huge values.

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};
use serde_json::Number;

use super::{Builder, Content, Document, Field, Names, Node, Position};
use crate::manifest::problem::{Pointer, Problem};

pub(super) fn read(text: &str) -> Result<Document, Problem> {
    let mut reader = Reader { parser: Parser::new_from_str(text), builder: Builder::default() };
    let root = reader.only_document()?;
    Ok(Document { root, problems: reader.builder.problems })
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    builder: Builder,
}

impl<'a> Reader<'a> {
    fn only_document(&mut self) -> Result<Node, Problem> {
        let root = loop {
            match self.next()? {
                (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
                (Event::StreamEnd, span) => return Err(Problem::at("", "is empty").standing(at(span.start))),
                (event, span) => break self.node(event, span, &Pointer::default(), 1)?,
            }
        };
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(root),
                (Event::DocumentStart(_), span) => {
                    let message = "has a second document; write one manifest per file";
                    return Err(Problem::at("", message).standing(at(span.start)));
                }
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(refused(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(
        &mut self,
        event: Event<'a>,
        span: Span,
        pointer: &Pointer,
        depth: usize,
    ) -> Result<Node, Problem> {
        let place = at(span.start);
        self.builder.count(place, depth)?;
        let content = match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.plain_only(pointer, anchor, tag.is_some(), place);
                self.scalar(&text, style, pointer, place)
            }
            Event::SequenceStart(anchor, tag) => {
                self.plain_only(pointer, anchor, tag.is_some(), place);
                self.list(pointer, depth)?
            }
            Event::MappingStart(anchor, tag) => {
                self.plain_only(pointer, anchor, tag.is_some(), place);
                self.object(pointer, depth)?
            }
            Event::Alias(_) => {
                self.builder.doubt(pointer, "is an alias (`*`); write the value itself", place);
                Content::Null
            }
            _ => return Err(Problem::at(pointer, "is not YAML: a value is missing").standing(place)),
        };
        Ok(self.builder.node(place, content))
    }

    fn plain_only(&mut self, pointer: &Pointer, anchor: usize, tagged: bool, place: Position) {
        if anchor != 0 {
            self.builder.doubt(pointer, "has an anchor (`&`); write every value where it is used", place);
        }
        if tagged {
            self.builder.doubt(pointer, "has a tag (`!`); quote what shall be text", place);
        }
    }

    fn list(&mut self, pointer: &Pointer, depth: usize) -> Result<Content, Problem> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Content::List(items)),
                (event, span) => {
                    let item = self.node(event, span, &pointer.item(items.len()), depth + 1)?;
                    items.push(item);
                }
            }
        }
    }

    fn object(&mut self, pointer: &Pointer, depth: usize) -> Result<Content, Problem> {
        let mut names = Names::default();
        loop {
            let (event, span) = self.next()?;
            let place = at(span.start);
            let name = match event {
                Event::MappingEnd => return Ok(Content::Object(names.fields)),
                // A name is text however it is written: `8080:` is the name 8080.
                Event::Scalar(text, _, anchor, tag) => {
                    self.builder.check_name(&text, place)?;
                    self.plain_only(&pointer.field(&text), anchor, tag.is_some(), place);
                    text.into_owned()
                }
                _ => {
                    let message = "has a name that is not plain text";
                    return Err(Problem::at(pointer, message).standing(place));
                }
            };
            let (event, span) = self.next()?;
            let value = self.node(event, span, &pointer.field(&name), depth + 1)?;
            self.builder.field(&mut names, pointer, Field { name, at: Some(place), value }, place);
        }
    }

    /// The core schema of YAML 1.2: `yes`, `no`, `on` and `off` are words, and there are no dates.
    fn scalar(&mut self, text: &str, style: ScalarStyle, pointer: &Pointer, place: Position) -> Content {
        if style != ScalarStyle::Plain {
            return Content::Text(text.to_owned());
        }
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Content::Null,
            "true" | "True" | "TRUE" => Content::Bool(true),
            "false" | "False" | "FALSE" => Content::Bool(false),
            ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "-.inf" => {
                self.builder.doubt(pointer, "is a number that JSON does not have", place);
                Content::Null
            }
            _ => match number(text) {
                Some(number) => Content::Number(number),
                None => Content::Text(text.to_owned()),
            },
        }
    }
}

fn number(text: &str) -> Option<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return plain(digits, char::is_ascii_hexdigit)
            .and_then(|d| u64::from_str_radix(d, 16).ok())
            .map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return plain(digits, |c| ('0'..='7').contains(c))
            .and_then(|d| u64::from_str_radix(d, 8).ok())
            .map(Number::from);
    }
    if plain(unsigned, char::is_ascii_digit).is_some() {
        let whole = text.strip_prefix('+').unwrap_or(text);
        if let Some(number) = whole.parse::<u64>().ok().map(Number::from) {
            return Some(number);
        }
        if let Some(number) = whole.parse::<i64>().ok().map(Number::from) {
            return Some(number);
        }
    }
    let is_float = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte))
        && unsigned.bytes().any(|byte| byte.is_ascii_digit());
    is_float.then(|| text.parse::<f64>().ok()).flatten().and_then(Number::from_f64)
}

fn plain(digits: &str, allowed: impl Fn(&char) -> bool) -> Option<&str> {
    (!digits.is_empty() && digits.chars().all(|c| allowed(&c))).then_some(digits)
}

fn refused(error: &ScanError) -> Problem {
    Problem::at("", format!("is not YAML: {}", error.info())).standing(at(*error.marker()))
}

fn at(marker: Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}
