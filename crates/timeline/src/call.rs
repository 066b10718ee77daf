//! Several recordings of one call.

use crate::format::Format;
use crate::number::{count, total};
use crate::recording::Recording;
use crate::schema::Direction;
use crate::weir;
use std::collections::{BTreeMap, BTreeSet};

/// The recordings of one call, in the order given.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// One a file.
    pub recordings: Vec<Recording>,
}

/// RTP packets of a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Sent by the recording end.
    pub sent: u64,
    /// Received by it.
    pub received: u64,
    /// Seen by a capture that does not tell.
    pub passing: u64,
    /// Missing in the sequence numbers that were received or passed: never seen there, retransmissions apart.
    pub lost: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

impl Call {
    /// Joins the recordings of one call.
    pub fn new(recordings: Vec<Recording>) -> Self {
        Self { recordings }
    }
}

impl Recording {
    /// Counts of its RTP packets.
    ///
    /// Lost are the numbers between the first and the last of each stream that was received. Of statistics it is what
    /// they state: packets sent, received and lost of all RTP streams.
    pub fn counts(&self) -> Counts {
        let mut counts = self.statistics();
        let mut streams: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        for packet in &self.packets {
            counts.bytes = counts.bytes.saturating_add(packet.size.into());
            match packet.direction {
                Direction::Sent => counts.sent = counts.sent.saturating_add(1),
                Direction::Received => counts.received = counts.received.saturating_add(1),
                Direction::Passing => counts.passing += 1,
            }
            if packet.direction != Direction::Sent {
                streams.entry(packet.ssrc).or_default().push(packet.sequence);
            }
        }
        counts.lost = total(streams.values().map(|s| missing(s)).chain([counts.lost]));
        counts
    }

    fn statistics(&self) -> Counts {
        if self.format == Format::WeirResult {
            let (sent, received, lost) = weir::result::packets(self);
            return Counts { sent, received, lost, ..Counts::default() };
        }
        let sum = |kind: &str, name: &str| {
            let of = self.series.iter().filter(|((k, _, n), _)| k == kind && n == name);
            total(of.filter_map(|(_, s)| s.points.last()).map(|(_, v)| count(*v)))
        };
        Counts {
            sent: sum("outbound-rtp", "packetsSent"),
            received: sum("inbound-rtp", "packetsReceived"),
            lost: sum("inbound-rtp", "packetsLost"),
            bytes: sum("outbound-rtp", "bytesSent").saturating_add(sum("inbound-rtp", "bytesReceived")),
            ..Counts::default()
        }
    }
}

/// Numbers between the first and the last that are not there.
fn missing(sequences: &[u16]) -> u64 {
    let mut seen = BTreeSet::new();
    let mut last: Option<i64> = None;
    for sequence in sequences {
        let near = match last {
            None => i64::from(*sequence),
            Some(l) => l + i64::from(sequence.wrapping_sub(l as u16) as i16),
        };
        seen.insert(near);
        // A jump of half the numbers is a new beginning and not a loss of as many: the furthest counts.
        last = Some(last.map_or(near, |l| l.max(near)));
    }
    match (seen.first(), seen.last()) {
        (Some(first), Some(last)) => (last - first + 1) as u64 - seen.len() as u64,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_count_once_and_reordered_ones_not() {
        assert_eq!(missing(&[65_534, 65_535, 1, 0, 4]), 2);
        assert_eq!(missing(&[5, 5, 5]), 0);
        assert_eq!(missing(&[]), 0);
    }
}
