//! `getStats()` reports, one JSON object a line.
//!
//! A line is the report itself, by id or as a list, or an object with it in `stats` and its time in `epoch_ms` or
//! `timestamp`. A report without a time of its own takes that of its objects.

use super::{MAX_LINE, object, parse, unix_ms};
use crate::input::Input;
use crate::line::{self, Unread};
use crate::recording::Recording;
use crate::schema::{Clock, Stop};
use serde_json::{Map, Value};

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    line::each(input, out, MAX_LINE, |out, line| match parse(line) {
        Ok(Value::Object(report)) => {
            self::report(out, &report);
            Ok(())
        }
        Ok(_) => {
            let why = "a line that is no object".into();
            Err(Unread { what: "lines without a report", why, cut: None })
        }
        Err(e) => Err(Unread::json(&e)),
    })
}

fn report(out: &mut Recording, line: &Map<String, Value>) {
    let time = |v: &Map<String, Value>, key: &str| v.get(key).and_then(Value::as_f64).and_then(unix_ms);
    let whole = time(line, "epoch_ms").or_else(|| time(line, "timestamp"));
    let stats = line.get("stats").or_else(|| line.get("report"));
    let mut one = |id: &str, v: &Value| {
        let Value::Object(v) = v else { return };
        let at = whole.or_else(|| time(v, "timestamp"));
        let id = v.get("id").and_then(Value::as_str).unwrap_or(id);
        match at {
            Some(at) => object(out, at, id, v),
            None if v.contains_key("type") => out.fault("objects without a time"),
            None => {}
        }
    };
    match stats {
        Some(Value::Object(by_id)) => by_id.iter().for_each(|(id, v)| one(id, v)),
        Some(Value::Array(list)) => list.iter().for_each(|v| one("", v)),
        _ => line.iter().for_each(|(id, v)| one(id, v)),
    }
}
