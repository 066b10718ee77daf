//! How a run went over time in few numbers, and how its pictures were: kept for every run, where series are kept for some.

use serde::{Deserialize, Serialize};

/// A run over time, a second or more a row; `None` where there was no such flow.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// Length of a row, in s.
    pub interval_s: f64,
    /// Goodput of a media flow that adapts, the mean over them, in bit/s.
    pub media_bps: Vec<Option<f32>>,
    /// Goodput of a TCP flow, the mean over them, in bit/s.
    pub tcp_bps: Vec<Option<f32>>,
    /// Target of the first media flow that adapts at each row's end, in bit/s.
    pub target_bps: Vec<Option<f32>>,
}

/// Quantiles of the quality of a flow's pictures: 101 each, at 0, 1 ... 100 %.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PictureQuantiles {
    /// PSNR of luma in dB.
    pub psnr_db: Vec<f64>,
    /// Structural similarity of luma.
    pub ssim: Vec<f64>,
}

/// So many quantiles are kept.
pub(crate) const QUANTILES: usize = 101;

/// Quantiles at 0, 1 ... 100 % of values, the least that so many do not exceed; those that are no numbers are left out.
pub(crate) fn quantiles(values: impl Iterator<Item = f64>) -> Vec<f64> {
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
