//! How the quality of a flow's pictures was spread.

use serde::{Deserialize, Serialize};

/// Quantiles of the quality of a flow's pictures: 101 each, at 0, 1 ... 100 %.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PictureQuantiles {
    /// PSNR of luma in dB.
    pub psnr_db: Vec<f64>,
    /// Structural similarity of luma.
    pub ssim: Vec<f64>,
}

/// Number of quantiles.
pub const QUANTILES: usize = 101;

/// Quantiles at 0, 1 ... 100 % of values, by nearest rank; values that are not numbers are omitted.
pub fn quantiles(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    if all.is_empty() {
        return vec![];
    }
    let at = |i: usize| all[(i * all.len()).div_ceil(QUANTILES - 1).max(1) - 1];
    (0..QUANTILES).map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_least_that_so_many_do_not_exceed() {
        let q = quantiles([3.0, 1.0, f64::NAN, 2.0, 4.0].into_iter());
        assert_eq!((q.len(), q[0], q[25], q[26], q[50], q[51], q[75], q[76], q[100]), {
            (101, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0)
        });
        assert!(quantiles([f64::NAN].into_iter()).is_empty());
    }
}
