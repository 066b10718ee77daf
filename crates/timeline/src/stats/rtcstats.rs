//! Logs of rtcstats: a JSON array a line, `[name, connection, value, ms]`.
//!
//! `getstats` holds only what changed since the report before (rtcstats' delta compression), so that each report is
//! joined with what is known.

use super::{MAX_LINE, MAX_TEXT, ROW, event, object, parse, sdp, unix_ms};
use crate::input::Input;
use crate::line::{self, Unread};
use crate::recording::Recording;
use crate::schema::{Clock, Stop};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_units::Timestamp;

/// Most objects that are known at a time; a connection has some fifty.
const MAX_OBJECTS: usize = 20_000;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    let mut known: BTreeMap<(String, String), Map<String, Value>> = BTreeMap::new();
    let mut latest = None;
    line::each(input, out, MAX_LINE, |out, line| {
        match parse(line) {
            Ok(Value::Array(entry)) if entry.first().is_some_and(Value::is_string) => {
                self::entry(out, &mut known, &mut latest, &entry);
            }
            Ok(_) => {
                let why = "a line that is no list with a name".into();
                return Err(Unread { what: "lines that are no entry", why, cut: None });
            }
            Err(e) => return Err(Unread::json(&e)),
        }
        if known.len() > MAX_OBJECTS {
            out.refuse("more objects of getStats than are kept");
        }
        Ok(())
    })
}

fn entry(
    out: &mut Recording,
    known: &mut BTreeMap<(String, String), Map<String, Value>>,
    latest: &mut Option<Timestamp>,
    entry: &[Value],
) {
    let Some(name) = entry.first().and_then(Value::as_str) else { return };
    let connection = entry.get(1).and_then(Value::as_str).unwrap_or_default();
    if let Some(at) = entry.get(3).and_then(Value::as_f64).and_then(unix_ms) {
        *latest = Some(at);
    }
    let Some(at) = *latest else { return };
    match (name, entry.get(2)) {
        ("getstats" | "getStats", Some(Value::Object(report))) => {
            for (id, changed) in report {
                let Value::Object(changed) = changed else { continue };
                let state = known.entry((connection.to_owned(), id.clone())).or_default();
                for (name, v) in changed {
                    match kept(v) {
                        None => _ = state.remove(name),
                        Some(v) if state.contains_key(name) => _ = state.insert(name.clone(), v),
                        Some(v) if out.room(1 + (name.len() / ROW) as u64) => _ = state.insert(name.clone(), v),
                        Some(_) => return,
                    }
                }
                object(out, at, &format!("{connection}/{id}"), state);
            }
        }
        ("setRemoteDescription", Some(value)) => sdp::limits(out, at, value),
        (name, _) => event(out, at, name),
    }
}

/// The part of a value that is ever looked at: what is known of an object stays in memory until the end.
fn kept(value: &Value) -> Option<Value> {
    match value {
        Value::String(s) => Some(Value::String(s.chars().take(MAX_TEXT).collect())),
        Value::Object(inner) => {
            let plain = inner.iter().filter(|(_, v)| v.is_number() || v.is_boolean()).take(MAX_TEXT);
            Some(Value::Object(plain.map(|(name, v)| (name.clone(), v.clone())).collect()))
        }
        Value::Number(_) | Value::Bool(_) => Some(value.clone()),
        Value::Null | Value::Array(_) => None,
    }
}
