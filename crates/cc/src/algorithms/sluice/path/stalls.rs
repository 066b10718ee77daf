//! How unevenly the link serves: radio schedulers and aggregates make packets wait that have no queue before them.

use super::super::quantity::Span;
use super::super::sample::Gaps;

/// Time constant of the averages, of busy time.
const MEMORY: Span = Span::secs(1.0);
/// Time-weighted over plain mean of the gaps up to which service counts as even: packets differ in size.
const EVEN: f64 = 1.5;
/// Longest stall that is believed.
const LONGEST: Span = Span::secs(0.5);

/// The mean stall, from the gaps between packets that waited behind each other. On a link of constant rate all gaps are
/// a packet's duration; where packets come in clumps, most of the time passes in few long gaps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stalls {
    sum: Span,
    /// s².
    squares: f64,
    count: f64,
}

impl Stalls {
    /// Takes the gaps of one feedback message.
    pub(super) fn observe(&mut self, gaps: Gaps) {
        let keep = libm::exp(-(gaps.sum / MEMORY));
        self.sum = self.sum * keep + gaps.sum;
        self.squares = self.squares * keep + gaps.squares;
        self.count = self.count * keep + f64::from(gaps.count);
    }

    /// The mean stall, weighted by time; zero on a link of constant rate.
    pub(super) fn mean(&self) -> Span {
        if self.sum <= Span::ZERO || self.count < 1.0 {
            return Span::ZERO;
        }
        let by_time = Span::secs(self.squares / self.sum.as_secs());
        (by_time - EVEN * self.sum / self.count).clamp(Span::ZERO, LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(sum: f64, squares: f64) -> Gaps {
        Gaps { sum: Span::secs(sum), squares, count: 10 }
    }

    #[test]
    fn even_service_has_none() {
        let mut s = Stalls::default();
        assert_eq!(s.mean(), Span::ZERO);
        (0..100).for_each(|_| s.observe(gaps(0.05, 10.0 * 0.005 * 0.005)));
        assert_eq!(s.mean(), Span::ZERO);
    }

    #[test]
    fn clumps_have_the_length_of_their_gaps() {
        let mut s = Stalls::default();
        // Ten packets at once every 40 ms.
        (0..100).for_each(|_| s.observe(gaps(0.04, 0.04 * 0.04)));
        assert!((s.mean().as_secs() - (0.04 - 1.5 * 0.004)).abs() < 1e-9, "{:?}", s.mean());
    }
}
