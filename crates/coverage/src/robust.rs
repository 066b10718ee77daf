//! Location and weights that a few false reports cannot move.
//!
//! A device has one voice in a region. Its reports there are one decayed sketch; the median is over devices, those
//! that disagree with most others lose their weight there, and those that disagree everywhere lose it everywhere. Both
//! are needed: the first fails where liars are the majority of a few, the second for who lies at one place.

/// The tuning constant of Tukey's biweight for 95 % efficiency at the normal distribution (P. Huber, E. Ronchetti, "Robust
/// Statistics", 2009, section 4.8).
const BIWEIGHT: f64 = 4.685;
/// The normal distribution's standard deviation as a multiple of the median absolute deviation.
const MAD: f64 = 1.4826;
/// The least spread of devices' medians, as a logarithm: 15 %. Devices that agree more closely do not make one that is
/// somewhat off an outlier.
const LEAST_SPREAD: f64 = 0.139_762;
/// The greatest spread that is believed, as a logarithm: a factor of 1.6. Beyond about 2.2 times it, a factor of ten is an
/// outlier whatever the others' spread is.
const GREATEST_SPREAD: f64 = 0.47;

/// The quantile of a share `q`, interpolated between the middles of neighbouring values' weights, so that a small weight
/// moves it little. `None` without positive weights. `values` are sorted on return.
pub(crate) fn weighted_quantile(values: &mut [(f64, f64)], q: f64) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted = q * values.iter().map(|v| v.1).sum::<f64>();
    let mut below = 0.0;
    let mut last: Option<(f64, f64)> = None;
    for (value, weight) in values.iter().filter(|v| v.1 > 0.0) {
        let middle = below + weight / 2.0;
        if middle >= wanted {
            return Some(match last {
                Some((before, at)) => before + (value - before) * (wanted - at) / (middle - at),
                None => *value,
            });
        }
        below += weight;
        last = Some((*value, middle));
    }
    last.map(|l| l.0)
}

/// The median of devices' values (logarithms of rates) with their weights, after those that disagree with most others have
/// lost theirs. On return the weights are those that count.
///
/// A redescending estimate of location: Tukey's biweight around the weighted median, its spread by the median absolute
/// deviation, repeated once. What a device reports has no influence beyond a certain distance, and its weight is at most
/// what it came with.
pub(crate) fn consensus(values: &mut [(f64, f64)]) -> Option<f64> {
    let own: Vec<f64> = values.iter().map(|v| v.1).collect();
    let mut centre = median(values)?;
    for _ in 0..2 {
        let mut off: Vec<(f64, f64)> = values.iter().map(|v| ((v.0 - centre).abs(), v.1)).collect();
        let spread = (MAD * weighted_quantile(&mut off, 0.5)?).clamp(LEAST_SPREAD, GREATEST_SPREAD);
        for (value, own) in values.iter_mut().zip(&own) {
            let u = (value.0 - centre) / (BIWEIGHT * spread);
            let kept = (1.0 - u * u).max(0.0);
            value.1 = own * kept * kept;
        }
        match median(values) {
            Some(next) => centre = next,
            None => break,
        }
    }
    Some(centre)
}

fn median(values: &[(f64, f64)]) -> Option<f64> {
    weighted_quantile(&mut values.to_vec(), 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_follow_weights() {
        let mut v = [(3.0, 1.0), (1.0, 1.0), (2.0, 2.0)];
        assert_eq!(weighted_quantile(&mut v, 0.5), Some(2.0));
        assert_eq!(weighted_quantile(&mut v, 0.3125), Some(1.5));
        assert_eq!(weighted_quantile(&mut v, 0.9), Some(3.0));
        assert_eq!(weighted_quantile(&mut v, 0.1), Some(1.0));
        assert_eq!(weighted_quantile(&mut [(1.0, 0.0)], 0.5), None);
        assert_eq!(weighted_quantile(&mut [(1.0, 1.0), (5.0, 0.0), (9.0, 1.0)], 0.5), Some(5.0_f64));
    }

    #[test]
    fn outliers_lose_their_weight() {
        // Nine around 1 Mbit/s, within 20 %, and one that says ten times as much.
        let rates = [0.85, 0.9, 0.95, 1.0, 1.0, 1.02, 1.05, 1.1, 1.2, 10.0];
        let mut values: Vec<(f64, f64)> = rates.iter().map(|r| (libm::log(*r), 1.0)).collect();
        let centre = consensus(&mut values).expect("a median");
        assert!((libm::exp(centre) - 1.0).abs() < 0.011, "{}", libm::exp(centre));
        assert_eq!(values[9].1, 0.0);
        assert!(values[..9].iter().all(|v| v.1 > 0.7), "{values:?}");
    }

    proptest! {
        #[test]
        fn one_device_moves_a_median_no_further_than_its_neighbours(
            rates in prop::collection::vec(0.7_f64..1.4, 8..30), lie in -5.0_f64..5.0,
        ) {
            let honest: Vec<(f64, f64)> = rates.iter().map(|r| (libm::log(*r), 1.0)).collect();
            let mut all = honest.clone();
            all.push((lie, 1.0));
            let moved = consensus(&mut all).expect("a median");
            let (least, most) = honest.iter().fold((9.0_f64, -9.0_f64), |a, v| (a.0.min(v.0), a.1.max(v.0)));
            prop_assert!((least..=most).contains(&moved));
            prop_assert!(all.iter().all(|v| (0.0..=1.0).contains(&v.1)));
        }
    }
}
