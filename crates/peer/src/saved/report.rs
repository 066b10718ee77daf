//! Calls as a page: both ends' numbers beside each other, as sums and over time.

use super::SaveError;
use crate::call::{BrowserSample, Record, Sample};
use weir_lab::measure::compare::ScenarioText;
use weir_lab::publish::report::{
    Document, DocumentChart, DocumentLine, DocumentSection, DocumentTable, render_document,
};

/// Distance of points, in s: that of this end's samples.
const INTERVAL_S: f64 = 0.1;
/// Points of a plot before they are joined for the screen, at most; earlier ones are left out.
const MAX_ROWS: usize = 40_000;
/// Time for which a value stands, in s: this end's, where feedback may take a while, and the browser's, which come about once a second.
const OWN_HOLD_S: f64 = 0.5;
const BROWSER_HOLD_S: f64 = 2.0;

/// The calls as HTML without external resources, each with a scenario that repeats it where there is one.
///
/// # Errors
/// The template fails, which is a bug.
pub fn report(calls: &[(Record, Option<String>)]) -> Result<String, SaveError> {
    let title = if calls.len() == 1 { "A call with a browser" } else { "Calls with browsers" };
    let several = calls.len() > 1;
    let section = |(n, (record, scenario)): (usize, &(Record, Option<String>))| {
        let name = if several { format!("Call {}", n + 1) } else { "The call".to_owned() };
        section(name, record, scenario.as_deref())
    };
    let document = Document {
        title: title.into(),
        summary: "What Weir measured, beside what the browser's getStats says of the same time.".into(),
        sections: calls.iter().enumerate().map(section).collect(),
        notes: NOTES.iter().map(|(term, meaning)| ((*term).to_owned(), (*meaning).to_owned())).collect(),
    };
    Ok(render_document(&document)?)
}

const NOTES: [(&str, &str); 10] = [
    ("Time", "Since the offer was accepted. What the browser says is at the time when Weir received it, and holds until the next."),
    ("Target", "Weir's: the controller's media rate. The browser's: targetBitrate of outbound-rtp, that of its encoder."),
    ("Sent, received (Weir)", "RTP with SRTP's tag, as UDP payload, mean of half a second."),
    ("Sent, received (browser)", "bytesSent and bytesReceived of outbound-rtp and inbound-rtp with their RTP headers, video and sound, by the browser's own clock between two reports."),
    ("Estimate (browser)", "availableOutgoingBitrate of the candidate pair."),
    ("Above the least (Weir)", "Mean one-way delay of packets reported by the browser, less the least of the call: clocks need not agree."),
    ("Round trip", "Weir's: newest, from RTCP and feedback. The browser's: currentRoundTripTime of the candidate pair (ICE's checks), and roundTripTime of remote-inbound-rtp (RTCP)."),
    ("Waits for playout (browser)", "jitterBufferDelay over jitterBufferEmittedCount of inbound-rtp since the last report."),
    ("Lost", "Weir's: packets that feedback reports missing, over those reported. Of inbound-rtp: packetsLost over packets expected since the last report; of remote-inbound-rtp: fractionLost."),
    ("From the browser", "Its page passes these numbers on; nothing proves them."),
];

fn section(title: String, record: &Record, scenario: Option<&str>) -> DocumentSection {
    let grid = Grid::new(record);
    let mut charts = Vec::new();
    if record.snapshot.direction != "recvonly" {
        charts.push(("Weir to the browser".to_owned(), grid.forth()));
    }
    if record.snapshot.direction != "sendonly" {
        charts.push(("The browser to Weir".to_owned(), grid.back()));
    }
    if record.terms.link.is_some() {
        charts.push(("The emulated link".to_owned(), grid.link()));
    }
    DocumentSection {
        title,
        doc: String::new(),
        facts: facts(record),
        scenario: scenario.map(|text| ScenarioText {
            name: "call".into(),
            argument: "call.toml".into(),
            text: text.to_owned(),
            seeds: Vec::new(),
        }),
        charts,
        tables: vec![both_ends(record), changes(record), internals(record)]
            .into_iter()
            .filter(|t| !t.rows.is_empty())
            .collect(),
    }
}

fn facts(record: &Record) -> Vec<(String, String)> {
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
    if record.terms.link.is_some() {
        facts.push(("Link", "emulated".into()));
    }
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn both_ends(record: &Record) -> DocumentTable {
    let (t, b) = (&record.snapshot.totals, record.snapshot.browser.as_ref());
    let count = |n: u64| n.to_string();
    let theirs = |of: fn(&crate::call::BrowserNumbers) -> u64| b.map_or("-".into(), |b| of(b).to_string());
    let ms = |ms: Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.1}"));
    let own_rtt = record.snapshot.samples.iter().rev().find_map(|s| s.rtt_ms);
    let dash = || "-".to_owned();
    let sum = |share: Option<f64>| share.map_or("-".into(), |x| format!("{:.2} %", 100.0 * x));
    let rows = [
        ("Packets to the browser, with sound", count(t.packets_sent), theirs(|b| b.packets_received + b.audio_packets_received), "inbound-rtp packetsReceived"),
        ("Bytes to the browser", count(t.bytes_sent), theirs(|b| b.all_bytes_received), "inbound-rtp bytesReceived + headerBytesReceived"),
        ("Lost on the way there", count(t.reported_lost), b.map_or_else(dash, |b| b.packets_lost.to_string()), "inbound-rtp packetsLost"),
        ("Frames coded, decoded", count(t.frames_sent), theirs(|b| b.frames_decoded), "inbound-rtp framesDecoded"),
        ("Freezes", dash(), theirs(|b| b.freezes), "inbound-rtp freezeCount"),
        ("Retransmitted by Weir", count(t.retransmitted), dash(), ""),
        ("Packets to Weir, with sound", count(t.packets_received), theirs(|b| b.packets_sent + b.audio_packets_sent), "outbound-rtp packetsSent"),
        ("Bytes to Weir", count(t.bytes_received), theirs(|b| b.all_bytes_sent), "outbound-rtp bytesSent + headerBytesSent"),
        ("Lost on the way back, reported by Weir", dash(), b.map_or_else(dash, |b| b.remote_packets_lost.to_string()), "remote-inbound-rtp packetsLost"),
        ("Newest share lost, reported by Weir", dash(), sum(b.and_then(|b| b.remote_loss)), "remote-inbound-rtp fractionLost"),
        ("Frames decoded, coded", count(t.frames_decoded), theirs(|b| b.frames_encoded), "outbound-rtp framesEncoded"),
        ("Recovered, retransmitted by the browser", count(t.recovered), theirs(|b| b.retransmitted), "outbound-rtp retransmittedPacketsSent"),
        ("Newest round trip, ms", ms(own_rtt), ms(b.and_then(|b| b.round_trip_ms)), "candidate-pair currentRoundTripTime"),
        ("The same by RTCP, ms", dash(), ms(b.and_then(|b| b.remote_round_trip_ms)), "remote-inbound-rtp roundTripTime"),
        ("Newest jitter to the browser, ms", dash(), ms(b.and_then(|b| b.jitter_ms)), "inbound-rtp jitter"),
        ("Newest jitter to Weir, ms", dash(), ms(b.and_then(|b| b.remote_jitter_ms)), "remote-inbound-rtp jitter"),
        ("Datagrams to the browser, bytes", dash(), theirs(|b| b.pair_bytes_received), "candidate-pair bytesReceived"),
        ("Datagrams to Weir, bytes", dash(), theirs(|b| b.pair_bytes_sent), "candidate-pair bytesSent"),
    ];
    let row = |(label, own, theirs, name): (&str, String, String, &str)| {
        (label.to_owned(), vec![own, theirs, name.to_owned()])
    };
    DocumentTable {
        caption: "Both ends".into(),
        first: "Quantity",
        columns: vec![("Weir", "", "this end's own"), ("Browser", "", "as its page has said"), ("getStats", "", "the browser's name")],
        rows: rows.map(row).into(),
    }
}

fn changes(record: &Record) -> DocumentTable {
    let row = |c: &crate::call::Change| {
        (format!("{:.1} s", c.t_s.max(0.0)), vec![c.controller.clone(), (c.max_bps / 1_000).to_string()])
    };
    DocumentTable {
        caption: "Settings".into(),
        first: "From",
        columns: vec![("Controller", "", "of Weir's rate"), ("Maximum", "kbit/s", "of its media rate")],
        rows: record.changes.iter().map(row).collect(),
    }
}

fn internals(record: &Record) -> DocumentTable {
    let row = |(name, value): &(&str, f64)| (name.replace('_', " "), vec![format!("{value:.5}")]);
    DocumentTable {
        caption: format!("Inside {} at the end", record.snapshot.controller),
        first: "Value",
        columns: vec![("Last", "", "the controller's own values, units in their names")],
        rows: record.snapshot.internals.iter().map(row).collect(),
    }
}

/// Both ends' samples at equal distances.
struct Grid<'a> {
    record: &'a Record,
    start_s: f64,
    rows: usize,
}

/// How a line is drawn: its name and its style, or none for a capacity.
type Drawn = (&'static str, Option<u8>);

impl<'a> Grid<'a> {
    fn new(record: &'a Record) -> Self {
        let own = || record.snapshot.samples.iter().map(|s| s.t_s);
        let last = own().chain(record.browser.iter().map(|b| b.t_s)).fold(0.0, f64::max);
        let first = own().next().or(record.browser.first().map(|b| b.t_s)).unwrap_or(0.0);
        let first = (first / INTERVAL_S).floor();
        let rows = ((last / INTERVAL_S).ceil() - first).max(0.0) as usize;
        let left_out = rows.saturating_sub(MAX_ROWS);
        Self { record, start_s: (first + left_out as f64) * INTERVAL_S, rows: rows - left_out }
    }

    /// Values at equal distances: each point holds until the next, or for so long.
    fn line(&self, (label, style): Drawn, hold_s: f64, points: impl Iterator<Item = (f64, Option<f64>)>) -> DocumentLine {
        let mut points = points.filter_map(|(t, v)| Some((t, v?))).peekable();
        let (mut last, mut values) = (None, Vec::with_capacity(self.rows));
        for row in 0..self.rows {
            // A sample that is due at a point may come somewhat later.
            let at = self.start_s + (row as f64 + 1.5) * INTERVAL_S;
            while let Some(point) = points.next_if(|p| p.0 < at) {
                last = Some(point);
            }
            let value = last.filter(|(t, _)| at - t <= hold_s + INTERVAL_S / 2.0);
            values.push(value.map_or(f64::NAN, |(_, v)| v));
        }
        DocumentLine { label: label.into(), style, values }
    }
    fn own(&self, drawn: Drawn, of: impl Fn(&Sample) -> Option<f64>) -> DocumentLine {
        self.line(drawn, OWN_HOLD_S, self.record.snapshot.samples.iter().map(|s| (s.t_s, of(s))))
    }
    fn browser(&self, drawn: Drawn, of: impl Fn(&BrowserSample) -> Option<f64>) -> DocumentLine {
        self.line(drawn, BROWSER_HOLD_S, self.record.browser.iter().map(|s| (s.t_s, of(s))))
    }
    fn chart(&self, title: &str, unit: &'static str, step: f64, peaks: bool, lines: Vec<DocumentLine>) -> DocumentChart {
        let (start_s, interval_s) = (self.start_s, INTERVAL_S);
        DocumentChart { title: title.into(), unit, start_s, interval_s, step, peaks, lines }
    }

    fn forth(&self) -> Vec<DocumentChart> {
        vec![
            self.chart("Rate", "kbit/s", 1.0, false, vec![
                self.own(("capacity", None), |s| kbps(s.link?.capacity_bps)),
                self.own(("target (Weir)", Some(0)), |s| kbps(s.target_bps)),
                self.own(("sent (Weir)", Some(1)), |s| kbps(Some(s.sent_bps))),
                self.browser(("received (browser)", Some(2)), |b| kbps(b.received_bps)),
            ]),
            self.chart("Delay", "ms", 0.1, true, vec![
                self.own(("above the least (Weir)", Some(3)), |s| s.delay_ms),
                self.own(("waits for the pacer (Weir)", Some(4)), |s| Some(s.queue_ms)),
                self.browser(("waits for playout (browser)", Some(5)), |b| b.playout_ms),
                self.browser(("jitter (browser)", Some(7)), |b| b.jitter_ms),
            ]),
            self.chart("Round trip", "ms", 0.1, true, vec![
                self.own(("round trip (Weir)", Some(0)), |s| s.rtt_ms),
                self.browser(("round trip (browser, ICE)", Some(6)), |b| b.rtt_ms),
            ]),
            self.chart("Lost", "%", 0.01, false, vec![
                self.own(("reported to Weir", Some(1)), |s| percent(s.loss)),
                self.browser(("lost (browser)", Some(2)), |b| percent(b.loss)),
            ]),
            self.chart("Frames", "a second", 0.1, false, vec![
                self.browser(("decoded (browser)", Some(2)), |b| b.decoded_fps),
            ]),
        ]
    }

    fn back(&self) -> Vec<DocumentChart> {
        vec![
            self.chart("Rate", "kbit/s", 1.0, false, vec![
                self.own(("capacity", None), |s| kbps(s.link_back?.capacity_bps)),
                self.browser(("target (browser)", Some(0)), |b| kbps(b.target_bps)),
                self.browser(("estimate (browser)", Some(3)), |b| kbps(b.available_bps)),
                self.browser(("sent (browser)", Some(1)), |b| kbps(b.sent_bps)),
                self.own(("received (Weir)", Some(2)), |s| kbps(Some(s.received_bps))),
            ]),
            self.chart("Round trip", "ms", 0.1, true, vec![
                self.browser(("round trip (browser, RTCP)", Some(4)), |b| b.remote_rtt_ms),
            ]),
            self.chart("Lost", "%", 0.01, false, vec![
                self.browser(("reported by Weir (browser)", Some(6)), |b| percent(b.remote_loss)),
            ]),
            self.chart("Frames", "a second", 0.1, false, vec![
                self.browser(("coded (browser)", Some(1)), |b| b.encoded_fps),
            ]),
        ]
    }

    fn link(&self) -> Vec<DocumentChart> {
        vec![
            self.chart("Time in the link", "ms", 0.1, true, vec![
                self.own(("to the browser", Some(0)), |s| s.link?.delay_ms),
                self.own(("from the browser", Some(1)), |s| s.link_back?.delay_ms),
            ]),
            self.chart("Dropped in a tenth of a second", "packets", 0.1, true, vec![
                self.own(("to the browser", Some(0)), |s| Some(s.link?.dropped as f64)),
                self.own(("from the browser", Some(1)), |s| Some(s.link_back?.dropped as f64)),
            ]),
        ]
    }
}

fn kbps(bps: Option<f64>) -> Option<f64> {
    bps.map(|bps| bps / 1e3)
}
fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}
