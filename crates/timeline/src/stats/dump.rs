//! Dumps of `chrome://webrtc-internals`.
//!
//! Each number of each object is a list over time, as text. Its times are the list named `timestamp` of the same object
//! where that is as long; else they are spread evenly from its start to its end.

use super::{MAX_DOCUMENT, repair, sdp, unix_ms, value};
use crate::input::Input;
use crate::recording::Recording;
use crate::schema::{Clock, Event, EventKind, Stop};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_units::Timestamp;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    let (bytes, broken) = input.rest(MAX_DOCUMENT);
    let offset = bytes.len() as u64;
    let (document, stop) = match serde_json::from_slice::<Value>(&bytes) {
        Ok(document) => (Some(document), broken.map(|why| Stop { offset, why })),
        Err(e) => {
            let why = broken.unwrap_or_else(|| format!("the document is damaged: {e}"));
            let repaired = repair::closed(&bytes).and_then(|b| serde_json::from_slice(&b).ok());
            (repaired, Some(Stop { offset, why }))
        }
    };
    let connections = document.as_ref().and_then(|d| d.get("PeerConnections")).and_then(Value::as_object);
    let Some(connections) = connections else {
        let why = "no peer connection is in it".into();
        return stop.or(Some(Stop { offset, why }));
    };
    for (name, connection) in connections {
        // Objects of several connections may have the same id.
        let prefix = if connections.len() > 1 { format!("{name}/") } else { String::new() };
        if let Some(stats) = connection.get("stats").and_then(Value::as_object) {
            self::stats(out, &prefix, stats);
        }
        for entry in connection.get("updateLog").and_then(Value::as_array).into_iter().flatten() {
            update(out, entry);
        }
    }
    let full = out.is_full().then(|| Stop { offset, why: "more rows than are kept".into() });
    stop.or(full)
}

/// A list of values of one number of one object.
struct Column {
    kind: String,
    times: (f64, f64),
    values: Vec<Value>,
}

fn stats(out: &mut Recording, prefix: &str, stats: &Map<String, Value>) {
    let mut objects: BTreeMap<&str, Vec<(&str, Column)>> = BTreeMap::new();
    for (key, column) in stats {
        // Derived numbers, such as rates that the page computed, begin with a bracket.
        let Some((id, name)) = key.rsplit_once('-').filter(|(_, name)| !name.ends_with(']')) else { continue };
        let text = |of: &str| column.get(of).and_then(Value::as_str);
        let (Some(values), Some(kind)) = (text("values"), text("statsType")) else {
            out.fault("lists without values or type");
            continue;
        };
        if kind == "certificate" {
            continue;
        }
        let Ok(values) = serde_json::from_str::<Vec<Value>>(values) else {
            out.fault("lists that are not JSON");
            continue;
        };
        let times = (text("startTime").and_then(iso_ms), text("endTime").and_then(iso_ms));
        let (Some(start), Some(end)) = times else {
            out.fault("lists without their times");
            continue;
        };
        objects.entry(id).or_default().push((name, Column { kind: kind.into(), times: (start, end), values }));
    }
    for (id, columns) in objects {
        let clock = columns.iter().find(|(name, _)| *name == "timestamp").map(|(_, c)| &c.values);
        for (name, column) in columns.iter().filter(|(name, _)| !matches!(*name, "timestamp" | "type" | "id")) {
            let times = times(column, clock.map(Vec::as_slice));
            for (at, v) in times.into_iter().zip(&column.values) {
                if let Some(at) = at {
                    let id = format!("{prefix}{id}");
                    match v {
                        Value::Object(inner) => inner
                            .iter()
                            .for_each(|(n, v)| value(out, at, (&column.kind, &id, &format!("{name}.{n}")), v)),
                        v => value(out, at, (&column.kind, &id, name), v),
                    }
                }
            }
        }
    }
}

fn times(column: &Column, clock: Option<&[Value]>) -> Vec<Option<Timestamp>> {
    let n = column.values.len();
    // A number that the object got later has fewer values than the object: they are its last ones, if they end with it.
    if let Some(clock) = clock.filter(|c| c.len() >= n) {
        let at = |v: &Value| v.as_f64().and_then(unix_ms);
        let tail = &clock[clock.len() - n..];
        let starts = tail.first().and_then(Value::as_f64);
        if starts.is_some_and(|s| (s - column.times.0).abs() < 1500.0) {
            return tail.iter().map(at).collect();
        }
    }
    let (start, end) = column.times;
    let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
    (0..n).map(|i| unix_ms(start + step * i as f64)).collect()
}

fn update(out: &mut Recording, entry: &Value) {
    let name = entry.get("type").and_then(Value::as_str).unwrap_or_default();
    // Older dumps have only a time in the reader's own language, without its zone.
    let ms = entry.get("timestamp").and_then(Value::as_f64);
    let Some(at) = ms.or_else(|| iso_ms(entry.get("time")?.as_str()?)).and_then(unix_ms) else {
        return out.fault("entries of the log without a time in UTC");
    };
    match (name, entry.get("value")) {
        ("setRemoteDescription", Some(value)) => sdp::limits(out, at, value),
        _ if out.room(1) => {
            let name = name.chars().take(super::MAX_TEXT).collect();
            out.events.push(Event { at, kind: EventKind::Application(name) });
        }
        _ => {}
    }
}

/// Unix time in ms of a time such as `2026-11-25T12:55:59.714Z`.
fn iso_ms(text: &str) -> Option<f64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.split(':');
    let (hour, minute) = (time.next()?.parse::<i64>().ok()?, time.next()?.parse::<i64>().ok()?);
    let second = time.next()?.parse::<f64>().ok()?;
    let in_day = (0..24).contains(&hour) && (0..60).contains(&minute);
    if !in_day || !(1970..3000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    let seconds = (days * 86_400 + hour * 3600 + minute * 60) as f64 + second;
    Some(seconds * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_text_become_unix_times() {
        assert_eq!(iso_ms("1970-01-01T00:00:00.000Z"), Some(0.0));
        assert_eq!(iso_ms("2024-02-29T12:00:00.500Z"), Some(1_709_208_000_500.0));
        assert_eq!(iso_ms("4/14/2025, 1:20:33 PM"), None);
        assert_eq!(iso_ms("2024-13-01T00:00:00Z"), None);
    }
}
