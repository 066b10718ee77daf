//! Reports of `weir run --json`, `weir live call --json` and `weir live webrtc --json`: totals of flows, links, ends and calls.
//!
//! Totals stand at the end of the run or the call; those of calls with browsers, which state no end, at their begin.

use super::{FLOW, LINK, time};
use crate::input::Input;
use crate::recording::Recording;
use crate::schema::Stop;
use crate::stats::{MAX_DOCUMENT, document, value};
use serde_json::{Map, Value};
use weir_units::Timestamp;

/// Types of the objects.
pub(crate) const END: &str = "end";
pub(crate) const STREAM: &str = "stream";
pub(crate) const CALL: &str = "call";
const RUN: &str = "run";
const WINDOW: &str = "window";
/// Deepest object of which numbers are kept.
const MAX_DEPTH: usize = 4;

pub(crate) fn read(input: &mut Input<'_>, out: &mut Recording) -> Option<Stop> {
    let (bytes, broken) = input.rest(MAX_DOCUMENT);
    let end = bytes.len() as u64;
    let (document, damage) = document(bytes);
    let stop = match damage {
        Some((at, why)) => Some(Stop { offset: at as u64, why: broken.unwrap_or(why) }),
        None => broken.map(|why| Stop { offset: end, why }),
    };
    if let Some(Value::Object(report)) = &document {
        match report.get("flows") {
            Some(_) => run(out, report),
            None => call(out, report),
        }
    }
    let empty = out.series.is_empty() && !out.is_full();
    stop.or_else(|| empty.then(|| Stop { offset: end, why: "no flow and no call is in it".into() }))
}

fn run(out: &mut Recording, report: &Map<String, Value>) {
    let at = seconds(report, "duration_s");
    flat(out, at, (RUN, ""), "", report, 1);
    flat_in(out, at, (RUN, ""), "fairness", report);
    for flow in list(report, "flows") {
        let name = name(flow);
        flat(out, at, (FLOW, name), "", flow, MAX_DEPTH);
        for stream in list(flow, "streams") {
            flat(out, at, (STREAM, &format!("{name}/{}", self::name(stream))), "", stream, MAX_DEPTH);
        }
    }
    for link in list(report, "links") {
        flat(out, at, (LINK, name(link)), "", link, MAX_DEPTH);
    }
    for window in list(report, "windows") {
        let label = window.get("label").and_then(Value::as_str).unwrap_or_default();
        for flow in list(window, "flows") {
            flat(out, seconds(window, "end_s"), (WINDOW, &format!("{label}/{}", name(flow))), "", flow, MAX_DEPTH);
        }
    }
}

fn call(out: &mut Recording, report: &Map<String, Value>) {
    let mut last = Timestamp::ZERO;
    for id in ["sender", "receiver", "end"] {
        if let Some(Value::Object(end)) = report.get(id) {
            let at = seconds(end, "duration_s");
            last = last.max(at);
            flat(out, at, (END, id), "", end, MAX_DEPTH);
        }
    }
    // Streams of a call of several; of an end those sent and those received have a list each.
    for (member, prefix) in [("streams", ""), ("sent", "sent/"), ("received", "received/")] {
        for stream in list(report, member) {
            flat(out, last, (STREAM, &format!("{prefix}{}", name(stream))), "", stream, MAX_DEPTH);
        }
        if member != "streams" {
            flat_in(out, last, (CALL, ""), member, report);
        }
    }
    flat_in(out, last, (CALL, ""), "video", report);
    for (call, i) in list(report, "calls").zip(1..) {
        flat(out, Timestamp::ZERO, (CALL, &i.to_string()), "", call, MAX_DEPTH);
    }
}

fn seconds(of: &Map<String, Value>, name: &str) -> Timestamp {
    of.get(name).and_then(Value::as_f64).and_then(time).unwrap_or(Timestamp::ZERO)
}

fn name(of: &Map<String, Value>) -> &str {
    of.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(of: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Map<String, Value>> {
    of.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object)
}

fn flat_in(out: &mut Recording, at: Timestamp, of: (&str, &str), name: &str, report: &Map<String, Value>) {
    if let Some(Value::Object(inner)) = report.get(name) {
        flat(out, at, of, &format!("{name}."), inner, MAX_DEPTH);
    }
}

/// Adds the numbers and texts of an object, those of inner objects by `outer.inner`. Lists are not part of it.
fn flat(
    out: &mut Recording,
    at: Timestamp,
    of: (&str, &str),
    prefix: &str,
    members: &Map<String, Value>,
    depth: usize,
) {
    for (name, v) in members {
        match v {
            Value::Object(inner) if depth > 1 => flat(out, at, of, &format!("{prefix}{name}."), inner, depth - 1),
            v => value(out, at, (of.0, of.1, &format!("{prefix}{name}")), v),
        }
    }
}

/// Packets that a report counts: sent, received, lost.
pub(crate) fn packets(of: &Recording) -> (u64, u64, u64) {
    let last = |kind: &str, id: &str, name: &str| {
        let series = of.series.get(&(kind.to_owned(), id.to_owned(), name.to_owned()));
        series.and_then(|s| s.points.last()).map_or(0, |p| crate::number::count(p.1))
    };
    let sum = |kind: &str, names: &[&str]| {
        let all =
            of.series.iter().filter(|((k, id, n), _)| k == kind && names.contains(&n.as_str()) && is_media(of, k, id));
        crate::number::total(all.map(|((k, id, n), _)| last(k, id, n)))
    };
    let lost = ["packets.dropped_queue", "packets.dropped_aqm", "packets.dropped_channel"];
    let all = [
        (sum(FLOW, &["packets.sent"]), sum(FLOW, &["packets.received"]), sum(FLOW, &lost)),
        (sum(END, &["sent.rtp_packets"]), sum(END, &["received.rtp_packets"]), sum(STREAM, &["lost_packets"])),
        (
            sum(CALL, &["totals.packets_sent"]),
            sum(CALL, &["totals.packets_received"]),
            sum(CALL, &["totals.reported_lost"]),
        ),
    ];
    let add = |a: (u64, u64, u64), b: (u64, u64, u64)| {
        (a.0.saturating_add(b.0), a.1.saturating_add(b.1), a.2.saturating_add(b.2))
    };
    all.into_iter().fold((0, 0, 0), add)
}

/// Flows of TCP and UDP are no media.
fn is_media(of: &Recording, kind: &str, id: &str) -> bool {
    let texts = of.series.get(&(kind.to_owned(), id.to_owned(), "kind".to_owned())).map(|s| &s.texts);
    kind != FLOW || texts.and_then(|t| t.first()).is_none_or(|t| t.1 == "rtp")
}

#[cfg(test)]
mod tests {
    use crate::{Format, ReadError, read};
    use serde_json::json;

    #[test]
    fn a_run_has_the_totals_of_its_flows_at_its_end() {
        let run = json!({"schema": "weir:run:1", "scenario": "s", "seed": 7, "duration_s": 12.5,
            "flows": [
                {"name": "v", "kind": "rtp", "loss": 0.1, "rates": {"sent_bps": 1e6},
                    "packets": {"sent": 100, "received": 90, "dropped_queue": 7, "dropped_aqm": 1, "dropped_channel": 2}},
                {"name": "t", "kind": "tcp", "packets": {"sent": 5000, "received": 5000}}],
            "links": [{"name": "b", "capacity_bps": 2e6}]});
        let text = serde_json::to_string_pretty(&run).expect("text");
        let found = read("run", text.as_bytes()).expect("a report");
        assert_eq!((found.format, &found.stop), (Format::WeirResult, &None));
        let counts = found.counts();
        assert_eq!((counts.sent, counts.received, counts.lost), (100, 90, 10));
        let rate = &found.series[&("flow".into(), "v".into(), "rates.sent_bps".into())].points;
        assert_eq!((rate[0].0.as_millis(), rate[0].1), (12_500, 1e6));
        assert!(found.series.contains_key(&("link".into(), "b".into(), "capacity_bps".into())));
    }

    #[test]
    fn calls_of_all_forms_have_their_counts() {
        let end = |sent: u64, received: u64| json!({"duration_s": 3.0, "sent": {"rtp_packets": sent}, "received": {"rtp_packets": received}});
        let counts = |report: &serde_json::Value| {
            let counts = read("call", report.to_string().as_bytes()).expect("a report").counts();
            (counts.sent, counts.received, counts.lost)
        };
        let loopback = json!({"schema": "weir:call:1", "sender": end(40, 0), "receiver": end(0, 38), "video": null});
        assert_eq!(counts(&loopback), (40, 38, 0));
        let streams = json!({"schema": "weir:call:1", "end": end(0, 38), "sent": [], "received": [{"name": "a", "lost_packets": 2}]});
        assert_eq!(counts(&streams), (0, 38, 2));
        let totals = json!({"packets_sent": 5, "packets_received": 6, "reported_lost": 1});
        let browsers =
            json!({"schema": "weir:call:1", "calls": [{"totals": totals, "samples": []}, {"totals": totals}]});
        assert_eq!(counts(&browsers), (10, 12, 2));
    }

    #[test]
    fn other_reports_are_refused_by_name_and_damaged_ones_read_up_to_the_damage() {
        let compare = "{\n  \"schema\": \"weir:compare:1\",\n  \"runs\": []\n}";
        let Err(ReadError::Unknown(why)) = read("x", compare.as_bytes()) else { panic!("refused") };
        assert!(why.contains("weir:compare:1") && why.contains("weir:run:1"), "{why}");
        let cut = "{\"schema\": \"weir:run:1\", \"duration_s\": 2, \"flows\": [{\"name\": \"v\", \"loss\": 0.5, \"packets\": {\"sent\": 9, \"rec";
        let found = read("x", cut.as_bytes()).expect("a report");
        assert_eq!((found.counts().sent, found.stop.is_some()), (9, true));
        let empty = read("x", b"{\"schema\": \"weir:run:1\"}".as_slice()).expect("a report");
        assert!(empty.stop.is_some_and(|s| s.why.contains("no flow")));
    }
}
