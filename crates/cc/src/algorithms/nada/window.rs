//! Packet statistics over the observation window LOGWIN (RFC 8698, section 5.1).

use weir_units::{DataSize, TimeDelta};

/// Most packets kept: half a second at 300 Mbit/s in packets of 1,200 bytes. Above that the window is shorter.
const MAX_PACKETS: usize = 1 << 14;
const MIN_PACKETS: usize = 1 << 6;

/// One arrival.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Arrival {
    /// Arrival, as time since zero of the receiver's clock.
    pub(super) at: TimeDelta,
    /// One-way delay plus the clocks' offset; `None` if the departure is unknown.
    pub(super) delay: Option<TimeDelta>,
    /// Size, up to 4 GiB.
    pub(super) size: u32,
    /// Packets missing just before it.
    pub(super) lost_before: u32,
    /// Whether it arrived after a packet sent later: it then counts as lost (section 5.1.2), but as received for the
    /// rate.
    pub(super) late: bool,
    /// Whether it carries an ECN mark.
    pub(super) marked: bool,
}

/// A ring of the last arrivals with running sums.
#[derive(Clone, Debug)]
pub(super) struct Window {
    ring: Box<[Arrival]>,
    head: usize,
    len: usize,
    newest: TimeDelta,
    bytes: u64,
    lost: u64,
    in_order: u64,
    marked: u64,
}

impl Window {
    pub(super) fn new() -> Self {
        Self {
            ring: vec![Arrival::default(); MIN_PACKETS].into_boxed_slice(),
            head: 0,
            len: 0,
            newest: TimeDelta::ZERO,
            bytes: 0,
            lost: 0,
            in_order: 0,
            marked: 0,
        }
    }

    /// Drops all arrivals.
    pub(super) fn clear(&mut self) {
        (self.head, self.len) = (0, 0);
        (self.bytes, self.lost, self.in_order, self.marked) = (0, 0, 0, 0);
    }

    /// Missing packets.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
    /// Packets sent: arrived in order, or missing.
    pub(super) fn sent(&self) -> u64 {
        self.lost + self.in_order
    }
    /// Packets with an ECN mark.
    pub(super) fn marked(&self) -> u64 {
        self.marked
    }
    /// The latest arrival; `None` if the window is empty.
    pub(super) fn newest(&self) -> Option<TimeDelta> {
        (self.len > 0).then_some(self.newest)
    }

    /// Adds an arrival and drops those older than `span`.
    pub(super) fn push(&mut self, arrival: Arrival, span: TimeDelta) {
        self.newest = if self.len == 0 { arrival.at } else { self.newest.max(arrival.at) };
        self.expire(self.newest - span);
        if self.len == self.ring.len() {
            self.make_room();
        }
        let i = (self.head + self.len) & (self.ring.len() - 1);
        self.ring[i] = arrival;
        self.len += 1;
        self.bytes += u64::from(arrival.size);
        self.lost += u64::from(arrival.lost_before);
        self.in_order += u64::from(!arrival.late);
        self.marked += u64::from(arrival.marked);
    }

    /// Drops arrivals before `before`.
    pub(super) fn expire(&mut self, before: TimeDelta) {
        while self.len > 0 && self.ring[self.head].at < before {
            self.pop();
        }
    }

    fn pop(&mut self) {
        let old = self.ring[self.head];
        self.head = (self.head + 1) & (self.ring.len() - 1);
        self.len -= 1;
        self.bytes -= u64::from(old.size);
        self.lost -= u64::from(old.lost_before);
        self.in_order -= u64::from(!old.late);
        self.marked -= u64::from(old.marked);
    }

    fn make_room(&mut self) {
        if self.ring.len() == MAX_PACKETS {
            self.pop();
            return;
        }
        let mut wider = vec![Arrival::default(); self.ring.len() * 2].into_boxed_slice();
        for (to, from) in wider.iter_mut().zip(self.newest_first().rev()) {
            *to = *from;
        }
        (self.ring, self.head) = (wider, 0);
    }

    /// The arrivals, newest first.
    pub(super) fn newest_first(&self) -> impl DoubleEndedIterator<Item = &Arrival> {
        let mask = self.ring.len() - 1;
        (0..self.len).rev().map(move |k| &self.ring[(self.head + k) & mask])
    }

    /// r_recv in bit/s: bytes after the first arrival, divided by the time since it. That time is at least `least`, so
    /// that a burst alone does not make a rate (section 5.1.3; the first packet is left out as in ns3-rmcat).
    pub(super) fn receive_rate(&self, least: TimeDelta) -> f64 {
        if self.len == 0 {
            return 0.0;
        }
        let first = &self.ring[self.head];
        let span = (self.newest - first.at).max(least).as_secs_f64();
        let size = DataSize::from_bytes(self.bytes - u64::from(first.size));
        if span > 0.0 { size.as_bits() as f64 / span } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: TimeDelta = TimeDelta::from_millis(500);

    fn at(ms: i64) -> Arrival {
        Arrival { at: TimeDelta::from_millis(ms), size: 1_000, ..Arrival::default() }
    }

    #[test]
    fn sums_match_the_arrivals_kept() {
        let mut w = Window::new();
        for ms in 0..2_000 {
            let a =
                Arrival { lost_before: u32::from(ms % 10 == 0), marked: ms % 4 == 0, late: ms % 100 == 7, ..at(ms) };
            w.push(a, SPAN);
        }
        // 1,499 to 1,999 ms: 501 arrivals, 5 of them late, 50 losses, 125 marks.
        assert_eq!(w.newest_first().count(), 501);
        assert_eq!((w.lost(), w.sent(), w.marked()), (50, 501 - 5 + 50, 125));
        assert!((w.receive_rate(TimeDelta::ZERO) - 8e6).abs() < 1.0);
    }

    #[test]
    fn a_burst_is_not_a_rate() {
        let mut w = Window::new();
        assert_eq!(w.receive_rate(SPAN), 0.0);
        (0..6).for_each(|_| w.push(at(5), SPAN));
        assert_eq!(w.receive_rate(TimeDelta::ZERO), 0.0);
        // 5 packets of 8,000 bits over 100 ms.
        assert!((w.receive_rate(TimeDelta::from_millis(100)) - 400e3).abs() < 1e-6);
    }

    #[test]
    fn is_bounded() {
        let mut w = Window::new();
        (0..100_000).for_each(|_| w.push(at(5), SPAN));
        assert_eq!(w.newest_first().count(), MAX_PACKETS);
        assert_eq!(w.sent(), MAX_PACKETS as u64);
        w.push(at(10_000), SPAN);
        assert_eq!((w.newest_first().count(), w.sent()), (1, 1));
    }
}
