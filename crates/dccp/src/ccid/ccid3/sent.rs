//! Packets sent and not yet acknowledged: when, and with which window counter.

use std::collections::VecDeque;
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Maximum packets remembered; the round-trip time of an older one is not measured.
const MAX: usize = 1 << 16;

/// A packet sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Sent {
    pub(super) at: Timestamp,
    /// The window counter of a data packet.
    pub(super) counter: Option<u8>,
    /// Whether no more might be sent after it: the sender was not data-limited then (RFC 5348, section 8.2.1).
    pub(super) used_up: bool,
}

/// Packets by number, without gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct SentLog {
    first: Seq48,
    packets: VecDeque<Sent>,
    /// Send time of the last acknowledged packet after which no more could be sent.
    used_up_at: Option<Timestamp>,
}

impl SentLog {
    /// The next packet. If numbers jump, entries before the jump are dropped.
    pub(super) fn push(&mut self, sequence: Seq48, sent: Sent) {
        if self.packets.is_empty() || sequence != self.first.add(self.packets.len() as u64) {
            self.packets.clear();
            self.first = sequence;
        } else if self.packets.len() == MAX {
            self.packets.pop_front();
            self.first = self.first.next();
        }
        self.packets.push_back(sent);
    }

    /// The packet of this number; those before it are dropped.
    pub(super) fn acknowledge(&mut self, sequence: Seq48) -> Option<Sent> {
        let place = usize::try_from(sequence.since(self.first)).ok()?;
        let sent = *self.packets.get(place)?;
        let used_up = self.packets.range(..=place).rev().find(|p| p.used_up);
        self.used_up_at = used_up.map(|p| p.at).or(self.used_up_at);
        self.packets.drain(..place);
        self.first = sequence;
        Some(sent)
    }

    /// Whether the whole round trip before the last packet acknowledged, sent at `sent`, was data-limited.
    pub(super) fn was_data_limited(&self, sent: Timestamp, rtt: TimeDelta) -> bool {
        self.used_up_at.is_none_or(|t| t <= sent - rtt)
    }

    /// Releases memory after a pause.
    pub(super) fn shrink(&mut self) {
        if self.packets.len() < 32 && self.packets.capacity() > 256 {
            self.packets.shrink_to(64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(ms: i64) -> Sent {
        Sent { at: Timestamp::from_millis(ms), counter: Some(0), used_up: false }
    }

    #[test]
    fn acknowledged_packets_are_found_after_numbers_wrap() {
        let mut log = SentLog::default();
        let start = Seq48::new((1 << 48) - 3);
        (0..10).for_each(|n| log.push(start.add(n), sent(n as i64)));
        assert_eq!(log.acknowledge(Seq48::new(2)), Some(sent(5)));
        assert_eq!(log.acknowledge(Seq48::new(2)), Some(sent(5)), "reported twice");
        assert_eq!(log.acknowledge(Seq48::new(1)), None, "older");
        assert_eq!(log.acknowledge(Seq48::new(7)), None, "not sent");
        assert_eq!(log.acknowledge(Seq48::new(6)), Some(sent(9)));
    }

    #[test]
    fn one_packet_that_used_all_up_is_enough() {
        let mut log = SentLog::default();
        let rtt = TimeDelta::from_millis(100);
        (0..50).for_each(|n| log.push(Seq48::new(n), Sent { used_up: n == 12, ..sent(10 * n as i64) }));
        let mut limited = |n: u64| {
            let at = log.acknowledge(Seq48::new(n)).expect("sent").at;
            log.was_data_limited(at, rtt)
        };
        assert_eq!([5, 11, 12, 21, 22, 40].map(&mut limited), [true, true, false, false, true, true]);
    }

    #[test]
    fn it_is_bounded() {
        let mut log = SentLog::default();
        (0..MAX as u64 + 10).for_each(|n| log.push(Seq48::new(n), sent(1)));
        assert_eq!((log.packets.len(), log.acknowledge(Seq48::new(9))), (MAX, None));
        assert_eq!(log.acknowledge(Seq48::new(10)), Some(sent(1)));
        log.push(Seq48::new(500_000), sent(2));
        assert_eq!((log.packets.len(), log.first), (1, Seq48::new(500_000)));
        log.shrink();
        assert!(log.packets.capacity() <= 256);
    }
}
