use serde::{Deserialize, Serialize};
use weir_units::DataRate;

/// Ratio of neighbouring bucket boundaries: values are known within 2 % ((1 + a) / (1 - a) for a = 0.02; DDSketch, section 2.2).
const GAMMA: f64 = 1.02 / 0.98;
/// Natural logarithm of [`GAMMA`].
const LN_GAMMA: f64 = 0.040_005_334_613_699_206;
/// Rates below this, in bit/s, count as none: a hole.
const LEAST: f64 = 1_000.0;
/// The bucket of rates below [`LEAST`].
const NONE: i16 = i16::MIN;
/// Most buckets of one sketch. Beyond that the two with the least distance and weight are joined.
const MAX_BUCKETS: usize = 24;

/// Quantiles of rates with weights that decay: DDSketch (C. Masson, J. Rim, H. Lee, VLDB 2019) with weights in place of
/// counts, and a bound on its memory that holds for any values.
///
/// A library's DDSketch or t-digest has whole counts and takes several hundred bytes at least; here one is kept for each
/// device and region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DecayedSketch {
    /// Bucket and weight, by bucket.
    buckets: Vec<(i16, f32)>,
}

fn bucket_of(rate: DataRate) -> i16 {
    let bps = rate.as_bps_f64();
    // 2^64 bit/s is in bucket 1109.
    if bps < LEAST { NONE } else { libm::ceil(libm::log(bps) / LN_GAMMA) as i16 }
}

/// The value of a bucket, in bit/s: the one whose relative distance from both boundaries is equal.
fn value_of(bucket: i16) -> f64 {
    if bucket == NONE { 0.0 } else { 2.0 * libm::exp(f64::from(bucket) * LN_GAMMA) / (GAMMA + 1.0) }
}

impl DecayedSketch {
    /// Adds a rate with a weight. Weights that are not positive and finite are ignored.
    pub fn insert(&mut self, rate: DataRate, weight: f32) {
        self.add(bucket_of(rate), weight);
    }

    fn add(&mut self, bucket: i16, weight: f32) {
        if !(weight > 0.0 && weight.is_finite()) {
            return;
        }
        match self.buckets.binary_search_by_key(&bucket, |b| b.0) {
            Ok(i) => self.buckets[i].1 += weight,
            Err(i) => {
                self.buckets.insert(i, (bucket, weight));
                if self.buckets.len() > MAX_BUCKETS {
                    self.join_two();
                }
            }
        }
    }

    /// Joins the neighbours whose joining changes least: weight of the lighter one by distance. Holes stay holes.
    fn join_two(&mut self) {
        let cost = |pair: &[(i16, f32)]| {
            let distance = f64::from(pair[1].0) - f64::from(pair[0].0);
            distance * f64::from(pair[0].1.min(pair[1].1))
        };
        let candidates = self.buckets.windows(2).enumerate().filter(|(_, pair)| pair[0].0 != NONE);
        let least = candidates.min_by(|a, b| cost(a.1).total_cmp(&cost(b.1))).map(|(i, _)| i);
        if let Some(i) = least {
            let (light, heavy) = if self.buckets[i].1 < self.buckets[i + 1].1 { (i, i + 1) } else { (i + 1, i) };
            self.buckets[heavy].1 += self.buckets[light].1;
            self.buckets.remove(light);
        }
    }

    /// Multiplies all weights by `factor`, 0 to 1, and forgets what has become negligible.
    pub fn decay(&mut self, factor: f32) {
        for bucket in &mut self.buckets {
            bucket.1 *= factor;
        }
        self.buckets.retain(|b| b.1 > 1e-4);
    }

    /// Adds all of another sketch, its weights multiplied by `factor`.
    pub fn merge(&mut self, other: &Self, factor: f32) {
        for (bucket, weight) in &other.buckets {
            self.add(*bucket, weight * factor);
        }
    }

    /// The sum of all weights.
    pub fn weight(&self) -> f32 {
        self.buckets.iter().map(|b| b.1).sum()
    }

    /// The lowest rate at or below which at least a share `q` of the weight is, or `None` if nothing was added.
    pub fn quantile(&self, q: f64) -> Option<DataRate> {
        let wanted = q.clamp(0.0, 1.0) * f64::from(self.weight());
        let mut below = 0.0;
        for (bucket, weight) in &self.buckets {
            below += f64::from(*weight);
            if below >= wanted {
                return Some(DataRate::from_bps_f64(value_of(*bucket)));
            }
        }
        self.buckets.last().map(|b| DataRate::from_bps_f64(value_of(b.0)))
    }

    /// Values in bit/s with their weights, ascending.
    pub fn values(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.buckets.iter().map(|(bucket, weight)| (value_of(*bucket), f64::from(*weight)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kbps(rate: Option<DataRate>) -> f64 {
        rate.expect("a value").as_kbps_f64()
    }

    #[test]
    fn quantiles_are_within_two_percent() {
        assert!((libm::log(GAMMA) - LN_GAMMA).abs() < 1e-12, "{:.18}", libm::log(GAMMA));
        let mut sketch = DecayedSketch::default();
        assert_eq!(sketch.quantile(0.5), None);
        for kbps in [100, 200, 400, 800, 1600] {
            sketch.insert(DataRate::from_kbps(kbps), 1.0);
        }
        for (q, expected) in [(0.0, 100.0), (0.2, 100.0), (0.5, 400.0), (0.75, 800.0), (1.0, 1600.0)] {
            let got = kbps(sketch.quantile(q));
            assert!((got / expected - 1.0).abs() <= 0.0201, "{q}: {got} for {expected}");
        }
    }

    #[test]
    fn decayed_values_give_way_to_newer_ones() {
        let mut sketch = DecayedSketch::default();
        for _ in 0..100 {
            sketch.insert(DataRate::from_kbps(5_000), 1.0);
        }
        sketch.decay(0.25);
        assert!((sketch.weight() - 25.0).abs() < 1e-3);
        for _ in 0..26 {
            sketch.insert(DataRate::from_kbps(500), 1.0);
        }
        assert!((kbps(sketch.quantile(0.5)) / 500.0 - 1.0).abs() < 0.021);
        sketch.decay(1e-9);
        assert_eq!((sketch.weight(), sketch.quantile(0.5)), (0.0, None));
    }

    #[test]
    fn holes_are_kept_apart_from_low_rates() {
        let mut sketch = DecayedSketch::default();
        for i in 0..200_u64 {
            sketch.insert(DataRate::from_kbps(10 + i * i), 1.0);
            sketch.insert(DataRate::ZERO, 0.1);
        }
        assert_eq!(sketch.quantile(0.05), Some(DataRate::ZERO));
        assert!(kbps(sketch.quantile(0.5)) > 1_000.0);
    }

    proptest! {
        #[test]
        fn memory_and_weight_are_bounded(values in prop::collection::vec((any::<u64>(), 0.0_f32..2.0), 1..300)) {
            let mut sketch = DecayedSketch::default();
            let mut sum = 0.0;
            for (bps, weight) in &values {
                sketch.insert(DataRate::from_bps(*bps), *weight);
                sum += weight;
            }
            prop_assert!(sketch.buckets.len() <= MAX_BUCKETS);
            prop_assert!((sketch.weight() - sum).abs() <= 1e-3 * sum.max(1.0));
            let q: Vec<_> = [0.1, 0.5, 0.9].iter().map(|q| sketch.quantile(*q)).collect();
            prop_assert!(q.is_sorted());
        }
    }
}
