//! VMAF beside the measures of `weir-media`, where libvmaf is built in (feature `vmaf`).

use weir_media::{MediaError, Picture};

#[cfg(feature = "vmaf")]
use weir_codecs::Vmaf as Library;

/// Without libvmaf there is no value of it.
#[cfg(not(feature = "vmaf"))]
enum Library {}

/// Scores pictures by VMAF, in order.
pub(super) struct Vmaf(Library);

impl Vmaf {
    /// For pictures of this size; `None` where libvmaf is not built in or they are too small for it.
    pub(super) fn new(size: (u32, u32)) -> Option<Self> {
        #[cfg(feature = "vmaf")]
        let library = Library::new(size.0, size.1).ok();
        #[cfg(not(feature = "vmaf"))]
        let library = None.filter(|_| size.0 > 0);
        library.map(Self)
    }

    /// Adds a picture and what has come of it. Errors: the library fails.
    pub(super) fn push(&mut self, reference: &Picture, distorted: &Picture) -> Result<(), MediaError> {
        #[cfg(feature = "vmaf")]
        return self.0.push(reference, distorted);
        #[cfg(not(feature = "vmaf"))]
        {
            let (library, ..) = (&self.0, reference, distorted);
            match *library {}
        }
    }

    /// The score of each picture, from 0 to 100. Errors: there was none, or the library fails.
    pub(super) fn finish(self) -> Result<Vec<f64>, MediaError> {
        #[cfg(feature = "vmaf")]
        return self.0.finish().map(|scores| scores.pictures);
        #[cfg(not(feature = "vmaf"))]
        match self.0 {}
    }
}
