//! A bound on the data in flight where stops of the link have overflowed its queue: what a stop would lose waits at the sender, from where
//! it leaves in time once the link serves again. The rate outlasts a short stop, since nothing is lost that it would have to answer.

use super::super::quantity::{Bits, PACKET, Rate, Span};

/// Share of the queue's room that may be in flight.
const SHARE: f64 = 0.9;
/// Queue beyond the one wanted, and packets, that may be in flight however little room there is.
const LEAST: Span = Span::secs(0.02);
const LEAST_PACKETS: f64 = 4.0;
/// Share of the bound in flight from which it holds packets.
const FULL: f64 = 0.9;
/// Time in which packets held leave, beside those of the rate: measured beside none (`docs/sluice-tried.md`).
const CLEARED: Span = Span::secs(0.1);
/// Time by which feedback may be later before the rate is cut: measured beside 0 and 0.15 s (`docs/sluice-tried.md`).
pub(in super::super) const OUTLASTED: Span = Span::secs(0.08);

/// Data in flight and its bound.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Flight {
    data: Bits,
    window: Option<Bits>,
    is_held: bool,
}

impl Flight {
    /// A message leaves so much in flight.
    pub(in super::super) fn report(&mut self, data: Bits) {
        self.data = data;
    }

    /// A packet was sent.
    pub(in super::super) fn send(&mut self, size: Bits) {
        self.data += size;
    }

    /// Data in flight.
    pub(in super::super) fn data(&self) -> Bits {
        self.data
    }

    /// Takes the queue's room, if it bounds what is in flight, the rate, the time in which a packet is reported, the queue wanted included, and
    /// the data that waits at the sender. Returns the window.
    pub(in super::super) fn bound(
        &mut self,
        room: Option<Bits>,
        rate: Rate,
        time: Span,
        waiting: Bits,
    ) -> Option<Bits> {
        let is_full = self.window.is_some_and(|window| self.data >= FULL * window);
        self.is_held = room.is_some() && (is_full || (self.is_held && waiting > Bits::ZERO));
        let least = (rate * (time + LEAST)).max(LEAST_PACKETS * PACKET);
        self.window = room.map(|room| least.max(SHARE * room));
        self.window
    }

    /// Whether the bound has held what waits at the sender.
    pub(in super::super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// The pacing rate with which data that was held leaves soon: the bound keeps it from the queue.
    pub(in super::super) fn pacing(&self, pacing: Rate, rate: Rate, waiting: Bits) -> Rate {
        if self.is_held { pacing.max(rate + waiting / CLEARED) } else { pacing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::bps(4e6);
    const TIME: Span = Span::secs(0.08);

    #[test]
    fn the_queues_room_bounds_what_is_in_flight_but_not_below_what_the_rate_needs() {
        let mut f = Flight::default();
        let mut kbit = |room: Option<f64>| {
            f.bound(room.map(Bits::new), RATE, TIME, Bits::ZERO).map(|b| (b.as_bits() / 1e3).round())
        };
        assert_eq!([kbit(None), kbit(Some(480e3)), kbit(Some(100e3))], [None, Some(432.0), Some(400.0)]);
        let few = f.bound(Some(Bits::ZERO), Rate::ZERO, TIME, Bits::ZERO);
        assert_eq!(few, Some(LEAST_PACKETS * PACKET));
    }

    #[test]
    fn packets_are_held_from_a_full_flight_until_none_waits() {
        let (mut f, room, waiting) = (Flight::default(), Some(Bits::new(480e3)), Bits::new(100e3));
        f.bound(room, RATE, TIME, waiting);
        let mut held = |sent: f64, waiting: Bits, room: Option<Bits>| {
            f.send(Bits::new(sent));
            f.bound(room, RATE, TIME, waiting);
            f.is_held()
        };
        assert!(!held(380e3, waiting, room) && held(20e3, waiting, room));
        f.report(Bits::new(100e3));
        let mut held = |waiting: Bits, room: Option<Bits>| {
            f.bound(room, RATE, TIME, waiting);
            f.is_held()
        };
        assert!(held(waiting, room), "a queue at the sender");
        assert!(!held(Bits::ZERO, room) && !held(waiting, room), "not the bound's");
        f.send(Bits::new(400e3));
        f.bound(room, RATE, TIME, waiting);
        assert!((f.pacing(RATE, RATE, waiting).as_bps() - 5e6).abs() < 1.0);
        f.bound(None, RATE, TIME, waiting);
        assert!(!f.is_held() && f.pacing(RATE, RATE, waiting) == RATE);
    }
}
