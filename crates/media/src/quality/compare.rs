//! All metrics of a picture relative to its reference.

use super::gaussian::Gaussian;
use super::psnr::same_size;
use super::{PlaneErrors, ssim};
use crate::{MediaError, Picture, Plane};

/// Metrics in addition to PSNR, which is always computed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Measures {
    /// SSIM over 8 x 8 windows.
    pub ssim: bool,
    /// SSIM over Gaussian windows, which takes about ten times as long.
    pub gaussian: bool,
}

impl Measures {
    /// PSNR alone.
    pub const PSNR: Self = Self { ssim: false, gaussian: false };
    /// All.
    pub const ALL: Self = Self { ssim: true, gaussian: true };
}

impl Default for Measures {
    fn default() -> Self {
        Self::ALL
    }
}

/// SSIM of two pictures' luma, 1 if equal.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Ssim {
    /// Over adjacent 8 x 8 windows, with the constants of Wang et al. 2004.
    pub tiled: f64,
    /// Over 8 x 8 windows every 4 samples, with the constants of x264: the luma value of ffmpeg's `ssim` filter.
    pub overlapped: f64,
}

/// Metrics of a picture.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Comparison {
    /// Squared errors, from which PSNR follows.
    pub errors: PlaneErrors,
    /// SSIM over 8 x 8 windows.
    pub ssim: Option<Ssim>,
    /// SSIM over windows of 11 x 11 weighted by a Gaussian of sigma 1.5.
    pub gaussian: Option<f64>,
}

/// Compares pictures, reusing its memory.
#[derive(Clone, Debug, Default)]
pub struct Comparer {
    measures: Measures,
    blocks: ssim::Scratch,
    gaussian: Gaussian,
}

impl Comparer {
    /// Computes these metrics.
    pub fn new(measures: Measures) -> Self {
        Self { measures, ..Self::default() }
    }

    /// Compares a picture with its reference.
    ///
    /// # Errors
    /// Their sizes differ.
    pub fn compare(&mut self, reference: &Picture, picture: &Picture) -> Result<Comparison, MediaError> {
        same_size(reference, picture)?;
        let errors = PlaneErrors::between(reference, picture)?;
        let (width, _) = reference.size_of(Plane::Y);
        let (a, b) = (reference.plane(Plane::Y), picture.plane(Plane::Y));
        let ssim = self.measures.ssim.then(|| {
            let s = ssim::ssim(a, b, width, &mut self.blocks);
            Ssim { tiled: s.tiled, overlapped: s.overlapped }
        });
        let gaussian = self.measures.gaussian.then(|| self.gaussian.ssim(a, b, width));
        Ok(Comparison { errors, ssim, gaussian })
    }
}
