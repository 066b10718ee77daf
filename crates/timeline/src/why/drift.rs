//! Clocks of the two ends that run at different speeds: delay grows one way as it shrinks the other way.

use super::bins::{BIN, Bin};
use super::passage::Passages;

/// Least half seconds that a slope is fitted to.
const LEAST: usize = 16;

/// Slopes of the least delays of half seconds by time, in ms a second.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Drift {
    /// Of packets on their way to the receiver.
    pub(super) there: f64,
    /// Of answers on their way back.
    pub(super) back: f64,
    /// Root mean square of what the line there leaves, in ms.
    pub(super) wander: f64,
}

/// The slopes in a time, where both ways are known.
pub(super) fn drift(of: &Passages, bins: &[Bin], range: (f64, f64)) -> Option<Drift> {
    let inside = bins.iter().filter(|b| b.at >= range.0 && b.at < range.1);
    let there: Vec<(f64, f64)> = inside.filter_map(|b| Some((b.at, b.delay?[0]))).collect();
    let mut back: Vec<(f64, f64)> = Vec::new();
    for (sent, at) in of.answers.iter().filter_map(|a| Some((a.sent?, a.arrived?))) {
        if !(range.0..range.1).contains(&at) {
            continue;
        }
        let (bin, way) = ((at / BIN).floor() * BIN, (at - sent) * 1e3);
        match back.last_mut().filter(|last| last.0 == bin) {
            Some(last) => last.1 = last.1.min(way),
            None => back.push((bin, way)),
        }
    }
    let ((there, wander), (back, _)) = (line(&there)?, line(&back)?);
    Some(Drift { there, back, wander })
}

/// Slope of the line through points by least squares, and the root mean square of what it leaves.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < LEAST {
        return None;
    }
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let (xx, xy) = points.iter().fold((0.0, 0.0), |(xx, xy), p| {
        let dx = p.0 - x;
        (xx + dx * dx, xy + dx * (p.1 - y))
    });
    let slope = if xx > 0.0 { xy / xx } else { return None };
    let rest = points.iter().map(|p| p.1 - y - slope * (p.0 - x)).map(|r| r * r).sum::<f64>();
    Some((slope, libm::sqrt(rest / n)))
}
