//! Alpha: the share of the congestion controller's rate that the encoder gets, so that most frames are sent in time.

use super::config::Config;
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Least alpha (`compute_alpha` of the crate `vidaptive`).
const LEAST: f64 = 0.05;
/// Most frames that count: 120 a second for two seconds.
const MAX_FRAMES: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Headroom {
    alpha: f64,
    /// Service times at alpha = 1, in seconds, and when each frame had been sent.
    frames: VecDeque<(f64, Timestamp)>,
    sorted: Vec<f64>,
    updated_at: Timestamp,
}

impl Headroom {
    pub(super) fn new(now: Timestamp) -> Self {
        let frames = VecDeque::with_capacity(MAX_FRAMES);
        Self { alpha: 1.0, frames, sorted: Vec::with_capacity(MAX_FRAMES), updated_at: now }
    }

    pub(super) fn alpha(&self) -> f64 {
        self.alpha
    }

    /// A frame took `service` to be sent, at a rate of the congestion controller and a target of the encoder in bit/s.
    pub(super) fn on_frame(&mut self, service: TimeDelta, rate: f64, target: f64, now: Timestamp) {
        if target <= 0.0 || rate <= 0.0 {
            return;
        }
        if self.frames.len() == MAX_FRAMES {
            self.frames.pop_front();
        }
        self.frames.push_back((service.as_secs_f64() * rate / target, now));
    }

    /// Once a window: alpha after the frames of the last one.
    pub(super) fn update(&mut self, config: &Config, now: Timestamp) {
        if now - self.updated_at < config.window {
            return;
        }
        self.updated_at = now;
        while self.frames.front().is_some_and(|f| now - f.1 > config.window) {
            self.frames.pop_front();
        }
        self.sorted.clear();
        self.sorted.extend(self.frames.iter().map(|f| f.0));
        self.sorted.sort_by(f64::total_cmp);
        let wanted = quantile(&self.sorted, config.percentile)
            .map_or(1.0, |x| (config.service_time.as_secs_f64() / x.max(f64::MIN_POSITIVE)).clamp(LEAST, 1.0));
        self.alpha += config.weight * (wanted - self.alpha);
    }
}

/// The quantile of sorted values, between two of them by their distance.
fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let at = q * last as f64;
    let (below, above) = (at as usize, (at as usize + 1).min(last));
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64))
}
