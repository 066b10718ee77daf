//! One file of a call: its tables, and the bound on their rows.

use crate::format::Format;
use crate::limits::Limits;
use crate::schema::{
    BlockReport, CandidatePair, Clock, Direction, Estimate, Event, Frame, Limited, OtherTraffic, Packet, Probe,
    Reported, Rtcp, Series, Stop, Stream,
};
use core::mem::size_of;
use std::collections::BTreeMap;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::fec::Coverage;

/// One file of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// Name that the caller gave.
    pub name: String,
    /// Recognised format.
    pub format: Format,
    /// The zero of its times.
    pub clock: Clock,
    /// Where reading stopped, if before the end.
    pub stop: Option<Stop>,
    /// The first place that could not be read and was passed over.
    pub damaged: Option<Stop>,
    /// Faults that were passed over, each with its count.
    pub faults: BTreeMap<String, u64>,
    /// RTP packets.
    pub packets: Vec<Packet>,
    /// RTCP packets.
    pub rtcp: Vec<Rtcp>,
    /// Packets in feedback.
    pub reported: Vec<Reported>,
    /// Report blocks.
    pub blocks: Vec<BlockReport>,
    /// Estimates and targets.
    pub estimates: Vec<Estimate>,
    /// Probes.
    pub probes: Vec<Probe>,
    /// Times in which the application limited the rate.
    pub limited: Vec<Limited>,
    /// Decoded frames.
    pub frames: Vec<Frame>,
    /// Candidate pairs.
    pub pairs: Vec<CandidatePair>,
    /// Configured streams.
    pub streams: Vec<Stream>,
    /// Events of other kinds.
    pub events: Vec<Event>,
    /// `getStats()`: by type of object, its id and the number's name.
    pub series: BTreeMap<(String, String, String), Series>,
    /// Traffic of others.
    pub other: Vec<OtherTraffic>,
    /// Facts that were recognised by behaviour, such as identifiers of header extensions.
    pub guessed: Vec<String>,
    /// Repair packets of captures in the clear.
    pub(crate) repairs: Vec<Repair>,
    /// Clocks of absolute send times in what a captured host sent.
    pub(crate) send_clocks: Vec<SendClock>,
    /// Number of the captured packet that is read; 0 in other formats.
    pub(crate) record: u32,
    /// Cost of all rows, those of statistics included, and most of it that is kept. A row costs one, and what takes more memory
    /// or time than a row costs as many.
    rows: u64,
    most: u64,
    /// Why nothing more is kept, where it is not that number.
    full: Option<&'static str>,
}

/// A clock of absolute send times beside that of the capture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct SendClock {
    /// Identifier of the header extension.
    pub(crate) id: u8,
    /// Time and number of the last packet with it.
    pub(crate) at: Timestamp,
    pub(crate) number: u32,
    /// Seconds between the first and the last packet by the capture, and by how many the other clock went further.
    pub(crate) over_s: f64,
    pub(crate) ahead_s: f64,
}

/// A repair packet, and the packets of one stream that it protects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repair {
    /// When it was sent or received.
    pub(crate) at: Timestamp,
    /// Its number, as [`Packet::number`].
    pub(crate) number: u32,
    /// Whether it was sent or received.
    pub(crate) direction: Direction,
    /// Bytes of the RTP packet.
    pub(crate) size: u32,
    /// The protected stream.
    pub(crate) ssrc: u32,
    /// Its packets that are protected; none, where the header says so.
    pub(crate) coverage: Coverage,
}

impl Repair {
    /// Rows that one costs: memory, and time to look for each of its packets.
    pub(crate) fn cost(coverage: &Coverage) -> u64 {
        (size_of::<Self>() / 32 + coverage.len() / 16) as u64
    }
}

impl Recording {
    pub(crate) fn new(name: &str, format: Format) -> Self {
        Self::within(name, format, Limits::default())
    }

    /// One that keeps no more than these rows.
    pub(crate) fn within(name: &str, format: Format, limits: Limits) -> Self {
        Self {
            name: name.into(),
            format,
            clock: Clock::default(),
            stop: None,
            damaged: None,
            faults: BTreeMap::new(),
            packets: vec![],
            rtcp: vec![],
            reported: vec![],
            blocks: vec![],
            estimates: vec![],
            probes: vec![],
            limited: vec![],
            frames: vec![],
            pairs: vec![],
            streams: vec![],
            events: vec![],
            series: BTreeMap::new(),
            other: vec![],
            guessed: vec![],
            repairs: vec![],
            send_clocks: vec![],
            record: 0,
            rows: 0,
            most: limits.rows,
            full: None,
        }
    }

    /// Whether `n` more rows are kept; counts them if so.
    pub(crate) fn room(&mut self, n: u64) -> bool {
        let room = self.rows.saturating_add(n) <= self.most;
        // A refusal is final: what follows a gap would be taken for what follows.
        self.rows = if room { self.rows + n } else { self.most.saturating_add(1) };
        room
    }

    /// Whether rows have been refused.
    pub(crate) fn is_full(&self) -> bool {
        self.rows > self.most
    }

    /// Why rows have been refused, if they have.
    pub(crate) fn full(&self) -> Option<String> {
        self.is_full().then(|| self.full.unwrap_or("more rows than are kept").into())
    }

    /// Refuses all further rows, for this reason.
    pub(crate) fn refuse(&mut self, why: &'static str) {
        self.full.get_or_insert(why);
        self.rows = self.most.saturating_add(1);
    }

    /// Cost of the rows so far.
    pub(crate) fn cost(&self) -> u64 {
        self.rows
    }

    /// Charges a record for a row if it has cost nothing since `before`: such records take time, and a small file expands to billions
    /// of them.
    pub(crate) fn charge(&mut self, before: u64) {
        if self.rows == before {
            self.room(1);
        }
    }

    /// Adds `by` to all times.
    pub fn shift(&mut self, by: TimeDelta) {
        self.packets.iter_mut().for_each(|r| r.at += by);
        self.rtcp.iter_mut().for_each(|r| r.at += by);
        self.reported.iter_mut().for_each(|r| r.at += by);
        self.blocks.iter_mut().for_each(|r| r.at += by);
        self.estimates.iter_mut().for_each(|r| r.at += by);
        self.probes.iter_mut().for_each(|r| r.at += by);
        self.limited.iter_mut().for_each(|r| r.at += by);
        self.frames.iter_mut().for_each(|r| r.at += by);
        self.pairs.iter_mut().for_each(|r| r.at += by);
        self.streams.iter_mut().for_each(|r| r.at += by);
        self.events.iter_mut().for_each(|r| r.at += by);
        self.other.iter_mut().for_each(|r| r.at += by);
        self.repairs.iter_mut().for_each(|r| r.at += by);
        for series in self.series.values_mut() {
            series.points.iter_mut().for_each(|p| p.0 += by);
            series.texts.iter_mut().for_each(|t| t.0 += by);
        }
    }

    /// Counts a fault that was passed over. Kinds are few: they are written in the readers.
    pub(crate) fn fault(&mut self, what: &str) {
        self.faults_of(what, 1);
    }

    /// Counts so many faults.
    pub(crate) fn faults_of(&mut self, what: &str, count: u64) {
        match self.faults.get_mut(what) {
            Some(n) => *n = n.saturating_add(count),
            None => _ = self.faults.insert(what.to_owned(), count),
        }
    }

    /// Counts what cannot be read and is passed over, which makes the file a damaged one. The first place is kept, with its reason.
    pub(crate) fn damage(&mut self, offset: u64, what: &str, why: impl FnOnce() -> String) {
        self.fault(what);
        self.damaged.get_or_insert_with(|| Stop { offset, why: why() });
    }

    /// Puts every table into the order of time; rows of one time stay as they came.
    pub(crate) fn sort(&mut self) {
        self.packets.sort_by_key(|r| r.at);
        self.rtcp.sort_by_key(|r| r.at);
        self.reported.sort_by_key(|r| r.at);
        self.blocks.sort_by_key(|r| r.at);
        self.estimates.sort_by_key(|r| r.at);
        self.probes.sort_by_key(|r| r.at);
        self.limited.sort_by_key(|r| r.at);
        self.frames.sort_by_key(|r| r.at);
        self.pairs.sort_by_key(|r| r.at);
        self.streams.sort_by_key(|r| r.at);
        self.events.sort_by_key(|r| r.at);
        self.other.sort_by_key(|r| (r.at, r.direction));
        self.repairs.sort_by_key(|r| r.at);
        let unnumbered = self.packets.iter_mut().map(|r| &mut r.number).zip(1..);
        unnumbered.filter(|(n, _)| **n == 0).for_each(|(n, i)| *n = i);
        let unnumbered = self.rtcp.iter_mut().map(|r| &mut r.number).zip(1..);
        unnumbered.filter(|(n, _)| **n == 0).for_each(|(n, i)| *n = i);
        for series in self.series.values_mut() {
            series.points.sort_by_key(|p| p.0);
            series.texts.sort_by_key(|t| t.0);
        }
    }

    /// The series of one number of all objects of one type.
    pub(crate) fn series_of(&self, kind: &str, name: &str) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |((k, _, n), _)| k == kind && n == name).map(|(_, s)| s)
    }

    /// First and last time of its tables.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        let ends = |times: Vec<Timestamp>| Some((*times.first()?, *times.last()?));
        let tables = [
            ends([self.packets.first(), self.packets.last()].into_iter().flatten().map(|r| r.at).collect()),
            ends([self.rtcp.first(), self.rtcp.last()].into_iter().flatten().map(|r| r.at).collect()),
            ends([self.estimates.first(), self.estimates.last()].into_iter().flatten().map(|r| r.at).collect()),
        ];
        let series = self.series.values().filter_map(|s| Some((s.points.first()?.0, s.points.last()?.0)));
        tables.into_iter().flatten().chain(series).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}
