//! Motion as functions of time in seconds.

use super::art::unit;

/// Smooth noise from -1 to 1 that varies about once per second.
pub(super) fn wander(t: f64, seed: u32) -> f64 {
    let slot = t.floor();
    let f = t - slot;
    let smooth = f * f * f * (f * (f * 6.0 - 15.0) + 10.0);
    let at = |i: i32| f64::from(unit(i, 7, seed)) * 2.0 - 1.0;
    let (a, b) = (at(slot as i32), at((slot as i32).wrapping_add(1)));
    a + (b - a) * smooth
}

/// Rises smoothly from 0 at `from` to 1 at `to`.
pub(super) fn ease(t: f64, from: f64, to: f64) -> f64 {
    let f = ((t - from) / (to - from)).clamp(0.0, 1.0);
    f * f * (3.0 - 2.0 * f)
}

/// A sine of this frequency.
pub(super) fn swing(t: f64, hertz: f64) -> f64 {
    libm::sin(core::f64::consts::TAU * hertz * t)
}

/// Seconds per blink.
const BLINK_SLOT: f64 = 3.4;
const BLINK_LENGTH: f64 = 0.24;

/// How far eyes are closed, from 0 to 1: one blink every 2 to 5 s, of about a quarter of a second.
pub(super) fn blink(t: f64, seed: u32) -> f64 {
    let slot = (t / BLINK_SLOT).floor();
    let start = slot * BLINK_SLOT + f64::from(unit(slot as i32, 3, seed)) * (BLINK_SLOT - BLINK_LENGTH);
    let f = (t - start) / BLINK_LENGTH;
    if (0.0..1.0).contains(&f) { (1.0 - (2.0 * f - 1.0).abs()).min(0.5) * 2.0 } else { 0.0 }
}

/// How far a talking mouth is open, from 0 to 1: four to six syllables a second, with pauses between phrases.
pub(super) fn speech(t: f64, seed: u32) -> f64 {
    let phrase = ((wander(t * 0.6, seed) + 0.55) * 4.0).clamp(0.0, 1.0);
    phrase * (0.25 + 0.75 * wander(t * 9.5, seed ^ 0x99)).clamp(0.0, 1.0)
}
