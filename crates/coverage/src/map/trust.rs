//! How well a device agrees with others, over all regions where others can be asked.

/// Mean disagreement, as a logarithm, up to which a device has its whole weight: a factor of 3. Own choice, with [`NONE`]:
/// modems and hours make less of a difference.
const WHOLE: f32 = 1.098_612_3;
/// From which on it has none: a factor of 6.
const NONE: f32 = 1.791_759_5;
/// Least distance of an outlier, as a logarithm: a factor of 5.
const OUTLIER: f32 = 1.609_438;
/// Share of outliers up to which a device has its whole weight: at the edges of holes honest devices disagree too.
const WHOLE_SHARE: f32 = 0.15;
/// From which on it has none.
const NONE_SHARE: f32 = 0.4;
/// Regions over which disagreement is averaged: some ten rides, so that who lies on some of them is remembered on others.
const MEMORY: f32 = 300.0;
/// Most that one region counts, as a logarithm: a factor of 20.
const MOST: f32 = 3.0;

/// The agreement of one device with others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// Mean of the logarithms of the factors between this device and the others.
    mean: f32,
    /// Share of regions in which it was an outlier.
    outliers: f32,
    /// Regions compared, at most [`MEMORY`].
    regions: f32,
    /// The region in which it reported last: its cell and leaf.
    pub(super) last: Option<(u64, super::LeafKey)>,
}

impl Trust {
    /// The weight of a device of which nothing is known yet.
    pub(super) const UNKNOWN: f64 = 0.5;

    /// Takes the logarithm of the factor by which the device differs from the others in one region.
    pub(super) fn observe(&mut self, difference: f64) {
        let off = (difference.abs() as f32).min(MOST);
        self.regions = (self.regions + 1.0).min(MEMORY);
        self.mean += (off - self.mean) / self.regions;
        self.outliers += (f32::from(u8::from(off > OUTLIER)) - self.outliers) / self.regions;
    }

    /// 0 to 1. It begins at one half, and one region alone decides nothing.
    pub(super) fn weight(&self) -> f64 {
        let known = self.regions / (self.regions + 2.0);
        let agreement = ((NONE - self.mean * known) / (NONE - WHOLE)).clamp(0.0, 1.0);
        let inliers = ((NONE_SHARE - self.outliers * known) / (NONE_SHARE - WHOLE_SHARE)).clamp(0.0, 1.0);
        f64::from((0.5 + 0.5 * known) * agreement.min(inliers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weight_follows_agreement() {
        let after = |factor: f64, regions: usize| {
            let mut trust = Trust::default();
            for i in 0..regions {
                trust.observe(if i % 2 == 0 { libm::log(factor) } else { -libm::log(factor) });
            }
            trust.weight()
        };
        assert_eq!(after(1.0, 0), Trust::UNKNOWN);
        assert!(after(10.0, 1) > 0.15 && after(10.0, 12) == 0.0, "{} {}", after(10.0, 1), after(10.0, 12));
        assert!(after(1.5, 30) > 0.95 && after(2.5, 30) > 0.95);
        assert!((0.3..0.75).contains(&after(4.2, 30)), "{}", after(4.2, 30));
        // Honest in half of the regions.
        let mut half = Trust::default();
        (0..30).for_each(|i| half.observe(if i % 2 == 0 { 0.1 } else { libm::log(10.0) }));
        assert_eq!(half.weight(), 0.0);
    }
}
