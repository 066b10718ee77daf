//! How unevenly the link serves: radio schedulers and aggregates make packets wait that have no queue before them.

/// Time constant of the averages, s of busy time.
const MEMORY: f64 = 1.0;
/// Time-weighted over plain mean of the gaps up to which service counts as even: packets differ in size.
const EVEN: f64 = 1.5;

/// The mean stall, from the gaps between packets that waited behind each other. On a link of constant rate all gaps are
/// a packet's duration; where packets come in clumps, most of the time passes in few long gaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    gaps: f64,
    squares: f64,
    count: f64,
}

impl Stalls {
    /// Takes the gaps of one feedback message: their sum in s, the sum of their squares, and their number.
    pub(super) fn observe(&mut self, gaps: f64, squares: f64, count: u32) {
        let keep = libm::exp(-gaps / MEMORY);
        self.gaps = self.gaps * keep + gaps;
        self.squares = self.squares * keep + squares;
        self.count = self.count * keep + f64::from(count);
    }

    /// The mean stall in s, weighted by time; zero on a link of constant rate.
    pub(super) fn mean(&self) -> f64 {
        if self.gaps <= 0.0 || self.count < 1.0 {
            return 0.0;
        }
        (self.squares / self.gaps - EVEN * self.gaps / self.count).clamp(0.0, 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_service_has_none() {
        let mut s = Stalls::default();
        assert_eq!(s.mean(), 0.0);
        (0..100).for_each(|_| s.observe(0.05, 10.0 * 0.005 * 0.005, 10));
        assert_eq!(s.mean(), 0.0);
    }

    #[test]
    fn clumps_have_the_length_of_their_gaps() {
        let mut s = Stalls::default();
        // Ten packets at once every 40 ms.
        (0..100).for_each(|_| s.observe(0.04, 0.04 * 0.04, 10));
        assert!((s.mean() - (0.04 - 1.5 * 0.004)).abs() < 1e-9, "{}", s.mean());
    }
}
