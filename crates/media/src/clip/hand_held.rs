//! A person in front of a building, filmed with a hand-held camera.

use super::art::{Backdrop, Sprite, fractal, hash, mix, noise, rectangle, unit};
use super::draw::{self, Pose};
use super::face::{self, Cover, Dress, Expression, Head};
use super::motion::{blink, ease, speech, swing, wander};
use super::talking_head::unit_of;
use crate::Picture;

/// Height of the head relative to the picture.
const HEAD: f64 = 0.62;
/// Margin around the picture for the hand's motion, in units.
const MARGIN: f64 = 0.14;
/// Extent of the camera's pan, in picture widths.
const SWING: f64 = 0.95;
/// Period in seconds; the camera pans at 6 s, and back at 9 s.
const CYCLE: f64 = 10.0;

pub(super) struct Site {
    building: Backdrop,
    body: Sprite,
    head: Head,
    unit: f64,
    size: (f64, f64),
    seed: u32,
}

impl Site {
    pub(super) fn new(size: (u32, u32), seed: u32) -> Self {
        let unit = unit_of(size);
        let (w, h) = (f64::from(size.0), f64::from(size.1));
        let k = 1.0 / unit as f32;
        let whole = (((1.0 + SWING) * w + 2.0 * MARGIN * unit) as usize + 8, (h + 2.0 * MARGIN * unit) as usize + 8);
        let building = Backdrop::paint(whole, |x, y| building(x * k, y * k, k, seed));
        let scale = (unit * HEAD) as f32;
        Self {
            building,
            body: face::body(scale, Dress::Shirt, 1.3, seed),
            head: Head::new(scale, Cover::Helmet, seed),
            unit,
            size: (w, h),
            seed,
        }
    }

    pub(super) fn draw(&mut self, t: f64, picture: &mut Picture) {
        let s = self.seed;
        let phase = t - (t / CYCLE).floor() * CYCLE;
        let over = ease(phase, 6.0, 7.1) - ease(phase, 8.9, 9.9);
        // The hand trembles fast by little, and drifts slowly by much.
        let shake = |seed: u32| {
            0.06 * wander(t, s ^ seed) + 0.02 * wander(t * 2.7, s ^ seed ^ 1) + 0.008 * wander(t * 9.0, s ^ seed ^ 2)
        };
        let (dx, dy) = (shake(30), 0.8 * shake(40) + 0.03 * over * swing(t, 0.7));
        let camera = ((MARGIN + dx) * self.unit + over * SWING * self.size.0, (MARGIN + dy) * self.unit);
        draw::backdrop(picture, &self.building, camera);
        // The head is at one place of the scene, and moves around it.
        let x = 0.05 * swing(t, 0.37) + 0.03 * wander(t * 1.6, s ^ 50) - dx;
        let y = 0.02 * wander(t * 1.1, s ^ 51) + 0.012 * wander(t * 3.1, s ^ 52) - dy;
        let middle = (self.size.0 / 2.0 - over * SWING * self.size.0, self.size.1 / 2.0);
        let at = |share: f64| {
            let x = share * x + (1.0 - share) * -dx;
            (middle.0 + x * self.unit, middle.1 + (y - 0.02) * self.unit)
        };
        let turn = 0.11 * wander(t * 0.9, s ^ 53) + 0.03 * wander(t * 2.6, s ^ 54);
        draw::sprite(picture, &self.body, &Pose { at: at(0.6), turn: turn * 0.3, scale: (1.0, 1.0) });
        // Turning the head narrows it.
        let grow = 1.0 + 0.05 * wander(t * 0.7, s ^ 55);
        let scale = (grow * (1.0 - 0.07 * (1.0 + swing(t, 0.29))), grow);
        let mouth = (1.2 * speech(t, s)).min(1.0) as f32;
        let gaze = wander(t * 1.3, s ^ 56) as f32;
        self.head.draw(
            picture,
            &Pose { at: at(1.0), turn, scale },
            &Expression { closed: blink(t, s) as f32, mouth, gaze },
        );
    }
}

/// A construction site: a wall of boards, then brick, girders against the sky, windows.
fn building(x: f32, y: f32, soft: f32, seed: u32) -> [f32; 3] {
    let rough = 16.0 * fractal(x * 9.0, y * 9.0, 4, seed ^ 60)
        + 22.0 * noise(x * 60.0 + y * 30.0, y * 110.0, seed ^ 61)
        + 8.0 * noise(x * 150.0, y * 150.0, seed ^ 66);
    if x < 1.75 {
        // Slanting boards, as behind the foreman.
        let board = (x * 0.55 + y) * 11.0;
        let at = board - board.floor();
        let edge = if at < 0.1 { -74.0 } else { 24.0 * at };
        let tone = 26.0 * unit(board.floor() as i32, 5, seed ^ 62);
        return [128.0 + tone + edge + rough, 124.0, 131.0];
    }
    // Brick below, girders and sky above.
    let (brick_x, row) = (x * 13.0, (y * 30.0).floor());
    let shifted = brick_x + 0.5 * (row as i32 % 2) as f32;
    let joint = (shifted - shifted.floor() < 0.07) || (y * 30.0 - row < 0.16);
    let tone = 34.0 * unit(shifted.floor() as i32, row as i32, seed ^ 63);
    let brick = if joint { [158.0 + rough, 126.0, 130.0] } else { [86.0 + tone + rough, 116.0, 152.0] };
    let sky = [196.0 - 20.0 * y + 4.0 * fractal(x * 2.0, y * 4.0, 3, seed ^ 64), 134.0, 122.0];
    let diagonal = ((x * 3.0 + y * 4.0).fract().abs() < 0.09) || ((x * 3.0 - y * 4.0).fract().abs() < 0.09);
    let girder = rectangle((((x * 2.6).fract() - 0.5).abs(), y), (0.0, 0.0), (0.06, 9.0), soft * 2.6);
    let steel = [64.0 + rough, 126.0, 136.0];
    let mut above = mix(sky, steel, girder);
    if diagonal || (y * 3.7).fract() < 0.12 {
        above = steel;
    }
    let (column, floor) = ((x * 4.0).floor() as i32, (y * 5.0).floor() as i32);
    let window = rectangle(((x * 4.0).fract(), (y * 5.0).fract()), (0.5, 0.5), (0.26, 0.3), soft * 4.0);
    let glass = [40.0 + (hash(column, floor, seed) % 90) as f32 + rough, 134.0, 126.0];
    let below = mix(brick, glass, window);
    if y < 0.56 + 0.03 * noise(x * 3.0, 0.0, seed ^ 65) { above } else { below }
}
