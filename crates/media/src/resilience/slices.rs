//! Slice sizes adapted to loss.

use weir_units::DataSize;

/// Number of loss reports averaged.
const REPORTS: usize = 3;

/// How slice sizes adapt to loss; values are those of the dissertation, section 5.1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SliceSizes {
    /// Smallest slices: 150 bytes.
    pub min: DataSize,
    /// Largest slices, and the initial size: a packet's capacity, 1,500 bytes.
    pub max: DataSize,
    /// Slices above this are halved, others reduced by [`Self::step`]: 400 bytes.
    pub halved_above: DataSize,
    /// 50 bytes.
    pub step: DataSize,
    /// Mean loss below which slices are doubled: 1 %.
    pub doubled_below: f64,
    /// Mean loss above which slices are reduced: 2.5 %.
    pub smaller_above: f64,
}

impl Default for SliceSizes {
    fn default() -> Self {
        Self {
            min: DataSize::from_bytes(150),
            max: DataSize::from_bytes(1_500),
            halved_above: DataSize::from_bytes(400),
            step: DataSize::from_bytes(50),
            doubled_below: 0.01,
            smaller_above: 0.025,
        }
    }
}

impl SliceSizes {
    /// The size after `size` at this mean loss.
    pub fn next(&self, size: DataSize, mean_loss: f64) -> DataSize {
        let bytes = size.as_bytes();
        let next = if mean_loss < self.doubled_below {
            bytes.saturating_mul(2)
        } else if mean_loss <= self.smaller_above {
            bytes
        } else if size > self.halved_above {
            bytes / 2
        } else {
            bytes.saturating_sub(self.step.as_bytes())
        };
        DataSize::from_bytes(next.min(self.max.as_bytes()).max(self.min.as_bytes()))
    }
}

/// Adapts slice sizes to loss reports.
#[derive(Clone, Debug)]
pub struct SliceSizer {
    sizes: SliceSizes,
    size: DataSize,
    losses: [f64; REPORTS],
    reports: usize,
}

impl SliceSizer {
    /// Starts with the largest slices.
    pub fn new(sizes: SliceSizes) -> Self {
        Self { sizes, size: sizes.max, losses: [0.0; REPORTS], reports: 0 }
    }

    /// Takes a report of this fraction lost; returns the new size.
    pub fn on_loss(&mut self, fraction: f64) -> DataSize {
        let fraction = if fraction.is_finite() { fraction.clamp(0.0, 1.0) } else { 0.0 };
        self.losses[self.reports % REPORTS] = fraction;
        self.reports += 1;
        self.size = self.sizes.next(self.size, self.mean_loss());
        self.size
    }

    /// Mean of the last three reports, or of all if fewer.
    pub fn mean_loss(&self) -> f64 {
        let count = self.reports.min(REPORTS);
        if count == 0 { 0.0 } else { self.losses[..count].iter().sum::<f64>() / count as f64 }
    }

    /// The current size.
    pub fn size(&self) -> DataSize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(s: &mut SliceSizer, losses: &[f64]) -> Vec<u64> {
        losses.iter().map(|&l| s.on_loss(l).as_bytes()).collect()
    }

    #[test]
    fn slices_follow_the_mean_of_three_reports() {
        let mut s = SliceSizer::new(SliceSizes::default());
        // Halved down to 400 and below, then in steps to the least.
        assert_eq!(sizes(&mut s, &[0.05; 8]), [750, 375, 325, 275, 225, 175, 150, 150]);
        // Means of 3.7 %, 2.3 % and 1 %: smaller, unchanged, unchanged; then below 1 %: doubled.
        assert_eq!(sizes(&mut s, &[0.01, 0.01, 0.01]), [150, 150, 150]);
        assert_eq!(sizes(&mut s, &[0.0; 5]), [300, 600, 1_200, 1_500, 1_500]);
        // One report of 6 % has a mean of 2 %; two have 4 %.
        assert_eq!(sizes(&mut s, &[0.06, 0.06, 0.0, 0.0, 0.0]), [1_500, 750, 375, 375, 750]);
    }

    #[test]
    fn exactly_400_bytes_go_by_a_step() {
        let rule = SliceSizes::default();
        let next = |size, loss| rule.next(DataSize::from_bytes(size), loss).as_bytes();
        assert_eq!((next(400, 0.03), next(402, 0.03), next(401, 0.03)), (350, 201, 200));
        assert_eq!((next(800, 0.025), next(800, 0.01), next(800, 0.0099)), (800, 800, 1_500));
    }

    proptest! {
        #[test]
        fn sizes_stay_between_their_bounds(losses in proptest::collection::vec(any::<f64>(), 0..40)) {
            let mut s = SliceSizer::new(SliceSizes::default());
            for l in losses {
                let size = s.on_loss(l).as_bytes();
                prop_assert!((150..=1_500).contains(&size) && s.mean_loss().is_finite());
            }
        }
    }
}
