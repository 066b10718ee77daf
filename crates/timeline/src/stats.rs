//! `getStats()` in the formats in which it is kept.

pub(crate) mod dump;
pub(crate) mod lines;
mod repair;
pub(crate) mod rtcstats;
mod sdp;

use crate::recording::Recording;

use serde_json::{Map, Value};
use weir_units::Timestamp;

/// Most bytes of one JSON document, and of one line.
const MAX_DOCUMENT: usize = 256 << 20;
const MAX_LINE: usize = 16 << 20;
/// Longest text kept of a value.
const MAX_TEXT: usize = 200;

/// A document that breaks off, up to its last whole value.
pub(crate) fn repaired(bytes: &[u8]) -> Option<Value> {
    repair::closed(bytes).and_then(|b| serde_json::from_slice(&b).ok())
}

/// A time in ms since the Unix epoch.
fn unix_ms(ms: f64) -> Option<Timestamp> {
    // Between 1970 and 2262; a page's own clock has smaller numbers and is no UTC.
    (ms.is_finite() && (0.0..9e12).contains(&ms)).then(|| Timestamp::from_micros((ms * 1000.0 + 0.5) as i64))
}

/// Adds one value of a statistics object.
fn value(out: &mut Recording, at: Timestamp, key: (&str, &str, &str), value: &Value) {
    let number = match value {
        Value::Number(n) => n.as_f64(),
        Value::Bool(b) => Some(f64::from(*b)),
        _ => None,
    };
    let text = match value {
        Value::String(s) => Some(s.chars().take(MAX_TEXT).collect::<String>()),
        _ => None,
    };
    if (number.is_none() && text.is_none()) || !out.room(1) {
        return;
    }
    let (kind, id, name) = key;
    let series = out.series.entry((kind.into(), id.into(), name.into())).or_default();
    if let Some(number) = number {
        series.points.push((at, number));
    }
    if let Some(text) = text
        && series.texts.last().is_none_or(|(_, last)| *last != text)
    {
        series.texts.push((at, text));
    }
}

/// Adds a statistics object: its type, its id and its numbers, those of inner objects by `outer.inner`.
fn object(out: &mut Recording, at: Timestamp, id: &str, object: &Map<String, Value>) {
    let Some(kind) = object.get("type").and_then(Value::as_str) else { return };
    // Certificates never change and are no measurements.
    if kind == "certificate" {
        return;
    }
    for (name, v) in object {
        match v {
            _ if matches!(name.as_str(), "type" | "id" | "timestamp") => {}
            Value::Object(inner) => {
                for (inner_name, v) in inner {
                    value(out, at, (kind, id, &format!("{name}.{inner_name}")), v);
                }
            }
            v => value(out, at, (kind, id, name), v),
        }
    }
}
