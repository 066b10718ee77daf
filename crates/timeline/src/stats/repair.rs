//! JSON that breaks off.

/// The document up to its last whole value, with everything that is open closed; `None` where there is no such value.
pub(super) fn closed(mut text: Vec<u8>) -> Option<Vec<u8>> {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    // Length of the text up to a comma that ends a value, and how many are open there.
    let mut whole = None;
    for (i, byte) in text.iter().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                if open.pop() != Some(*byte) {
                    return None;
                }
                whole = Some((i + 1, open.len()));
            }
            b',' => whole = Some((i, open.len())),
            _ => {}
        }
    }
    let (length, depth) = whole?;
    text.truncate(length);
    // At least as many are open now as at that place, and the lower ones are the same.
    text.extend(brackets(&text, depth)?);
    Some(text)
}

/// The closing brackets of what is open after `text`.
fn brackets(text: &[u8], depth: usize) -> Option<Vec<u8>> {
    let (mut open, mut in_string, mut escaped) = (Vec::new(), false, false);
    for byte in text {
        match byte {
            _ if in_string && escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
    }
    (open.len() == depth).then(|| open.into_iter().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WHOLE: &str = r#"{"a": {"b": "[1,2,\"}", "c": [1, {"d": true}]}, "e": [2, 3]}"#;

    #[test]
    fn values_before_the_cut_stay() {
        let cut = &WHOLE[..WHOLE.find("3]").expect("there")];
        let repaired = closed(cut.into()).expect("values");
        let value: serde_json::Value = serde_json::from_slice(&repaired).expect("JSON");
        assert_eq!(value, serde_json::json!({"a": {"b": "[1,2,\"}", "c": [1, {"d": true}]}, "e": [2]}));
        assert_eq!(closed(b"{\"a\": 1".to_vec()), None);
        assert_eq!(closed(b"}".to_vec()), None);
    }

    proptest! {
        #[test]
        fn each_cut_is_json_or_nothing(at in 0..WHOLE.len()) {
            if let Some(repaired) = closed(WHOLE.as_bytes()[..at].to_vec()) {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&repaired).is_ok());
            }
        }
    }
}
