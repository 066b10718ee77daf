//! A histogram of times in constant memory.

use weir_units::TimeDelta;

/// Bins per factor of two: quantiles are within 2^(1/16), 4.4 %.
const BINS: u32 = 16;
/// Number of factors of two covered, from 1 us to 2^36 us, 19 hours.
const OCTAVES: u32 = 36;

/// Counts times in bins of constant relative width; count, sum, minimum and maximum are exact.
#[derive(Clone, PartialEq, Debug)]
pub struct LogHistogram {
    bins: Vec<u64>,
    count: u64,
    sum_ns: u128,
    range: Option<(TimeDelta, TimeDelta)>,
}

impl Default for LogHistogram {
    fn default() -> Self {
        Self { bins: vec![0; (BINS * OCTAVES) as usize], count: 0, sum_ns: 0, range: None }
    }
}

impl LogHistogram {
    /// Counts a time; times out of range are counted in the outermost bins.
    pub fn add(&mut self, time: TimeDelta) {
        let us = (time.as_nanos().max(0) as f64 / 1e3).max(1.0);
        let bin = (libm::log2(us) * f64::from(BINS)) as usize;
        let last = self.bins.len() - 1;
        self.bins[bin.min(last)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(time.as_nanos().max(0).unsigned_abs());
        self.range = Some(self.range.map_or((time, time), |(low, high)| (low.min(time), high.max(time))));
    }
    /// Number of times counted.
    pub const fn count(&self) -> u64 {
        self.count
    }
    /// The mean.
    pub fn mean(&self) -> Option<TimeDelta> {
        let mean = self.sum_ns.checked_div(u128::from(self.count))?;
        Some(TimeDelta::from_nanos(i64::try_from(mean).unwrap_or(i64::MAX)))
    }
    /// The minimum and maximum.
    pub const fn range(&self) -> Option<(TimeDelta, TimeDelta)> {
        self.range
    }
    /// The time below which a share `q` (0 to 1) lies: the middle of its bin, within the range.
    pub fn quantile(&self, q: f64) -> Option<TimeDelta> {
        let (low, high) = self.range?;
        let rank = libm::ceil(q.clamp(0.0, 1.0) * self.count as f64).max(1.0) as u64;
        let mut seen = 0;
        let bin = self.bins.iter().position(|&n| {
            seen += n;
            seen >= rank
        })?;
        let us = libm::exp2((bin as f64 + 0.5) / f64::from(BINS));
        Some(TimeDelta::from_nanos((us * 1e3) as i64).max(low).min(high))
    }
    /// The non-empty bins: upper end and count.
    pub fn bins(&self) -> impl Iterator<Item = (TimeDelta, u64)> {
        self.bins.iter().enumerate().filter(|b| *b.1 > 0).map(|(k, &n)| {
            let us = libm::exp2((k as f64 + 1.0) / f64::from(BINS));
            (TimeDelta::from_nanos((us * 1e3) as i64), n)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bin() {
        let mut h = LogHistogram::default();
        assert_eq!((h.quantile(0.5), h.mean()), (None, None));
        for ms in 1..=1_000 {
            h.add(TimeDelta::from_millis(ms));
        }
        for (q, ms) in [(0.1, 100.0), (0.5, 500.0), (0.95, 950.0), (0.99, 990.0)] {
            let got = h.quantile(q).expect("counted").as_millis_f64();
            assert!((0.95..1.05).contains(&(got / ms)), "{q}: {got}");
        }
        assert_eq!(h.mean(), Some(TimeDelta::from_micros(500_500)));
        assert_eq!(h.range(), Some((TimeDelta::from_millis(1), TimeDelta::from_secs(1))));
        assert_eq!(h.bins().map(|b| b.1).sum::<u64>(), 1_000);
        assert!(h.bins().zip(h.bins().skip(1)).all(|(a, b)| a.0 < b.0));
    }

    #[test]
    fn out_of_range_values_are_counted() {
        let mut h = LogHistogram::default();
        for t in [TimeDelta::from_secs(-1), TimeDelta::ZERO, TimeDelta::MAX] {
            h.add(t);
        }
        assert_eq!(h.count(), 3);
        assert_eq!(h.quantile(1.0).map(|t| t > TimeDelta::from_secs(60_000)), Some(true));
    }
}
