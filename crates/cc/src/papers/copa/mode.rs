//! δ: constant, or smaller beside flows that fill buffers (section 2.2).

use super::config::Config;
use super::round_trips::RoundTrips;
use weir_units::{TimeDelta, Timestamp};

/// Least δ: a packet in 250 (1/δ grows by one a round trip without a loss).
const MIN_DELTA: f64 = 0.004;

#[derive(Clone, Debug)]
pub(super) struct Mode {
    default: f64,
    competes: bool,
    empty_within: i64,
    nearly_empty: f64,
    delta: f64,
    is_competing: bool,
    /// When the queue was nearly empty for the last time.
    empty_at: Option<Timestamp>,
    /// When δ changed for the last time.
    changed_at: Timestamp,
    reduced_at: Option<Timestamp>,
}

impl Mode {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            default: config.delta,
            competes: config.competes,
            empty_within: config.empty_within.into(),
            nearly_empty: config.nearly_empty,
            delta: config.delta,
            is_competing: false,
            empty_at: None,
            changed_at: Timestamp::ZERO,
            reduced_at: None,
        }
    }

    pub(super) fn delta(&self) -> f64 {
        self.delta
    }
    pub(super) fn is_competing(&self) -> bool {
        self.is_competing
    }

    /// A packet's round trip has ended at `now`.
    pub(super) fn on_round_trip(&mut self, r: &RoundTrips, now: Timestamp) {
        if !self.competes {
            return;
        }
        let lap = r.lap();
        if r.queue() <= r.greatest_queue().mul_f64(self.nearly_empty) {
            self.empty_at = Some(now);
        }
        let empty_at = *self.empty_at.get_or_insert(now);
        let is_competing = now - empty_at > lap * self.empty_within;
        if is_competing != self.is_competing {
            (self.is_competing, self.changed_at, self.delta) = (is_competing, now, self.default);
        } else if is_competing && now - self.changed_at >= lap {
            self.changed_at = now;
            self.delta = (1.0 / (1.0 / self.delta + 1.0)).max(MIN_DELTA);
        }
    }

    /// A packet was lost: 1/δ is halved, once a round trip.
    pub(super) fn on_loss(&mut self, rtt: TimeDelta, now: Timestamp) {
        if self.is_competing && self.reduced_at.is_none_or(|at| now - at >= rtt) {
            self.reduced_at = Some(now);
            self.changed_at = now;
            self.delta = (self.delta * 2.0).min(self.default);
        }
    }
}
