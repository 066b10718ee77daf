//! Packets sent and not yet reported, and the matching of feedback to them.

use crate::cue::{PacketResult, SentPacket};
use weir_units::cold_path;
use weir_units::{DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Most packets kept: two seconds at 200 Mbit/s in packets of 1,200 bytes.
const MAX_PACKETS: usize = 1 << 16;
const MIN_PACKETS: usize = 1 << 6;
/// Age up to which lost packets are kept where packets have been late: most of what a path holds back comes sooner, and RACK waits
/// for less (RFC 8985, section 6.2: at most a round trip).
const LATE: TimeDelta = TimeDelta::from_secs(1);

/// One packet in a feedback message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReportedPacket {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// Arrival by the receiver's clock, `None` if lost. A lost packet has to be reported: see
    /// [`Flow::on_reports`](crate::Flow::on_reports).
    pub arrival: Option<RemoteTimestamp>,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Received = 0,
    InFlight = 1,
    /// Not reported, and no longer counted as in flight.
    Unreported = 2,
    Lost = 3,
}

/// A packet; small, since each call keeps [`MIN_PACKETS`] or more.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    departure: Timestamp,
    /// Bytes, in the bits above those of the state.
    size_and_state: u32,
    probe: u32,
}

/// Bits of [`Slot::size_and_state`] that are the state.
const STATE_BITS: u32 = 2;

impl Slot {
    #[inline]
    fn in_flight(packet: &SentPacket) -> Self {
        let size = packet.size.as_bytes().min(u64::from(u32::MAX >> STATE_BITS)) as u32;
        let size_and_state = size << STATE_BITS | State::InFlight as u32;
        Self { departure: packet.now, size_and_state, probe: packet.probe }
    }
    #[inline]
    fn size(self) -> DataSize {
        DataSize::from_bytes(u64::from(self.size_and_state >> STATE_BITS))
    }
    #[inline]
    fn state(self) -> State {
        match self.size_and_state & ((1 << STATE_BITS) - 1) {
            0 => State::Received,
            1 => State::InFlight,
            2 => State::Unreported,
            _ => State::Lost,
        }
    }
    #[inline]
    fn set_state(&mut self, state: State) {
        self.size_and_state = self.size_and_state >> STATE_BITS << STATE_BITS | state as u32;
    }
}

/// Counters of feedback that does not match what was sent. Such feedback has no other effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HistoryCounters {
    /// Reports of packets that were never sent.
    pub unknown: u64,
    /// Reports of packets no longer kept.
    pub late: u64,
    /// Reports of packets already resolved the same way.
    pub duplicate: u64,
    /// Packets removed from the flight without a report.
    pub unreported: u64,
}

/// A ring of sent packets. It grows with the flight up to a bound and does not allocate in steady state.
#[derive(Clone, Debug)]
pub struct SentHistory {
    slots: Box<[Slot]>,
    /// Sequence number of the oldest packet kept.
    first: u64,
    /// Sequence number after the newest packet.
    next: u64,
    /// No packet before this is in flight.
    settled: u64,
    /// Lower bound of the departure of packets in flight, which answers most calls of [`Self::give_up_before`].
    oldest: Timestamp,
    in_flight: DataSize,
    /// Whether a packet reported lost, or no longer kept, has arrived.
    has_late: bool,
    counters: HistoryCounters,
}

impl Default for SentHistory {
    fn default() -> Self {
        Self::new()
    }
}

impl SentHistory {
    /// An empty history.
    pub fn new() -> Self {
        Self {
            slots: vec![Slot::default(); MIN_PACKETS].into_boxed_slice(),
            first: 0,
            next: 0,
            settled: 0,
            oldest: Timestamp::ZERO,
            in_flight: DataSize::ZERO,
            has_late: false,
            counters: HistoryCounters::default(),
        }
    }

    /// Bytes sent and neither resolved nor given up.
    pub fn bytes_in_flight(&self) -> DataSize {
        self.in_flight
    }
    /// Counters of feedback that did not match.
    pub fn counters(&self) -> HistoryCounters {
        self.counters
    }
    /// Number of packets kept.
    pub fn len(&self) -> usize {
        (self.next - self.first) as usize
    }
    /// Whether the history is empty.
    pub fn is_empty(&self) -> bool {
        self.next == self.first
    }
    /// Whether a packet is neither reported nor given up.
    pub fn is_in_flight(&self, sequence: u64) -> bool {
        (self.first..self.next).contains(&sequence) && self.slots[self.index(sequence)].state() == State::InFlight
    }
    /// When the oldest packet in flight was sent.
    pub fn oldest_in_flight(&mut self) -> Option<Timestamp> {
        self.settle();
        (self.settled < self.next).then(|| self.slots[self.index(self.settled)].departure)
    }

    fn index(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    fn settle(&mut self) {
        while self.settled < self.next && self.slots[self.index(self.settled)].state() != State::InFlight {
            self.settled += 1;
        }
    }

    /// Records a sent packet. Sequence numbers increase by one; a jump drops all earlier packets.
    #[inline]
    pub fn on_sent(&mut self, packet: &SentPacket) {
        if packet.sequence != self.next {
            self.restart(packet.sequence);
        }
        if self.len() == self.slots.len() {
            self.make_room();
        }
        let i = self.index(packet.sequence);
        self.slots[i] = Slot::in_flight(packet);
        self.next = packet.sequence.saturating_add(1);
        self.in_flight += self.slots[i].size();
        self.oldest = self.oldest.min(packet.now);
    }

    #[cold]
    fn restart(&mut self, sequence: u64) {
        self.counters.unreported += self.count_in_flight();
        self.in_flight = DataSize::ZERO;
        (self.first, self.next, self.settled) = (sequence, sequence, sequence);
    }

    fn count_in_flight(&self) -> u64 {
        (self.settled..self.next).filter(|&s| self.slots[self.index(s)].state() == State::InFlight).count() as u64
    }

    /// Drops resolved packets first, unless one of them may only be late; then doubles the ring up to its bound; then gives up the oldest packet.
    #[inline(never)]
    fn make_room(&mut self) {
        self.settle();
        let half = self.slots.len() as u64 / 2;
        let can_grow = self.slots.len() < MAX_PACKETS;
        let oldest = self.first..self.first + half / 2;
        let keeps = self.has_late && can_grow && self.may_be_late(oldest);
        if self.settled >= self.first + half && !keeps {
            self.first += half / 2;
        } else if can_grow {
            let mut wider = vec![Slot::default(); self.slots.len() * 2].into_boxed_slice();
            for s in self.first..self.next {
                wider[s as usize & (wider.len() - 1)] = self.slots[self.index(s)];
            }
            self.slots = wider;
        } else {
            self.give_up(self.first);
            self.first += 1;
            self.settled = self.settled.max(self.first);
        }
    }

    /// Whether a packet among these may have been taken for lost because it is late.
    fn may_be_late(&self, packets: core::ops::Range<u64>) -> bool {
        let newest = self.slots[self.index(self.next - 1)].departure;
        packets.map(|s| self.slots[self.index(s)]).any(|s| s.state() == State::Lost && newest - s.departure < LATE)
    }

    fn give_up(&mut self, sequence: u64) {
        let i = self.index(sequence);
        if self.slots[i].state() == State::InFlight {
            self.slots[i].set_state(State::Unreported);
            self.in_flight = self.in_flight.saturating_sub(self.slots[i].size());
            self.counters.unreported += 1;
        }
    }

    /// Removes packets sent before `departure` from the flight; a late report on them is still accepted.
    #[inline]
    pub fn give_up_before(&mut self, departure: Timestamp) {
        if departure > self.oldest {
            self.look_before(departure);
        }
    }

    #[inline(never)]
    fn look_before(&mut self, departure: Timestamp) {
        self.settle();
        self.oldest = departure;
        while self.settled < self.next {
            let left = self.slots[self.index(self.settled)].departure;
            if left >= departure {
                self.oldest = left;
                break;
            }
            self.give_up(self.settled);
            self.settled += 1;
        }
    }

    /// Matches one feedback message to the packets sent.
    ///
    /// Clears `out` and fills it, in send order, with the packets newly resolved: from in flight to received or lost,
    /// and from lost to received. Unreported packets from before the message's first one leave the flight, since their
    /// report was itself lost. Reports that do not match are counted.
    pub fn resolve(&mut self, reports: impl IntoIterator<Item = ReportedPacket>, out: &mut Vec<PacketResult>) {
        out.clear();
        let mut lowest = u64::MAX;
        let mut sorted = true;
        // Not a loop: iterators over several streams are then nested loops, and no state is kept between two packets.
        reports.into_iter().for_each(|r| {
            if r.sequence >= self.next {
                cold_path();
                self.counters.unknown += 1;
                return;
            }
            if r.sequence < self.first {
                cold_path();
                self.counters.late += 1;
                self.has_late |= r.arrival.is_some();
                return;
            }
            lowest = lowest.min(r.sequence);
            let i = self.index(r.sequence);
            let slot = &mut self.slots[i];
            let before = slot.state();
            let after = if r.arrival.is_some() { State::Received } else { State::Lost };
            if before == after || before == State::Received {
                self.counters.duplicate += 1;
                return;
            }
            slot.set_state(after);
            let size = slot.size();
            self.has_late |= before == State::Lost;
            if before == State::InFlight {
                self.in_flight = self.in_flight.saturating_sub(size);
            }
            sorted &= out.last().is_none_or(|l| l.sequence < r.sequence);
            out.push(PacketResult {
                sequence: r.sequence,
                departure: slot.departure,
                arrival: r.arrival,
                size,
                ecn: r.ecn,
                probe: slot.probe,
                was_lost: before == State::Lost,
            });
        });
        if !sorted {
            out.sort_unstable_by_key(|p| p.sequence);
        }
        if lowest != u64::MAX {
            self.settle();
            while self.settled < lowest {
                cold_path();
                self.give_up(self.settled);
                self.settled += 1;
            }
            self.settle();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(sequence: u64) -> SentPacket {
        SentPacket::media(Timestamp::from_millis(sequence as i64), sequence, DataSize::from_bytes(1_000))
    }
    fn got(sequence: u64) -> ReportedPacket {
        ReportedPacket { sequence, arrival: Some(RemoteTimestamp::from_millis(sequence as i64)), ecn: Ecn::NotEct }
    }
    fn lost(sequence: u64) -> ReportedPacket {
        ReportedPacket { sequence, arrival: None, ecn: Ecn::NotEct }
    }

    #[test]
    fn reports_each_fate_once_and_revokes_losses() {
        let mut h = SentHistory::new();
        (100..105).for_each(|s| h.on_sent(&sent(s)));
        let mut out = Vec::new();
        h.resolve([got(100), lost(101), got(102)], &mut out);
        assert_eq!(out.iter().map(|p| p.arrival.is_some()).collect::<Vec<_>>(), [true, false, true]);
        assert_eq!(h.bytes_in_flight(), DataSize::from_bytes(2_000));
        h.resolve([got(101), got(102), got(7), got(900)], &mut out);
        assert_eq!(out.len(), 1);
        assert!(out[0].was_lost);
        assert_eq!(h.bytes_in_flight(), DataSize::from_bytes(2_000));
        assert_eq!(h.counters(), HistoryCounters { unknown: 1, late: 1, duplicate: 1, unreported: 0 });
    }

    #[test]
    fn a_lost_feedback_message_frees_the_flight_but_may_come_late() {
        let mut h = SentHistory::new();
        (0..10).for_each(|s| h.on_sent(&sent(s)));
        let mut out = Vec::new();
        h.resolve([got(6), got(7)], &mut out);
        assert_eq!(h.bytes_in_flight(), DataSize::from_bytes(2_000));
        assert_eq!(h.counters().unreported, 6);
        h.resolve([got(3)], &mut out);
        assert_eq!((out.len(), out[0].was_lost), (1, false));
        assert_eq!(h.bytes_in_flight(), DataSize::from_bytes(2_000));
    }

    #[test]
    fn a_flight_past_the_bound_gives_up_its_oldest() {
        let mut h = SentHistory::new();
        let most = MAX_PACKETS as u64;
        (0..most + 500).for_each(|s| h.on_sent(&sent(s)));
        assert_eq!((h.len() as u64, h.counters().unreported), (most, 500));
        assert_eq!(h.bytes_in_flight(), DataSize::from_bytes(1_000 * most));
        assert_eq!(h.oldest_in_flight(), Some(Timestamp::from_millis(500)));
        let mut out = Vec::new();
        h.resolve([got(0), got(499), got(500)], &mut out);
        assert_eq!((out.len(), h.counters().late), (1, 2));
        assert_eq!(h.bytes_in_flight(), DataSize::from_bytes(1_000 * (most - 1)));
    }

    #[test]
    fn a_jump_forgets_what_was_before() {
        let mut h = SentHistory::new();
        (0..10).chain([1_000]).for_each(|s| h.on_sent(&sent(s)));
        assert_eq!((h.len(), h.counters().unreported, h.bytes_in_flight()), (1, 10, DataSize::from_bytes(1_000)));
        let mut out = Vec::new();
        h.resolve([got(3), got(999), got(1_000), got(1_001)], &mut out);
        assert_eq!(out.iter().map(|p| p.sequence).collect::<Vec<_>>(), [1_000]);
        assert_eq!(h.counters(), HistoryCounters { unknown: 1, late: 2, duplicate: 0, unreported: 10 });
    }

    #[test]
    fn a_settled_flight_keeps_the_ring_small_and_its_past_in_reach() {
        let mut h = SentHistory::new();
        let mut out = Vec::new();
        for s in 0..10_000 {
            h.on_sent(&sent(s));
            if s >= 20 {
                h.resolve([if s % 2 == 0 { got(s - 20) } else { lost(s - 20) }], &mut out);
            }
        }
        assert_eq!(h.slots.len(), MIN_PACKETS);
        // Forty packets back, beyond the twenty in flight, a loss may still be revoked.
        h.resolve([got(9_959)], &mut out);
        assert_eq!(out.iter().map(|p| (p.sequence, p.was_lost)).collect::<Vec<_>>(), [(9_959, true)]);
        // From then on losses of the last second are kept: these packets are 1 ms apart.
        for s in 10_000..20_000 {
            h.on_sent(&sent(s));
            h.resolve([if s % 2 == 0 { got(s) } else { lost(s) }], &mut out);
        }
        assert!((1_024..=2_048).contains(&h.slots.len()), "{}", h.slots.len());
        h.resolve([got(19_001)], &mut out);
        assert_eq!(out.iter().map(|p| (p.sequence, p.was_lost)).collect::<Vec<_>>(), [(19_001, true)]);
    }

    proptest! {
        #[test]
        fn flight_is_conserved(ops in proptest::collection::vec((0u8..8, 0u64..400, any::<bool>()), 1..600)) {
            let mut h = SentHistory::new();
            let mut out = Vec::new();
            let mut open = std::collections::BTreeMap::new();
            let mut next = 0u64;
            for (op, n, ok) in ops {
                match op {
                    0..=4 => { h.on_sent(&sent(next)); open.insert(next, ()); next += 1; }
                    5 => { h.give_up_before(Timestamp::from_millis(n as i64)); open.retain(|&s, ()| s >= n); }
                    _ => {
                        let r = if ok { got(n) } else { lost(n) };
                        h.resolve([r], &mut out);
                        if n < next { open.retain(|&s, ()| s > n); }
                    }
                }
                // Everything before a reported packet has left the flight, reported or not.
                prop_assert_eq!(h.bytes_in_flight().as_bytes(), 1_000 * open.len() as u64);
            }
        }
    }
}
