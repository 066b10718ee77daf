//! Quantiles in fixed memory.

const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;
const CHUNKS: usize = 64 - SUB_BITS as usize + 1;

/// A weighted histogram of non-negative integers with logarithmic buckets: 128 to each power of two, so that a quantile
/// is off by at most 1/256 (0.4 %) of its value. Mean, minimum and maximum are exact.
///
/// Memory is bounded whatever is recorded (at most 58 kB) and grows only with the powers of two that occur: three or
/// four kilobytes for the one-way delays of one path.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    chunks: Vec<Option<Box<[u64; SUB]>>>,
    weight: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        Self::default()
    }
    /// Counts a value once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.record_weighted(value, 1);
    }
    /// Counts a value `weight` times; a weight of zero changes nothing. Weights sum to at most 2^64 - 1.
    #[inline]
    pub fn record_weighted(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        if self.weight == 0 || value < self.min {
            self.min = value;
        }
        self.max = self.max.max(value);
        self.weight = self.weight.saturating_add(weight);
        self.sum += u128::from(value) * u128::from(weight);
        let (chunk, sub) = index(value);
        match self.chunks.get_mut(chunk) {
            Some(Some(counts)) => counts[sub] += weight,
            _ => self.grow(chunk)[sub] += weight,
        }
    }
    #[cold]
    fn grow(&mut self, chunk: usize) -> &mut [u64; SUB] {
        if self.chunks.len() <= chunk {
            self.chunks.resize_with((chunk + 1).min(CHUNKS), || None);
        }
        self.chunks[chunk].get_or_insert_with(|| Box::new([0; SUB]))
    }
    /// Total weight.
    pub fn weight(&self) -> u64 {
        self.weight
    }
    /// Weighted mean, or `None` where nothing was recorded.
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0).then(|| self.sum as f64 / self.weight as f64)
    }
    /// Smallest value.
    pub fn min(&self) -> Option<u64> {
        (self.weight > 0).then_some(self.min)
    }
    /// Largest value.
    pub fn max(&self) -> Option<u64> {
        (self.weight > 0).then_some(self.max)
    }
    /// The value at or below which a share `q` (0 to 1) of the weight lies (nearest rank), within 0.4 %.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.weight == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * self.weight as f64).ceil() as u64).clamp(1, self.weight);
        let mut seen = 0;
        for (c, counts) in self.chunks.iter().enumerate() {
            let Some(counts) = counts else { continue };
            for (s, &n) in counts.iter().enumerate() {
                seen += n;
                if n > 0 && seen >= rank {
                    return Some(midpoint(c, s).clamp(self.min as f64, self.max as f64));
                }
            }
        }
        Some(self.max as f64)
    }
}

#[inline]
fn index(value: u64) -> (usize, usize) {
    let exponent = (value | 1).ilog2();
    if exponent < SUB_BITS {
        (0, value as usize)
    } else {
        ((exponent - SUB_BITS + 1) as usize, (value >> (exponent - SUB_BITS)) as usize & (SUB - 1))
    }
}

fn midpoint(chunk: usize, sub: usize) -> f64 {
    if chunk == 0 {
        return sub as f64;
    }
    // The widest bucket starts below 2^64 and is 2^56 wide: both are exact enough as floats.
    let width = (1u64 << (chunk - 1)) as f64;
    (SUB + sub) as f64 * width + (width - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let mut h = Histogram::new();
        (1..=100).for_each(|v| h.record(v));
        assert_eq!(h.quantile(0.5), Some(50.0));
        assert_eq!(h.quantile(0.95), Some(95.0));
        assert_eq!(h.quantile(1.0), Some(100.0));
        assert_eq!(h.mean(), Some(50.5));
        assert_eq!((h.min(), h.max()), (Some(1), Some(100)));
    }

    #[test]
    fn nothing_recorded_is_no_value() {
        let mut h = Histogram::new();
        h.record_weighted(5, 0);
        assert_eq!((h.mean(), h.quantile(0.5), h.max()), (None, None, None));
    }

    #[test]
    fn weights_count() {
        let mut h = Histogram::new();
        h.record_weighted(10, 900);
        h.record_weighted(90, 100);
        assert_eq!(h.quantile(0.9), Some(10.0));
        assert_eq!(h.quantile(0.91), Some(90.0));
        assert_eq!(h.mean(), Some(18.0));
    }

    proptest! {
        #[test]
        fn quantiles_hold_their_error(mut values in proptest::collection::vec(any::<u64>().prop_map(|v| v >> (v % 60)), 1..400), q in 0.0f64..=1.0) {
            let mut h = Histogram::new();
            values.iter().for_each(|&v| h.record(v));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let truth = values[rank - 1] as f64;
            let got = h.quantile(q).expect("not empty");
            prop_assert!((got - truth).abs() <= truth / 256.0 + 0.5, "{got} for {truth}");
        }
    }
}
