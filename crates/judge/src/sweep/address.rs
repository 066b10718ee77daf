//! Content addresses.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// The SHA-256 of a text as digits to the base 16.
pub(crate) fn digest(text: &str) -> String {
    Sha256::digest(text).iter().map(|b| format!("{b:02x}")).collect()
}

/// JSON with sorted keys, without spaces, in ASCII.
pub(crate) fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (n, (name, value)) in fields.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                text(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Value::Array(values) => {
            out.push('[');
            for (n, value) in values.iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(value, out);
            }
            out.push(']');
        }
        Value::String(s) => text(s, out),
        other => out.push_str(&other.to_string()),
    }
}

/// A string whose characters beyond ASCII are escaped as UTF-16.
fn text(s: &str, out: &mut String) {
    for c in Value::from(s).to_string().chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing into a string does not fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_content_has_one_text_and_one_address() {
        let value = serde_json::json!({"b": [1, 0.5, true, null], "a": {}, "\u{e9}": "\u{1f600}\n\""});
        // As Python's json.dumps(..., sort_keys=True, separators=(",", ":")) writes it.
        assert_eq!(canonical(&value), r#"{"a":{},"b":[1,0.5,true,null],"\u00e9":"\ud83d\ude00\n\""}"#);
        assert_eq!(digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
