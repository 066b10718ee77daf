//! Dumps of `chrome://webrtc-internals`.
//!
//! Each number of each object is a list over time, as text. Its times are the list named `timestamp` of the same object
//! where that is as long; else they are spread evenly from its start to its end.

use super::{MAX_DOCUMENT, document, event, parse, sdp, unix_ms, value};
use crate::input::Input;
use crate::recording::Recording;
use crate::schema::{Clock, Stop};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_units::Timestamp;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    let begin = input.offset();
    let (bytes, broken) = input.rest(MAX_DOCUMENT);
    let end = begin + bytes.len() as u64;
    let (document, damage) = document(bytes);
    let stop = match damage {
        Some((at, why)) => Some(Stop { offset: begin + at as u64, why: broken.unwrap_or(why) }),
        None => broken.map(|why| Stop { offset: end, why }),
    };
    let connections = document.as_ref().and_then(|d| d.get("PeerConnections")).and_then(Value::as_object);
    let Some(connections) = connections else {
        let why = "no peer connection is in it".into();
        return stop.or(Some(Stop { offset: end, why }));
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
    let full = out.full().map(|why| Stop { offset: end, why });
    stop.or(full)
}

/// A list of values of one number of one object, as text.
struct Column<'a> {
    name: &'a str,
    kind: &'a str,
    times: (f64, f64),
    values: &'a str,
}

impl Column<'_> {
    /// The values. One column's at a time are in memory.
    fn values(&self, out: &mut Recording) -> Vec<Value> {
        match parse(self.values.as_bytes()) {
            Ok(Value::Array(values)) => values,
            _ => {
                out.fault("lists that are not JSON");
                vec![]
            }
        }
    }
}

fn stats(out: &mut Recording, prefix: &str, stats: &Map<String, Value>) {
    let mut objects: BTreeMap<&str, Vec<Column<'_>>> = BTreeMap::new();
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
        let times = (text("startTime").and_then(iso_ms), text("endTime").and_then(iso_ms));
        let (Some(start), Some(end)) = times else {
            out.fault("lists without their times");
            continue;
        };
        objects.entry(id).or_default().push(Column { name, kind, times: (start, end), values });
    }
    for (id, columns) in objects {
        let id = format!("{prefix}{id}");
        let clock = columns.iter().find(|c| c.name == "timestamp").map(|c| c.values(out));
        for column in columns.iter().filter(|c| !matches!(c.name, "timestamp" | "type" | "id")) {
            let values = column.values(out);
            let times = times(column.times, values.len(), clock.as_deref());
            for (at, v) in times.into_iter().zip(&values) {
                match (at, v) {
                    (None, _) => {}
                    (Some(at), Value::Object(inner)) => inner
                        .iter()
                        .for_each(|(n, v)| value(out, at, (column.kind, &id, &format!("{}.{n}", column.name)), v)),
                    (Some(at), v) => value(out, at, (column.kind, &id, column.name), v),
                }
            }
            if out.is_full() {
                return;
            }
        }
    }
}

/// Times of a list's values.
fn times((start, end): (f64, f64), n: usize, clock: Option<&[Value]>) -> Vec<Option<Timestamp>> {
    // A number that the object got later has fewer values than the object: they are its last ones, if they end with it.
    if let Some(clock) = clock.filter(|c| c.len() >= n) {
        let at = |v: &Value| v.as_f64().and_then(unix_ms);
        let tail = &clock[clock.len() - n..];
        let starts = tail.first().and_then(Value::as_f64);
        if starts.is_some_and(|s| (s - start).abs() < 1500.0) {
            return tail.iter().map(at).collect();
        }
    }
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
        _ => event(out, at, name),
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
