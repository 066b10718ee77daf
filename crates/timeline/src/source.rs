//! Summary of a recording: its counts and its faults.

use crate::{Direction, Format, Recording, Reported, Stop};
use serde::Serialize;
use std::collections::BTreeMap;

/// One file.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Source {
    /// Path as given.
    pub path: String,
    /// Recognised format.
    pub format: Format,
    /// First time in it, Unix time in ms.
    pub from_ms: Option<i64>,
    /// Last time in it, Unix time in ms.
    pub to_ms: Option<i64>,
    /// RTP packets.
    pub packets: Packets,
    /// RTCP packets.
    pub rtcp: u64,
    /// Packets named in feedback.
    pub reported: u64,
    /// Estimates of the available rate.
    pub estimates: u64,
    /// Probe clusters.
    pub probes: u64,
    /// Numbers over time: of `getStats()`, of a trace or of a run.
    pub series: u64,
    /// Faults that were passed over, each with its count.
    pub faults: BTreeMap<String, u64>,
    /// Facts that were recognised by behaviour, since the file does not tell.
    pub guessed: Vec<String>,
    /// Where reading stopped, if before the end.
    pub stopped: Option<Interruption>,
    /// First place that could not be read and was passed over.
    pub damaged: Option<Interruption>,
}

/// RTP packets of a file.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Packets {
    /// Sent by the recording end.
    pub sent: u64,
    /// Received by it.
    pub received: u64,
    /// Seen by a capture that does not tell.
    pub passing: u64,
    /// Missing among the received ones.
    pub lost: u64,
    /// Of those sent, reported by the other end as not received, and never as received.
    pub reported_lost: u64,
}

/// A place in a file that could not be read.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interruption {
    /// Offset in the decompressed file, in bytes.
    pub offset: u64,
    /// The reason.
    pub why: String,
}

impl From<&Recording> for Source {
    fn from(recording: &Recording) -> Self {
        let (counts, span) = (recording.counts(), recording.span());
        Self {
            path: recording.name.clone(),
            format: recording.format,
            from_ms: span.map(|s| s.0.as_millis()),
            to_ms: span.map(|s| s.1.as_millis()),
            packets: Packets {
                sent: counts.sent,
                received: counts.received,
                passing: counts.passing,
                lost: counts.lost,
                reported_lost: reported_lost(&recording.reported),
            },
            rtcp: recording.rtcp.len() as u64,
            reported: recording.reported.len() as u64,
            estimates: recording.estimates.len() as u64,
            probes: recording.probes.len() as u64,
            series: recording.series.len() as u64,
            faults: recording.faults.clone(),
            guessed: recording.guessed.clone(),
            stopped: place(recording.stop.as_ref()),
            damaged: place(recording.damaged.as_ref()),
        }
    }
}

fn place(of: Option<&Stop>) -> Option<Interruption> {
    of.map(|s| Interruption { offset: s.offset, why: s.why.clone() })
}

/// Most numbers that are kept, since numbers that jump would take memory without a bound: eight hours at 500 packets a second.
const MAX_NUMBERS: u64 = 1 << 24;
/// Most streams.
const MAX_STREAMS: usize = 256;

/// Packets of a stream in the feedback that was received: reported missing, or as received.
#[derive(Default)]
struct Fates {
    last: u64,
    base: u64,
    fates: Vec<u8>,
}

const MISSING: u8 = 1;
const RECEIVED: u8 = 2;

impl Fates {
    fn take(&mut self, r: &Reported) {
        if self.fates.is_empty() {
            // One cycle up, so that earlier numbers exist.
            self.last = 65_536 + u64::from(r.sequence);
            self.base = self.last - 32_768;
        }
        let step = r.sequence.wrapping_sub(self.last as u16) as i16;
        let number = self.last.saturating_add_signed(step.into());
        let Some(place) = number.checked_sub(self.base).filter(|&i| i < MAX_NUMBERS) else { return };
        self.last = self.last.max(number);
        let place = place as usize;
        if self.fates.len() <= place {
            self.fates.resize(place + 1, 0);
        }
        self.fates[place] |= if r.arrival.is_some() { RECEIVED } else { MISSING };
    }
}

fn reported_lost(reported: &[Reported]) -> u64 {
    let mut streams = BTreeMap::<Option<u32>, Fates>::new();
    let mut kept = 0;
    for r in reported.iter().filter(|r| r.direction == Direction::Received) {
        if kept >= MAX_NUMBERS || (streams.len() == MAX_STREAMS && !streams.contains_key(&r.ssrc)) {
            continue;
        }
        let fates = streams.entry(r.ssrc).or_default();
        let before = fates.fates.len() as u64;
        fates.take(r);
        kept += fates.fates.len() as u64 - before;
    }
    streams.values().flat_map(|s| &s.fates).filter(|&&f| f == MISSING).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{RemoteTimestamp, Timestamp};

    fn report(sequence: u16, received: bool) -> Reported {
        let arrival = received.then_some(RemoteTimestamp::ZERO);
        Reported { at: Timestamp::ZERO, direction: Direction::Received, ssrc: None, sequence, arrival }
    }

    #[test]
    fn a_packet_reported_missing_counts_once_and_not_if_it_arrives_later() {
        let mut rows = vec![report(65_534, true), report(65_535, false), report(0, false), report(1, true)];
        rows.extend([report(65_535, false), report(0, true), report(2, false)]);
        assert_eq!(reported_lost(&rows), 2, "65,535 and 2");
        let sent = Reported { direction: Direction::Sent, ..report(9, false) };
        assert_eq!(reported_lost(&[sent]), 0, "feedback of this end is on what it received");
        // The same number in another stream.
        let other = Reported { ssrc: Some(1), ..report(2, false) };
        rows.push(other);
        assert_eq!(reported_lost(&rows), 3);
    }

    #[test]
    fn numbers_that_jump_take_little_memory() {
        let jump = |i: u64| report((i * 32_767) as u16, i.is_multiple_of(2));
        let rows: Vec<_> = (0..3_000).map(jump).collect();
        assert!(reported_lost(&rows) <= 1_500);
    }
}
