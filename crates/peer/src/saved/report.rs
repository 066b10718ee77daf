//! Calls as a page: both ends' numbers beside each other, as sums and over time.

use super::SaveError;
use super::tables::{both_ends, changes, facts, internals, places};
use crate::call::{BrowserSample, Record, Sample};
use weir_lab::compare::ScenarioText;
use weir_report::page::{Document, DocumentChart, DocumentLine, DocumentSection, render_document};

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

const NOTES: [(&str, &str); 11] = [
    (
        "Time",
        "Since the offer was accepted. What the browser says is at the time when Weir received it, and holds until the next.",
    ),
    (
        "Target",
        "Weir's: the controller's media rate. The browser's: targetBitrate of outbound-rtp, that of its encoder.",
    ),
    ("Sent, received (Weir)", "RTP with SRTP's tag, as UDP payload, mean of half a second."),
    (
        "Sent, received (browser)",
        "bytesSent and bytesReceived of outbound-rtp and inbound-rtp with their RTP headers, video and sound, by the browser's own clock between two reports.",
    ),
    ("Estimate (browser)", "availableOutgoingBitrate of the candidate pair."),
    (
        "Above the least (Weir)",
        "Mean one-way delay of packets reported by the browser, less the least of the call: clocks need not agree.",
    ),
    (
        "Round trip",
        "Weir's: newest, from RTCP and feedback. The browser's: currentRoundTripTime of the candidate pair (ICE's checks), and roundTripTime of remote-inbound-rtp (RTCP).",
    ),
    (
        "Waits for playout (browser)",
        "jitterBufferDelay over jitterBufferEmittedCount of inbound-rtp since the last report.",
    ),
    (
        "Lost",
        "Weir's: packets that feedback reports missing, over those reported. Of inbound-rtp: packetsLost, from which what was retransmitted in time is taken off, over packets expected since the last report; of remote-inbound-rtp: fractionLost.",
    ),
    ("In rooms (browser)", "Sums of all streams; of jitter, round trips and fractionLost the greatest."),
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
        tables: vec![places(record), both_ends(record), changes(record), internals(record)]
            .into_iter()
            .filter(|t| !t.rows.is_empty())
            .collect(),
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
    fn line(
        &self,
        (label, style): Drawn,
        hold_s: f64,
        points: impl Iterator<Item = (f64, Option<f64>)>,
    ) -> DocumentLine {
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
    fn chart(
        &self,
        title: &str,
        unit: &'static str,
        step: f64,
        peaks: bool,
        lines: Vec<DocumentLine>,
    ) -> DocumentChart {
        let (start_s, interval_s) = (self.start_s, INTERVAL_S);
        DocumentChart { title: title.into(), unit, start_s, interval_s, step, peaks, lines, notes: Vec::new() }
    }

    fn lost(&self, lines: Vec<DocumentLine>) -> DocumentChart {
        self.chart("Lost", "%", 0.01, false, lines)
    }
    fn frames(&self, line: DocumentLine) -> DocumentChart {
        self.chart("Frames", "a second", 0.1, false, vec![line])
    }

    fn forth(&self) -> Vec<DocumentChart> {
        vec![
            self.chart(
                "Rate",
                "kbit/s",
                1.0,
                false,
                vec![
                    self.own(("capacity", None), |s| kbps(s.link?.capacity_bps)),
                    self.own(("target (Weir)", Some(0)), |s| kbps(s.target_bps)),
                    self.own(("sent (Weir)", Some(1)), |s| kbps(Some(s.sent_bps))),
                    self.browser(("received (browser)", Some(2)), |b| kbps(b.received_bps)),
                ],
            ),
            self.chart(
                "Delay",
                "ms",
                0.1,
                true,
                vec![
                    self.own(("above the least (Weir)", Some(3)), |s| s.delay_ms),
                    self.own(("waits for the pacer (Weir)", Some(4)), |s| Some(s.queue_ms)),
                    self.browser(("waits for playout (browser)", Some(5)), |b| b.playout_ms),
                    self.browser(("jitter (browser)", Some(7)), |b| b.jitter_ms),
                ],
            ),
            self.chart(
                "Round trip",
                "ms",
                0.1,
                true,
                vec![
                    self.own(("round trip (Weir)", Some(0)), |s| s.rtt_ms),
                    self.browser(("round trip (browser, ICE)", Some(6)), |b| b.rtt_ms),
                ],
            ),
            self.lost(vec![
                self.own(("reported to Weir", Some(1)), |s| percent(s.loss)),
                self.browser(("lost (browser)", Some(2)), |b| percent(b.loss)),
            ]),
            self.frames(self.browser(("decoded (browser)", Some(2)), |b| b.decoded_fps)),
        ]
    }

    fn back(&self) -> Vec<DocumentChart> {
        vec![
            self.chart(
                "Rate",
                "kbit/s",
                1.0,
                false,
                vec![
                    self.own(("capacity", None), |s| kbps(s.link_back?.capacity_bps)),
                    self.browser(("target (browser)", Some(0)), |b| kbps(b.target_bps)),
                    self.browser(("estimate (browser)", Some(3)), |b| kbps(b.available_bps)),
                    self.browser(("sent (browser)", Some(1)), |b| kbps(b.sent_bps)),
                    self.own(("received (Weir)", Some(2)), |s| kbps(Some(s.received_bps))),
                ],
            ),
            self.chart(
                "Round trip",
                "ms",
                0.1,
                true,
                vec![self.browser(("round trip (browser, RTCP)", Some(4)), |b| b.remote_rtt_ms)],
            ),
            self.lost(vec![self.browser(("reported by Weir (browser)", Some(6)), |b| percent(b.remote_loss))]),
            self.frames(self.browser(("coded (browser)", Some(1)), |b| b.encoded_fps)),
        ]
    }

    fn link(&self) -> Vec<DocumentChart> {
        vec![
            self.chart(
                "Time in the link",
                "ms",
                0.1,
                true,
                vec![
                    self.own(("to the browser", Some(0)), |s| s.link?.delay_ms),
                    self.own(("from the browser", Some(1)), |s| s.link_back?.delay_ms),
                ],
            ),
            self.chart(
                "Dropped in a tenth of a second",
                "packets",
                0.1,
                true,
                vec![
                    self.own(("to the browser", Some(0)), |s| Some(s.link?.dropped as f64)),
                    self.own(("from the browser", Some(1)), |s| Some(s.link_back?.dropped as f64)),
                ],
            ),
        ]
    }
}

fn kbps(bps: Option<f64>) -> Option<f64> {
    bps.map(|bps| bps / 1e3)
}
fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}
