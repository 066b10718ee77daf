//! VMAF where libvmaf is not built in: no value of [`Vmaf`] exists.

use core::convert::Infallible;
use weir_media::{MediaError, Picture};

/// Compares pictures by VMAF, in order; not in this build.
#[derive(Debug)]
pub struct Vmaf(Infallible);

/// Scores of a sequence.
#[derive(Clone, PartialEq, Debug)]
pub struct VmafScores {
    /// Scores of the pictures, from 0 to 100.
    pub pictures: Vec<f64>,
    /// Their mean, the score of the sequence.
    pub mean: f64,
}

impl Vmaf {
    /// # Errors
    /// libvmaf is not built in.
    pub fn new(_: u32, _: u32) -> Result<Self, MediaError> {
        Err(MediaError::new("VMAF", "library", "libvmaf", "one that is built in: feature `vmaf` of the build"))
    }

    /// # Errors
    /// None: there is no value to call it on.
    pub fn push(&mut self, _: &Picture, _: &Picture) -> Result<(), MediaError> {
        match self.0 {}
    }

    /// # Errors
    /// None: there is no value to call it on.
    pub fn finish(self) -> Result<VmafScores, MediaError> {
        match self.0 {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_feature() {
        let error = Vmaf::new(640, 480).unwrap_err().to_string();
        assert!(error.contains("feature `vmaf`"), "{error}");
    }
}
