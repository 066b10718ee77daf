//! Receive statistics of one source (RFC 3550, sections 6.4.1 and appendices A.1, A.3, A.8).

use weir_units::cold_path;
use weir_units::{TimeDelta, Timestamp};

/// A larger jump forward restarts the source (RFC 3550, appendix A.1).
const MAX_DROPOUT: u16 = 3_000;
/// A number this far behind is late, not a restart (RFC 3550, appendix A.1).
const MAX_MISORDER: u16 = 100;
/// Packets in sequence before a source is valid (RFC 3550, appendix A.1).
const MIN_SEQUENTIAL: u8 = 2;

/// The result of a packet's sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequenced {
    /// Counted, with its extended sequence number.
    Valid(u64),
    /// Not counted: the source is on probation, or the number has jumped and no second one in sequence has followed.
    Invalid,
}

/// The values of a report block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockNumbers {
    /// Fraction lost since the last report, in 1/256.
    pub fraction_lost: u8,
    /// Cumulative number of packets lost, clamped to 24 signed bits.
    pub cumulative_lost: i32,
    /// Extended highest sequence number received.
    pub highest_sequence: u32,
    /// Interarrival jitter in timestamp units.
    pub jitter: u32,
}

/// Sequence numbers, losses and jitter of one source.
#[derive(Clone, Debug)]
pub struct ReceiveStatistics {
    clock_rate: u32,
    started: bool,
    probation: u8,
    base: u64,
    highest: u64,
    bad_sequence: Option<u16>,
    jumped: bool,
    /// The numbers from the highest one down that have been received: as far back as numbers are taken.
    seen: u128,
    /// A jump forward by this much or more restarts the source.
    max_dropout: u16,
    /// Whether the last number had been received before.
    copy: bool,
    received: u64,
    prior_expected: u64,
    prior_received: u64,
    transit: Option<i64>,
    /// Jitter in 1/16 timestamp units (RFC 3550, appendix A.8).
    jitter: u64,
}

impl ReceiveStatistics {
    /// Statistics of a source with this RTP clock rate in Hz.
    pub fn new(clock_rate: u32) -> Self {
        Self {
            clock_rate: clock_rate.max(1),
            started: false,
            probation: MIN_SEQUENTIAL,
            base: 0,
            highest: 0,
            bad_sequence: None,
            jumped: false,
            seen: 0,
            max_dropout: MAX_DROPOUT,
            copy: false,
            received: 0,
            prior_expected: 0,
            prior_received: 0,
            transit: None,
            jitter: 0,
        }
    }

    /// Sets the jump forward, in packets, that restarts the source; `None` for that of RFC 3550, appendix A.1.
    pub(crate) fn set_max_dropout(&mut self, jump: Option<u16>) {
        self.max_dropout = jump.unwrap_or(MAX_DROPOUT);
    }

    /// The first number is one cycle up. After a jump numbers continue above all earlier ones, where RFC 3550 restarts
    /// its count of cycles: users of the numbers take older ones for duplicates.
    #[cold]
    fn restart(&mut self, sequence: u16) {
        let cycle = self.highest & !0xffff;
        let goes_on = self.started && u64::from(sequence) > self.highest - cycle;
        self.jumped = self.started;
        self.base = cycle + if goes_on { 0 } else { 65_536 } + u64::from(sequence);
        self.highest = self.base;
        self.bad_sequence = None;
        (self.seen, self.copy) = (1, false);
        self.received = 0;
        self.prior_expected = 0;
        self.prior_received = 0;
        self.transit = None;
    }

    /// Takes a packet's sequence number (RFC 3550, appendix A.1).
    ///
    /// The first packets of a source are accepted at once, without probation, since the source is known from
    /// signalling; probation applies only after an unexplained jump.
    #[inline]
    pub fn on_sequence(&mut self, sequence: u16) -> Sequenced {
        if !self.started {
            self.restart(sequence);
            self.started = true;
            self.probation = 0;
        } else {
            let ahead = sequence.wrapping_sub(self.highest as u16);
            if ahead < self.max_dropout {
                self.highest += u64::from(ahead);
                self.copy = ahead == 0;
                self.seen = self.seen.checked_shl(ahead.into()).unwrap_or(0) | 1;
            } else if ahead <= u16::MAX - MAX_MISORDER {
                cold_path();
                // Two in sequence after a jump: the source has restarted.
                if self.bad_sequence != Some(sequence) {
                    self.bad_sequence = Some(sequence.wrapping_add(1));
                    return Sequenced::Invalid;
                }
                self.restart(sequence);
            } else {
                cold_path();
                self.received += 1;
                let behind = ahead.wrapping_neg();
                self.copy = self.seen >> behind & 1 == 1;
                self.seen |= 1 << behind;
                return Sequenced::Valid(self.highest - u64::from(behind));
            }
        }
        self.received += 1;
        Sequenced::Valid(self.highest)
    }

    /// A packet of this stream was retransmitted on another one: counted as RFC 3550 counts late packets and
    /// duplicates.
    pub(crate) fn on_retransmission(&mut self) {
        self.received += 1;
    }

    /// Takes a packet's transit time (RFC 3550, appendix A.8), unless it is a copy: nobody sent it then.
    #[inline]
    pub fn on_arrival(&mut self, now: Timestamp, rtp_timestamp: u32) {
        if self.copy {
            return;
        }
        let arrival = (now.as_micros().wrapping_mul(i64::from(self.clock_rate)) / 1_000_000) as u32;
        let transit = i64::from(arrival.wrapping_sub(rtp_timestamp) as i32);
        if let Some(last) = self.transit.replace(transit) {
            let d = i64::from((transit as i32).wrapping_sub(last as i32)).unsigned_abs();
            self.jitter = self.jitter + d - ((self.jitter + 8) >> 4);
        }
    }

    /// Whether the packet last counted had been received before. RFC 3550 counts it in the packets received, from which
    /// it takes the loss; nothing else does.
    #[inline]
    pub(crate) const fn is_copy(&self) -> bool {
        self.copy
    }

    /// Whether the numbers have jumped since the last call.
    #[inline]
    pub(crate) fn take_jump(&mut self) -> bool {
        core::mem::take(&mut self.jumped)
    }
    /// Whether any packet has been counted.
    pub fn is_started(&self) -> bool {
        self.started
    }
    /// Extended highest sequence number received, one cycle up; zero before the first.
    pub fn highest(&self) -> u64 {
        self.highest
    }
    /// Packets received, duplicates included.
    pub fn received(&self) -> u64 {
        self.received
    }
    /// Packets expected by the sequence numbers.
    pub fn expected(&self) -> u64 {
        if self.started { self.highest - self.base + 1 } else { 0 }
    }
    /// Interarrival jitter.
    pub fn jitter(&self) -> TimeDelta {
        TimeDelta::from_nanos((self.jitter / 16 * 1_000_000_000 / u64::from(self.clock_rate)) as i64)
    }

    /// The values of a report block; starts a new reporting interval (RFC 3550, appendix A.3).
    pub fn take_block(&mut self) -> BlockNumbers {
        let expected = self.expected();
        let lost = expected as i64 - self.received as i64;
        let expected_interval = expected.saturating_sub(self.prior_expected);
        let received_interval = self.received.saturating_sub(self.prior_received);
        let lost_interval = expected_interval.saturating_sub(received_interval);
        self.prior_expected = expected;
        self.prior_received = self.received;
        BlockNumbers {
            fraction_lost: (lost_interval * 256).checked_div(expected_interval).unwrap_or(0).min(255) as u8,
            cumulative_lost: lost.clamp(-0x80_0000, 0x7f_ffff) as i32,
            // The unwrapped number starts one cycle up; on the wire cycles count from zero.
            highest_sequence: (self.highest.wrapping_sub(65_536)) as u32,
            jitter: (self.jitter >> 4) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_jump_beyond_the_greatest_dropout_loses_nothing() {
        let lost = |jump: u16, max: Option<u16>| {
            let mut s = ReceiveStatistics::new(90_000);
            s.set_max_dropout(max);
            (0..100).chain(99 + jump..400 + jump).for_each(|n| _ = s.on_sequence(n));
            s.take_block().cumulative_lost
        };
        assert_eq!((lost(450, Some(451)), lost(451, Some(451)), lost(451, None)), (449, 0, 450));
        assert_eq!((lost(2_999, None), lost(3_000, None)), (2_998, 0));
    }

    #[test]
    fn counts_losses_across_the_wrap() {
        let mut s = ReceiveStatistics::new(90_000);
        for n in [65_533u16, 65_534, 1, 2] {
            assert!(matches!(s.on_sequence(n), Sequenced::Valid(_)));
        }
        let b = s.take_block();
        assert_eq!((b.cumulative_lost, b.highest_sequence), (2, 65_536 + 2));
        // 2 of 6: 85/256
        assert_eq!(b.fraction_lost, 85);
        assert_eq!(s.take_block().fraction_lost, 0);
    }

    #[test]
    fn a_late_packet_fills_its_gap() {
        let mut s = ReceiveStatistics::new(90_000);
        let Sequenced::Valid(a) = s.on_sequence(10) else { unreachable!() };
        s.on_sequence(12);
        assert_eq!(s.on_sequence(11), Sequenced::Valid(a + 1));
        assert_eq!(s.take_block().cumulative_lost, 0);
    }

    #[test]
    fn a_recovered_packet_is_no_loss() {
        let mut s = ReceiveStatistics::new(90_000);
        for n in [10, 12, 13, 15] {
            s.on_sequence(n);
        }
        s.on_retransmission();
        let b = s.take_block();
        // 1 of 6.
        assert_eq!((b.cumulative_lost, b.fraction_lost), (1, 42));
        // One lost and two retransmitted, the other from before the last report.
        s.on_sequence(17);
        s.on_retransmission();
        s.on_retransmission();
        let b = s.take_block();
        assert_eq!((b.cumulative_lost, b.fraction_lost), (0, 0));
    }

    #[test]
    fn copies_are_known_within_the_window() {
        let mut s = ReceiveStatistics::new(90_000);
        let mut seen = std::collections::BTreeSet::new();
        for n in
            [65_500u16, 65_501, 65_503, 65_503, 65_502, 65_501, 10, 65_530, 65_530, 9, 10, 60, 200, 199, 101, 101, 200]
        {
            assert!(matches!(s.on_sequence(n), Sequenced::Valid(_)));
            assert_eq!(s.is_copy(), !seen.insert(n), "{n}");
        }
        // They count as RFC 3550 counts them.
        assert_eq!(s.received(), 17);
    }

    #[test]
    fn a_jump_needs_two_in_sequence() {
        let mut s = ReceiveStatistics::new(90_000);
        s.on_sequence(10);
        assert_eq!(s.on_sequence(20_000), Sequenced::Invalid);
        assert_eq!((s.on_sequence(20_001), s.take_jump()), (Sequenced::Valid(65_536 + 20_001), true));
        assert_eq!((s.expected(), s.take_jump()), (1, false));
        // Back again: above all earlier numbers.
        s.on_sequence(5);
        assert_eq!((s.on_sequence(6), s.expected()), (Sequenced::Valid(2 * 65_536 + 6), 1));
    }

    #[test]
    fn jitter_follows_the_equation() {
        let mut s = ReceiveStatistics::new(90_000);
        s.on_arrival(Timestamp::from_millis(0), 0);
        // 1 ms late: D = 90 units; J = 0 + 90/16 = 5.6
        s.on_arrival(Timestamp::from_millis(21), 20 * 90);
        assert_eq!(s.take_block().jitter, 5);
        assert_eq!(s.jitter().as_micros(), 55);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it(ops in proptest::collection::vec((any::<u16>(), any::<u32>(), any::<i64>()), 0..300)) {
            let mut s = ReceiveStatistics::new(90_000);
            for (n, ts, now) in ops {
                s.on_sequence(n);
                s.on_arrival(Timestamp::from_nanos(now), ts);
                let b = s.take_block();
                prop_assert!(b.cumulative_lost >= -0x80_0000 && b.cumulative_lost <= 0x7f_ffff);
            }
        }
    }
}
