//! Measurements of one device in one region.

use super::LeafKey;
use crate::{DecayedSketch, Update, WallTime};
use weir_units::TimeDelta;

/// A mean with decaying weights.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: f32,
    weight: f32,
}

impl Mean {
    fn add(&mut self, value: Option<f32>, weight: f32) {
        if let Some(value) = value {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    fn decay(&mut self, factor: f32) {
        self.sum *= factor;
        self.weight *= factor;
    }

    pub(super) fn value(self) -> Option<f64> {
        (self.weight > 1e-4).then(|| f64::from(self.sum) / f64::from(self.weight))
    }
}

/// One device's reports from one region.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) device: u32,
    /// The time that the weights are of.
    pub(super) updated: WallTime,
    pub(super) sketch: DecayedSketch,
    pub(super) rtt: Mean,
    pub(super) loss: Mean,
}

/// The share of weight that is left after `age`, which may be negative.
pub(super) fn decay_over(age: TimeDelta, half_life: TimeDelta) -> f32 {
    let halves = age.as_secs_f64() / half_life.as_secs_f64().max(1.0);
    libm::exp2(-halves.clamp(0.0, 100.0)) as f32
}

impl Entry {
    pub(super) fn new(device: u32, time: WallTime) -> Self {
        Self { device, updated: time, sketch: DecayedSketch::default(), rtt: Mean::default(), loss: Mean::default() }
    }

    pub(super) fn add(&mut self, update: &Update, half_life: TimeDelta) {
        let age = update.time_ms.since(self.updated);
        let mut weight = 1.0;
        if age.is_negative() {
            // Measured before what is here already.
            weight = decay_over(-age, half_life);
        } else {
            let factor = decay_over(age, half_life);
            // Passing a region takes seconds to minutes, in which nothing decays.
            if factor < 0.999 {
                self.sketch.decay(factor);
                self.rtt.decay(factor);
                self.loss.decay(factor);
                self.updated = update.time_ms;
            }
        }
        self.sketch.insert(update.throughput, weight);
        self.rtt.add(update.rtt_ms, weight);
        self.loss.add(update.loss, weight);
    }

    /// The sum of weights at a time.
    pub(super) fn weight(&self, at: WallTime, half_life: TimeDelta) -> f64 {
        f64::from(self.sketch.weight() * decay_over(at.since(self.updated), half_life))
    }
}

/// Reports from one cell by operator, technology and part of the week.
#[derive(Clone, Debug)]
pub(super) struct Leaf {
    pub(super) key: LeafKey,
    /// By device.
    pub(super) entries: Vec<Entry>,
}
