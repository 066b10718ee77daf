//! `getStats()` reports, one JSON object a line.
//!
//! A line is the report itself, by id or as a list, or an object with it in `stats` and its time in `epoch_ms` or
//! `timestamp`. A report without a time of its own takes that of its objects.

use super::{MAX_LINE, object, parse, unix_ms};
use crate::input::{Input, Taken};
use crate::recording::Recording;
use crate::schema::{Clock, Stop};
use serde_json::{Map, Value};

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    out.clock = Clock::Utc;
    let mut line = Vec::new();
    loop {
        let (offset, cost) = (input.offset(), out.cost());
        match input.line(MAX_LINE, &mut line) {
            Taken::Whole => {}
            Taken::End => return None,
            Taken::Cut(why) => return Some(Stop { offset, why }),
        }
        match parse(&line) {
            _ if line.trim_ascii().is_empty() => {}
            Ok(Value::Object(report)) => self::report(out, &report),
            Ok(_) => out.damage(offset, "lines without a report", || "a line that is no object".into()),
            // The last line of a file that was cut.
            Err(e) if e.is_eof() && input.peek(1).is_ok_and(<[u8]>::is_empty) => {
                return Some(Stop { offset, why: format!("the last line is cut: {e}") });
            }
            Err(e) => out.damage(offset, "lines that are not JSON", || format!("a line that is not JSON: {e}")),
        }
        out.charge(cost);
        if let Some(why) = out.full() {
            return Some(Stop { offset, why });
        }
    }
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
