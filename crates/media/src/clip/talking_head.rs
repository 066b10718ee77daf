//! A news reader in a studio.

use super::art::{Backdrop, Sprite, fractal, hash, lit, mix, noise, rectangle, unit, writing};
use super::draw::{self, Pose};
use super::face::{self, Cover, Dress, Expression, Head};
use super::motion::{blink, speech, swing, wander};
use crate::Picture;

/// Height of the head relative to the picture.
const HEAD: f64 = 0.44;

pub(super) struct Studio {
    wall: Backdrop,
    body: Sprite,
    head: Head,
    /// Samples per unit; the picture's centre.
    unit: f64,
    middle: (f64, f64),
    seed: u32,
}

/// Samples per unit: the height of the picture, or less if it is narrow.
pub(super) fn unit_of((width, height): (u32, u32)) -> f64 {
    f64::from(height).min(f64::from(width) * 0.75)
}

impl Studio {
    pub(super) fn new(size: (u32, u32), seed: u32) -> Self {
        let unit = unit_of(size);
        let middle = (f64::from(size.0) / 2.0, f64::from(size.1) / 2.0);
        let (k, m) = (1.0 / unit as f32, (middle.0 as f32, middle.1 as f32));
        let wall =
            Backdrop::paint((size.0 as usize, size.1 as usize), |x, y| wall((x - m.0) * k, (y - m.1) * k, k, seed));
        let scale = (unit * HEAD) as f32;
        Self {
            wall,
            body: face::body(scale, Dress::Suit, 1.45, seed),
            head: Head::new(scale, Cover::Hair, seed),
            unit,
            middle,
            seed,
        }
    }

    pub(super) fn draw(&mut self, t: f64, picture: &mut Picture) {
        draw::backdrop(picture, &self.wall, (0.0, 0.0));
        let s = self.seed;
        let mouth = speech(t, s);
        // The speaker sways slowly and nods with the words.
        let x = 0.018 * swing(t, 0.13) + 0.014 * wander(t * 1.1, s ^ 10);
        let y = 0.009 * wander(t * 0.8, s ^ 11) + 0.012 * wander(t * 2.4, s ^ 12) * (0.3 + mouth);
        let turn = 0.05 * wander(t * 0.7, s ^ 13) + 0.02 * wander(t * 2.1, s ^ 14);
        let grow = 1.0 + 0.02 * wander(t * 0.5, s ^ 15);
        let at = |share: f64| (self.middle.0 + share * x * self.unit, self.middle.1 + (share * y - 0.07) * self.unit);
        draw::sprite(picture, &self.body, &Pose { at: at(0.6), turn: turn * 0.2, scale: (1.0, 1.0) });
        let gaze = wander(t * 0.8, s ^ 16) as f32;
        let expression = Expression { closed: blink(t, s) as f32, mouth: mouth as f32, gaze: gaze * gaze * gaze };
        self.head.draw(picture, &Pose { at: at(1.0), turn, scale: (grow, grow) }, &expression);
    }
}

/// The studio's wall: panels, a screen with a map and text, a city in a window, a news ticker.
fn wall(x: f32, y: f32, soft: f32, seed: u32) -> [f32; 3] {
    let p = (x, y);
    let panel = ((x + 0.05) * 7.0).floor();
    let seam = 1.0 - (((x + 0.05) * 7.0 - panel) * 24.0).min(1.0);
    let grain = 3.0 * noise(x * 130.0, y * 18.0, seed ^ 20) + 5.0 * fractal(x * 4.0, y * 4.0, 3, seed ^ 21);
    let mut c = [84.0 - 40.0 * y + 7.0 * (panel as i32 % 2) as f32 + grain - 26.0 * seam, 146.0 + 8.0 * y, 114.0];
    // A screen on the right: land and sea, a grid, a headline.
    let (centre, half) = ((0.43, -0.2), (0.19, 0.15));
    c = mix(c, [30.0, 130.0, 127.0], rectangle(p, centre, (half.0 + 0.012, half.1 + 0.012), soft));
    let inside = rectangle(p, centre, half, soft);
    if inside > 0.0 {
        let land = ((fractal(x * 11.0, y * 11.0, 4, seed ^ 22) - 0.02) * 12.0).clamp(0.0, 1.0);
        let mut map =
            mix([110.0, 166.0, 100.0], lit([150.0, 108.0, 122.0], 18.0 * noise(x * 60.0, y * 60.0, seed ^ 23)), land);
        if ((x * 26.0).fract().abs() < 0.05) || ((y * 26.0).fract().abs() < 0.05) {
            map = lit(map, 24.0);
        }
        if y < -0.27 {
            map = mix([62.0, 118.0, 172.0], [224.0, 128.0, 128.0], writing(x * 52.0, (y + 0.35) * 40.0, seed ^ 24));
        }
        c = mix(c, map, inside);
    }
    // A window on the left: houses by night, with lights.
    let (centre, half) = ((-0.45, -0.14), (0.17, 0.26));
    c = mix(c, [156.0, 126.0, 129.0], rectangle(p, centre, (half.0 + 0.01, half.1 + 0.01), soft));
    let inside = rectangle(p, centre, half, soft);
    if inside > 0.0 {
        let house = (x * 22.0).floor() as i32;
        let roof = -0.26 + 0.24 * unit(house, 1, seed ^ 25);
        let (column, row) = ((x * 88.0).floor() as i32, (y * 60.0).floor() as i32);
        let light = hash(column, row, seed ^ 26) % 7 < 2 && (y * 60.0).fract().abs() > 0.35;
        let city = match (y > roof, light) {
            (true, true) => [170.0, 100.0, 142.0],
            (true, false) => [42.0 + 12.0 * unit(house, 2, seed), 134.0, 124.0],
            _ => [70.0 + 70.0 * (y + 0.4), 150.0, 124.0],
        };
        c = mix(c, city, inside);
    }
    // The strip at the bottom.
    if y > 0.38 {
        let strip = mix([170.0, 132.0, 126.0], [40.0, 130.0, 128.0], writing(x * 40.0, (y - 0.4) * 34.0, seed ^ 27));
        c = mix(c, strip, ((y - 0.38) / soft).clamp(0.0, 1.0));
    }
    c
}
