//! VMAF by libvmaf with its built-in model vmaf_v0.6.1 (for high definition on a television). ffmpeg 9.0's filter
//! `libvmaf` gives the same score to the sixth decimal (60 pictures of CIF, x264 at 150 kbit/s: 72.662439).
#![expect(unsafe_code, reason = "libvmaf is a C library")]

use core::mem::MaybeUninit;
use core::ptr;
use vmaf_head_sys as sys;
use weir_media::{MediaError, Picture, Plane};

/// Least width and height, so that the coarsest of four scales has samples.
const MIN_SIDE: u32 = 32;

/// Compares pictures by VMAF, in order. It keeps a few hundred bytes per picture.
#[derive(Debug)]
pub struct Vmaf {
    context: *mut sys::VmafContext,
    model: *mut sys::VmafModel,
    size: (u32, u32),
    pictures: u32,
}

// SAFETY: the library has no thread-local state; all its state belongs to these two, which are never shared.
unsafe impl Send for Vmaf {}

/// Scores of a sequence.
#[derive(Clone, PartialEq, Debug)]
pub struct VmafScores {
    /// Scores of the pictures, from 0 to 100.
    pub pictures: Vec<f64>,
    /// Their mean, the score of the sequence.
    pub mean: f64,
}

fn check(what: &'static str, code: i32) -> Result<(), MediaError> {
    if code == 0 {
        Ok(())
    } else {
        Err(MediaError::new("VMAF (libvmaf)", what, code, "0: out of memory, or a fault of it"))
    }
}

impl Vmaf {
    /// For pictures of this size, on one thread.
    ///
    /// # Errors
    /// If a side is below 32, or the library fails.
    pub fn new(width: u32, height: u32) -> Result<Self, MediaError> {
        Picture::len_of(width, height)?;
        if width < MIN_SIDE || height < MIN_SIDE {
            let value = format!("{width}x{height}");
            return Err(MediaError::new("VMAF", "size", value, format!("at least {MIN_SIDE} each way")));
        }
        let mut vmaf = Self { context: ptr::null_mut(), model: ptr::null_mut(), size: (width, height), pictures: 0 };
        let configuration = sys::VmafConfiguration {
            log_level: sys::VmafLogLevel_VMAF_LOG_LEVEL_NONE,
            n_threads: 0,
            n_subsample: 1,
            cpumask: 0,
            gpumask: 0,
        };
        // SAFETY: the output pointer is valid.
        check("start", unsafe { sys::vmaf_init(&mut vmaf.context, configuration) })?;
        let mut model = sys::VmafModelConfig {
            name: c"weir".as_ptr(),
            flags: u64::from(sys::VmafModelFlags_VMAF_MODEL_FLAGS_DEFAULT),
        };
        // SAFETY: the output pointer is valid, and the strings are static.
        check("model", unsafe { sys::vmaf_model_load(&mut vmaf.model, &mut model, c"vmaf_v0.6.1".as_ptr()) })?;
        // SAFETY: both exist, and live as long as `vmaf`.
        check("features", unsafe { sys::vmaf_use_features_from_model(vmaf.context, vmaf.model) })?;
        Ok(vmaf)
    }

    /// Adds a picture and its distorted version.
    ///
    /// # Errors
    /// If one has another size, or the library fails.
    pub fn push(&mut self, reference: &Picture, distorted: &Picture) -> Result<(), MediaError> {
        for picture in [reference, distorted] {
            if (picture.width(), picture.height()) != self.size {
                let value = format!("{}x{}", picture.width(), picture.height());
                return Err(MediaError::new("VMAF", "size", value, format!("{}x{}", self.size.0, self.size.1)));
            }
        }
        let mut a = self.copy(reference)?;
        let mut b = match self.copy(distorted) {
            Ok(b) => b,
            Err(e) => {
                // SAFETY: `a` was allocated, and is released once.
                unsafe { sys::vmaf_picture_unref(&mut a) };
                return Err(e);
            }
        };
        // SAFETY: the context is open and the pictures are complete; the library owns them from here on, for any return
        // value.
        check("picture", unsafe { sys::vmaf_read_pictures(self.context, &mut a, &mut b, self.pictures) })?;
        self.pictures += 1;
        Ok(())
    }

    fn copy(&self, picture: &Picture) -> Result<sys::VmafPicture, MediaError> {
        let format = sys::VmafPixelFormat_VMAF_PIX_FMT_YUV420P;
        let mut out = MaybeUninit::zeroed();
        // SAFETY: the output pointer is valid.
        let code = unsafe { sys::vmaf_picture_alloc(out.as_mut_ptr(), format, 8, self.size.0, self.size.1) };
        check("memory", code)?;
        // SAFETY: zeros are valid for every field, and the call has succeeded.
        let out: sys::VmafPicture = unsafe { out.assume_init() };
        for (k, plane) in Plane::ALL.into_iter().enumerate() {
            let (w, h) = picture.size_of(plane);
            let (w, h) = (w.min(out.w[k] as usize), h.min(out.h[k] as usize));
            for (y, row) in picture.plane(plane).chunks_exact(picture.size_of(plane).0).take(h).enumerate() {
                // SAFETY: the library's plane has `h` rows of at least `w` samples at intervals of `stride`, and is not
                // shared.
                unsafe {
                    let to = out.data[k].cast::<u8>().offset(out.stride[k] * y as isize);
                    ptr::copy_nonoverlapping(row.as_ptr(), to, w);
                }
            }
        }
        Ok(out)
    }

    /// The scores.
    ///
    /// # Errors
    /// If there was no picture, or the library fails.
    pub fn finish(self) -> Result<VmafScores, MediaError> {
        if self.pictures == 0 {
            return Err(MediaError::new("VMAF", "number of pictures", 0, "1 or more"));
        }
        // SAFETY: the context is open; null pictures signal the end.
        check("end", unsafe { sys::vmaf_read_pictures(self.context, ptr::null_mut(), ptr::null_mut(), 0) })?;
        let mut pictures = Vec::with_capacity(self.pictures as usize);
        for i in 0..self.pictures {
            let mut score = 0.0;
            // SAFETY: context and model are open, and the output pointer is valid.
            check("score", unsafe { sys::vmaf_score_at_index(self.context, self.model, &mut score, i) })?;
            pictures.push(score);
        }
        let mean = pictures.iter().sum::<f64>() / f64::from(self.pictures);
        Ok(VmafScores { pictures, mean })
    }
}

impl Drop for Vmaf {
    fn drop(&mut self) {
        // SAFETY: each was made by the library or is null, and is released once.
        unsafe {
            if !self.model.is_null() {
                sys::vmaf_model_destroy(self.model);
            }
            if !self.context.is_null() {
                sys::vmaf_close(self.context);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::FrameRate;
    use weir_media::clip::{Character, Clip, ClipSpec};

    /// The scores of a clip averaged over this many neighbouring samples in a row.
    fn scores(blur: usize) -> VmafScores {
        let rate = FrameRate::new(30, 1).unwrap();
        let mut clip = Clip::new(ClipSpec::new(Character::HandHeld, 320, 180, rate)).unwrap();
        let mut vmaf = Vmaf::new(320, 180).unwrap();
        let mut a = Picture::new(320, 180).unwrap();
        for i in 0..6 {
            clip.draw(i, &mut a);
            let mut b = a.clone();
            for row in b.plane_mut(Plane::Y).chunks_exact_mut(320) {
                for x in 0..320 - blur {
                    let sum: usize = row[x..=x + blur].iter().map(|&v| usize::from(v)).sum();
                    row[x] = (sum / (blur + 1)) as u8;
                }
            }
            vmaf.push(&a, &b).unwrap();
        }
        vmaf.finish().unwrap()
    }

    #[test]
    fn scores_fall_with_quality() {
        let [equal, soft, blurred] = [0, 2, 9].map(scores);
        assert_eq!(equal.pictures.len(), 6);
        assert!(equal.mean > 95.0 && equal.mean <= 100.0, "{equal:?}");
        assert!(soft.mean < equal.mean - 5.0 && blurred.mean < soft.mean - 20.0, "{soft:?} {blurred:?}");
        assert!(blurred.pictures.iter().all(|s| (0.0..40.0).contains(s)), "{blurred:?}");
    }

    #[test]
    fn sizes_are_checked() {
        assert!(Vmaf::new(31, 100).unwrap_err().to_string().contains("32"));
        let mut vmaf = Vmaf::new(64, 64).unwrap();
        let (a, b) = (Picture::new(64, 64).unwrap(), Picture::new(64, 66).unwrap());
        assert!(vmaf.push(&a, &b).unwrap_err().to_string().contains("64x66"));
        assert!(vmaf.finish().unwrap_err().to_string().contains("number of pictures"));
    }
}
