//! Spatial and temporal information (ITU-T P.910, sections 7.7 and 7.8 in the edition of 2008): the amount of detail
//! and motion in pictures.

use crate::{Picture, Plane};

/// The range of luma samples. Sources disagree: the editions up to 2008 use samples as stored, and so do published
/// tables; ffmpeg's `siti` filter first stretches 16..235 to 0..255, which makes both values 1.16 times as large.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum LumaRange {
    /// As stored.
    #[default]
    Stored,
    /// Stretched from 16..235 to 0..255, in integers rounded down, as in ffmpeg.
    Stretched,
}

/// Measures a sequence picture by picture.
#[derive(Clone, Debug)]
pub struct Activity {
    levels: [u8; 256],
    now: Vec<u8>,
    before: Vec<u8>,
    size: (usize, usize),
    magnitudes: Vec<f32>,
}

/// A picture's values. A sequence's SI and TI are the maxima over its pictures.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SiTi {
    /// Standard deviation of luma after a Sobel filter, excluding edges; 0 for pictures with less than 3 samples on a
    /// side.
    pub si: f64,
    /// Standard deviation of the difference to the previous picture; `None` for the first one and after a change of
    /// size.
    pub ti: Option<f64>,
}

impl Activity {
    /// Before the first picture.
    pub fn new(range: LumaRange) -> Self {
        let level = |v: usize| match range {
            LumaRange::Stored => v as u8,
            LumaRange::Stretched => (v.saturating_sub(16).min(219) * 255 / 219) as u8,
        };
        let levels = core::array::from_fn(level);
        Self { levels, now: Vec::new(), before: Vec::new(), size: (0, 0), magnitudes: Vec::new() }
    }

    /// Measures the next picture.
    pub fn push(&mut self, picture: &Picture) -> SiTi {
        core::mem::swap(&mut self.now, &mut self.before);
        let size = picture.size_of(Plane::Y);
        let first = core::mem::replace(&mut self.size, size) != size;
        self.now.clear();
        self.now.extend(picture.plane(Plane::Y).iter().map(|&v| self.levels[usize::from(v)]));
        SiTi { si: self.spatial(), ti: (!first).then(|| temporal(&self.now, &self.before)) }
    }

    fn spatial(&mut self) -> f64 {
        let (w, h) = self.size;
        if w < 3 || h < 3 {
            return 0.0;
        }
        self.magnitudes.resize(w - 2, 0.0);
        let (mut sum, mut squares) = (0.0, 0u64);
        for y in 1..h - 1 {
            let line = |y: usize| &self.now[y * w..(y + 1) * w];
            let row = sobel(line(y - 1), line(y), line(y + 1), &mut self.magnitudes);
            squares += row;
            sum += in_lanes(&self.magnitudes);
        }
        let n = ((w - 2) * (h - 2)) as f64;
        deviation(sum / n, squares as f64 / n)
    }
}

/// From the means of values and of their squares.
fn deviation(mean: f64, squares: f64) -> f64 {
    libm::sqrt((squares - mean * mean).max(0.0))
}

/// Writes the gradient magnitudes of a line, and returns the sum of their squares.
fn sobel(upper: &[u8], middle: &[u8], lower: &[u8], out: &mut [f32]) -> u64 {
    let n = out.len();
    let at = |line: &'_ [u8], shift: usize| -> std::ops::Range<usize> {
        debug_assert!(line.len() == n + 2);
        shift..shift + n
    };
    let [u0, u1, u2] = [0, 1, 2].map(|k| &upper[at(upper, k)]);
    let [m0, m2] = [0, 2].map(|k| &middle[at(middle, k)]);
    let [l0, l1, l2] = [0, 1, 2].map(|k| &lower[at(lower, k)]);
    let mut squares = 0u64;
    for (chunk, out) in out.chunks_mut(256).enumerate() {
        let mut sum = 0u32;
        let start = chunk * 256;
        for (i, out) in out.iter_mut().enumerate() {
            let i = start + i;
            let v = |line: &[u8]| i32::from(line[i]);
            let x = v(u2) + 2 * v(m2) + v(l2) - v(u0) - 2 * v(m0) - v(l0);
            let y = v(l0) + 2 * v(l1) + v(l2) - v(u0) - 2 * v(u1) - v(u2);
            // At most 2 x 1020^2, of which 256 fit into 32 bits.
            let square = (x * x + y * y) as u32;
            sum += square;
            *out = (square as f32).sqrt();
        }
        squares += u64::from(sum);
    }
    squares
}

/// The sum of values in eight lanes, independent of the processor. The relative error of a line of 16,384 is 1e-6.
fn in_lanes(values: &[f32]) -> f64 {
    let mut sum = 0.0;
    for part in values.chunks(1_024) {
        let mut lanes = [0.0f32; 8];
        let chunks = part.chunks_exact(8);
        let rest: f32 = chunks.remainder().iter().sum();
        for chunk in chunks {
            (0..8).for_each(|i| lanes[i] += chunk[i]);
        }
        sum += lanes.iter().map(|&v| f64::from(v)).sum::<f64>() + f64::from(rest);
    }
    sum
}

fn temporal(now: &[u8], before: &[u8]) -> f64 {
    let (mut sum, mut squares) = (0i64, 0u64);
    for (now, before) in now.chunks(1 << 14).zip(before.chunks(1 << 14)) {
        let (mut s, mut q) = (0i32, 0u32);
        for (&a, &b) in now.iter().zip(before) {
            s += i32::from(a) - i32::from(b);
            q += u32::from(a.abs_diff(b)).pow(2);
        }
        sum += i64::from(s);
        squares += u64::from(q);
    }
    let n = now.len().max(1) as f64;
    deviation(sum as f64 / n, squares as f64 / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: u32, height: u32, f: impl Fn(usize, usize) -> u8) -> Picture {
        let mut p = Picture::new(width, height).unwrap();
        let w = width as usize;
        p.plane_mut(Plane::Y).iter_mut().enumerate().for_each(|(i, v)| *v = f(i % w, i / w));
        p
    }

    #[test]
    fn a_step_has_the_gradients_of_its_edge() {
        // A vertical edge of 20 in 10 columns: of 8 columns of gradients, two are 80, six are 0.
        let p = picture(10, 7, |x, _| if x < 5 { 100 } else { 120 });
        let s = Activity::new(LumaRange::Stored).push(&p);
        let mean: f64 = 2.0 * 80.0 / 8.0;
        let expected = (2.0 * 6_400.0 / 8.0 - mean * mean).sqrt();
        assert!((s.si - expected).abs() < 1e-6, "{s:?}");
        assert_eq!(s.ti, None);
        let single = picture(3, 3, |x, y| if x > y { 20 } else { 0 });
        // A single gradient has no variance.
        assert!(Activity::new(LumaRange::Stored).push(&single).si < 0.01);
    }

    #[test]
    fn motion_is_the_deviation_of_differences() {
        let mut a = Activity::new(LumaRange::Stored);
        a.push(&picture(8, 8, |_, _| 50));
        // Half the samples 10 brighter: deviation 5. Brighter everywhere: none.
        let ti = a.push(&picture(8, 8, |x, _| if x < 4 { 60 } else { 50 })).ti.unwrap();
        assert!((ti - 5.0).abs() < 1e-12);
        let ti = a.push(&picture(8, 8, |x, _| if x < 4 { 70 } else { 60 })).ti.unwrap();
        assert_eq!(ti, 0.0);
        assert_eq!(a.push(&picture(8, 9, |_, _| 0)).ti, None);
    }

    #[test]
    fn the_range_stretches_both() {
        let sequence = |range| {
            let mut a = Activity::new(range);
            a.push(&picture(64, 48, |x, y| 40 + ((x * 7 + y * 11) % 140) as u8));
            a.push(&picture(64, 48, |x, y| 40 + ((x * 7 + y * 13) % 140) as u8))
        };
        let (stored, stretched) = (sequence(LumaRange::Stored), sequence(LumaRange::Stretched));
        for (a, b) in [(stored.si, stretched.si), (stored.ti.unwrap(), stretched.ti.unwrap())] {
            assert!((b / a - 255.0 / 219.0).abs() < 0.01, "{a} {b}");
        }
        assert_eq!(Activity::new(LumaRange::Stretched).levels[235..], [255; 21]);
        assert_eq!(Activity::new(LumaRange::Stretched).levels[..17], [0; 17]);
    }

    #[test]
    fn small_and_extreme_pictures_are_measured() {
        assert_eq!(Activity::new(LumaRange::Stored).push(&picture(2, 9, |x, _| 255 * x as u8)).si, 0.0);
        let noise = picture(1_500, 20, |x, y| if (x * 7 + y * y * 3) % 5 < 2 { 255 } else { 0 });
        let si = Activity::new(LumaRange::Stored).push(&noise).si;
        assert!(si > 100.0 && si < 721.3, "{si}");
    }
}
