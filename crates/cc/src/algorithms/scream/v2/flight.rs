//! Packet size and bytes in flight, by which the reference window is bounded (draft, section 4.1.1).

use super::config::Config;
use weir_units::{TimeDelta, Timestamp};

/// Slots that bound the window while the target is at its upper bound (C++: a history of 20).
const SLOTS: usize = 20;
/// The first slot lasts until then, since the flight grows with the window at first (C++).
const FIRST_SLOT: TimeDelta = TimeDelta::from_secs(2);
/// The largest packet is one of the last second or two (C++).
const SIZE_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// Packet size before the first packet, small for calls of audio alone (C++).
const INITIAL_SIZE: f64 = 100.0;

/// max_bytes_in_flight and max_bytes_in_flight_prev.
#[derive(Clone, Debug)]
pub(super) struct PeakFlight {
    current: f64,
    previous: f64,
    past: [f64; SLOTS],
    next: usize,
    slot_since: Timestamp,
    first_until: Timestamp,
}

impl PeakFlight {
    pub(super) fn new(now: Timestamp) -> Self {
        let first_until = now + FIRST_SLOT;
        Self { current: 0.0, previous: 0.0, past: [0.0; SLOTS], next: 0, slot_since: now, first_until }
    }

    pub(super) fn on_flight(&mut self, bytes: f64) {
        self.current = self.current.max(bytes);
    }

    /// Begins a new slot if one is due.
    pub(super) fn turn(&mut self, now: Timestamp, config: &Config) {
        if now - self.slot_since <= config.flight_interval {
            return;
        }
        self.slot_since = now;
        self.past[self.next] = self.current;
        self.next = (self.next + 1) % SLOTS;
        if now > self.first_until {
            (self.previous, self.current) = (self.current, 0.0);
        }
    }

    /// The greater of the present and the previous slot's.
    pub(super) fn peak(&self) -> f64 {
        self.current.max(self.previous)
    }
    /// That of the previous slot.
    pub(super) fn previous(&self) -> f64 {
        self.previous
    }
    /// The greatest of the last twenty slots and the present one.
    pub(super) fn longest_peak(&self) -> f64 {
        self.past.iter().copied().fold(self.current, f64::max)
    }
}

/// MSS: the largest packet of the last second or two.
#[derive(Clone, Debug)]
pub(super) struct LargestPacket {
    current: f64,
    previous: f64,
    since: Timestamp,
}

impl LargestPacket {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { current: INITIAL_SIZE, previous: INITIAL_SIZE, since: now }
    }
    pub(super) fn on_packet(&mut self, bytes: f64, now: Timestamp) {
        if now - self.since > SIZE_INTERVAL {
            (self.previous, self.current, self.since) = (self.current, INITIAL_SIZE, now);
        }
        self.current = self.current.max(bytes);
    }
    pub(super) fn get(&self) -> f64 {
        self.current.max(self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    #[test]
    fn a_peak_lasts_for_its_slot_and_the_next() {
        let c = Config::default();
        let mut p = PeakFlight::new(at(0));
        p.on_flight(9_000.0);
        p.turn(at(1_900), &c);
        assert_eq!(p.peak(), 9_000.0, "the first slot lasts two seconds");
        p.turn(at(2_001), &c);
        p.on_flight(4_000.0);
        assert_eq!((p.peak(), p.previous()), (9_000.0, 9_000.0));
        p.turn(at(2_060), &c);
        assert_eq!((p.peak(), p.longest_peak()), (4_000.0, 9_000.0));
        (0..21).for_each(|i| p.turn(at(2_120 + 60 * i), &c));
        assert_eq!((p.peak(), p.longest_peak()), (0.0, 0.0));
    }

    #[test]
    fn the_largest_packet_is_forgotten_after_two_seconds() {
        let mut m = LargestPacket::new(at(0));
        assert_eq!(m.get(), 100.0);
        m.on_packet(1_200.0, at(500));
        m.on_packet(200.0, at(1_600));
        assert_eq!(m.get(), 1_200.0);
        m.on_packet(200.0, at(2_700));
        assert_eq!(m.get(), 200.0);
    }
}
