//! Structural similarity of luma (Wang, Bovik, Sheikh, Simoncelli: Image quality assessment, IEEE Trans. Image
//! Processing 13(4), 2004), over windows of 8 x 8 samples.
//!
//! Sources disagree on the windows and on the constants C1 = (K1 L)^2 and C2 = (K2 L)^2, with K1 = 0.01, K2 = 0.03 and
//! L = 255. Here:
//!
//! - *tiled*: adjacent windows, the constants of the paper, variance over n, as in libvpx's `vpx_ssim`;
//! - *overlapped*: a window every 4 samples, as in ffmpeg's `ssim` filter and x264; their C1 is 64 times smaller than
//!   the paper's, and their variance is over n - 1.
//!
//! Samples at the right and lower edge that do not fill a window are ignored. A plane smaller than a window is one
//! window.

/// (K1 L)^2 and (K2 L)^2 with L = 255.
pub(super) const C1: f64 = (0.01 * 255.0) * (0.01 * 255.0);
pub(super) const C2: f64 = (0.03 * 255.0) * (0.03 * 255.0);

/// Sums over a window: of both planes, of the squares of both together, of products.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Sums {
    a: u32,
    b: u32,
    squares: u32,
    products: u32,
}

impl Sums {
    fn and(self, o: Self) -> Self {
        Self {
            a: self.a + o.a,
            b: self.b + o.b,
            squares: self.squares + o.squares,
            products: self.products + o.products,
        }
    }

    /// SSIM of 64 samples; `c1` and `c2` are scaled like squared sums.
    #[inline]
    fn similarity(self, c1: f64, c2: f64) -> f64 {
        // Exact: no term needs more than 53 bits.
        let [a, b, squares, products] = [self.a, self.b, self.squares, self.products].map(f64::from);
        let variances = squares * 64.0 - a * a - b * b;
        let covariance = products * 64.0 - a * b;
        (2.0 * a * b + c1) * (2.0 * covariance + c2) / ((a * a + b * b + c1) * (variances + c2))
    }
}

/// Mean SSIM over the windows requested.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Blocks {
    pub(super) tiled: f64,
    pub(super) overlapped: f64,
}

/// Memory reused between pictures.
#[derive(Clone, Default, Debug)]
pub(super) struct Scratch {
    columns: [Vec<u32>; 4],
    rows: [Vec<Sums>; 2],
}

/// Both kinds at once, since they share their sums.
pub(super) fn ssim(a: &[u8], b: &[u8], width: usize, scratch: &mut Scratch) -> Blocks {
    let height = a.len() / width;
    if width < 8 || height < 8 {
        let one = whole(a, b);
        return Blocks { tiled: one, overlapped: one };
    }
    let (mut tiled, mut overlapped) = (0.0, 0.0);
    let across = width / 4;
    for row in 0..height / 4 {
        let start = row * 4 * width;
        let lines = start..start + 4 * width;
        sums_of_4x4(&a[lines.clone()], &b[lines], width, scratch);
        if row > 0 {
            let [upper, lower] = &scratch.rows;
            let pairs = upper.windows(2).zip(lower.windows(2));
            for (column, (u, l)) in pairs.enumerate() {
                let window = u[0].and(u[1]).and(l[0].and(l[1]));
                overlapped += window.similarity(X264_C1, X264_C2);
                if row % 2 == 1 && column % 2 == 0 {
                    tiled += window.similarity(C1 * 4096.0, C2 * 4096.0);
                }
            }
        }
        scratch.rows.swap(0, 1);
    }
    let windows = |across: usize, down: usize| (across * down) as f64;
    Blocks {
        tiled: tiled / windows(width / 8, height / 8),
        overlapped: overlapped / windows(across - 1, height / 4 - 1),
    }
}

/// As rounded by x264 and ffmpeg.
const X264_C1: f64 = 416.0;
const X264_C2: f64 = 235_963.0;

/// Sums of blocks of 4 x 4 along four lines.
fn sums_of_4x4(a: &[u8], b: &[u8], width: usize, scratch: &mut Scratch) {
    let w = width / 4 * 4;
    let line = |p: &'_ [u8], k: usize| -> std::ops::Range<usize> {
        debug_assert!(p.len() == 4 * width);
        k * width..k * width + w
    };
    let [a0, a1, a2, a3] = [0, 1, 2, 3].map(|k| &a[line(a, k)]);
    let [b0, b1, b2, b3] = [0, 1, 2, 3].map(|k| &b[line(b, k)]);
    for column in &mut scratch.columns {
        column.resize(w, 0);
    }
    let [sa, sb, ss, sp] = &mut scratch.columns;
    let (sa, sb, ss, sp) = (&mut sa[..w], &mut sb[..w], &mut ss[..w], &mut sp[..w]);
    for x in 0..w {
        let (p, q) = ([a0[x], a1[x], a2[x], a3[x]].map(u32::from), [b0[x], b1[x], b2[x], b3[x]].map(u32::from));
        sa[x] = p[0] + p[1] + p[2] + p[3];
        sb[x] = q[0] + q[1] + q[2] + q[3];
        ss[x] = (p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3])
            + (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        sp[x] = p[0] * q[0] + p[1] * q[1] + p[2] * q[2] + p[3] * q[3];
    }
    let row = &mut scratch.rows[1];
    row.clear();
    let four = |s: &[u32]| s[0] + s[1] + s[2] + s[3];
    let blocks = sa.chunks_exact(4).zip(sb.chunks_exact(4)).zip(ss.chunks_exact(4).zip(sp.chunks_exact(4)));
    row.extend(blocks.map(|((a, b), (s, p))| Sums { a: four(a), b: four(b), squares: four(s), products: four(p) }));
}

/// SSIM of all samples as one window, with the paper's constants.
pub(super) fn whole(a: &[u8], b: &[u8]) -> f64 {
    let n = a.len().max(1) as f64;
    let mean =
        |f: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(&a, &b)| f(f64::from(a), f64::from(b))).sum::<f64>() / n;
    let (ma, mb) = (mean(&|a, _| a), mean(&|_, b| b));
    let squares = mean(&|a, b| (a - ma) * (a - ma) + (b - mb) * (b - mb));
    let covariance = mean(&|a, b| (a - ma) * (b - mb));
    (2.0 * ma * mb + C1) * (2.0 * covariance + C2) / ((ma * ma + mb * mb + C1) * (squares + C2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(width: usize, height: usize, f: impl Fn(usize, usize) -> usize) -> Vec<u8> {
        (0..width * height).map(|i| f(i % width, i / width) as u8).collect()
    }

    fn both(a: &[u8], b: &[u8], width: usize) -> Blocks {
        ssim(a, b, width, &mut Scratch::default())
    }

    #[test]
    fn equal_planes_are_alike_and_negatives_are_opposite() {
        let a = plane(40, 33, |x, y| (x * 37 + y * 91) % 251);
        assert_eq!(both(&a, &a, 40), Blocks { tiled: 1.0, overlapped: 1.0 });
        let b: Vec<u8> = a.iter().map(|&v| 255 - v).collect();
        let s = both(&a, &b, 40);
        assert!(s.tiled < -0.8 && s.tiled >= -1.0, "{s:?}");
    }

    #[test]
    fn a_window_gives_the_equations_number() {
        // Uniform 100 and uniform 110: contrast and structure are 1, luminance is (2 ab + C1) / (a^2 + b^2 + C1).
        let (a, b) = (vec![100; 64], vec![110; 64]);
        let expected = (2.0 * 11_000.0 + 6.5025) / (10_000.0 + 12_100.0 + 6.5025);
        let s = both(&a, &b, 8);
        assert!((s.tiled - expected).abs() < 1e-12 && (s.tiled - 0.995_477).abs() < 1e-6, "{s:?}");
        assert!((whole(&a, &b) - expected).abs() < 1e-12);
        // x264's C1 is 64 times smaller.
        let theirs = (22_000.0 + 416.0 / 4096.0) / (22_100.0 + 416.0 / 4096.0);
        assert!((s.overlapped - theirs).abs() < 1e-12, "{s:?}");
    }

    #[test]
    fn windows_lie_where_they_should() {
        let a = plane(24, 16, |x, y| (x * 13 + y * 7) % 200);
        // Only the window at column 8, row 8 differs, so that one of 6 tiles is not 1.
        let b: Vec<u8> = (0..24 * 16).map(|i| if i % 24 / 8 == 1 && i / 24 >= 8 { 90 } else { a[i] }).collect();
        let tile = |p: &[u8]| -> Vec<u8> { (0..64).map(|i| p[(8 + i / 8) * 24 + 8 + i % 8]).collect() };
        let s = both(&a, &b, 24);
        assert!((s.tiled - (5.0 + whole(&tile(&a), &tile(&b))) / 6.0).abs() < 1e-9, "{s:?}");
        assert!(s.overlapped < s.tiled);
        // An edge of 7 samples is ignored.
        let crop = |p: &[u8]| plane(31, 23, |x, y| if x < 24 && y < 16 { p[y * 24 + x].into() } else { x * y % 256 });
        let (c, d) = (
            crop(&a),
            crop(&b)
                .iter()
                .enumerate()
                .map(|(i, &v)| if i % 31 >= 24 || i / 31 >= 16 { 0 } else { v })
                .collect::<Vec<_>>(),
        );
        assert_eq!(both(&c, &d, 31).tiled, s.tiled);
    }

    #[test]
    fn planes_below_a_window_are_one() {
        let (a, b) = (vec![10, 20, 30, 40, 50, 60], vec![11, 19, 30, 42, 50, 60]);
        let s = both(&a, &b, 3);
        assert_eq!(s.tiled, whole(&a, &b));
        assert!(s.tiled > 0.9 && s.tiled < 1.0);
    }
}
