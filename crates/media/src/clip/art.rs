//! Drawing of static shapes, textures and materials, as functions of position.

/// Luma, blue difference, red difference, each from 0 to 255.
pub(super) type Colour = [f32; 3];

/// A hash of a grid position.
pub(super) fn hash(x: i32, y: i32, seed: u32) -> u32 {
    let mut h =
        (x as u32).wrapping_mul(0x9e37_79b1) ^ (y as u32).wrapping_mul(0x85eb_ca77) ^ seed.wrapping_mul(0xc2b2_ae3d);
    h = (h ^ h >> 15).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ h >> 12).wrapping_mul(0x297a_2d39);
    h ^ h >> 15
}

/// The same, from 0 to 1.
pub(super) fn unit(x: i32, y: i32, seed: u32) -> f32 {
    (hash(x, y, seed) >> 8) as f32 / (1 << 24) as f32
}

/// Smooth noise from -1 to 1, with features of size 1.
pub(super) fn noise(x: f32, y: f32, seed: u32) -> f32 {
    let (x0, y0) = (x.floor(), y.floor());
    let (i, j) = (x0 as i32, y0 as i32);
    let smooth = |f: f32| f * f * (3.0 - 2.0 * f);
    let (fx, fy) = (smooth(x - x0), smooth(y - y0));
    let row = |j: i32| {
        let a = unit(i, j, seed);
        a + (unit(i.wrapping_add(1), j, seed) - a) * fx
    };
    let a = row(j);
    (a + (row(j.wrapping_add(1)) - a) * fy) * 2.0 - 1.0
}

/// Noise of `octaves` scales, each half as large and strong as the one before; from -1 to 1.
pub(super) fn fractal(x: f32, y: f32, octaves: u32, seed: u32) -> f32 {
    let (mut sum, mut strength, mut scale, mut total) = (0.0, 1.0, 1.0, 0.0);
    for octave in 0..octaves {
        sum += strength * noise(x * scale, y * scale, seed.wrapping_add(octave));
        total += strength;
        strength *= 0.5;
        scale *= 2.0;
    }
    sum / total
}

/// `a` at a `share` of 0, `b` at 1.
pub(super) fn mix(a: Colour, b: Colour, share: f32) -> Colour {
    let s = share.clamp(0.0, 1.0);
    [0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * s)
}

/// The same colour, brighter.
pub(super) fn lit(c: Colour, by: f32) -> Colour {
    [c[0] + by, c[1], c[2]]
}

/// Coverage of a point by an ellipse around `centre`; `soft` is the width of its edge.
pub(super) fn ellipse(p: (f32, f32), centre: (f32, f32), radii: (f32, f32), soft: f32) -> f32 {
    let (x, y) = ((p.0 - centre.0) / radii.0, (p.1 - centre.1) / radii.1);
    let outside = ((x * x + y * y).sqrt() - 1.0) * radii.0.min(radii.1);
    (0.5 - outside / soft).clamp(0.0, 1.0)
}

/// Coverage of a point by a rectangle.
pub(super) fn rectangle(p: (f32, f32), centre: (f32, f32), half: (f32, f32), soft: f32) -> f32 {
    let outside = ((p.0 - centre.0).abs() - half.0).max((p.1 - centre.1).abs() - half.1);
    (0.5 - outside / soft).clamp(0.0, 1.0)
}

/// Lines resembling text: 1 on a stroke. Letters are one unit wide, lines 2 apart.
pub(super) fn writing(x: f32, y: f32, seed: u32) -> f32 {
    let (line, letter) = ((y / 2.0).floor() as i32, x.floor() as i32);
    let (u, v) = (x - letter as f32, y - 2.0 * line as f32);
    // Words of some letters with gaps between them.
    if hash(letter, line, seed).is_multiple_of(6) || !(0.1..0.9).contains(&u) || !(0.2..1.4).contains(&v) {
        return 0.0;
    }
    let (column, row) = (((u - 0.1) * 3.75) as i32, ((v - 0.2) * 4.16) as i32);
    if hash(letter * 8 + column, line * 8 + row, seed ^ 0x55) % 5 < 3 { 1.0 } else { 0.0 }
}

fn byte(v: f32) -> u8 {
    // Saturates.
    (v + 0.5) as u8
}

/// Softens like a lens: 1, 2, 1 along rows and columns, with `n` values per position.
fn soften<const N: usize>(values: &mut [[u8; N]], width: usize) {
    let height = values.len() / width;
    let pass = |line: &mut dyn Iterator<Item = usize>, values: &mut [[u8; N]]| {
        let mut before: Option<[u8; N]> = None;
        let mut at: Option<usize> = None;
        for next in line {
            if let Some(i) = at {
                let (now, ahead) = (values[i], values[next]);
                let behind = before.unwrap_or(now);
                for k in 0..N {
                    let sum = u32::from(behind[k]) + 2 * u32::from(now[k]) + u32::from(ahead[k]);
                    values[i][k] = ((sum + 2) / 4) as u8;
                }
                before = Some(now);
            }
            at = Some(next);
        }
    };
    for y in 0..height {
        pass(&mut (y * width..(y + 1) * width), values);
    }
    for x in 0..width {
        pass(&mut (0..height).map(|y| y * width + x), values);
    }
}

/// A still picture, larger than the camera's view.
pub(super) struct Backdrop {
    /// Sizes and samples of Y, U and V.
    pub(super) planes: [(usize, usize, Vec<u8>); 3],
}

impl Backdrop {
    /// Paints `width` x `height` samples; `shade` is called with sample positions.
    pub(super) fn paint((width, height): (usize, usize), shade: impl Fn(f32, f32) -> Colour) -> Self {
        let mut all = Vec::with_capacity(width * height);
        for y in 0..height {
            all.extend((0..width).map(|x| shade(x as f32 + 0.5, y as f32 + 0.5).map(byte)));
        }
        soften(&mut all, width);
        let (cw, ch) = (width.div_ceil(2), height.div_ceil(2));
        let chroma = |k: usize| -> Vec<u8> {
            let sample = |x: usize, y: usize| u32::from(all[y.min(height - 1) * width + x.min(width - 1)][k]);
            let places = (0..ch).flat_map(|y| (0..cw).map(move |x| (2 * x, 2 * y)));
            places
                .map(|(x, y)| {
                    ((sample(x, y) + sample(x + 1, y) + sample(x, y + 1) + sample(x + 1, y + 1) + 2) / 4) as u8
                })
                .collect()
        };
        let (u, v) = (chroma(1), chroma(2));
        let luma = all.iter().map(|c| c[0]).collect();
        Self { planes: [(width, height, luma), (cw, ch, u), (cw, ch, v)] }
    }
}

/// A rectangular part of a sprite.
#[derive(Clone, Copy)]
pub(super) struct Patch {
    pub(super) centre: (f32, f32),
    /// Half its width and height.
    pub(super) half: (f32, f32),
}

/// A cut-out: colour and opacity. Its outermost texels are transparent.
#[derive(Clone)]
pub(super) struct Sprite {
    pub(super) width: usize,
    pub(super) texels: Vec<[u8; 4]>,
    /// Texels per unit of the shape's coordinates.
    pub(super) scale: f32,
}

impl Sprite {
    /// Paints the area within `half` of the origin in each direction; `shade` returns colour (also outside the shape,
    /// near edges) and opacity, from 0 to 1.
    pub(super) fn paint(scale: f32, half: (f32, f32), shade: impl Fn(f32, f32) -> (Colour, f32)) -> Self {
        let (width, height) = ((half.0 * 2.0 * scale) as usize + 4, (half.1 * 2.0 * scale) as usize + 4);
        let mut texels = Vec::with_capacity(width * height);
        for j in 0..height {
            for i in 0..width {
                let edge = i < 2 || j < 2 || i + 2 >= width || j + 2 >= height;
                let place = |at: usize, side: usize| (at as f32 + 0.5 - side as f32 / 2.0) / scale;
                let (c, opacity) = shade(place(i, width), place(j, height));
                let [y, u, v] = c.map(byte);
                texels.push([y, u, v, if edge { 0 } else { byte(opacity * 255.0) }]);
            }
        }
        soften(&mut texels, width);
        Self { width, texels, scale }
    }

    pub(super) fn height(&self) -> usize {
        self.texels.len() / self.width
    }

    /// Repaints a part over `base`, of which this sprite is a copy.
    pub(super) fn repaint(&mut self, base: &Self, patch: Patch, shade: impl Fn(f32, f32, Colour) -> Colour) {
        let Patch { centre, half } = patch;
        let (w, h, scale) = (self.width, self.height(), self.scale);
        let range = |centre: f32, half: f32, side: usize| {
            let middle = side as f32 / 2.0;
            let at = |v: f32| ((v * scale + middle) as usize).min(side);
            at(centre - half)..at(centre + half)
        };
        for j in range(centre.1, half.1, h) {
            for i in range(centre.0, half.0, w) {
                let [y, u, v, opacity] = base.texels[j * w + i];
                let place = |at: usize, side: usize| (at as f32 + 0.5 - side as f32 / 2.0) / scale;
                let old = [f32::from(y), f32::from(u), f32::from(v)];
                let [y, u, v] = shade(place(i, w), place(j, h), old).map(byte);
                self.texels[j * w + i] = [y, u, v, opacity];
            }
        }
    }
}
