//! Recorded calls of other programs, from the bytes of their files.

use crate::columns::Columns;
use crate::failure::Failure;
use serde::Serialize;
use weir_cc::{Flow, Limits, Registry, Setup};
use weir_timeline::why::{Curves, curves};
use weir_timeline::{Call, Direction, Packet, ReadError, Recording, Report, Window, read, replay};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Most bytes of all files of a call. They are in memory while they are read, beside their rows (450 MB at most a file),
/// and a page has 1 GiB for all of it.
pub const MAX_FILES_BYTES: usize = 300_000_000;
/// Most files of a call: captures, logs and statistics of two ends, and as many again.
pub const MAX_FILES: usize = 16;
/// Most packets of a list.
const MAX_PACKETS: usize = 1_000;

/// JSON, and numbers beside it.
pub(crate) type Found = (String, Columns);

/// A recorded call, and the grid that its numbers over time are on.
#[derive(Debug)]
pub(crate) struct Opened {
    call: Call,
    start_ms: i64,
    interval_s: f64,
    rows: usize,
}

/// Packets in a time, if they are few enough to be listed.
#[derive(Serialize)]
struct Packets<'a> {
    /// File that has them: the one of all with most packets.
    path: &'a str,
    /// How many there are.
    count: usize,
    /// Most that are listed.
    most: usize,
    packets: Vec<Listed>,
}

#[derive(Serialize)]
struct Listed {
    /// Seconds since the first time in any file.
    at_s: f64,
    /// In the capture, else in order of time.
    number: u32,
    ssrc: String,
    direction: &'static str,
    sequence: u16,
    timestamp: u32,
    payload_type: u8,
    size: u32,
    marker: bool,
    transport_sequence: Option<u16>,
}

impl Opened {
    /// Reads the files of a call. The answer's text is the object of `weir open --lint --json` without its schema's name, its
    /// numbers are the call's over time, on seconds since the first time in any file.
    pub(crate) fn read(names: &[String], files: Vec<Vec<u8>>) -> Result<(Self, Found), Failure> {
        if names.is_empty() || names.len() != files.len() {
            return Err(Failure::request(format!("{} names for {} files", names.len(), files.len())));
        }
        let mut recordings = Vec::with_capacity(files.len());
        // Each file's bytes are given back before the next file is read.
        for (name, bytes) in names.iter().zip(files) {
            recordings.push(read(name, bytes.as_slice()).map_err(|e| unreadable(name, &e))?);
        }
        let call = Call::new(recordings);
        let report = Report::of(&call, &[]).map_err(|e| Failure::recording(e.to_string()))?;
        let begin = begin(&call);
        let found = curves(&call).unwrap_or(Curves { start_ms: begin, interval_s: 1.0, columns: Vec::new() });
        let rows = found.columns.first().map_or(0, |c| c.values.len());
        let from_s = (found.start_ms - begin) as f64 * 1e-3;
        let times: Vec<f64> = (0..rows).map(|row| from_s + row as f64 * found.interval_s).collect();
        let mut columns = Columns::default();
        columns.add("call", "", "time_s", &times);
        found.columns.iter().for_each(|c| columns.add("call", "", c.name, &c.values));
        let opened = Self { call, start_ms: found.start_ms, interval_s: found.interval_s, rows };
        Ok((opened, with(&report, columns)?))
    }

    /// Targets of controllers on the recorded feedback: the text is the list of them, the numbers are targets on the call's grid.
    pub(crate) fn replay(&self, controllers: &[String]) -> Result<Found, Failure> {
        let made = controllers.iter().map(|name| replay::replay(&self.call, name)).collect::<Result<Vec<_>, _>>();
        let made = made.map_err(|e| Failure::recording(e.to_string()))?;
        let mut columns = Columns::default();
        for one in &made {
            columns.add("replay", &one.controller, "target_kbps", &self.held(&one.targets));
        }
        with(&made, columns)
    }

    /// Targets, each held until the next, at the ends of the grid's rows.
    fn held(&self, targets: &[(i64, f64)]) -> Vec<f64> {
        let end = |row: usize| self.start_ms as f64 + (row + 1) as f64 * self.interval_s * 1e3;
        let last = targets.last().map_or(f64::NEG_INFINITY, |t| t.0 as f64 + self.interval_s * 1e3);
        let value = |row| {
            let before = targets.partition_point(|t| t.0 as f64 <= end(row)).checked_sub(1);
            before.filter(|_| end(row) <= last).map_or(f64::NAN, |i| targets[i].1)
        };
        (0..self.rows).map(value).collect()
    }

    /// The packets of a time in s, of the file that has most.
    pub(crate) fn packets(&self, from_s: f64, to_s: f64) -> Result<Found, Failure> {
        let most = self.call.recordings.iter().max_by_key(|r| r.packets.len());
        let most = most.ok_or_else(|| Failure::request("no file is open"))?;
        let first = Timestamp::from_millis(begin(&self.call));
        let at = |s: f64| first + TimeDelta::from_secs_f64(s);
        let window = Window { from: at(from_s), to: at(to_s) };
        let (low, high) = [window.from, window.to].map(|t| most.packets.partition_point(|p| p.at < t)).into();
        let found = most.packets.get(low..high).unwrap_or_default();
        let listed = |p: &Packet| Listed {
            at_s: (p.at - first).as_secs_f64(),
            number: p.number,
            ssrc: format!("{:08x}", p.ssrc),
            direction: way(p.direction),
            sequence: p.sequence,
            timestamp: p.timestamp,
            payload_type: p.payload_type,
            size: p.size,
            marker: p.marker,
            transport_sequence: p.transport_sequence,
        };
        let packets = if found.len() <= MAX_PACKETS { found.iter().map(listed).collect() } else { Vec::new() };
        with(&Packets { path: &most.name, count: found.len(), most: MAX_PACKETS, packets }, Columns::default())
    }
}

/// The first time in any of a call's files, in Unix ms.
fn begin(call: &Call) -> i64 {
    call.recordings.iter().filter_map(Recording::span).map(|s| s.0.as_millis()).min().unwrap_or(0)
}

const fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Sent => "sent",
        Direction::Received => "received",
        Direction::Passing => "passing",
    }
}

fn with(value: &impl Serialize, columns: Columns) -> Result<Found, Failure> {
    let text = serde_json::to_string(value).map_err(|e| Failure::request(e.to_string()))?;
    Ok((text, columns))
}

fn unreadable(name: &str, e: &ReadError) -> Failure {
    let help = match e {
        ReadError::Unknown(_) => {
            "Read are event logs (--webrtc-event-logging), dumps of chrome://webrtc-internals, getStats() as JSON lines, \
             rtcstats, pcap, pcapng, logs of Pion's bwe-test and rtpdump, compressed by gzip or not."
        }
        ReadError::OldEventLog => "Record it again with a Chromium of 2019 or later.",
        _ => "Save it again.",
    };
    Failure { help: Some(help.into()), ..Failure::recording(format!("{name}: {e}")) }
}

/// The controllers that recorded feedback is enough for, in the registry's order.
pub(crate) fn replayed(registry: &Registry) -> Vec<&str> {
    let limits = Limits { floor: DataRate::from_kbps(30), ceiling: DataRate::from_mbps(20) };
    let start_rate = DataRate::from_kbps(300);
    let setup = Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: Vec::new() };
    let specs = registry.specs().filter(|s| s.adapts && Flow::by_name(registry, &s.name, &setup).is_ok());
    specs.map(|s| s.name.as_str()).collect()
}

#[cfg(test)]
mod tests;
