//! Percentiles of past round-trip times.

use weir_units::TimeDelta;

/// Samples kept: about a minute of reports.
const LENGTH: usize = 64;
/// Least number of samples for percentiles.
const ENOUGH: usize = 8;

/// The round-trip times of reports without congestion.
#[derive(Clone, Debug)]
pub(super) struct RttHistory {
    samples: [TimeDelta; LENGTH],
    taken: usize,
}

impl RttHistory {
    pub(super) fn new() -> Self {
        Self { samples: [TimeDelta::ZERO; LENGTH], taken: 0 }
    }

    pub(super) fn push(&mut self, rtt: TimeDelta) {
        self.samples[self.taken % LENGTH] = rtt;
        // Overwrites the oldest sample once the history is full.
        self.taken = if self.taken + 1 == 2 * LENGTH { LENGTH } else { self.taken + 1 };
    }

    /// The percentiles by nearest rank, each above 0 and up to 100; `None` with too few samples.
    pub(super) fn percentiles(&self, of: [f64; 2]) -> Option<[TimeDelta; 2]> {
        let n = self.taken.min(LENGTH);
        if n < ENOUGH {
            return None;
        }
        let mut sorted = self.samples;
        sorted[..n].sort_unstable();
        Some(of.map(|p| sorted[(libm::ceil(p / 100.0 * n as f64) as usize).clamp(1, n) - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_nearest_rank_of_the_newest() {
        let mut h = RttHistory::new();
        let ms = TimeDelta::from_millis;
        (1..8).for_each(|k| h.push(ms(k)));
        assert_eq!(h.percentiles([75.0, 90.0]), None);
        h.push(ms(8));
        assert_eq!(h.percentiles([75.0, 90.0]), Some([ms(6), ms(8)]));
        // 64 newest of 1 to 1000: 937 to 1000.
        (9..=1_000).for_each(|k| h.push(ms(k)));
        assert_eq!(h.percentiles([75.0, 100.0]), Some([ms(936 + 48), ms(1_000)]));
        assert_eq!(h.percentiles([0.0, 90.0]), Some([ms(937), ms(936 + 58)]));
    }
}
