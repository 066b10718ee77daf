//! Quantiles in fixed memory.

const SUB_BITS: u32 = 7;
const SUB: usize = 1 << SUB_BITS;

/// A weighted histogram of non-negative integers with logarithmic buckets: 128 per power of two, so that a quantile is
/// off by at most 1/256 (0.4 %) of its value. Mean, minimum and maximum are exact.
///
/// Memory is bounded for any input (at most 58 kB) and grows only with the range of powers of two that occur: three or
/// four kilobytes for the one-way delays of one path.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// Weights of the buckets, [`SUB`] per power of two from `first` on.
    counts: Vec<u64>,
    /// The first power of two stored, as a chunk's number.
    first: usize,
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
        self.sum += u128::from(value);
        self.count(value, 1);
    }
    /// Counts a value `weight` times; a weight of zero changes nothing. Weights sum to at most 2^64 - 1.
    #[inline]
    pub fn record_weighted(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        self.sum += u128::from(value) * u128::from(weight);
        self.count(value, weight);
    }
    #[inline]
    fn count(&mut self, value: u64, weight: u64) {
        if self.weight == 0 {
            self.min = value;
        }
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.weight = self.weight.saturating_add(weight);
        let (chunk, sub) = index(value);
        // Below `first` the difference wraps and exceeds the length.
        match self.counts.get_mut(chunk.wrapping_sub(self.first).wrapping_mul(SUB).wrapping_add(sub)) {
            Some(count) => *count += weight,
            _ => self.grow(chunk)[sub] += weight,
        }
    }
    /// Makes room for a chunk and returns it.
    #[cold]
    fn grow(&mut self, chunk: usize) -> &mut [u64] {
        if self.counts.is_empty() {
            self.first = chunk;
        }
        if chunk < self.first {
            let added = (self.first - chunk) * SUB;
            self.counts.splice(..0, std::iter::repeat_n(0, added));
            self.first = chunk;
        }
        let at = (chunk - self.first) * SUB;
        self.counts.resize(self.counts.len().max(at + SUB), 0);
        &mut self.counts[at..at + SUB]
    }
    /// Counts all values of another one too.
    pub fn add(&mut self, other: &Self) {
        if other.weight == 0 {
            return;
        }
        self.min = if self.weight == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.weight = self.weight.saturating_add(other.weight);
        self.sum += other.sum;
        for (chunk, counts) in (other.first..).zip(other.counts.chunks_exact(SUB)) {
            for (own, n) in self.grow(chunk).iter_mut().zip(counts) {
                *own += n;
            }
        }
    }
    /// Total weight.
    pub fn weight(&self) -> u64 {
        self.weight
    }
    /// Weighted mean, or `None` if nothing was recorded.
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
    /// The smallest value such that a share `q` (0 to 1) of the weight is at or below it (nearest rank), within 0.4 %.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.weight == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * self.weight as f64).ceil() as u64).clamp(1, self.weight);
        let mut seen = 0;
        for (i, &n) in self.counts.iter().enumerate() {
            seen += n;
            if n > 0 && seen >= rank {
                let middle = midpoint(self.first + i / SUB, i % SUB);
                return Some(middle.clamp(self.min as f64, self.max as f64));
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
    fn a_sum_is_as_if_all_were_recorded_in_one() {
        let (low, high) = ([3_u64, 90, 4_000], [1_u64 << 40, 77, 5]);
        let of = |values: &[u64]| {
            let mut h = Histogram::new();
            values.iter().for_each(|&v| h.record(v));
            h
        };
        let whole = of(&[low, high].concat());
        for (mut a, b) in [(of(&low), of(&high)), (of(&high), of(&low))] {
            a.add(&Histogram::new());
            a.add(&b);
            assert_eq!((a.weight(), a.min(), a.max(), a.mean()), (6, Some(3), Some(1 << 40), whole.mean()));
            for q in [0.0, 0.3, 0.5, 0.9, 1.0] {
                assert_eq!(a.quantile(q), whole.quantile(q), "{q}");
            }
        }
        let mut none = Histogram::new();
        none.add(&of(&low));
        assert_eq!((none.min(), none.max()), (Some(3), Some(4_000)));
    }

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

    #[test]
    fn memory_covers_the_range_of_powers_and_no_more() {
        let mut h = Histogram::new();
        // Upwards, then downwards, then inside.
        for value in [1 << 20, 1 << 22, 1 << 18, 1 << 19, 5] {
            h.record(value);
        }
        assert_eq!((h.weight(), h.min(), h.max()), (5, Some(5), Some(1 << 22)));
        assert!(h.counts.len() <= (22 - 6 + 1) * SUB, "{}", h.counts.len());
        let mut all = Histogram::new();
        (0..64).for_each(|power| all.record(1 << power));
        assert_eq!(all.counts.len(), (64 - SUB_BITS as usize + 1) * SUB);
        assert_eq!(all.quantile(1.0), Some((1u64 << 63) as f64));
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
