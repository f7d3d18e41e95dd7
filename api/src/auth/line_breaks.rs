//! JSON whose strings hold raw line breaks, made into JSON. Everything else stays as it is, broken or not: the parser
//! judges it.

pub(super) fn escaped(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len());
    let (mut in_string, mut after_backslash) = (false, false);
    for &byte in json {
        match byte {
            b'\n' if in_string => out.extend_from_slice(b"\\n"),
            b'\r' if in_string => out.extend_from_slice(b"\\r"),
            other => out.push(other),
        }
        if byte == b'"' && !after_backslash {
            in_string = !in_string;
        }
        after_backslash = in_string && byte == b'\\' && !after_backslash;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escaped;
    use serde_json::{Value, json};

    fn read(text: &str) -> Value {
        serde_json::from_slice(&escaped(text.as_bytes())).unwrap()
    }

    #[test]
    fn a_key_file_pasted_into_a_string_is_read() {
        let sent = "{\n\"key\": \"-----BEGIN\nabc\r\n-----END\n\",\n \"x\": 1}";
        assert_eq!(read(sent), json!({ "key": "-----BEGIN\nabc\r\n-----END\n", "x": 1 }));
    }

    #[test]
    fn proper_json_stays_as_it_is() {
        for text in [r#"{"a": "say \"hi\"", "b": "\\", "c": "x\ny"}"#, "[1,\n 2]", r#""\\\"""#] {
            assert_eq!(escaped(text.as_bytes()), text.as_bytes(), "{text}");
        }
    }
}
