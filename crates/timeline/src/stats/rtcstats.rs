//! Logs of rtcstats: a JSON array a line, `[name, connection, value, ms]`.
//!
//! `getstats` holds only what changed since the report before (rtcstats' delta compression), so that each report is
//! joined with what is known.

use super::{MAX_LINE, object, sdp, unix_ms};
use crate::input::{Input, Taken};
use crate::recording::Recording;
use crate::schema::{Clock, Event, EventKind, Stop};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_units::Timestamp;

/// Most objects that are known at a time; a connection has some fifty.
const MAX_OBJECTS: usize = 20_000;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    let mut known: BTreeMap<(String, String), Map<String, Value>> = BTreeMap::new();
    let (mut line, mut latest) = (Vec::new(), None);
    loop {
        let offset = input.offset();
        match input.line(MAX_LINE, &mut line) {
            Taken::Whole => {}
            Taken::End => return None,
            Taken::Cut(why) => return Some(Stop { offset, why }),
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(Value::Array(entry)) => self::entry(out, &mut known, &mut latest, &entry),
            Ok(_) => out.fault("lines that are no entry"),
            Err(e) if e.is_eof() && input.peek(1).is_ok_and(<[u8]>::is_empty) => {
                return Some(Stop { offset, why: format!("the last line is cut: {e}") });
            }
            Err(_) => out.fault("lines that are not JSON"),
        }
        if out.is_full() || known.len() > MAX_OBJECTS {
            return Some(Stop { offset, why: "more rows than are kept".into() });
        }
    }
}

fn entry(
    out: &mut Recording,
    known: &mut BTreeMap<(String, String), Map<String, Value>>,
    latest: &mut Option<Timestamp>,
    entry: &[Value],
) {
    let Some(name) = entry.first().and_then(Value::as_str) else { return out.fault("entries without a name") };
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
                    state.insert(name.clone(), v.clone());
                }
                object(out, at, &format!("{connection}/{id}"), state);
            }
        }
        ("setRemoteDescription", Some(value)) => sdp::limits(out, at, value),
        (name, _) if out.room(1) => {
            let name = name.chars().take(super::MAX_TEXT).collect();
            out.events.push(Event { at, kind: EventKind::Application(name) });
        }
        _ => {}
    }
}
