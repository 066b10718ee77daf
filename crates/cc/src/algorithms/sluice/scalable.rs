//! The proportional response to L4S marks: a bound on the rate that moves as TCP Prague's window does
//! (draft-briscoe-iccrg-prague-congestion-control), so that both meet at equal rates in one queue.

/// Bits of a usual packet.
const PACKET_BITS: f64 = 9_600.0;
/// Weight of each round's share of marks in the mean (Prague's g).
const GAIN: f64 = 1.0 / 16.0;
/// Round-trip time below which the increase does not become faster, s (Prague's virtual round-trip time).
const LEAST_RTT: f64 = 0.025;
/// Capacity below which marks set no bound, bit/s: there a packet alone takes longer than the milliseconds from which links mark, so
/// that marks show packets rather than load.
const LEAST_CAPACITY: f64 = 4e6;
/// Rounds without a mark from which the bound grows by half in each, where packets' dispersion shows that there is room: ...
const CLEAR_ROUNDS: u32 = 2;
/// ... this factor beyond the bound.
const SHOWN: f64 = 1.1;
/// That growth.
const ROOM: f64 = 1.5;
/// Time without a mark after which the bound is lifted, s: from there the rate grows as on any link.
const CLEAR: f64 = 2.0;

/// What one feedback message says of marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Marks {
    /// Its time, s.
    pub(super) now: f64,
    /// Packets received with a mark ...
    pub(super) marked: u32,
    /// ... and packets received.
    pub(super) received: u32,
    /// Departure of the newest packet reported, s.
    pub(super) newest: f64,
    /// The rate in force, bit/s.
    pub(super) rate: f64,
    /// What the packets' dispersion shows, bit/s; NaN if unknown.
    pub(super) shown: f64,
    /// Round-trip time, s.
    pub(super) rtt: f64,
    /// The share of one flow that this one takes, 0 to 1.
    pub(super) weight: f64,
}

/// The bound, and what it is derived from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scalable {
    /// Bit/s, while marks are seen.
    rate: Option<f64>,
    /// Mean share of packets marked.
    alpha: f64,
    marked: u32,
    received: u32,
    /// Packets sent from here on end the round.
    round_from: f64,
    marked_at: f64,
    /// Rounds without a mark.
    clear: u32,
}

impl Scalable {
    /// The greatest rate, bit/s.
    pub(super) fn bound(&self) -> f64 {
        self.rate.unwrap_or(f64::INFINITY)
    }

    /// Mean share of packets marked; zero where there is no bound.
    pub(super) fn alpha(&self) -> f64 {
        if self.rate.is_some() { self.alpha } else { 0.0 }
    }

    /// Takes a message.
    pub(super) fn update(&mut self, m: Marks) {
        self.marked += m.marked;
        self.received += m.received;
        let share = f64::from(self.marked) / f64::from(self.received.max(1));
        let Some(bound) = &mut self.rate else {
            if m.marked > 0 && m.shown > LEAST_CAPACITY {
                (self.rate, self.alpha) = (Some(m.rate), self.alpha.max(share));
                self.cut();
                self.marked_at = m.now;
            }
            self.begin_round(m.now);
            return;
        };
        if m.shown < LEAST_CAPACITY && m.rate < LEAST_CAPACITY {
            self.rate = None;
            return;
        }
        if m.newest < self.round_from {
            return;
        }
        self.alpha += GAIN * (share - self.alpha);
        let rounds = (m.now - self.round_from).clamp(0.0, 1.0) / m.rtt.max(LEAST_RTT);
        // What is not used is not known to be free.
        *bound = bound.min(2.0 * m.rate) + rounds * m.weight * PACKET_BITS / m.rtt.max(LEAST_RTT);
        if self.clear >= CLEAR_ROUNDS && m.shown > SHOWN * *bound {
            *bound *= ROOM;
        }
        self.clear = if self.marked > 0 { 0 } else { self.clear.saturating_add(1) };
        if self.marked > 0 {
            self.marked_at = m.now;
            self.cut();
        }
        self.begin_round(m.now);
        if m.now - self.marked_at >= CLEAR {
            self.rate = None;
        }
    }

    fn begin_round(&mut self, now: f64) {
        (self.marked, self.received, self.round_from) = (0, 0, now);
    }

    fn cut(&mut self) {
        if let Some(bound) = &mut self.rate {
            *bound *= 1.0 - 0.5 * self.alpha;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of ten packets each 25 ms, on a round trip of 50 ms.
    fn message(now: f64, marked: u32, rate: f64, shown: f64) -> Marks {
        Marks { now, marked, received: 10, newest: now - 0.045, rate, shown, rtt: 0.05, weight: 1.0 }
    }

    #[test]
    fn marks_cut_in_proportion_and_their_absence_adds_a_packet_a_round() {
        let mut s = Scalable::default();
        s.update(message(0.0, 0, 4e6, f64::NAN));
        assert_eq!((s.bound(), s.alpha()), (f64::INFINITY, 0.0), "no mark, no bound");
        s.update(message(0.01, 5, 1e6, 2e6));
        assert_eq!(s.bound(), f64::INFINITY, "packets take longer than the marks' threshold");
        s.update(message(0.025, 5, 4e6, 8e6));
        assert!((s.bound() - 3e6).abs() < 1.0 && s.alpha() == 0.5, "half of them marked: a quarter less");
        // The round lasts until packets that were sent after the cut are reported.
        s.update(message(0.05, 10, 3e6, f64::NAN));
        assert!((s.bound() - 3e6).abs() < 1.0);
        s.update(message(0.1, 0, 3e6, f64::NAN));
        let before = s.bound();
        s.update(message(0.15, 0, 3e6, f64::NAN));
        assert!((s.bound() - before - PACKET_BITS / 0.05).abs() < 1.0, "{} {before}", s.bound());
        // Two seconds without a mark.
        (0..50).for_each(|k| s.update(message(0.2 + 0.05 * f64::from(k), 0, 20e6, f64::NAN)));
        assert_eq!(s.bound(), f64::INFINITY);
    }

    #[test]
    fn dispersion_beyond_the_bound_shows_room_after_rounds_without_a_mark() {
        let (mut a, mut b) = (Scalable::default(), Scalable::default());
        for k in 0..8 {
            let marked = u32::from(k == 0);
            a.update(message(0.1 * f64::from(k), marked, 5e6, if k == 0 { 20e6 } else { f64::NAN }));
            b.update(message(0.1 * f64::from(k), marked, 5e6, 20e6));
        }
        assert!(b.bound() > 1.4 * a.bound(), "{} {}", a.bound(), b.bound());
    }

    #[test]
    fn a_source_that_does_not_use_the_bound_does_not_raise_it() {
        let mut s = Scalable::default();
        s.update(message(0.0, 1, 1e6, 8e6));
        (1..15).for_each(|k| s.update(message(0.1 * f64::from(k), 0, 0.2e6, f64::NAN)));
        assert!(s.bound() < 0.4e6 + 2.0 * 2.0 * PACKET_BITS / 0.05, "{}", s.bound());
    }
}
