//! How much of the delay's variation is no queue: what alternates from one message to the next.

/// Weight of each message.
const WEIGHT: f64 = 1.0 / 32.0;
/// Ratio of the mean second difference of white noise to its mean deviation.
const SECOND: f64 = 2.449;
/// Variation that is taken as the packets' and frames' own, s.
const OWN: f64 = 0.0015;

/// Mean deviation of the least delay of each message from a smooth course. A queue grows or shrinks over several
/// messages; jitter does neither.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    last: Option<[f64; 2]>,
    mean: f64,
}

impl Jitter {
    /// Takes the least queueing delay of a message, s.
    pub(super) fn observe(&mut self, queue: f64) {
        let [a, b] = self.last.unwrap_or([queue, queue]);
        // An outage is not jitter.
        let second = (queue - 2.0 * b + a).abs().min(0.1);
        self.mean += WEIGHT * (second / SECOND - self.mean);
        self.last = Some([b, queue]);
    }

    /// The deviation in s, beyond that of packets and frames themselves.
    pub(super) fn mean(&self) -> f64 {
        (self.mean - OWN).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_change_is_none_and_alternation_is() {
        let mut j = Jitter::default();
        (0..1_000).for_each(|k| j.observe(0.001 * f64::from(k)));
        assert!(j.mean() < 1e-6);
        (0..1_000).for_each(|k| j.observe(0.010 * f64::from(k % 2)));
        assert!((j.mean() - (0.020 / SECOND - OWN)).abs() < 1e-4, "{}", j.mean());
    }
}
