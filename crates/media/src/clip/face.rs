//! A head with blinking eyes and a moving mouth, and its shoulders. Units are heads: a head is about one high, with its
//! centre at the origin.

use super::art::{Colour, Patch, Sprite, ellipse, fractal, lit, mix, noise, rectangle};
use super::draw::{self, Pose};
use crate::Picture;

const SKIN: Colour = [150.0, 112.0, 150.0];
const HAIR: Colour = [48.0, 126.0, 133.0];
const LIP: Colour = [112.0, 116.0, 162.0];
const MOUTH_BOX: Patch = Patch { centre: (0.0, 0.27), half: (0.17, 0.12) };
const EYE_BOX: Patch = Patch { centre: (0.0, -0.07), half: (0.26, 0.09) };
/// Half the width and height of a head's sprite.
const HALF: (f32, f32) = (0.52, 0.68);

/// The part that covers the head.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cover {
    Hair,
    Helmet,
}

/// A facial expression: values from 0 to 1, except for the gaze, from -1 to 1.
#[derive(Clone, Copy)]
pub(super) struct Expression {
    pub(super) closed: f32,
    pub(super) mouth: f32,
    pub(super) gaze: f32,
}

pub(super) struct Head {
    base: Sprite,
    now: Sprite,
    seed: u32,
}

impl Head {
    /// A head of `scale` samples.
    pub(super) fn new(scale: f32, cover: Cover, seed: u32) -> Self {
        let base = Sprite::paint(scale, HALF, |x, y| head(x, y, 1.5 / scale, cover, seed));
        Self { now: base.clone(), base, seed }
    }

    /// Draws it with this expression.
    pub(super) fn draw(&mut self, picture: &mut Picture, pose: &Pose, expression: &Expression) {
        let (soft, seed) = (1.5 / self.base.scale, self.seed);
        self.now.repaint(&self.base, EYE_BOX, |x, y, c| eyes(x, y, c, soft, seed, expression));
        self.now.repaint(&self.base, MOUTH_BOX, |x, y, c| mouth(x, y, c, soft, expression.mouth));
        draw::sprite(picture, &self.now, pose);
    }
}

fn skin(x: f32, y: f32, seed: u32) -> Colour {
    // Light from the upper left, blotches, and pores.
    let shade = -46.0 * x - 26.0 * y - 60.0 * x * x + 10.0 * fractal(x * 7.0, y * 7.0, 3, seed);
    let pores = 9.0 * noise(x * 48.0, y * 48.0, seed ^ 1) + 5.0 * noise(x * 110.0, y * 110.0, seed ^ 8);
    [SKIN[0] + shade + pores, SKIN[1], SKIN[2] + 5.0 * noise(x * 5.0, y * 5.0, seed ^ 2)]
}

fn head(x: f32, y: f32, soft: f32, cover: Cover, seed: u32) -> (Colour, f32) {
    let p = (x, y);
    let mut c = skin(x, y, seed);
    let face = ellipse(p, (0.0, 0.02), (0.33, 0.46), soft);
    let ears = ellipse((x.abs(), y), (0.34, 0.0), (0.045, 0.1), soft);
    // Brows, nose and its shadow, the lines beside the mouth.
    let brow = ellipse((x.abs(), y + 0.25 * (x.abs() - 0.14).abs()), (0.14, -0.165), (0.09, 0.02), soft);
    c = mix(c, lit(HAIR, 20.0 * noise(x * 90.0, y * 30.0, seed ^ 3)), 0.8 * brow);
    c = lit(c, -22.0 * ellipse(p, (0.045, 0.06), (0.03, 0.12), 0.05));
    c = lit(c, 16.0 * ellipse(p, (-0.01, 0.04), (0.022, 0.12), 0.03));
    c = mix(c, [70.0, 118.0, 146.0], 0.7 * ellipse((x.abs(), y), (0.035, 0.165), (0.018, 0.01), soft));
    c = lit(c, -14.0 * ellipse((x.abs() - 0.3 * (y - 0.2), y), (0.12, 0.2), (0.012, 0.07), 0.02));
    c = lit(c, -12.0 * ellipse((x.abs(), y), (0.14, -0.05), (0.085, 0.045), 0.04));
    c = mix(c, [c[0] - 6.0, 110.0, 160.0], 0.5 * ellipse((x.abs(), y), (0.2, 0.13), (0.09, 0.07), 0.12));
    let (top, opacity) = match cover {
        Cover::Hair => {
            let strands =
                34.0 * noise(x * 55.0 + 6.0 * y, y * 7.0, seed ^ 4) + 18.0 * noise(x * 130.0, y * 14.0, seed ^ 5);
            let shine = 40.0 * ellipse(p, (-0.12, -0.42), (0.16, 0.07), 0.1);
            let hair = lit(HAIR, strands + shine);
            let outer = ellipse(p, (0.0, -0.1), (0.385, 0.47), soft);
            // The hairline, with a parting.
            let line = -0.24 + 1.6 * x * x - 0.05 * noise(x * 14.0, 0.0, seed ^ 6);
            let above = (0.5 - (y - line) / soft.max(0.02)).clamp(0.0, 1.0);
            let beside = if y < 0.0 { (x.abs() - 0.3) / 0.02 } else { 0.0 };
            c = mix(c, hair, above.max(beside));
            (c, outer * if y < 0.02 { 1.0 } else { 0.0 })
        }
        Cover::Helmet => {
            let shell =
                lit([205.0, 122.0, 130.0], -70.0 * x - 30.0 * (y + 0.5) + 3.0 * noise(x * 40.0, y * 40.0, seed ^ 7));
            let ridge = rectangle(p, (-0.03, -0.45), (0.03, 0.2), soft);
            let brim = rectangle((x, y + 0.12 * x * x), (0.0, -0.25), (0.43, 0.02), soft);
            let dome = ellipse(p, (0.0, -0.24), (0.4, 0.38), soft) * if y < -0.24 { 1.0 } else { 0.0 };
            let shadow = -45.0 * ellipse(p, (0.0, -0.22), (0.34, 0.07), 0.08);
            c = mix(lit(c, shadow), lit(shell, 14.0 * ridge), dome);
            (mix(c, lit(shell, -50.0), brim), dome.max(brim))
        }
    };
    (top, face.max(ears).max(opacity))
}

fn eyes(x: f32, y: f32, base: Colour, soft: f32, seed: u32, e: &Expression) -> Colour {
    let side = if x < 0.0 { -0.135 } else { 0.135 };
    let open = ellipse((x, y), (side, -0.07), (0.06, 0.028), soft);
    if open == 0.0 {
        return base;
    }
    let at = (side + 0.018 * e.gaze, -0.072);
    let iris = ellipse((x, y), at, (0.027, 0.027), soft);
    let pupil = ellipse((x, y), at, (0.011, 0.011), soft);
    let glint = ellipse((x, y), (at.0 - 0.009, at.1 - 0.01), (0.006, 0.006), soft);
    let mut eye = mix([196.0, 126.0, 130.0], [78.0 + 16.0 * noise(x * 160.0, y * 160.0, seed), 140.0, 118.0], iris);
    eye = mix(mix(eye, [22.0, 128.0, 128.0], pupil), [230.0, 128.0, 128.0], glint);
    // The upper lid closes, with lashes at its edge.
    let edge = -0.1 + 0.062 * e.closed;
    eye = mix(eye, [40.0, 124.0, 134.0], (1.0 - ((y - edge) / 0.012).abs()).clamp(0.0, 1.0));
    let lid = ((edge - y) / soft + 0.5).clamp(0.0, 1.0);
    mix(base, mix(eye, lit(skin(x, y, seed), -14.0), lid), open)
}

fn mouth(x: f32, y: f32, base: Colour, soft: f32, open: f32) -> Colour {
    let (wide, gap) = (0.115 - 0.025 * open, 0.004 + 0.05 * open);
    let middle = 0.265 + 0.3 * gap;
    let lips = ellipse((x, y), (0.0, middle), (wide, gap + 0.026), soft);
    let inside = ellipse((x, y), (0.0, middle), (wide - 0.018, gap), soft);
    let teeth = inside * (0.5 - (y - middle + 0.45 * gap) / soft).clamp(0.0, 1.0);
    let lip = lit(LIP, -60.0 * (y - middle));
    let dark = mix([34.0, 122.0, 142.0], [190.0, 124.0, 130.0], teeth);
    let chin = lit(base, -18.0 * ellipse((x, y), (0.0, middle + gap + 0.05), (0.07, 0.014), 0.03));
    mix(mix(chin, lip, 0.85 * lips), dark, inside)
}

/// Clothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dress {
    Suit,
    Shirt,
}

/// Neck and shoulders, in heads, with the head's origin. `below` is their extent downwards.
pub(super) fn body(scale: f32, dress: Dress, below: f32, seed: u32) -> Sprite {
    let soft = 1.5 / scale;
    Sprite::paint(scale, (1.25, below), move |x, y| {
        let neck = rectangle((x, y), (0.0, 0.45), (0.17 + 0.12 * (y - 0.42).max(0.0), 0.3), soft);
        let top = 0.56 + 0.16 * x.abs() + 0.42 * x * x * x * x;
        let shoulders = if x.abs() < 1.2 { ((y - top) / soft + 0.5).clamp(0.0, 1.0) } else { 0.0 };
        let chest = ((y - 0.62) - 1.9 * x.abs() + 0.1 > 0.0) as u8 as f32;
        let folds = 14.0 * fractal(x * 3.0 + y, y * 2.0 - x, 3, seed) - 26.0 * x;
        let cloth = match dress {
            Dress::Suit => {
                let weave = if ((x * 90.0).floor() as i32 + (y * 90.0).floor() as i32) % 3 == 0 { 13.0 } else { 0.0 };
                let lapel = ((y - 0.62 - 1.75 * x.abs()).abs() < 0.012 * (1.0 + y)) as u8 as f32;
                let suit =
                    lit([58.0, 138.0, 122.0], folds + weave + 11.0 * noise(x * 60.0, y * 60.0, seed) - 24.0 * lapel);
                let shirt = lit(
                    [200.0, 130.0, 127.0],
                    folds - 30.0 * (((x * 46.0).floor() as i32 % 2 == 0) as u8 as f32) * 0.2,
                );
                let stripes = if ((y + 0.7 * x) * 13.0).floor() as i32 % 2 == 0 { 45.0 } else { 0.0 };
                let tie = rectangle((x, y), (0.0, 1.1), (0.03 + 0.05 * (y - 0.6), 0.5), soft);
                mix(suit, mix(shirt, lit([76.0, 118.0, 176.0], stripes + folds), tie), chest)
            }
            Dress::Shirt => {
                let check = [x, y].map(|v| ((v * 11.0).floor() as i32 % 2 == 0) as u8 as f32);
                let shirt = lit(
                    [88.0, 142.0, 116.0],
                    folds + 34.0 * check[0] + 34.0 * check[1] + 12.0 * noise(x * 60.0, y * 60.0, seed),
                );
                mix(shirt, skin(x, y - 0.5, seed), chest * ((0.8 - y) / 0.02).clamp(0.0, 1.0))
            }
        };
        let under_chin = lit(skin(x, y - 0.3, seed), -48.0 + 30.0 * (y - 0.4));
        (mix(under_chin, cloth, shoulders), neck.max(shoulders))
    })
}
