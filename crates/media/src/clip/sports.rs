//! Players on a field.

use super::art::{Backdrop, Colour, Sprite, ellipse, fractal, hash, lit, mix, noise, rectangle, unit, writing};
use super::draw::{self, Pose};
use super::motion::{swing, wander};
use super::talking_head::unit_of;
use crate::Picture;

/// Extent of the camera's motion to each side, in picture widths, and its frequency.
const REACH: f64 = 0.8;
const HERTZ: f64 = 0.14;
/// Margin above and below, in units.
const MARGIN: f64 = 0.06;
const PLAYERS: usize = 18;
/// Steps of a run.
const STEPS: usize = 6;
/// Height of a player relative to the picture.
const TALL: f64 = 0.3;

pub(super) struct Field {
    ground: Backdrop,
    /// Players of both teams, by step of their run.
    players: Vec<Sprite>,
    unit: f64,
    size: (f64, f64),
    seed: u32,
}

impl Field {
    pub(super) fn new(size: (u32, u32), seed: u32) -> Self {
        let unit = unit_of(size);
        let (w, h) = (f64::from(size.0), f64::from(size.1));
        let k = 1.0 / unit as f32;
        let whole =
            ((w * (1.0 + 2.0 * REACH) + 2.0 * MARGIN * unit) as usize + 8, (h + 2.0 * MARGIN * unit) as usize + 8);
        let (middle, top) = (whole.0 as f32 / 2.0, (h / 2.0 + MARGIN * unit) as f32);
        let ground = Backdrop::paint(whole, |x, y| ground((x - middle) * k, (y - top) * k, k, seed));
        let scale = (TALL * unit) as f32;
        let players = (0..2 * STEPS)
            .map(|i| {
                Sprite::paint(scale, (0.36, 0.56), |x, y| {
                    player(x, y, 1.5 / scale, i / STEPS == 0, (i % STEPS) as f32 / STEPS as f32, seed)
                })
            })
            .collect();
        Self { ground, players, unit, size: (w, h), seed }
    }

    pub(super) fn draw(&mut self, t: f64, picture: &mut Picture) {
        let s = self.seed;
        // The camera follows the play with a lag and unsteadily.
        let look = |t: f64| REACH * 0.94 * swing(t, HERTZ) * self.size.0 / self.unit;
        let dx = look(t) + 0.05 * wander(t * 1.7, s ^ 70);
        let dy = 0.04 * wander(t * 1.3, s ^ 71) + 0.006 * wander(t * 7.0, s ^ 72);
        let camera = (REACH * self.size.0 + (MARGIN + dx) * self.unit, (MARGIN + dy) * self.unit);
        draw::backdrop(picture, &self.ground, (camera.0.max(0.0), camera.1.max(0.0)));
        for i in 0..PLAYERS {
            // Distant players are drawn first, higher and smaller.
            let depth = (i as f64 + 0.5) / PLAYERS as f64;
            let own = |k: i32| f64::from(unit(i as i32, k, s ^ 73));
            // Around the play, each on its own path.
            let spread = 0.5 * self.size.0 / self.unit + 0.25;
            let place =
                |t: f64| look(t - 0.3) + spread * wander(t * (0.3 + 0.4 * own(0)) + 9.0 * own(1), s ^ (100 + i as u32));
            let x = place(t) - dx;
            let forward = place(t + 0.05) >= place(t - 0.05);
            let run = (t * (2.2 + own(2)) + own(3)) * STEPS as f64;
            let y = -0.13
                + 0.46 * depth
                + 0.012 * libm::fabs(swing(t, 2.6 + own(2)))
                + 0.05 * wander(t * 0.5, s ^ (200 + i as u32))
                - dy;
            let grow = 0.55 + 0.65 * depth;
            let sprite = &self.players[(i % 2) * STEPS + run as usize % STEPS];
            let scale = (if forward { grow } else { -grow }, grow);
            let at = (self.size.0 / 2.0 + x * self.unit, self.size.1 / 2.0 + y * self.unit);
            let lean = (if forward { 0.12 } else { -0.12 }) + 0.06 * wander(t * 2.0, s ^ (300 + i as u32));
            draw::sprite(picture, sprite, &Pose { at, turn: lean, scale });
        }
    }
}

/// A crowd, boards with text, and grass with lines.
fn ground(x: f32, y: f32, soft: f32, seed: u32) -> Colour {
    if y < -0.24 {
        // Each spectator has a face, a coat and a gap.
        let (px, py) = (x * 30.0, y * 24.0);
        let row = py.floor();
        let px = px + 0.5 * (row as i32 % 2) as f32;
        let (i, j) = (px.floor() as i32, row as i32);
        let (u, v) = (px - px.floor(), py - row);
        let coat =
            [60.0 + 130.0 * unit(i, j, seed), 96.0 + 64.0 * unit(i, j, seed ^ 80), 96.0 + 64.0 * unit(i, j, seed ^ 81)];
        let face = ellipse((u, v), (0.5, 0.28 + 0.2 * unit(i, j, seed ^ 82)), (0.24, 0.24), 0.2);
        let body = ellipse((u, v), (0.5, 0.95), (0.5, 0.45), 0.2);
        let c = mix([34.0, 130.0, 128.0], coat, body);
        let light = 18.0 * fractal(x * 3.0, y * 5.0, 2, seed ^ 83) + 10.0 * noise(x * 110.0, y * 110.0, seed ^ 84);
        return lit(mix(c, [150.0, 114.0, 148.0], face), light);
    }
    if y < -0.15 {
        let board = (x * 1.7).floor() as i32;
        let ground = [
            60.0 + 130.0 * unit(board, 9, seed),
            90.0 + 80.0 * unit(board, 10, seed),
            90.0 + 80.0 * unit(board, 11, seed),
        ];
        return mix(
            ground,
            [226.0, 128.0, 128.0],
            writing(x * 24.0, (y + 0.235) * 28.0, seed ^ (85 + board as u32 % 7)),
        );
    }
    let stripe = if (x * 3.2).floor() as i32 % 2 == 0 { 9.0 } else { -9.0 };
    let blades = 13.0 * noise(x * 95.0, y * 170.0, seed ^ 86) + 9.0 * noise(x * 190.0, y * 330.0, seed ^ 87);
    let worn = fractal(x * 5.0, y * 11.0, 4, seed ^ 88);
    let mut c = lit([104.0, 104.0, 112.0], stripe + blades + 16.0 * worn);
    c = mix(c, [126.0, 118.0, 138.0], (worn - 0.25) * 2.0);
    // Lines across every five yards, and marks along two rows.
    let slanted = x - 0.18 * y;
    let across = ((slanted * 2.4).fract().abs() < 0.02) as u8 as f32;
    let mark =
        (((slanted * 24.0).fract().abs() < 0.12) && ((y - 0.02).abs() < 0.012 || (y - 0.3).abs() < 0.016)) as u8 as f32;
    let side = rectangle((x, y), (0.0, -0.11), (9.0, 0.008), soft);
    mix(c, [205.0 + blades, 126.0, 126.0], across.max(mark).max(side) * 0.85)
}

/// A runner of height 1, feet down, at a fraction of the run's step.
fn player(x: f32, y: f32, soft: f32, home: bool, step: f32, seed: u32) -> (Colour, f32) {
    let p = (x, y);
    let shirt: Colour = if home { [70.0, 120.0, 190.0] } else { [200.0, 130.0, 122.0] };
    let trousers: Colour = if home { [205.0, 126.0, 128.0] } else { [52.0, 160.0, 116.0] };
    let angle = core::f32::consts::TAU * step;
    let (sin, cos) = (libm::sinf(angle), libm::cosf(angle));
    let mut c = shirt;
    let mut opacity = 0.0f32;
    let mut lay = |colour: Colour, share: f32| {
        if share > 0.0 {
            c = if opacity == 0.0 { colour } else { mix(c, colour, share) };
            opacity = opacity.max(share);
        }
    };
    // Limbs, as ellipses between joints.
    let limb = |from: (f32, f32), to: (f32, f32), thick: f32| {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let along = (((x - from.0) * dx + (y - from.1) * dy) / (dx * dx + dy * dy)).clamp(0.0, 1.0);
        let (ex, ey) = (x - from.0 - along * dx, y - from.1 - along * dy);
        (0.5 - ((ex * ex + ey * ey).sqrt() - thick) / soft).clamp(0.0, 1.0)
    };
    for side in [-1.0f32, 1.0] {
        let (s, k) = (side * sin, side * cos);
        let knee = (0.12 * s, 0.22);
        let foot = (0.2 * s - 0.08 * (1.0 - k), 0.44 - 0.1 * k.max(0.0));
        lay(lit([130.0, 112.0, 150.0], -20.0 * side), limb(knee, foot, 0.035));
        lay([40.0, 128.0, 128.0], limb(foot, (foot.0 + 0.06, foot.1 + 0.01), 0.026));
        lay(lit(trousers, -18.0 * side), limb((0.0, 0.06), knee, 0.055));
    }
    let folds = 16.0 * noise(x * 18.0, y * 18.0, seed ^ 90);
    lay(lit(shirt, folds), ellipse(p, (0.0, -0.1), (0.115, 0.2), soft));
    let number = rectangle(p, (0.0, -0.12), (0.05, 0.07), soft)
        * writing((x + 0.05) * 18.0, (y + 0.2) * 12.0, hash(home as i32, 3, seed));
    lay([if home { 225.0 } else { 40.0 }, 128.0, 128.0], number);
    for side in [-1.0f32, 1.0] {
        let elbow = (-0.14 * side * sin, -0.1);
        lay(lit(shirt, -14.0), limb((0.0, -0.24), elbow, 0.036));
        lay([135.0, 112.0, 150.0], limb(elbow, (elbow.0 + 0.09, elbow.1 - 0.07), 0.028));
    }
    lay([138.0, 112.0, 150.0], ellipse(p, (0.03, -0.38), (0.07, 0.085), soft));
    lay([50.0, 124.0, 132.0], ellipse(p, (0.02, -0.43), (0.075, 0.055), soft));
    (c, opacity)
}
