//! Structural similarity as computed by its authors: windows of 11 x 11 samples weighted by a Gaussian of sigma 1.5,
//! one at every position where it fits (Wang et al. 2004, section III-C). The picture is used at full size, without the
//! authors' later suggestion to downscale large ones.

use super::ssim::{C1, C2, whole};

const TAPS: usize = 11;
const SIGMA: f64 = 1.5;
/// Subtracted from samples, so that their squares need fewer bits of a float. Variances are unaffected.
const OFFSET: f32 = 128.0;

/// Memory reused between pictures.
#[derive(Clone, Debug)]
pub(super) struct Gaussian {
    /// Weights of the middle tap and of its neighbours, which with their mirror images sum to 1.
    weights: [f32; TAPS / 2 + 1],
    /// For the last [`TAPS`] lines: a, b, a^2 + b^2, a b.
    lines: Vec<[Vec<f32>; 4]>,
    /// The same, summed over lines; then over columns as well.
    vertical: [Vec<f32>; 4],
    both: [Vec<f32>; 4],
}

impl Default for Gaussian {
    fn default() -> Self {
        let raw = |i: usize| libm::exp(-((i * i) as f64) / (2.0 * SIGMA * SIGMA));
        let sum: f64 = raw(0) + 2.0 * (1..=TAPS / 2).map(raw).sum::<f64>();
        let mut weights = [0.0; TAPS / 2 + 1];
        weights.iter_mut().enumerate().for_each(|(i, w)| *w = (raw(i) / sum) as f32);
        Self { weights, lines: vec![Default::default(); TAPS], vertical: Default::default(), both: Default::default() }
    }
}

impl Gaussian {
    /// Mean SSIM of two planes; a plane smaller than a window is one window without weights.
    pub(super) fn ssim(&mut self, a: &[u8], b: &[u8], width: usize) -> f64 {
        let height = a.len() / width;
        if width < TAPS || height < TAPS {
            return whole(a, b);
        }
        let (across, down) = (width - TAPS + 1, height - TAPS + 1);
        self.vertical.iter_mut().for_each(|v| v.resize(width, 0.0));
        self.both.iter_mut().for_each(|v| v.resize(across, 0.0));
        let mut sum = 0.0;
        for (y, (a, b)) in a.chunks_exact(width).zip(b.chunks_exact(width)).enumerate() {
            // The newest line replaces the oldest.
            self.lines.rotate_left(1);
            prepare(a, b, &mut self.lines[TAPS - 1]);
            if y + 1 < TAPS {
                continue;
            }
            for k in 0..4 {
                let line = |i: usize| &self.lines[i][k][..width];
                weigh(&self.weights, core::array::from_fn(line), &mut self.vertical[k]);
                let shifted = |i: usize| &self.vertical[k][i..i + across];
                weigh(&self.weights, core::array::from_fn(shifted), &mut self.both[k]);
            }
            sum += row(&self.both);
        }
        sum / (across * down) as f64
    }
}

fn prepare(a: &[u8], b: &[u8], out: &mut [Vec<f32>; 4]) {
    out.iter_mut().for_each(|v| v.resize(a.len(), 0.0));
    let [oa, ob, squares, products] = out;
    let outs = oa.iter_mut().zip(ob).zip(squares.iter_mut().zip(products));
    for ((&a, &b), ((oa, ob), (s, p))) in a.iter().zip(b).zip(outs) {
        let (a, b) = (f32::from(a) - OFFSET, f32::from(b) - OFFSET);
        (*oa, *ob, *s, *p) = (a, b, a * a + b * b, a * b);
    }
}

/// The weighted sum of eleven slices of equal length.
fn weigh(weights: &[f32; TAPS / 2 + 1], of: [&[f32]; TAPS], out: &mut [f32]) {
    let n = out.len();
    let of = of.map(|s| &s[..n]);
    for (i, out) in out.iter_mut().enumerate() {
        *out = weights[0] * of[5][i]
            + weights[1] * (of[4][i] + of[6][i])
            + weights[2] * (of[3][i] + of[7][i])
            + weights[3] * (of[2][i] + of[8][i])
            + weights[4] * (of[1][i] + of[9][i])
            + weights[5] * (of[0][i] + of[10][i]);
    }
}

/// The sum of SSIM along a row of windows, in eight lanes, independent of the processor.
fn row(sums: &[Vec<f32>; 4]) -> f64 {
    let (c1, c2) = (C1 as f32, C2 as f32);
    let similarity = |a: f32, b: f32, squares: f32, products: f32| {
        let variances = squares - a * a - b * b;
        let covariance = products - a * b;
        let (a, b) = (a + OFFSET, b + OFFSET);
        (2.0 * a * b + c1) * (2.0 * covariance + c2) / ((a * a + b * b + c1) * (variances + c2))
    };
    let [a, b, s, p] = sums;
    let mut lanes = [0.0f32; 8];
    let mut rest = 0.0f64;
    let chunks = a.chunks(8).zip(b.chunks(8)).zip(s.chunks(8).zip(p.chunks(8)));
    for ((a, b), (s, p)) in chunks {
        if a.len() == 8 {
            let (a, b, s, p) = (&a[..8], &b[..8], &s[..8], &p[..8]);
            for i in 0..8 {
                lanes[i] += similarity(a[i], b[i], s[i], p[i]);
            }
        } else {
            rest += (0..a.len()).map(|i| f64::from(similarity(a[i], b[i], s[i], p[i]))).sum::<f64>();
        }
    }
    lanes.iter().map(|&v| f64::from(v)).sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, in double precision and unoptimised.
    fn plain(a: &[u8], b: &[u8], width: usize) -> f64 {
        let height = a.len() / width;
        let weight = |i: usize| (-((i as f64 - 5.0).powi(2)) / 4.5).exp();
        let total: f64 = (0..11).map(weight).sum::<f64>().powi(2);
        let (mut sum, mut windows) = (0.0, 0.0);
        for y in 0..=height - 11 {
            for x in 0..=width - 11 {
                let mean = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
                    let at = |i: usize| {
                        let place = (y + i / 11) * width + x + i % 11;
                        weight(i / 11) * weight(i % 11) / total * f(a[place].into(), b[place].into())
                    };
                    (0..121).map(at).sum()
                };
                let (ma, mb) = (mean(&|a, _| a), mean(&|_, b| b));
                let (va, vb) = (mean(&|a, _| (a - ma).powi(2)), mean(&|_, b| (b - mb).powi(2)));
                let covariance = mean(&|a, b| (a - ma) * (b - mb));
                sum += (2.0 * ma * mb + C1) * (2.0 * covariance + C2) / ((ma * ma + mb * mb + C1) * (va + vb + C2));
                windows += 1.0;
            }
        }
        sum / windows
    }

    #[test]
    fn the_fast_path_equals_the_definition() {
        for (width, height) in [(11, 11), (19, 12), (40, 37)] {
            let a: Vec<u8> = (0..width * height).map(|i| ((i * i * 31 + i * 7) >> 3) as u8).collect();
            for strength in [0, 3, 40] {
                let b: Vec<u8> =
                    a.iter().enumerate().map(|(i, &v)| v.saturating_add((i * 13 % (strength + 1)) as u8)).collect();
                let (fast, exact) = (Gaussian::default().ssim(&a, &b, width), plain(&a, &b, width));
                assert!((fast - exact).abs() < 2e-5, "{width}x{height} by {strength}: {fast} {exact}");
                assert_eq!(strength == 0, exact > 0.999_999_9);
            }
        }
    }

    #[test]
    fn flat_planes_do_not_suffer_from_rounding() {
        for v in [0u8, 128, 255] {
            let s = Gaussian::default().ssim(&vec![v; 400], &vec![v.saturating_sub(1); 400], 20);
            let (a, b) = (f64::from(v), f64::from(v.saturating_sub(1)));
            let exact = (2.0 * a * b + C1) / (a * a + b * b + C1);
            assert!((s - exact).abs() < 2e-4, "{v}: {s} {exact}");
        }
        assert_eq!(Gaussian::default().ssim(&[5; 30], &[5; 30], 6), 1.0);
    }

    #[test]
    fn scikit_image_measures_the_same() {
        // scikit-image 0.26.0, with x, y = numpy.meshgrid(numpy.arange(64), numpy.arange(48)) and
        // structural_similarity(a.astype("uint8"), b.astype("uint8"), gaussian_weights=True, sigma=1.5,
        // use_sample_covariance=False, data_range=255) of
        // a = (x * x * 3 + y * y * 5 + x * y) // 8 % 256, b = minimum(a + (x * 7 + y * 13) % (4 * k), 255).
        for (k, theirs) in [(1, 0.999_720_956), (4, 0.994_824_736), (9, 0.974_978_999)] {
            let place = |i: usize| (i % 64, i / 64);
            let a: Vec<u8> =
                (0..64 * 48).map(place).map(|(x, y)| ((x * x * 3 + y * y * 5 + x * y) / 8) as u8).collect();
            let b: Vec<u8> =
                (0..64 * 48).map(|i| a[i].saturating_add(((i % 64 * 7 + i / 64 * 13) % (4 * k)) as u8)).collect();
            let ours = Gaussian::default().ssim(&a, &b, 64);
            assert!((ours - theirs).abs() < 1e-6, "{k}: {ours} {theirs}");
        }
    }
}
