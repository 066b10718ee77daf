//! How much of the delay's variation is no queue: the part that alternates from one message to the next.

use super::super::quantity::Span;

/// Weight of each message.
const WEIGHT: f64 = 1.0 / 32.0;
/// Ratio of the mean second difference of white noise to its mean deviation.
const SECOND: f64 = 2.449;
/// Variation that is taken as the packets' and frames' own.
const OWN: Span = Span::secs(0.0015);
/// Greatest change of slope that counts: an outage is not jitter.
const OUTAGE: Span = Span::secs(0.1);

/// Mean deviation of the least delay of each message from a smooth course. A queue grows or shrinks over several
/// messages; jitter does neither.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    /// The least delays of the last two messages.
    last: Option<[Span; 2]>,
    mean: Span,
}

impl Jitter {
    /// Takes the least queueing delay of a message.
    pub(super) fn observe(&mut self, queue: Span) {
        let [a, b] = self.last.unwrap_or([queue, queue]);
        let second = (queue - 2.0 * b + a).abs().min(OUTAGE);
        self.mean += WEIGHT * (second / SECOND - self.mean);
        self.last = Some([b, queue]);
    }

    /// The deviation beyond that of packets and frames themselves.
    pub(super) fn mean(&self) -> Span {
        (self.mean - OWN).max(Span::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_change_is_none_and_alternation_is() {
        let mut j = Jitter::default();
        (0..1_000).for_each(|k| j.observe(Span::secs(0.001 * f64::from(k))));
        assert!(j.mean() < Span::secs(1e-6));
        (0..1_000).for_each(|k| j.observe(Span::secs(0.010 * f64::from(k % 2))));
        assert!((j.mean() - (Span::secs(0.020) / SECOND - OWN)).abs() < Span::secs(1e-4), "{:?}", j.mean());
    }
}
