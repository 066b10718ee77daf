//! The phases of PROBE_BW: one above the bandwidth, one below it, and six at it.

use crate::parts::split_mix;
use weir_units::Timestamp;

/// Phases of a cycle (`kGainCycleLength`).
const PHASES: u64 = 8;

/// A position in the cycle.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// Amount by which the gain is above 1 in the first phase, and below 1 in the second.
    offset: f64,
    phase: u64,
    since: Timestamp,
    random: u64,
}

impl Cycle {
    pub(super) const fn new(offset: f64, now: Timestamp) -> Self {
        Self { offset, phase: 0, since: now, random: 0 }
    }
    pub(super) fn seed(&mut self, seed: u64) {
        self.random = seed;
    }
    /// Begins at a random phase, but not at the one that makes up for the phase before it. Returns its gain.
    pub(super) fn begin(&mut self, now: Timestamp) -> f64 {
        let phase = split_mix::next(&mut self.random) % (PHASES - 1);
        self.phase = if phase >= 1 { phase + 1 } else { phase };
        self.since = now;
        self.gain()
    }
    /// When this phase began.
    pub(super) fn since(&self) -> Timestamp {
        self.since
    }
    /// Goes to the next phase, and returns its gain.
    pub(super) fn advance(&mut self, now: Timestamp) -> f64 {
        self.phase = (self.phase + 1) % PHASES;
        self.since = now;
        self.gain()
    }
    fn gain(&self) -> f64 {
        match self.phase {
            0 => 1.0 + self.offset,
            1 => 1.0 - self.offset,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_phases_repeat() {
        let mut c = Cycle::new(0.25, Timestamp::ZERO);
        let gains: Vec<_> = (1..=10).map(|ms| c.advance(Timestamp::from_millis(ms))).collect();
        assert_eq!(gains, [0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.25, 0.75, 1.0]);
        assert_eq!(c.since(), Timestamp::from_millis(10));
    }

    #[test]
    fn the_first_phase_is_drawn_from_all_but_the_second() {
        let mut c = Cycle::new(0.25, Timestamp::ZERO);
        c.seed(3);
        let mut drawn = [0; PHASES as usize];
        for _ in 0..700 {
            c.begin(Timestamp::ZERO);
            drawn[c.phase as usize] += 1;
        }
        assert_eq!(drawn[1], 0);
        let others = drawn.iter().enumerate().filter(|&(phase, _)| phase != 1);
        assert!(others.map(|(_, n)| n).all(|n| (60..=145).contains(n)), "{drawn:?}");
    }
}
