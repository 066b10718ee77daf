//! The tables of a recording as columns, for programs that take whole columns: NumPy, Arrow, Parquet.
//!
//! A column is of numbers or of texts. Numbers are 64-bit floating point, NaN where the format does not tell: integers of
//! a recording are below 2^53. Times are `at_ms`, in ms as the recording counts them (Unix time where it knows it), exact
//! to a quarter of a microsecond.

use crate::Recording;
use crate::schema::{
    Detector, Direction, EstimateKind, EventKind, NetworkType, PairChange, ProbeStep, RtcpKind, StreamKind,
};
use std::borrow::Cow;
use weir_units::{DataRate, RemoteTimestamp, Timestamp};

/// Values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// Numbers, NaN where there is none. Truth values are 0 and 1.
    Numbers(Vec<f64>),
    /// Texts, by their place in a list of those that occur; the list is in order of their first occurrence.
    Texts {
        /// Place of each row's text.
        places: Vec<u32>,
        /// Texts that occur.
        names: Vec<String>,
    },
}

/// A table by its columns.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Its name, such as `packets`.
    pub name: &'static str,
    /// Columns by name, all of one length.
    pub columns: Vec<(&'static str, Values)>,
}

impl Table {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| match values {
            Values::Numbers(v) => v.len(),
            Values::Texts { places, .. } => places.len(),
        })
    }
}

/// Names of all tables, in their order.
pub const TABLES: [&str; 13] = [
    "packets",
    "rtcp",
    "reported",
    "blocks",
    "estimates",
    "probes",
    "limited",
    "frames",
    "pairs",
    "streams",
    "events",
    "series",
    "other",
];

/// A value of a row.
enum Cell<'a> {
    Number(f64),
    Text(Cow<'a, str>),
}

trait IntoCell<'a> {
    fn cell(self) -> Cell<'a>;
}

macro_rules! numbers {
    ($($kind:ty),*) => { $(impl<'a> IntoCell<'a> for $kind {
        fn cell(self) -> Cell<'a> { Cell::Number(f64::from(self)) }
    })* };
}
numbers!(u8, u16, u32, i32, f64, bool);

impl<'a> IntoCell<'a> for u64 {
    fn cell(self) -> Cell<'a> {
        Cell::Number(self as f64)
    }
}
impl<'a> IntoCell<'a> for Timestamp {
    fn cell(self) -> Cell<'a> {
        Cell::Number(milliseconds(self.as_nanos()))
    }
}
impl<'a> IntoCell<'a> for RemoteTimestamp {
    fn cell(self) -> Cell<'a> {
        Cell::Number(milliseconds(self.as_nanos()))
    }
}
impl<'a> IntoCell<'a> for DataRate {
    fn cell(self) -> Cell<'a> {
        Cell::Number(self.as_bps() as f64)
    }
}
impl<'a> IntoCell<'a> for &'a str {
    fn cell(self) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(self))
    }
}
impl<'a> IntoCell<'a> for String {
    fn cell(self) -> Cell<'a> {
        Cell::Text(Cow::Owned(self))
    }
}
impl<'a, T: IntoCell<'a>> IntoCell<'a> for Option<T> {
    fn cell(self) -> Cell<'a> {
        self.map_or(Cell::Number(f64::NAN), IntoCell::cell)
    }
}

/// Whole milliseconds are exact, as nanoseconds of Unix time are more than a 64-bit number holds.
fn milliseconds(ns: i64) -> f64 {
    (ns / 1_000_000) as f64 + (ns % 1_000_000) as f64 / 1e6
}

/// A column of texts, or of numbers, from cells of one kind.
fn column<'a>(cells: impl Iterator<Item = Cell<'a>>, texts: bool) -> Values {
    if !texts {
        let number = |c| if let Cell::Number(n) = c { n } else { f64::NAN };
        return Values::Numbers(cells.map(number).collect());
    }
    let (mut places, mut names) = (Vec::new(), Vec::<String>::new());
    let mut known = std::collections::BTreeMap::<String, u32>::new();
    for cell in cells {
        let text = if let Cell::Text(text) = cell { text } else { Cow::Borrowed("") };
        let place = known.get(text.as_ref()).copied().unwrap_or_else(|| {
            let new = names.len() as u32;
            known.insert(text.to_string(), new);
            names.push(text.into_owned());
            new
        });
        places.push(place);
    }
    Values::Texts { places, names }
}

macro_rules! table {
    ($name:literal, $rows:expr, $row:ident; $($numbers:literal: $number:expr),*; $($texts:literal: $text:expr),*) => {
        Table {
            name: $name,
            columns: vec![
                $(($numbers, column($rows.iter().map(|$row| IntoCell::cell($number)), false)),)*
                $(($texts, column($rows.iter().map(|$row| IntoCell::cell($text)), true)),)*
            ],
        }
    };
}

impl Recording {
    /// One of its tables, by a name of [`TABLES`].
    pub fn table(&self, name: &str) -> Option<Table> {
        Some(match name {
            "packets" => table!("packets", self.packets, r; "at_ms": r.at, "number": r.number, "ssrc": r.ssrc,
                "sequence": r.sequence, "timestamp": r.timestamp, "payload_type": r.payload_type, "marker": r.marker,
                "size": r.size, "padding": r.padding, "transport_sequence": r.transport_sequence;
                "direction": direction(r.direction)),
            "rtcp" => table!("rtcp", self.rtcp, r; "at_ms": r.at, "number": r.number, "sender_ssrc": r.sender_ssrc,
                "size": r.size, "value": rtcp_value(&r.kind); "direction": direction(r.direction), "kind": rtcp(&r.kind)),
            "reported" => table!("reported", self.reported, r; "at_ms": r.at, "ssrc": r.ssrc, "sequence": r.sequence,
                "arrival_ms": r.arrival; "direction": direction(r.direction)),
            "blocks" => {
                table!("blocks", self.blocks, r; "at_ms": r.at, "ssrc": r.ssrc, "fraction_lost": r.fraction_lost,
                "lost": r.lost, "rtt_ms": r.rtt.map(|t| milliseconds(t.as_nanos())); "direction": direction(r.direction))
            }
            "estimates" => table!("estimates", self.estimates, r; "at_ms": r.at, "rate_bps": r.rate, "loss": r.loss;
                "kind": estimate(r.kind), "detector": r.detector.map(detector)),
            "probes" => table!("probes", self.probes, r; "at_ms": r.at, "id": r.id, "rate_bps": r.rate,
                "least_packets": made(r.step).map(|m| m.0), "least_bytes": made(r.step).map(|m| m.1);
                "step": probe(r.step)),
            "limited" => table!("limited", self.limited, r; "at_ms": r.at, "begins": r.begins;),
            "frames" => table!("frames", self.frames, r; "at_ms": r.at, "ssrc": r.ssrc, "width": r.width,
                "height": r.height, "qp": r.qp;),
            "pairs" => table!("pairs", self.pairs, r; "at_ms": r.at;
                "pair": r.pair.as_str(), "change": change(r.change), "network": network(r.network)),
            "streams" => table!("streams", self.streams, r; "at_ms": r.at, "ssrc": r.ssrc, "rtx_ssrc": r.rtx;
                "direction": direction(r.direction), "kind": stream(r.kind)),
            "events" => table!("events", self.events, r; "at_ms": r.at; "event": r.kind.text()),
            "other" => table!("other", self.other, r; "at_ms": r.at, "bytes": r.bytes;
                "direction": direction(r.direction)),
            "series" => self.statistics_table(),
            _ => return None,
        })
    }

    /// `getStats()`, a row a value: the value of a text is NaN, and the text of a value empty.
    fn statistics_table(&self) -> Table {
        let (mut at, mut values) = (Vec::new(), Vec::new());
        let mut texts: [Vec<Cow<'_, str>>; 4] = Default::default();
        for ((kind, id, name), series) in &self.series {
            let points = series.points.iter().map(|p| (p.0, p.1, ""));
            for (time, value, text) in points.chain(series.texts.iter().map(|t| (t.0, f64::NAN, t.1.as_str()))) {
                at.push(milliseconds(time.as_nanos()));
                values.push(value);
                for (column, text) in texts.iter_mut().zip([kind, id, name, text]) {
                    column.push(Cow::Borrowed(text));
                }
            }
        }
        let mut columns = vec![("at_ms", Values::Numbers(at)), ("value", Values::Numbers(values))];
        for (name, cells) in ["kind", "id", "name", "text"].into_iter().zip(texts) {
            columns.push((name, column(cells.into_iter().map(Cell::Text), true)));
        }
        Table { name: "series", columns }
    }
}

impl EventKind {
    /// The event in words.
    pub fn text(&self) -> String {
        match self {
            Self::Begin => "log begins".into(),
            Self::End => "log ends".into(),
            Self::Route { connected: true, overhead } => format!("route changed, overhead of {overhead} bytes"),
            Self::Route { connected: false, .. } => "no route".into(),
            Self::Dtls(state) => format!("DTLS state {state}"),
            Self::RemoteLimit(Some(bps)) => format!("remote description allows {bps} bit/s"),
            Self::RemoteLimit(None) => "remote description without a limit".into(),
            Self::Application(name) => name.clone(),
        }
    }
}

const fn direction(d: Direction) -> &'static str {
    match d {
        Direction::Sent => "sent",
        Direction::Received => "received",
        Direction::Passing => "passing",
    }
}

fn rtcp(kind: &RtcpKind) -> Cow<'static, str> {
    match kind {
        RtcpKind::SenderReport => "SR".into(),
        RtcpKind::ReceiverReport => "RR".into(),
        RtcpKind::Twcc { .. } => "transport-wide feedback".into(),
        RtcpKind::Ccfb => "CCFB".into(),
        RtcpKind::Nack(_) => "NACK".into(),
        RtcpKind::Pli => "PLI".into(),
        RtcpKind::Fir => "FIR".into(),
        RtcpKind::Remb(_) => "REMB".into(),
        RtcpKind::Tmmbr(_) => "TMMBR".into(),
        RtcpKind::Other(n) => format!("type {n}").into(),
        RtcpKind::Unread(n) => format!("unread, type {n}").into(),
    }
}

impl<'a> IntoCell<'a> for Cow<'a, str> {
    fn cell(self) -> Cell<'a> {
        Cell::Text(self)
    }
}

/// Number of the message, of packets asked for, or rate in bit/s.
fn rtcp_value(kind: &RtcpKind) -> Option<f64> {
    match kind {
        RtcpKind::Twcc { count } => Some(f64::from(*count)),
        RtcpKind::Nack(packets) => Some(f64::from(*packets)),
        RtcpKind::Remb(rate) | RtcpKind::Tmmbr(rate) => Some(rate.as_bps() as f64),
        _ => None,
    }
}

const fn estimate(kind: EstimateKind) -> &'static str {
    match kind {
        EstimateKind::Delay => "delay",
        EstimateKind::Loss => "loss",
        EstimateKind::Target => "target",
        EstimateKind::RemoteLower => "remote lower bound",
        EstimateKind::RemoteUpper => "remote upper bound",
    }
}

const fn detector(state: Detector) -> &'static str {
    match state {
        Detector::Normal => "normal",
        Detector::Underuse => "underuse",
        Detector::Overuse => "overuse",
    }
}

const fn made(step: ProbeStep) -> Option<(u32, u32)> {
    if let ProbeStep::Made { packets, bytes } = step { Some((packets, bytes)) } else { None }
}

fn probe(step: ProbeStep) -> Cow<'static, str> {
    match step {
        ProbeStep::Made { .. } => "made".into(),
        ProbeStep::Succeeded => "succeeded".into(),
        ProbeStep::Failed(why) => format!("failed: {why}").into(),
    }
}

const fn change(change: PairChange) -> &'static str {
    match change {
        PairChange::Added => "added",
        PairChange::Updated => "updated",
        PairChange::Destroyed => "destroyed",
        PairChange::Selected => "selected",
    }
}

const fn network(kind: NetworkType) -> &'static str {
    match kind {
        NetworkType::Ethernet => "ethernet",
        NetworkType::Wifi => "wifi",
        NetworkType::Cellular => "cellular",
        NetworkType::Vpn => "vpn",
        NetworkType::Loopback => "loopback",
        NetworkType::Unknown => "",
    }
}

const fn stream(kind: StreamKind) -> &'static str {
    match kind {
        StreamKind::Audio => "audio",
        StreamKind::Video => "video",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn every_table_has_its_rows_and_what_is_absent_is_nan() {
        let log = "1747225741290,102,2070638893,10476,3950019588,false,1216,0,10476,1\n\
                   1747225741300,102,2070638893,10477,3950019588,true,1200,0,10477,1\n";
        let recording = read("log", log.as_bytes()).expect("a log");
        for name in TABLES {
            let table = recording.table(name).expect("a table of each name");
            assert_eq!((table.name, table.rows()), (name, if name == "packets" { 2 } else { 0 }));
        }
        let packets = recording.table("packets").expect("packets");
        let column = |name: &str| &packets.columns.iter().find(|c| c.0 == name).expect("a column").1;
        assert_eq!(column("at_ms"), &Values::Numbers(vec![1_747_225_741_290.0, 1_747_225_741_300.0]));
        assert_eq!(column("marker"), &Values::Numbers(vec![0.0, 1.0]));
        let Values::Numbers(padding) = column("padding") else { panic!("numbers") };
        assert!(padding.iter().all(|v| v.is_nan()), "{padding:?}");
        let Values::Texts { places, names } = column("direction") else { panic!("texts") };
        assert_eq!((places.as_slice(), names.len()), (&[0, 0][..], 1));
        assert_eq!(recording.table("packet"), None);
    }

    #[test]
    fn statistics_are_a_row_a_value() {
        let line = r#"{"epoch_ms":1700000000000,"stats":{"O":{"type":"outbound-rtp","bytesSent":7,"kind":"video"}}}"#;
        let table = read("", line.as_bytes()).expect("statistics").table("series").expect("a table");
        let rows = table.rows();
        assert!((1..=2).contains(&rows), "{table:?}");
        let (name, values) = &table.columns[1];
        let Values::Numbers(values) = values else { panic!("numbers") };
        assert_eq!((*name, values.iter().filter(|v| **v == 7.0).count()), ("value", 1));
    }
}
