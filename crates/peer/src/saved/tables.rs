//! A call's facts and tables.

use crate::call::{BrowserNumbers, Change, Record};
use crate::room::PlaceView;
use weir_report::page::DocumentTable;

pub(super) fn facts(record: &Record) -> Vec<(String, String)> {
    let s = &record.snapshot;
    let formats: Vec<String> = record.terms.formats.iter().map(|(n, f)| format!("{f} ({n})")).collect();
    let kept = match s.first {
        0 => "all samples".to_owned(),
        first => format!("the last {} samples, {first} before them made room", s.samples.len()),
    };
    let mut facts = vec![
        ("Codec", s.codec.clone()),
        ("Controller", s.controller.clone()),
        ("Maximum", format!("{} kbit/s", s.max_bps / 1_000)),
        ("Weir", s.direction.to_owned()),
        ("Connected after", s.setup_ms.map_or("-".into(), |ms| format!("{ms:.0} ms"))),
        ("State", s.reason.as_ref().map_or(s.state.to_owned(), |why| format!("{}: {why}", s.state))),
        ("Formats", formats.join(", ")),
        ("Kept", kept),
    ];
    if let Some(room) = &s.room {
        facts.push(("Room", format!("{} members; this one is {}", room.members, room.member)));
        facts.push(("Frames never complete", room.frames_lost.to_string()));
    }
    if record.terms.link.is_some() {
        facts.push(("Link", "emulated".into()));
    }
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Media that a member of a room got of each other at the end.
pub(super) fn places(record: &Record) -> DocumentTable {
    let kbps = |bps: f64| format!("{:.0}", bps / 1e3);
    let row = |p: &PlaceView| {
        let layer = p.encoding.map_or("stopped".into(), |n| format!("{} of {}", n + 1, p.encodings.len()));
        let counts = [p.frames, p.switches, p.audio_packets].map(|n| n.to_string());
        (p.member.clone(), [layer, kbps(p.share_bps)].into_iter().chain(counts).collect())
    };
    DocumentTable {
        caption: "The other members, at the end".into(),
        first: "Member",
        columns: vec![
            ("Layer", "", "counted from the lowest"),
            ("Share", "kbit/s", "of the target, for its video"),
            ("Frames", "", "of video forwarded"),
            ("Switches", "", "changes of the layer"),
            ("Packets of sound", "", "forwarded"),
        ],
        rows: record.snapshot.room.iter().flat_map(|r| &r.places).map(row).collect(),
    }
}

pub(super) fn both_ends(record: &Record) -> DocumentTable {
    let (t, b) = (&record.snapshot.totals, record.snapshot.browser.as_ref());
    let count = |n: u64| n.to_string();
    let theirs = |of: fn(&BrowserNumbers) -> u64| b.map_or("-".into(), |b| of(b).to_string());
    let ms = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.1}"));
    let own_rtt = record.snapshot.samples.iter().rev().find_map(|s| s.rtt_ms);
    let dash = || "-".to_owned();
    let sum = |share: Option<f64>| share.map_or("-".into(), |x| format!("{:.2} %", 100.0 * x));
    let rows = [
        (
            "Packets to the browser",
            count(t.packets_sent),
            theirs(|b| b.packets_received + b.audio_packets_received),
            "inbound-rtp packetsReceived",
        ),
        (
            "Bytes to the browser",
            count(t.bytes_sent),
            theirs(|b| b.all_bytes_received),
            "inbound-rtp bytesReceived + headerBytesReceived",
        ),
        (
            "Lost to the browser",
            count(t.reported_lost),
            b.map_or_else(dash, |b| b.packets_lost.to_string()),
            "inbound-rtp packetsLost",
        ),
        ("Frames coded, decoded", count(t.frames_sent), theirs(|b| b.frames_decoded), "inbound-rtp framesDecoded"),
        ("Freezes", dash(), theirs(|b| b.freezes), "inbound-rtp freezeCount"),
        ("Retransmitted", count(t.retransmitted), dash(), ""),
        (
            "Packets to Weir",
            count(t.packets_received),
            theirs(|b| b.packets_sent + b.audio_packets_sent),
            "outbound-rtp packetsSent",
        ),
        (
            "Bytes to Weir",
            count(t.bytes_received),
            theirs(|b| b.all_bytes_sent),
            "outbound-rtp bytesSent + headerBytesSent",
        ),
        (
            "Lost to Weir",
            dash(),
            b.map_or_else(dash, |b| b.remote_packets_lost.to_string()),
            "remote-inbound-rtp packetsLost",
        ),
        ("Share of it, newest", dash(), sum(b.and_then(|b| b.remote_loss)), "remote-inbound-rtp fractionLost"),
        ("Frames decoded, coded", count(t.frames_decoded), theirs(|b| b.frames_encoded), "outbound-rtp framesEncoded"),
        (
            "Recovered, retransmitted",
            count(t.recovered),
            theirs(|b| b.retransmitted),
            "outbound-rtp retransmittedPacketsSent",
        ),
        ("Round trip, ms", ms(own_rtt), ms(b.and_then(|b| b.round_trip_ms)), "candidate-pair currentRoundTripTime"),
        ("By RTCP, ms", dash(), ms(b.and_then(|b| b.remote_round_trip_ms)), "remote-inbound-rtp roundTripTime"),
        ("Jitter to the browser, ms", dash(), ms(b.and_then(|b| b.jitter_ms)), "inbound-rtp jitter"),
        ("Jitter to Weir, ms", dash(), ms(b.and_then(|b| b.remote_jitter_ms)), "remote-inbound-rtp jitter"),
        ("Datagrams there, bytes", dash(), theirs(|b| b.pair_bytes_received), "candidate-pair bytesReceived"),
        ("Datagrams back, bytes", dash(), theirs(|b| b.pair_bytes_sent), "candidate-pair bytesSent"),
    ];
    let row = |(label, own, theirs, name): (&str, String, String, &str)| {
        (label.to_owned(), vec![own, theirs, name.to_owned()])
    };
    DocumentTable {
        caption: "Both ends".into(),
        first: "Quantity",
        columns: vec![
            ("Weir", "", "this end's own"),
            ("Browser", "", "as its page has said"),
            ("getStats", "", "the browser's name"),
        ],
        rows: rows.map(row).into(),
    }
}

pub(super) fn changes(record: &Record) -> DocumentTable {
    let has_link = record.terms.link.is_some();
    let link = |c: &Change| match (has_link, c.link.is_on) {
        (false, _) => "none".to_owned(),
        (true, true) => "on".to_owned(),
        (true, false) => "off".to_owned(),
    };
    let row = |c: &Change| {
        (
            format!("{:.1} s", c.t_s.max(0.0)),
            vec![c.controller.clone(), (c.max_bps / 1_000).to_string(), link(c), format!("{:.1}", 100.0 * c.link.loss)],
        )
    };
    DocumentTable {
        caption: "Settings".into(),
        first: "From",
        columns: vec![
            ("Controller", "", "of Weir's rate"),
            ("Maximum", "kbit/s", "of its media rate"),
            ("Link", "", "whether the emulated link, if any, is in between"),
            ("Loss", "%", "added both ways"),
        ],
        rows: record.changes.iter().map(row).collect(),
    }
}

pub(super) fn internals(record: &Record) -> DocumentTable {
    let row = |(name, value): &(&str, f64)| (name.replace('_', " "), vec![short(*value)]);
    DocumentTable {
        caption: format!("Inside {} at the end", record.snapshot.controller),
        first: "Value",
        columns: vec![("Last", "", "the controller's own values, units in their names")],
        rows: record.snapshot.internals.iter().map(row).collect(),
    }
}

/// Five significant digits, without zeros at the end.
fn short(value: f64) -> String {
    let before = if value.abs() >= 1.0 { value.abs().log10().floor() as usize + 1 } else { 0 };
    let text = format!("{value:.*}", 5_usize.saturating_sub(before));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
