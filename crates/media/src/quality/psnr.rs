//! Peak signal-to-noise ratio.

use crate::{MediaError, Picture, Plane};

/// The PSNR of equal samples in dB, in place of infinity, so that means stay finite. A VGA picture with one luma sample
/// off by one has 103 dB; lossy encoders stay far below.
pub const PSNR_CAP: f64 = 100.0;

/// Samples per block: the squares of 2^16 would still fit into 32 bits.
const BLOCK: usize = 1 << 14;

/// Sum of squared differences.
pub(crate) fn squared_error(a: &[u8], b: &[u8]) -> u64 {
    let block = |(a, b): (&[u8], &[u8])| {
        let sum: u32 = a.iter().zip(b).map(|(&a, &b)| u32::from(a.abs_diff(b)).pow(2)).sum();
        u64::from(sum)
    };
    a.chunks(BLOCK).zip(b.chunks(BLOCK)).map(block).sum()
}

/// PSNR in dB of 8-bit samples, whose peak is 255, at most [`PSNR_CAP`].
pub(crate) fn psnr(squared_error: u64, samples: u64) -> f64 {
    if squared_error == 0 || samples == 0 {
        return PSNR_CAP;
    }
    let mse = squared_error as f64 / samples as f64;
    (10.0 * libm::log10(255.0 * 255.0 / mse)).min(PSNR_CAP)
}

/// Squared differences of the planes of one picture, or of many.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaneErrors {
    /// Sums of Y, U, V.
    pub squared: [u64; 3],
    /// Samples in Y, U, V.
    pub samples: [u64; 3],
}

/// PSNR in dB, at most [`PSNR_CAP`].
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Psnr {
    /// Of luma.
    pub y: f64,
    /// Of blue difference.
    pub u: f64,
    /// Of red difference.
    pub v: f64,
    /// Of all samples together, so that in 4:2:0 luma counts four times as much as each chroma plane: the `average` of
    /// ffmpeg and x264.
    pub average: f64,
    /// (6 Y + U + V) / 8 of the planes' decibels, as used by the JCT-VC (JCTVC-H1100).
    pub weighted: f64,
}

impl PlaneErrors {
    /// Of a picture relative to its reference.
    ///
    /// # Errors
    /// Their sizes differ.
    pub fn between(reference: &Picture, picture: &Picture) -> Result<Self, MediaError> {
        same_size(reference, picture)?;
        let of = |p: Plane| (reference.plane(p), picture.plane(p));
        Ok(Self {
            squared: Plane::ALL.map(|p| squared_error(of(p).0, of(p).1)),
            samples: Plane::ALL.map(|p| reference.plane(p).len() as u64),
        })
    }

    /// Adds those of another picture, for the PSNR of a sequence by its mean squared error.
    pub fn add(&mut self, other: &Self) {
        for i in 0..3 {
            self.squared[i] = self.squared[i].saturating_add(other.squared[i]);
            self.samples[i] = self.samples[i].saturating_add(other.samples[i]);
        }
    }

    /// In decibels.
    pub fn psnr(&self) -> Psnr {
        let [y, u, v] = [0, 1, 2].map(|i| psnr(self.squared[i], self.samples[i]));
        let average = psnr(self.squared.iter().sum(), self.samples.iter().sum());
        Psnr { y, u, v, average, weighted: (6.0 * y + u + v) / 8.0 }
    }
}

/// An error if two pictures differ in size.
pub(crate) fn same_size(reference: &Picture, picture: &Picture) -> Result<(), MediaError> {
    let [wanted, got] = [reference, picture].map(|p| (p.width(), p.height()));
    if wanted == got {
        return Ok(());
    }
    let value = format!("{}x{}", got.0, got.1);
    Err(MediaError::new("picture", "size", value, format!("{}x{}, as the reference has", wanted.0, wanted.1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(f: impl Fn(usize) -> u8) -> Picture {
        let len = Picture::len_of(200, 101).unwrap();
        Picture::from_i420(200, 101, (0..len).map(f).collect()).unwrap()
    }

    #[test]
    fn decibels_are_those_of_the_equation() {
        // Luma off by 1 everywhere: 20 log10 255 = 48.1308 dB. Blue by 2: 6.0206 dB less. Red equal.
        let (reference, luma) = (with(|i| (i * 7 % 251) as u8), 200 * 101);
        let chroma = 100 * 51;
        let worse = with(|i| {
            let sample = (i * 7 % 251) as u8;
            if i < luma {
                sample + 1
            } else if i < luma + chroma {
                sample + 2
            } else {
                sample
            }
        });
        let errors = PlaneErrors::between(&reference, &worse).unwrap();
        assert_eq!(errors.squared, [luma as u64, 4 * chroma as u64, 0]);
        let p = errors.psnr();
        assert!((p.y - 48.1308).abs() < 1e-4, "{p:?}");
        assert!((p.u - 42.1102).abs() < 1e-4, "{p:?}");
        assert_eq!(p.v, PSNR_CAP);
        let mse = (luma + 4 * chroma) as f64 / (luma + 2 * chroma) as f64;
        assert!((p.average - (48.1308 - 10.0 * mse.log10())).abs() < 1e-4, "{p:?}");
        assert!((p.weighted - (6.0 * p.y + p.u + p.v) / 8.0).abs() < 1e-12);
    }

    #[test]
    fn the_worst_there_can_be_fits() {
        let big = |v| Picture::from_i420(4_096, 2_160, vec![v; Picture::len_of(4_096, 2_160).unwrap()]).unwrap();
        let errors = PlaneErrors::between(&big(0), &big(255)).unwrap();
        assert_eq!(errors.squared[0], 4_096 * 2_160 * 65_025);
        assert_eq!(errors.psnr().average, 0.0);
    }

    #[test]
    fn errors_of_a_sequence_add_up() {
        let (a, b) = (with(|_| 100), with(|_| 103));
        let mut sum = PlaneErrors::default();
        assert_eq!(sum.psnr().y, PSNR_CAP);
        sum.add(&PlaneErrors::between(&a, &a).unwrap());
        sum.add(&PlaneErrors::between(&a, &b).unwrap());
        // MSE 9 in one of two: 48.1308 - 10 log10 4.5 = 41.5987.
        assert!((sum.psnr().average - 41.5987).abs() < 1e-4);
        let other = Picture::new(200, 102).unwrap();
        let e = PlaneErrors::between(&a, &other).unwrap_err().to_string();
        assert!(e.contains("200x102") && e.contains("200x101"), "{e}");
    }
}
