//! Final outcome of each frame and packet, after repair and playout.

use std::collections::VecDeque;
use weir_fec::Coverage;
use weir_units::{TimeDelta, Timestamp};

/// Most packets pending; beyond that the oldest are settled at once.
const MAX_PACKETS: usize = 1 << 13;
/// Most packets ahead of the newest known one that a repair packet may protect.
const MAX_AHEAD: u64 = 256;
/// A sequence number this far behind the newest indicates a restarted source.
const RESTART: u64 = 128;

/// The frame of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FramePart {
    pub rtp_timestamp: u32,
    /// Whether it is the frame's last packet.
    pub marker: bool,
}

/// Losses, repair and frames as known to the receiver.
///
/// A frame without any received packet is inferred from the gap in RTP timestamps. If a gap in sequence numbers lies
/// between two frames whose timestamps leave no room for a third, its packets count as the beginning of the later
/// frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecoveryStats {
    /// Media packets settled: expected by their sequence numbers, and overdue.
    pub packets: u64,
    /// Packets that did not arrive in time.
    pub lost: u64,
    /// Lost packets that a repair packet protected.
    pub protected_lost: u64,
    /// Lost packets recovered in time by repair.
    pub recovered: u64,
    /// Packets lost and not recovered in time.
    pub residual_lost: u64,
    /// Packets received too late for playout.
    pub discarded: u64,
    /// Frames settled.
    pub frames: u64,
    /// Frames with lost packets that were all recovered in time.
    pub frames_recovered: u64,
    /// Frames with a packet that was neither received nor recovered in time.
    pub frames_lost: u64,
    /// Those that lack a packet protected by a repair packet.
    pub frames_protected_lost: u64,
}

impl RecoveryStats {
    /// Recovered frames divided by the sum of recovered frames and frames lost despite protection; `None` if there were
    /// neither (FFRE of M. Nagy et al., "Congestion Control using FEC for Conversational Multimedia Communication",
    /// section 5.1).
    pub fn frame_recovery_efficiency(&self) -> Option<f64> {
        let all = self.frames_recovered + self.frames_protected_lost;
        (all > 0).then(|| self.frames_recovered as f64 / all as f64)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Missing,
    Received,
    Discarded,
    Recovered,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    state: State,
    protected: bool,
    marker: bool,
    /// When it arrived, or was first found missing.
    at: Timestamp,
    /// RTP timestamp, if the packet is known.
    rtp_timestamp: Option<u32>,
}

/// State of a frame while its packets are settled.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    rtp_timestamp: u32,
    ended: bool,
    recovered: bool,
    lost: bool,
    protected_lost: bool,
}

/// Settles packets in the order of their sequence numbers, each a fixed time after it arrived or was found missing.
#[derive(Clone, Debug)]
pub(crate) struct FrameLedger {
    age: TimeDelta,
    begin: u64,
    packets: VecDeque<Packet>,
    stats: RecoveryStats,
    current: Option<Frame>,
    /// Packets finally lost after the last known one, and how many of them were protected.
    run: (u64, u64),
    /// Least timestamp step between frames.
    step: Option<u32>,
    /// End of the range protected by the last repair packet, and that packet's number.
    protected_until: Option<(u64, u64)>,
    /// The coverage whose packets are all marked as protected. The repair packets of a Reed-Solomon block have the same
    /// coverage, so only the first of them marks packets.
    marked: Coverage,
}

impl FrameLedger {
    /// A ledger that settles packets after `age`.
    pub(crate) fn new(age: TimeDelta) -> Self {
        Self {
            age,
            begin: 0,
            packets: VecDeque::new(),
            stats: RecoveryStats::default(),
            current: None,
            run: (0, 0),
            step: None,
            protected_until: None,
            marked: Coverage::default(),
        }
    }

    pub(crate) fn stats(&self) -> RecoveryStats {
        self.stats
    }

    /// A packet has arrived, too late for playout if `discarded`.
    pub(crate) fn on_packet(&mut self, now: Timestamp, sequence: u64, media: Option<FramePart>, discarded: bool) {
        let state = if discarded { State::Discarded } else { State::Received };
        self.note(now, sequence, media, state);
        self.settle(now);
    }

    /// A lost packet was recovered in time.
    pub(crate) fn on_recovered(&mut self, now: Timestamp, sequence: u64, media: Option<FramePart>) {
        self.note(now, sequence, media, State::Recovered);
    }

    /// The repair packet `repair` (its own sequence number) protects these packets. If repair packets before it were
    /// lost, the packets in between had their protection.
    pub(crate) fn on_protected(&mut self, now: Timestamp, repair: u64, packets: &Coverage) {
        let (Some(low), Some(high)) = (packets.first(), packets.last()) else { return };
        if *packets != self.marked {
            packets.iter().for_each(|s| self.protect(now, s));
            // Packets too far ahead may be known when the next repair packet arrives.
            self.marked = if high < self.end() { *packets } else { Coverage::default() };
        }
        match self.protected_until {
            Some((_, last)) if repair <= last => {}
            Some((until, last)) => {
                if repair > last + 1 && low > until + 1 && low - until < MAX_PACKETS as u64 {
                    (until + 1..low).for_each(|s| self.protect(now, s));
                }
                self.protected_until = Some((high.max(until), repair));
            }
            None => self.protected_until = Some((high, repair)),
        }
    }

    fn protect(&mut self, now: Timestamp, sequence: u64) {
        let end = self.end();
        // Lost packets at the end of a group are first detected here.
        if end > 0 && sequence >= end && sequence - end < MAX_AHEAD {
            self.expect(now, sequence);
        }
        if let Some(p) = self.packet_mut(sequence) {
            p.protected = true;
        }
    }

    /// The number after the newest packet.
    fn end(&self) -> u64 {
        self.begin + self.packets.len() as u64
    }

    fn packet_mut(&mut self, sequence: u64) -> Option<&mut Packet> {
        self.packets.get_mut(usize::try_from(sequence.checked_sub(self.begin)?).ok()?)
    }

    fn note(&mut self, now: Timestamp, sequence: u64, media: Option<FramePart>, state: State) {
        let end = self.end();
        let restarted = sequence + RESTART < end || sequence.saturating_sub(end) > MAX_PACKETS as u64;
        if end == 0 || (restarted && state != State::Recovered) {
            self.restart(sequence);
        }
        self.expect(now, sequence);
        let Some(p) = self.packet_mut(sequence).filter(|p| p.state == State::Missing) else { return };
        p.state = state;
        p.rtp_timestamp = media.map(|m| m.rtp_timestamp);
        p.marker = media.is_some_and(|m| m.marker);
        while self.packets.len() > MAX_PACKETS {
            self.settle_first();
        }
    }

    /// Packets up to `sequence` that are unknown are missing.
    fn expect(&mut self, now: Timestamp, sequence: u64) {
        for _ in self.end()..sequence + 1 {
            let (state, protected, marker) = (State::Missing, false, false);
            self.packets.push_back(Packet { state, protected, marker, at: now, rtp_timestamp: None });
        }
    }

    fn restart(&mut self, sequence: u64) {
        while !self.packets.is_empty() {
            self.settle_first();
        }
        self.close();
        (self.begin, self.run, self.step, self.protected_until) = (sequence, (0, 0), None, None);
        self.marked = Coverage::default();
    }

    /// Settles overdue packets.
    pub(crate) fn settle(&mut self, now: Timestamp) {
        while self.packets.front().is_some_and(|p| now - p.at > self.age) {
            self.settle_first();
        }
    }

    fn settle_first(&mut self) {
        let Some(p) = self.packets.pop_front() else { return };
        self.begin += 1;
        let s = &mut self.stats;
        s.packets += 1;
        let lost = matches!(p.state, State::Missing | State::Recovered);
        s.lost += u64::from(lost);
        s.protected_lost += u64::from(lost && p.protected);
        s.recovered += u64::from(p.state == State::Recovered);
        s.residual_lost += u64::from(p.state == State::Missing);
        s.discarded += u64::from(p.state == State::Discarded);
        if p.state == State::Missing {
            self.run.0 += 1;
            self.run.1 += u64::from(p.protected);
            return;
        }
        // Padding belongs to no frame.
        let Some(rtp_timestamp) = p.rtp_timestamp else { return };
        self.place_run(rtp_timestamp);
        if self.current.is_none_or(|f| f.rtp_timestamp != rtp_timestamp) {
            self.close();
            self.current = Some(Frame { rtp_timestamp, ..Frame::default() });
        }
        let late_run = core::mem::take(&mut self.run);
        if let Some(f) = &mut self.current {
            f.ended |= p.marker;
            f.recovered |= p.state == State::Recovered;
            f.lost |= p.state == State::Discarded || late_run.0 > 0;
            f.protected_lost |= (p.state == State::Discarded && p.protected) || late_run.1 > 0;
        }
    }

    /// Assigns lost packets before a known one to frames: those left in `run` belong to the known packet's frame.
    fn place_run(&mut self, next: u32) {
        let Some(f) = &mut self.current else { return };
        let distance = next.wrapping_sub(f.rtp_timestamp);
        if distance == 0 || distance > u32::MAX / 2 {
            return;
        }
        if self.run.0 == 0 {
            self.step = Some(self.step.map_or(distance, |s| s.min(distance)));
            return;
        }
        let protected = self.run.1 > 0;
        let own = !f.ended;
        if own {
            (f.lost, f.protected_lost) = (true, f.protected_lost || protected);
        }
        let between = self.step.map_or(0, |s| (u64::from(distance) + u64::from(s) / 2) / u64::from(s.max(1)));
        let whole = between.saturating_sub(1).min(self.run.0 - u64::from(own).min(self.run.0));
        self.stats.frames += whole;
        self.stats.frames_lost += whole;
        self.stats.frames_protected_lost += if protected { whole.min(self.run.1) } else { 0 };
        if own || whole > 0 {
            self.run = (0, 0);
        }
    }

    fn close(&mut self) {
        let Some(f) = self.current.take() else { return };
        let s = &mut self.stats;
        s.frames += 1;
        s.frames_recovered += u64::from(f.recovered && !f.lost);
        s.frames_lost += u64::from(f.lost);
        s.frames_protected_lost += u64::from(f.protected_lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AGE: TimeDelta = TimeDelta::from_millis(100);

    /// Packets of frames that are 3,000 ticks and 33 ms apart; `lost` selects packets that do not arrive. All are
    /// settled at the end.
    fn settle(frames: &[u64], lost: impl Fn(u64) -> bool, protected: bool) -> RecoveryStats {
        let mut l = FrameLedger::new(AGE);
        let (mut n, mut now) = (0, Timestamp::ZERO);
        for (i, &packets) in frames.iter().enumerate() {
            for p in 0..packets {
                if !lost(n) {
                    let part = FramePart { rtp_timestamp: i as u32 * 3_000, marker: p + 1 == packets };
                    l.on_packet(now, 100_000 + n, Some(part), false);
                }
                n += 1;
                if protected && n % 5 == 0 {
                    l.on_protected(now, n / 5, &Coverage::every(100_000 + n - 5, 1, 5));
                }
            }
            now += TimeDelta::from_millis(33);
        }
        l.settle(now + AGE * 2);
        l.close();
        l.stats()
    }

    #[test]
    fn one_coverage_protects_again_after_a_restart_and_once_its_packets_are_near() {
        let mut l = FrameLedger::new(AGE);
        let (now, covered) = (Timestamp::ZERO, Coverage::every(1_000, 1, 5));
        let mut repair = 0;
        let mut protect = |l: &mut FrameLedger, times| {
            for _ in 0..times {
                repair += 1;
                l.on_protected(now, repair, &covered);
            }
        };
        let come = |l: &mut FrameLedger, sequences: &[u64]| {
            sequences
                .iter()
                .for_each(|&s| l.on_packet(now, s, Some(FramePart { rtp_timestamp: s as u32, marker: true }), false));
        };
        // First too far ahead of the first packet to be expected, then not.
        come(&mut l, &[700]);
        protect(&mut l, 2);
        come(&mut l, &[1_000, 1_004]);
        protect(&mut l, 3);
        come(&mut l, &[50_000]);
        assert_eq!((l.stats().lost, l.stats().protected_lost), (299 + 3, 3));
        // Back again: a restarted source.
        come(&mut l, &[1_000, 1_004]);
        protect(&mut l, 3);
        come(&mut l, &[50_000]);
        assert_eq!((l.stats().lost, l.stats().protected_lost), (299 + 6, 6));
    }

    proptest! {
        /// Frames of one packet: each loss is a frame, inferred from the timestamp step.
        #[test]
        fn frames_of_which_nothing_came_are_counted(lost in proptest::collection::vec(any::<bool>(), 60), protected: bool) {
            // Two frames at the beginning give the step, and one at the end closes the gap.
            let is_lost = |n: u64| (2..59).contains(&n) && lost[n as usize];
            let s = settle(&[1; 60], is_lost, protected);
            let losses = (0..60).filter(|&n| is_lost(n)).count() as u64;
            prop_assert_eq!((s.packets, s.lost, s.residual_lost), (60, losses, losses));
            prop_assert_eq!((s.frames, s.frames_lost), (60, losses));
            prop_assert_eq!(s.frames_protected_lost, if protected { losses } else { 0 });
        }

        /// Frames of several packets: a frame that lacks any of them is lost, once.
        #[test]
        fn a_frame_is_lost_with_any_of_its_packets(frames in proptest::collection::vec(2u64..6, 30), which in 0u64..6) {
            // One packet of every third frame, at any position in it.
            let mut lost = vec![];
            let (mut n, mut losses) = (0, 0);
            for (i, &packets) in frames.iter().enumerate() {
                for p in 0..packets {
                    let one = (2..29).contains(&i) && i % 3 == 0 && p == which % packets;
                    lost.push(one);
                    losses += u64::from(one);
                    n += 1;
                }
            }
            let s = settle(&frames, |n| lost[n as usize], false);
            prop_assert_eq!((s.packets, s.residual_lost, s.frames), (n, losses, 30));
            prop_assert_eq!(s.frames_lost, losses);
        }

        /// For arbitrary input memory is bounded and the sums are consistent.
        #[test]
        fn anything_may_come(steps in proptest::collection::vec((0u8..4, 0u64..20_000, any::<u32>(), 0i64..50), 1..300)) {
            let mut l = FrameLedger::new(AGE);
            let (mut now, mut high) = (Timestamp::ZERO, 200_000u64);
            for (what, step, rtp_timestamp, ms) in steps {
                now += TimeDelta::from_millis(ms);
                high += step % 7 * (step % 40);
                let sequence = high.saturating_sub(step % 200);
                let part = Some(FramePart { rtp_timestamp, marker: step % 2 == 0 });
                match what {
                    0 => l.on_recovered(now, sequence.min(high), part),
                    1 => l.on_protected(now, step, &Coverage::every(sequence, 1, step % 300)),
                    _ => l.on_packet(now, sequence, part, what == 3),
                }
                let s = l.stats();
                prop_assert!(l.packets.len() <= MAX_PACKETS + 256);
                prop_assert!(s.recovered + s.residual_lost == s.lost && s.lost + s.discarded <= s.packets);
                prop_assert!(s.frames_lost + s.frames_recovered <= s.frames + 1 && s.frames_protected_lost <= s.frames_lost);
            }
        }
    }
}
