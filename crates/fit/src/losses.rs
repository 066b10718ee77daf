//! Losses by chance: of packets that no queue and no policer dropped.

use crate::packets::Entered;
use crate::policer::PolicerFit;
use crate::queue::Queue;
use schemars::JsonSchema;
use serde::Serialize;

/// Losses by chance from an instant on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FitLossStep")]
pub struct LossStep {
    /// The instant, in s.
    pub from_s: f64,
    /// Share of the packets.
    pub share: f64,
}

/// Losses by chance.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct LossFit {
    /// Share over time.
    pub steps: Vec<LossStep>,
    /// Mean number of packets lost in a row.
    pub in_a_row: f64,
    /// Packets lost by chance, by the queue, and by a policer.
    pub by_chance: u32,
    /// Packets that the queue dropped.
    pub by_queue: u32,
    /// Packets that a policer dropped.
    pub by_policer: u32,
}

/// Windows in which shares are taken, in s, and how many standard deviations two differ by.
const WINDOW: f64 = 5.0;
const DIFFERENT: f64 = 4.0;

/// Lost, and all.
type Counts = (f64, f64);

/// Whether two shares differ by more than chance does. Losses in a row are one event.
fn differ(a: Counts, b: Counts, in_a_row: f64) -> bool {
    let pooled = (a.0 + b.0) / (a.1 + b.1).max(1.0);
    let variance = pooled * (1.0 - pooled) * (1.0 / a.1.max(1.0) + 1.0 / b.1.max(1.0)) * in_a_row;
    (a.0 / a.1.max(1.0) - b.0 / b.1.max(1.0)).abs() > DIFFERENT * libm::sqrt(variance)
}

pub(crate) fn find(packets: &[Entered], queue: &Queue, policer: Option<&PolicerFit>) -> LossFit {
    let mut out = LossFit { steps: Vec::new(), in_a_row: 1.0, by_chance: 0, by_queue: 0, by_policer: 0 };
    let end = packets.last().map_or(0.0, |p| p.at);
    let mut windows = vec![(0.0, 0.0); (end / WINDOW) as usize + 1];
    let (mut runs, mut run) = (0_u32, false);
    for (i, p) in packets.iter().enumerate() {
        let window = &mut windows[((p.at / WINDOW).max(0.0) as usize).min((end / WINDOW) as usize)];
        window.1 += f64::from(u8::from(!queue.full[i]));
        let chance = p.left.is_none() && !queue.overflowed[i];
        if p.left.is_none() && !chance {
            out.by_queue += 1;
        }
        if chance && policer.is_some() {
            out.by_policer += 1;
        } else if chance {
            out.by_chance += 1;
            window.0 += 1.0;
            runs += u32::from(!run);
        }
        run = chance;
    }
    if runs > 0 {
        out.in_a_row = (f64::from(out.by_chance) / f64::from(runs)).max(1.0);
    }
    // Neighbours that do not differ become one.
    let mut merged: Vec<(f64, Counts)> = Vec::new();
    for (k, w) in windows.iter().enumerate() {
        match merged.last_mut().filter(|(_, m)| !differ(*m, *w, out.in_a_row)) {
            Some((_, m)) => *m = (m.0 + w.0, m.1 + w.1),
            None => merged.push((k as f64 * WINDOW, *w)),
        }
    }
    out.steps =
        merged.into_iter().map(|(from_s, (lost, all))| LossStep { from_s, share: lost / all.max(1.0) }).collect();
    out
}
