//! Dumps and statistics in JSON.

use super::{Pseudonyms, Redacted, sdp, whole};
use crate::input::Input;
use crate::stats::parse;
use core::net::IpAddr;
use serde_json::{Map, Value};
use std::io::{self, Write};

const MAX_LINE: usize = 16 << 20;
/// Depth of texts that are JSON themselves.
const MAX_DEPTH: u32 = 4;

/// Members whose texts are names of states, kinds and codecs.
const KINDS: [&str; 32] = [
    "type",
    "kind",
    "mediaType",
    "state",
    "mimeType",
    "dtlsState",
    "iceState",
    "iceRole",
    "dtlsRole",
    "srtpCipher",
    "dtlsCipher",
    "tlsVersion",
    "protocol",
    "relayProtocol",
    "candidateType",
    "networkType",
    "networkAdapterType",
    "tcpType",
    "qualityLimitationReason",
    "encoderImplementation",
    "decoderImplementation",
    "contentType",
    "scalabilityMode",
    "direction",
    "statsType",
    "fingerprintAlgorithm",
    "iceConnectionState",
    "connectionState",
    "signalingState",
    "sdpFmtpLine",
    "codec",
    "schema",
];
/// Beginnings of the names of rtcstats' own events.
const EVENTS: [&str; 9] = ["getstats", "getStats", "create", "set", "add", "remove", "on", "close", "replaceTrack"];
/// Members whose texts are times.
const TIMES: [&str; 3] = ["startTime", "endTime", "time"];
const PORTS: [&str; 2] = ["port", "relatedPort"];

pub(super) fn document(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    whole(input, done, Some).map_or(Ok(()), |document| writeln!(out, "{}", value("", &document, names, 0)))
}

pub(super) fn lines(
    input: &mut Input<'_>,
    out: &mut dyn Write,
    names: &mut Pseudonyms,
    done: &mut Redacted,
) -> io::Result<()> {
    let mut line = Vec::new();
    while super::line(input, MAX_LINE, &mut line, done) {
        match parse(&line) {
            // A line of rtcstats: name, connection, value, time. Events that an application defines keep their time alone.
            Ok(Value::Array(entry)) => {
                let known =
                    entry.first().and_then(Value::as_str).is_some_and(|n| EVENTS.iter().any(|e| n.starts_with(e)));
                let statistics =
                    entry.first().and_then(Value::as_str).is_some_and(|n| n.eq_ignore_ascii_case("getstats"));
                let part = |(i, v): (usize, &Value)| match (i, v) {
                    // Objects by their identifiers; most hold only what changed, and no type.
                    (2, Value::Object(report)) if statistics => {
                        Value::Object(report.iter().map(|(id, v)| (names.text(id), value("", v, names, 0))).collect())
                    }
                    (0, v) if known => value("type", v, names, 0),
                    (2.., Value::Number(_)) => v.clone(),
                    (1, v) => value("", v, names, 0),
                    (_, v) if known => value("", v, names, 0),
                    (_, _) => Value::Null,
                };
                let mut parts: Vec<Value> = entry.iter().enumerate().map(part).collect();
                if let Some(name) = parts.first_mut().filter(|n| n.is_null()) {
                    *name = Value::from("event");
                }
                writeln!(out, "{}", Value::Array(parts))?;
            }
            Ok(whole) => writeln!(out, "{}", value("", &whole, names, 0))?,
            Err(_) => done.left_out += u64::from(!line.trim_ascii().is_empty()),
        }
    }
    Ok(())
}

pub(super) fn value(key: &str, v: &Value, names: &mut Pseudonyms, depth: u32) -> Value {
    match v {
        Value::Object(members) => Value::Object(object(members, names, depth)),
        Value::Array(all) => Value::Array(all.iter().map(|v| value(key, v, names, depth)).collect()),
        Value::String(s) => Value::String(text(key, s, names, depth)),
        Value::Number(_) if PORTS.contains(&key) => Value::from(9),
        v => v.clone(),
    }
}

fn object(members: &Map<String, Value>, names: &mut Pseudonyms, depth: u32) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, v) in members {
        let list = v.get("statsType").is_some();
        let statistics = v.get("type").is_some_and(Value::is_string);
        let (new, inner) = match name.rsplit_once('-') {
            // A list of a dump: the object's id and the number's name.
            Some((id, number)) if list && word(number) => (format!("{}-{number}", names.text(id)), number),
            _ if statistics || !word(name) => (names.text(name), ""),
            _ => (name.clone(), name.as_str()),
        };
        let v = match v {
            // The values of a list are those of the number that it is named by.
            Value::Object(list) if list.contains_key("statsType") => {
                let mut list = list.clone();
                let values = list.get("values").and_then(Value::as_str).and_then(|t| serde_json::from_str(t).ok());
                let values = values.map(|v: Value| Value::String(value(inner, &v, names, depth).to_string()));
                list.remove("values");
                let mut list = object(&list, names, depth);
                list.extend(values.map(|v| ("values".to_owned(), v)));
                Value::Object(list)
            }
            v => value(name, v, names, depth),
        };
        out.insert(new, v);
    }
    out
}

/// A name of a program's own: a word and no address, and too short for a key.
fn word(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'[' | b']' | b'/');
    !text.is_empty() && text.len() <= 48 && text.bytes().all(plain) && text.parse::<IpAddr>().is_err()
}

fn text(key: &str, text: &str, names: &mut Pseudonyms, depth: u32) -> String {
    let address = |t: &str| t.parse::<IpAddr>();
    if let Ok(address) = address(text) {
        return names.address(address).to_string();
    }
    if depth < MAX_DEPTH
        && text.starts_with(['{', '['])
        && let Ok(v) = serde_json::from_str::<Value>(text)
    {
        return value(key, &v, names, depth + 1).to_string();
    }
    if let Some(at) = text.find("v=0").filter(|_| text.contains("m=")) {
        let kind = ["offer", "answer", "pranswer"].into_iter().find(|k| text[..at].contains(k));
        let head = kind.map_or(String::new(), |k| format!("type: {k}, sdp: "));
        return head + &sdp::description(&text[at..]);
    }
    let parameters = |b: u8| b.is_ascii_alphanumeric() || b"_-./;= ()+:".contains(&b);
    let time = |b: u8| b.is_ascii_digit() || b"-:.TZ".contains(&b);
    let kept = (KINDS.contains(&key) && text.len() <= 80 && text.bytes().all(parameters) && !text.contains("://"))
        || (TIMES.contains(&key) && text.len() <= 30 && text.bytes().all(time));
    if kept { text.to_owned() } else { names.text(text) }
}
