//! The caller's place in a distributed trace, taken from the W3C `traceparent` header.
//!
//! A header that does not follow the standard is ignored, as the standard asks: tracing never fails a request.

use std::fmt;

/// `version-traceid-parentid-flags`, of which the version is no longer of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace_id: String,
    parent_id: String,
    flags: u8,
}

impl TraceParent {
    pub fn from_header(header: &str) -> Option<TraceParent> {
        let mut parts = header.trim().split('-');
        let (version, trace, parent, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        // Version 00 has exactly four parts; later versions may append more.
        let known_shape = version != "ff" && (version != "00" || parts.next().is_none());
        let well_formed = is_hex(version, 2) && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2);
        if !(known_shape && well_formed) {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(TraceParent { trace_id: trace.to_owned(), parent_id: parent.to_owned(), flags })
    }

    /// 32 lower-case hexadecimal digits, not all zero.
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// The caller's span: 16 lower-case hexadecimal digits, not all zero.
    pub fn parent_id(&self) -> &str {
        &self.parent_id
    }

    pub fn flags(&self) -> u8 {
        self.flags
    }
}

/// As the header has it.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.parent_id, self.flags)
    }
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_id(text: &str, length: usize) -> bool {
    is_hex(text, length) && text.bytes().any(|b| b != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_well_formed_header_is_taken_apart() {
        for header in
            [format!("00-{TRACE}-00f067aa0ba902b7-01"), format!("cc-{TRACE}-00f067aa0ba902b7-01-later")]
        {
            let parent = TraceParent::from_header(&header).unwrap();
            assert_eq!(
                (parent.trace_id(), parent.parent_id(), parent.flags()),
                (TRACE, "00f067aa0ba902b7", 1)
            );
        }
    }

    #[test]
    fn headers_off_the_standard_are_ignored() {
        for header in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-00f067aa0ba902b7"),
            format!("00-{TRACE}-00f067aa0ba902b7-01-more"),
            format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            format!("00-{}-00f067aa0ba902b7-01", TRACE.to_uppercase()),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
        ] {
            assert_eq!(TraceParent::from_header(&header), None, "{header}");
        }
    }
}
