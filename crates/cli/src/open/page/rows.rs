//! Streams, events and packets of a recorded call's page.

use super::Found;
use std::collections::BTreeMap;
use weir_report::page::{DocumentChart, DocumentLine, DocumentTable};
use weir_timeline::why::Curves;
use weir_timeline::{Direction, EventKind, Packet, PairChange, ProbeStep, Recording};

/// Most streams of the plot, and most rows of the table of events.
const MOST_STREAMS: usize = 8;
const MOST_EVENTS: usize = 200;
/// Most packets that are shown under the cursor: some 100 bytes of the page each.
const MOST_NOTES: usize = 20_000;
/// Most packets of a table.
const MOST_PACKETS: usize = 3_000;

/// Rates of the heaviest streams of the file with most packets: layers of simulcast are streams of their own.
pub(super) fn streams(found: &Found, curves: &Curves) -> Option<DocumentChart> {
    let start_s = (curves.start_ms - found.start_ms) as f64 / 1e3;
    let most = found.call.recordings.iter().max_by_key(|r| r.packets.len())?;
    let rows = curves.columns.first().map_or(0, |c| c.values.len());
    let mut rates: BTreeMap<(Direction, u32), Vec<f64>> = BTreeMap::new();
    for p in &most.packets {
        let at_s = (p.at.as_nanos() as f64 * 1e-6 - curves.start_ms as f64) * 1e-3;
        let row = at_s / curves.interval_s;
        if row >= 0.0 && row < rows as f64 {
            let values = rates.entry((p.direction, p.ssrc)).or_default();
            values.resize(rows, 0.0);
            values[row as usize] += f64::from(p.size) * 8e-3 / curves.interval_s;
        }
        // Streams without end in a hostile file take no memory each.
        if rates.len() > 64 {
            return None;
        }
    }
    let mut rates: Vec<_> = rates.into_iter().collect();
    rates.sort_by(|a, b| b.1.iter().sum::<f64>().total_cmp(&a.1.iter().sum::<f64>()).then(a.0.cmp(&b.0)));
    rates.truncate(MOST_STREAMS);
    let line = |(i, ((direction, ssrc), values)): (usize, ((Direction, u32), Vec<f64>))| DocumentLine {
        label: format!("{ssrc:08x} {}", way(direction)),
        style: Some(i as u8),
        values,
    };
    let lines: Vec<DocumentLine> = rates.into_iter().enumerate().map(line).collect();
    (!lines.is_empty()).then(|| DocumentChart {
        title: "Rates of streams".into(),
        unit: "kbit/s",
        start_s,
        interval_s: curves.interval_s,
        step: 1.0,
        peaks: false,
        lines,
        notes: notes(found, most),
    })
}

/// A line a packet, for the cursor; none of a file with more than a page has room for.
fn notes(found: &Found, recording: &Recording) -> Vec<(f64, String)> {
    if recording.packets.len() > MOST_NOTES {
        return Vec::new();
    }
    let note = |p: &Packet| {
        let second = (p.at.as_nanos() as f64 * 1e-6 - found.start_ms as f64) / 1e3;
        let text = format!(
            "{second:.4} s, packet {}: {:08x} {}, sequence {}, {} bytes",
            p.number,
            p.ssrc,
            way(p.direction),
            p.sequence,
            p.size
        );
        ((second * 1e4).round() / 1e4, text)
    };
    recording.packets.iter().map(note).collect()
}

/// Routes, limits, probes and what else the files log, in order of time.
pub(super) fn events(found: &Found) -> DocumentTable {
    let mut rows: Vec<(i64, String, String)> = Vec::new();
    for r in &found.call.recordings {
        let mut row = |at: weir_units::Timestamp, kind: &str, text: String| {
            rows.push((at.as_nanos(), kind.to_owned(), text));
        };
        for e in r.events.iter().filter(|e| !matches!(e.kind, EventKind::Begin | EventKind::End)) {
            row(e.at, "event", e.kind.text());
        }
        for p in r.pairs.iter().filter(|p| p.change == PairChange::Selected) {
            row(p.at, "route", format!("candidate pair {} was selected ({:?})", p.pair, p.network));
        }
        for p in &r.probes {
            let rate = p.rate.map_or_else(String::new, |rate| format!(" at {:.0} kbit/s", rate.as_bps() as f64 * 1e-3));
            let step = match p.step {
                ProbeStep::Made { packets, .. } => format!("made of {packets} packets"),
                ProbeStep::Succeeded => "succeeded".into(),
                ProbeStep::Failed(why) => format!("failed: {why}"),
            };
            row(p.at, "probe", format!("cluster {} {step}{rate}", p.id));
        }
        let mut last = None;
        for f in &r.frames {
            if last
                .replace((f.ssrc, f.width, f.height))
                .is_some_and(|l| l.0 == f.ssrc && l != (f.ssrc, f.width, f.height))
            {
                row(f.at, "layer", format!("{:08x} is decoded at {}x{}", f.ssrc, f.width, f.height));
            }
        }
        let texts = r.series.iter().filter(|((_, _, name), _)| name == "qualityLimitationReason");
        for ((_, id, _), series) in texts {
            for (at, text) in series.texts.iter().skip(1) {
                row(*at, "limit", format!("{id}: limited by {text}"));
            }
        }
        let sizes = r.series.iter().filter(|((kind, _, name), _)| kind == "outbound-rtp" && name == "frameHeight");
        for ((_, id, _), series) in sizes {
            for pair in series.points.windows(2).filter(|w| w[0].1 != w[1].1) {
                row(pair[1].0, "layer", format!("{id}: height {:.0}, {:.0} before", pair[1].1, pair[0].1));
            }
        }
    }
    rows.sort();
    let more = rows.len().saturating_sub(MOST_EVENTS);
    rows.truncate(MOST_EVENTS);
    let second = |ns: i64| format!("{:.1}", (ns as f64 * 1e-6 - found.start_ms as f64) / 1e3);
    let caption = if more > 0 { format!("Events; {more} later ones are left out") } else { "Events".into() };
    DocumentTable {
        caption,
        first: "Time, s",
        columns: vec![("Kind", "", "of event"), ("Event", "", "as the files log it")],
        rows: rows.into_iter().map(|(at, kind, text)| (second(at), vec![kind, text])).collect(),
    }
}

/// The packets of the file with most of them, where they are few enough to be read: in a window of some seconds.
pub(super) fn packets(found: &Found) -> DocumentTable {
    let most = found.call.recordings.iter().max_by_key(|r| r.packets.len());
    let rows = most.filter(|r| r.packets.len() <= MOST_PACKETS).map(|r| r.packets.as_slice()).unwrap_or_default();
    let row = |p: &Packet| {
        let second = (p.at.as_nanos() as f64 * 1e-6 - found.start_ms as f64) / 1e3;
        let transport = p.transport_sequence.map_or_else(String::new, |n| n.to_string());
        let marker = if p.marker { "yes" } else { "" };
        let numbers = [p.sequence.to_string(), p.timestamp.to_string(), p.payload_type.to_string(), p.size.to_string()];
        let cells = [p.number.to_string(), format!("{:08x}", p.ssrc), way(p.direction).to_owned()];
        let cells = cells.into_iter().chain(numbers).chain([marker.to_owned(), transport]);
        (format!("{second:.4}"), cells.collect())
    };
    DocumentTable {
        caption: "Packets".into(),
        first: "Time, s",
        columns: vec![
            ("Number", "", "in the capture, else in order of time"),
            ("Stream", "", "SSRC"),
            ("Way", "", "sent or received by the recording end"),
            ("Sequence", "", "RTP sequence number"),
            ("Timestamp", "", "of RTP"),
            ("Type", "", "payload type"),
            ("Bytes", "", "of header, payload and padding"),
            ("Marker", "", "end of a frame, mostly"),
            ("Transport-wide", "", "sequence number"),
        ],
        rows: rows.iter().map(row).collect(),
    }
}

const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Sent => "sent",
        Direction::Received => "received",
        Direction::Passing => "passing",
    }
}

/// A Unix time in ms as a UTC date; `None` where the recording counts from a moment of its own.
pub(super) fn utc(ms: i64) -> Option<String> {
    // Recordings that count from their own zero are no date of before 2001.
    if ms < 978_307_200_000 {
        return None;
    }
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    // Days since 1 March of the year 0, in eras of 400 years (Hinnant, chrono-Compatible Low-Level Date Algorithms).
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (h, m, s) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1_000 % 60);
    Some(format!("{year:04}-{month:02}-{day_of_month:02} {h:02}:{m:02}:{s:02}.{:03} UTC", of_day % 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_timeline::why::{Column, Level};
    use weir_timeline::{Call, Report, read};

    #[test]
    fn streams_and_events_count_from_the_begin_of_the_call() {
        let line = |i: u64| format!("{},102,{},{i},0,false,1250,0,{i},1\n", 1_700_000_000_000 + i * 10, 7 + i % 5 / 4);
        let text: String = (0..400).map(line).collect();
        let recording = read("log", text.as_bytes()).expect("a log");
        let values = vec![1.0; 6];
        let curves = Curves {
            start_ms: 1_700_000_001_000,
            interval_s: 0.5,
            columns: vec![Column { name: "sent_kbps", values }],
        };
        let report = Report {
            sources: vec![],
            level: Level::Log,
            missing: None,
            episodes: vec![],
            findings: vec![],
            replays: vec![],
        };
        let found = Found { call: Call::new(vec![recording]), report, curves: None, start_ms: 1_700_000_000_000 };
        let chart = streams(&found, &curves).expect("streams");
        assert_eq!((chart.start_s, chart.lines.len()), (1.0, 2));
        assert!(chart.lines[0].label.starts_with("00000007"), "{:?}", chart.lines[0].label);
        assert_eq!((chart.notes.len(), chart.notes[100].0), (400, 1.0));
        assert!(chart.notes[100].1.contains("packet 101: 00000007"), "{}", chart.notes[100].1);
        let table = packets(&found);
        assert_eq!((table.rows.len(), table.rows[100].0.as_str()), (400, "1.0000"));
        assert!(chart.lines[0].values.iter().all(|v| (799.0..801.0).contains(v)), "{:?}", chart.lines[0].values);
    }

    #[test]
    fn a_begin_is_a_date_where_it_is_one() {
        assert_eq!(utc(1_700_000_000_123).as_deref(), Some("2023-11-14 22:13:20.123 UTC"));
        assert_eq!(utc(1_709_164_800_000).as_deref(), Some("2024-02-29 00:00:00.000 UTC"));
        assert_eq!(utc(978_307_200_000).as_deref(), Some("2001-01-01 00:00:00.000 UTC"));
        assert_eq!((utc(978_307_199_999), utc(5_000)), (None, None));
    }
}
