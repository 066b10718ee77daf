//! Distribution of values, in bounded memory.

/// Histogram of values and their moments: mean, deviation and extremes are exact, quantiles within half a bin.
#[derive(Clone, PartialEq, Debug)]
pub struct Distribution {
    low: f64,
    step: f64,
    bins: Vec<u32>,
    count: u64,
    mean: f64,
    /// Sum of squared differences from the mean (Welford).
    spread: f64,
    min: f64,
    max: f64,
}

impl Distribution {
    /// Values from `low` in `bins` bins of `step`; values out of range are counted in the first or the last bin.
    pub fn new(low: f64, step: f64, bins: usize) -> Self {
        let bins = vec![0; bins.max(1)];
        Self { low, step, bins, count: 0, mean: 0.0, spread: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
    /// For PSNR: 0 to 100 dB, by 0.01 dB.
    pub fn of_decibels() -> Self {
        Self::new(0.0, 0.01, 10_001)
    }
    /// For SSIM: -1 to 1, by 0.0001.
    pub fn of_similarity() -> Self {
        Self::new(-1.0, 1e-4, 20_001)
    }
    /// For SI and TI: 0 to 500, by 0.05. Noise of black and white samples has an SI of about 400.
    pub fn of_activity() -> Self {
        Self::new(0.0, 0.05, 10_001)
    }

    /// Adds a value; non-finite ones are ignored.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.count += 1;
        let difference = value - self.mean;
        self.mean += difference / self.count as f64;
        self.spread += difference * (value - self.mean);
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        // Negative values become 0.
        let bin = ((value - self.low) / self.step) as usize;
        let bin = bin.min(self.bins.len() - 1);
        self.bins[bin] = self.bins[bin].saturating_add(1);
    }

    /// Share of the values below `value`, within half a bin.
    pub fn share_below(&self, value: f64) -> Option<f64> {
        let bins = ((value - self.low) / self.step + 0.5).max(0.0) as usize;
        let below: u64 = self.bins.iter().take(bins).map(|&n| u64::from(n)).sum();
        (self.count > 0).then(|| below as f64 / self.count as f64)
    }
    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }
    /// Their mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }
    /// Their sample standard deviation (n - 1); zero for a single value.
    pub fn sigma(&self) -> Option<f64> {
        (self.count > 0).then(|| libm::sqrt(self.spread / (self.count.max(2) - 1) as f64))
    }
    /// The smallest.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }
    /// The largest.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }
    /// The least value that this share (0 to 1) of all does not exceed: the middle of its bin.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let rank = libm::ceil(share.clamp(0.0, 1.0) * self.count as f64).max(1.0) as u64;
        self.cdf_counts().find(|&(_, below)| below >= rank).map(|(value, _)| value)
    }
    /// The cumulative distribution: values and the share of all that do not exceed them, at each increase.
    pub fn cdf(&self) -> impl Iterator<Item = (f64, f64)> {
        self.cdf_counts().map(|(value, below)| (value, below as f64 / self.count as f64))
    }
    fn cdf_counts(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut below = 0;
        self.bins.iter().enumerate().filter(|&(_, &n)| n > 0).map(move |(i, &n)| {
            below += u64::from(n);
            ((self.low + (i as f64 + 0.5) * self.step).clamp(self.min, self.max), below)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_exact_and_quantiles_near() {
        let mut d = Distribution::of_decibels();
        assert_eq!((d.mean(), d.sigma(), d.quantile(0.5), d.cdf().count()), (None, None, None, 0));
        for v in [30.0, 32.0, 34.0, 36.0, 38.0] {
            d.add(v);
        }
        d.add(f64::NAN);
        assert_eq!((d.count(), d.mean(), d.min(), d.max()), (5, Some(34.0), Some(30.0), Some(38.0)));
        // Squares 16 + 4 + 0 + 4 + 16, over 4.
        assert!((d.sigma().unwrap() - 10f64.sqrt()).abs() < 1e-12);
        for (share, value) in [(0.0, 30.0), (0.2, 30.0), (0.21, 32.0), (0.5, 34.0), (1.0, 38.0)] {
            assert!((d.quantile(share).unwrap() - value).abs() <= 0.0051, "{share}");
        }
        let cdf: Vec<_> = d.cdf().map(|(_, share)| share).collect();
        assert_eq!(cdf, [0.2, 0.4, 0.6, 0.8, 1.0]);
    }

    #[test]
    fn values_outside_are_in_the_end_bins() {
        let mut d = Distribution::of_similarity();
        d.add(-7.0);
        d.add(9.0);
        assert_eq!((d.min(), d.max(), d.count()), (Some(-7.0), Some(9.0), 2));
        assert!(d.quantile(0.5).unwrap() < -0.99 && d.quantile(1.0).unwrap() > 0.99);
        let mut one = Distribution::of_activity();
        one.add(12.34);
        assert_eq!((one.sigma(), one.quantile(0.5)), (Some(0.0), Some(12.34)));
    }
}
