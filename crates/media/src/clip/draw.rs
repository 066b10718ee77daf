//! Per-picture drawing: a moved background, sprites, and grain.

use super::art::{Backdrop, Sprite, hash};
use crate::{Picture, Plane};

/// Writes the camera's view of a backdrop, with its upper left corner at `at` (samples of luma, within the backdrop),
/// using bilinear interpolation.
pub(super) fn backdrop(picture: &mut Picture, backdrop: &Backdrop, at: (f64, f64)) {
    for (k, plane) in Plane::ALL.into_iter().enumerate() {
        let (w, h) = picture.size_of(plane);
        let (bw, bh, samples) = &backdrop.planes[k];
        // In 1/256 of this plane's samples. The last row and column are reserved for interpolation.
        let part = if k == 0 { 256.0 } else { 128.0 };
        let fixed = |at: f64, room: usize| ((at * part) as usize).min(room.saturating_sub(1) * 256);
        let (x, y) = (fixed(at.0, bw - w), fixed(at.1, bh - h));
        let (x, fx, y, fy) = (x / 256, (x % 256) as u32, y / 256, (y % 256) as u32);
        for (j, row) in picture.plane_mut(plane).chunks_exact_mut(w).enumerate() {
            let start = (y + j) * bw + x;
            if fx == 0 && fy == 0 {
                row.copy_from_slice(&samples[start..start + w]);
                continue;
            }
            let (a, b) = (&samples[start..start + w], &samples[start + 1..start + 1 + w]);
            let below = start + bw;
            let (c, d) = (&samples[below..below + w], &samples[below + 1..below + 1 + w]);
            for (i, out) in row.iter_mut().enumerate() {
                let top = u32::from(a[i]) * (256 - fx) + u32::from(b[i]) * fx;
                let bottom = u32::from(c[i]) * (256 - fx) + u32::from(d[i]) * fx;
                *out = ((top * (256 - fy) + bottom * fy + (1 << 15)) >> 16) as u8;
            }
        }
    }
}

/// Position of a sprite in the picture.
#[derive(Clone, Copy)]
pub(super) struct Pose {
    /// Its centre in samples of luma.
    pub(super) at: (f64, f64),
    /// Clockwise rotation in radians.
    pub(super) turn: f64,
    /// Samples per texel in each direction; negative values mirror.
    pub(super) scale: (f64, f64),
}

/// Draws a sprite over a picture.
pub(super) fn sprite(picture: &mut Picture, sprite: &Sprite, pose: &Pose) {
    let (sin, cos) = (libm::sin(pose.turn), libm::cos(pose.turn));
    let (tw, th) = (sprite.width, sprite.height());
    let half = (tw as f64 / 2.0, th as f64 / 2.0);
    let reach = (half.0 * pose.scale.0.abs(), half.1 * pose.scale.1.abs());
    // Half the bounding box of the rotated sprite.
    let (rx, ry) = (reach.0 * cos.abs() + reach.1 * sin.abs(), reach.0 * sin.abs() + reach.1 * cos.abs());
    for (k, plane) in Plane::ALL.into_iter().enumerate() {
        let (w, h) = picture.size_of(plane);
        let step = if k == 0 { 1.0 } else { 2.0 };
        let range = |middle: f64, reach: f64, side: usize| {
            let at = |v: f64| (v / step).clamp(0.0, side as f64) as usize;
            at(middle - reach)..at(middle + reach + step)
        };
        let (xs, ys) = (range(pose.at.0, rx, w), range(pose.at.1, ry, h));
        // Steps in texels, in 1/65,536, per step in this plane.
        let fixed = |v: f64| (v * 65_536.0) as i64;
        let (ax, ay) = (fixed(cos * step / pose.scale.0), fixed(-sin * step / pose.scale.1));
        for y in ys {
            let (dx, dy) = ((xs.start as f64 + 0.5) * step - pose.at.0, (y as f64 + 0.5) * step - pose.at.1);
            let mut tx = fixed((dx * cos + dy * sin) / pose.scale.0 + half.0 - 0.5);
            let mut ty = fixed((dy * cos - dx * sin) / pose.scale.1 + half.1 - 0.5);
            let row = &mut picture.plane_mut(plane)[y * w..(y + 1) * w];
            for out in &mut row[xs.clone()] {
                let (i, j) = ((tx >> 16) as usize, (ty >> 16) as usize);
                // Negative values are huge here.
                if i < tw - 1 && j < th - 1 {
                    blend(out, k, &sprite.texels[j * tw + i..], tw, ((tx >> 8) as u32 & 255, (ty >> 8) as u32 & 255));
                }
                tx += ax;
                ty += ay;
            }
        }
    }
}

/// Blends a point between four texels over a sample.
#[inline]
fn blend(out: &mut u8, k: usize, texels: &[[u8; 4]], tw: usize, (fx, fy): (u32, u32)) {
    let (top, bottom) = (&texels[..2], &texels[tw..tw + 2]);
    let of = |k: usize| {
        let upper = u32::from(top[0][k]) * (256 - fx) + u32::from(top[1][k]) * fx;
        let lower = u32::from(bottom[0][k]) * (256 - fx) + u32::from(bottom[1][k]) * fx;
        (upper * (256 - fy) + lower * fy) >> 8
    };
    let opacity = of(3) >> 8;
    if opacity == 0 {
        return;
    }
    let (new, old) = (of(k) >> 8, u32::from(*out));
    *out = ((new * opacity + old * (255 - opacity) + 127) / 255) as u8;
}

/// Number of positions at which a row of noise may start.
const GRAIN: usize = 1 << 15;

/// Sensor noise, different for each picture.
pub(super) struct Grain {
    values: Vec<i8>,
    seed: u32,
}

impl Grain {
    /// Noise with this standard deviation in luma, and half of it in chroma.
    pub(super) fn new(sigma: f32, seed: u32) -> Self {
        // The sum of four uniform bytes is close to a normal distribution with standard deviation 256 / sqrt(3).
        let raw = |i: usize| -> f32 {
            let sum: u32 = hash(i as i32, 0, seed ^ 0x6e01_5e00).to_le_bytes().iter().map(|&b| u32::from(b)).sum();
            sum as f32 - 510.0
        };
        // Neighbours are correlated, as after a lens: weights 1, 3, 1, with a norm of 3.317.
        let scale = sigma / (147.8 * 3.317);
        let value = |i: usize| {
            let v = (raw(i) + 3.0 * raw(i + 1) + raw(i + 2)) * scale;
            (if v < 0.0 { v - 0.5 } else { v + 0.5 }) as i8
        };
        Self { values: (0..GRAIN + crate::MAX_SIDE as usize).map(value).collect(), seed }
    }

    pub(super) fn add(&self, number: u64, picture: &mut Picture) {
        for (k, plane) in Plane::ALL.into_iter().enumerate() {
            let (w, _) = picture.size_of(plane);
            let seed = self.seed ^ (number >> 32) as u32 ^ ((k as u32) << 24);
            for (j, row) in picture.plane_mut(plane).chunks_exact_mut(w).enumerate() {
                let start = hash(number as i32, j as i32, seed) as usize % GRAIN;
                let noise = &self.values[start..start + w];
                if k == 0 {
                    row.iter_mut().zip(noise).for_each(|(s, &n)| *s = s.saturating_add_signed(n));
                } else {
                    row.iter_mut().zip(noise).for_each(|(s, &n)| *s = s.saturating_add_signed(n / 2));
                }
            }
        }
    }
}
