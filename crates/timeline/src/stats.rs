//! `getStats()` in the formats in which it is kept.

pub(crate) mod dump;
pub(crate) mod lines;
mod repair;
pub(crate) mod rtcstats;
mod sdp;

use crate::format::Format;
use crate::number::is_measured;
use crate::recording::Recording;
use crate::schema::{Event, EventKind, Series};
use serde::de::Error as _;
use serde_json::{Map, Value};
use weir_units::{TimeDelta, Timestamp};

/// Most bytes of one JSON document, and of one line.
pub(crate) const MAX_DOCUMENT: usize = 256 << 20;
const MAX_LINE: usize = 16 << 20;
/// Longest time for which what the other end said last holds.
const MOST_BACK: TimeDelta = TimeDelta::from_secs(30);
/// Longest text kept of a value.
const MAX_TEXT: usize = 200;

/// Most values of a document, a line or a list of a dump: in memory one takes up to a hundred times the bytes that it has in the file.
const MAX_VALUES: usize = 2_000_000;
/// Most series. A call has some thousand; each is looked at alone.
const MAX_SERIES: usize = 100_000;
/// Bytes beside a row's own that cost as much as a row, and what a series takes beside its texts and values.
const ROW: usize = 64;
const SERIES: usize = 400;

/// Types of the objects of `getStats()`, today's (W3C, Identifiers for WebRTC's Statistics API) and those of Chromium before 2021.
const TYPES: [&str; 24] = [
    "candidate-pair",
    "certificate",
    "codec",
    "csrc",
    "data-channel",
    "googCandidatePair",
    "googComponent",
    "googTrack",
    "ice-server",
    "inbound-rtp",
    "local-candidate",
    "localcandidate",
    "media-playout",
    "media-source",
    "outbound-rtp",
    "peer-connection",
    "remote-candidate",
    "remote-inbound-rtp",
    "remote-outbound-rtp",
    "remotecandidate",
    "ssrc",
    "stream",
    "track",
    "transport",
];

/// Whether a file of JSON has nothing of a call. One that begins as recordings do is a damaged one.
pub(crate) fn is_foreign(format: Format, of: &Recording, head: &[u8]) -> bool {
    let holds = |word: &str| head.windows(word.len()).any(|w| w.eq_ignore_ascii_case(word.as_bytes()));
    let known = || of.series.keys().any(|(kind, _, _)| TYPES.contains(&kind.as_str()));
    match format {
        Format::GetStats => !known() && !TYPES.iter().any(|t| holds(&format!("\"{t}\""))),
        Format::RtcStats => !known() && of.events.is_empty() && !holds("[\"getstats\""),
        _ => false,
    }
}

/// A JSON value of bounded memory.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let (mut values, mut in_string, mut escaped) = (1, false, false);
    for byte in bytes {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => values += 1,
            _ => {}
        }
    }
    if values > MAX_VALUES {
        return Err(serde_json::Error::custom(format!("more than {MAX_VALUES} values")));
    }
    serde_json::from_slice(bytes)
}

/// A document; a damaged one up to the last whole value before the damage, with the damage's byte and reason.
pub(crate) fn document(mut bytes: Vec<u8>) -> (Option<Value>, Option<(usize, String)>) {
    let e = match parse(&bytes) {
        Ok(document) => return (Some(document), None),
        Err(e) => e,
    };
    let whole = place(&bytes, &e);
    bytes.truncate(whole);
    let repaired = repair::closed(bytes).and_then(|b| parse(&b).ok());
    (repaired, Some((whole, format!("the document is damaged: {e}"))))
}

/// The byte at which a document cannot be read further.
fn place(bytes: &[u8], e: &serde_json::Error) -> usize {
    let Some(before) = e.line().checked_sub(1) else { return bytes.len() };
    let line = match before {
        0 => 0,
        n => bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').nth(n - 1).map_or(bytes.len(), |(i, _)| i + 1),
    };
    (line + e.column().saturating_sub(1)).min(bytes.len())
}

/// A time in ms since the Unix epoch.
fn unix_ms(ms: f64) -> Option<Timestamp> {
    // Between 1970 and 2262; a page's own clock has smaller numbers and is no UTC.
    (ms.is_finite() && (0.0..9e12).contains(&ms)).then(|| Timestamp::from_micros((ms * 1000.0 + 0.5) as i64))
}

/// Adds one value of a statistics object: numbers, truth values and texts are kept.
pub(crate) fn value(out: &mut Recording, at: Timestamp, key: (&str, &str, &str), value: &Value) {
    match value {
        Value::Number(n) => {
            if let Some(n) = n.as_f64() {
                number(out, at, key, n);
            }
        }
        Value::Bool(b) => number(out, at, key, f64::from(*b)),
        Value::String(s) => text(out, at, key, s),
        _ => {}
    }
}

/// Adds a number: the type of its object, the object's id and its own name.
pub(crate) fn number(out: &mut Recording, at: Timestamp, key: (&str, &str, &str), number: f64) {
    if !is_measured(number) {
        return out.fault("numbers that nothing can have measured");
    }
    if let Some(series) = series(out, key, 0) {
        series.points.push((at, number));
    }
}

/// Adds a text where it changes.
pub(crate) fn text(out: &mut Recording, at: Timestamp, key: (&str, &str, &str), text: &str) {
    let text: String = text.chars().take(MAX_TEXT).collect();
    if let Some(series) = series(out, key, text.len())
        && series.texts.last().is_none_or(|(_, last)| *last != text)
    {
        series.texts.push((at, text));
    }
}

/// The series of a number, with room for a row with so many bytes of text.
fn series<'a>(out: &'a mut Recording, (kind, id, name): (&str, &str, &str), text: usize) -> Option<&'a mut Series> {
    if !out.room(1 + (text / ROW) as u64) {
        return None;
    }
    let key = (kind.to_owned(), id.to_owned(), name.to_owned());
    if !out.series.contains_key(&key) {
        if out.series.len() >= MAX_SERIES {
            out.refuse("more numbers over time than are kept");
            return None;
        }
        if !out.room(((SERIES + kind.len() + id.len() + name.len()) / ROW) as u64) {
            return None;
        }
    }
    Some(out.series.entry(key).or_default())
}

/// Adds an event of the application.
fn event(out: &mut Recording, at: Timestamp, name: &str) {
    let name: String = name.chars().take(MAX_TEXT).collect();
    if out.room(1 + (name.len() / ROW) as u64) {
        out.events.push(Event { at, kind: EventKind::Application(name) });
    }
}

/// The time of a statistics object that is looked at at a time: what the other end says has that at which it came (W3C, Identifiers for WebRTC's
/// Statistics API, section 6.7), which is a few seconds back at most.
fn arrival(kind: &str, object: &Map<String, Value>, at: Timestamp) -> Timestamp {
    let own =
        object.get("timestamp").and_then(Value::as_f64).and_then(unix_ms).filter(|_| kind == "remote-outbound-rtp");
    own.filter(|own| *own <= at && at - *own < MOST_BACK).unwrap_or(at)
}

/// Adds a statistics object: its type, its id and its numbers, those of inner objects by `outer.inner`.
fn object(out: &mut Recording, at: Timestamp, id: &str, object: &Map<String, Value>) {
    let Some(kind) = object.get("type").and_then(Value::as_str) else { return };
    // Certificates never change and are no measurements.
    if kind == "certificate" {
        return;
    }
    let at = arrival(kind, object, at);
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
