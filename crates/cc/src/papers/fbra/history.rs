//! FBRA's history: delays for the watermarks (section 4.1), and rates of the last two seconds (section 4.2).

use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// A sliding window of values, also kept sorted.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    values: VecDeque<f64>,
    sorted: Vec<f64>,
    capacity: usize,
}

impl Recent {
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        Self { values: VecDeque::with_capacity(capacity), sorted: Vec::with_capacity(capacity), capacity }
    }

    pub(super) fn push(&mut self, value: f64) {
        if self.values.len() == self.capacity
            && let Some(oldest) = self.values.pop_front()
        {
            self.sorted.remove(self.rank_of(oldest));
        }
        self.values.push_back(value);
        self.sorted.insert(self.rank_of(value), value);
    }

    /// How many values are less than this one.
    fn rank_of(&self, value: f64) -> usize {
        self.sorted.partition_point(|v| v.total_cmp(&value).is_lt())
    }

    /// The least value that `percent` of all values do not exceed (nearest rank); `None` if empty.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let n = self.sorted.len();
        let rank = libm::ceil(percent * 0.01 * n as f64) as usize;
        self.sorted.get(rank.clamp(1, n.max(1)) - 1).copied()
    }

    pub(super) fn median(&self) -> Option<f64> {
        self.percentile(50.0)
    }
}

/// Upper bound of the rates kept; it only affects reports less than 1/32 s apart.
const MAX_RATES: usize = 64;

/// Recent rates in bit/s.
#[derive(Clone, Debug)]
pub(super) struct Rates(VecDeque<(Timestamp, f64)>);

impl Rates {
    pub(super) fn new() -> Self {
        Self(VecDeque::with_capacity(MAX_RATES))
    }

    pub(super) fn push(&mut self, now: Timestamp, bps: f64) {
        if self.0.len() == MAX_RATES {
            self.0.pop_front();
        }
        self.0.push_back((now, bps));
    }

    /// The highest of the last `window`; `None` if there is none.
    pub(super) fn highest(&self, now: Timestamp, window: TimeDelta) -> Option<f64> {
        let recent = self.0.iter().filter(|r| now - r.0 <= window);
        recent.map(|r| r.1).reduce(f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_last_values() {
        let mut r = Recent::new(10);
        assert_eq!(r.percentile(40.0), None);
        r.push(5.0);
        assert_eq!((r.percentile(0.0), r.percentile(40.0), r.percentile(100.0)), (Some(5.0), Some(5.0), Some(5.0)));
        (0..10).for_each(|k| r.push(f64::from((k * 7) % 10)));
        // 0 to 9: the fourth and the eighth value.
        assert_eq!((r.percentile(40.0), r.percentile(80.0), r.median()), (Some(3.0), Some(7.0), Some(4.0)));
        assert_eq!(r.percentile(81.0), Some(8.0));
        (0..9).for_each(|_| r.push(100.0));
        assert_eq!(r.percentile(10.0), Some(3.0));
        assert_eq!(r.percentile(11.0), Some(100.0));
        assert_eq!((r.values.len(), r.sorted.len(), r.sorted.capacity()), (10, 10, 10));
        // The sorted values stay equal to the window for any number of values.
        for k in 0..1_000 {
            r.push(f64::from(k * 7_919 % 1_009 / 3));
            let mut expected: Vec<f64> = r.values.iter().copied().collect();
            expected.sort_by(f64::total_cmp);
            assert_eq!(r.sorted, expected);
        }
    }

    #[test]
    fn the_highest_rate_is_forgotten_after_the_window() {
        let at = Timestamp::from_millis;
        let (mut r, window) = (Rates::new(), TimeDelta::from_secs(2));
        assert_eq!(r.highest(at(0), window), None);
        r.push(at(0), 300.0);
        r.push(at(1_000), 100.0);
        r.push(at(1_500), 200.0);
        assert_eq!(r.highest(at(2_000), window), Some(300.0));
        assert_eq!(r.highest(at(2_001), window), Some(200.0));
        assert_eq!(r.highest(at(3_501), window), None);
        (0..1_000).for_each(|k| r.push(at(4_000), f64::from(k)));
        assert_eq!((r.0.len(), r.highest(at(4_000), window)), (MAX_RATES, Some(999.0)));
    }
}
