//! Competitive mode: a loss-based flow keeps the queue full whatever this flow does.
//!
//! It begins when the queue persists although this flow has cut its rate, and does not shrink, as it would if the flow
//! were alone. Then the rate is additive increase and multiplicative decrease on loss, as that flow's. It ends when the
//! queue has been short for a moment.

use super::Config;

/// Span over which a shrinking queue is recognised, s.
const TREND: f64 = 0.4;
/// Decrease in s/s from which the queue counts as shrinking.
const SHRINKING: f64 = 0.3;
/// Time for which the rate of the last competition counts, s.
const MEMORY: f64 = 10.0;
/// Time after which the rate of the mode is tested, s.
const TEST_TIME: f64 = 0.15;
/// Share of it that has to be served.
const TEST_SHARE: f64 = 0.4;
/// Greatest factor by which what is served has to rise.
const TEST_GAIN: f64 = 1.5;
/// Time for which the mode stays off after a failed test, s.
const BAN: f64 = 3.0;
/// Bits of a usual packet.
const PACKET_BITS: f64 = 9_600.0;

/// What one feedback message says of the competition.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pressure {
    /// Its time, s.
    pub(super) now: f64,
    /// Standing queueing delay, s.
    pub(super) queue: f64,
    /// Queueing delay wanted, s.
    pub(super) wanted: f64,
    /// Round-trip time, s.
    pub(super) rtt: f64,
    /// The share of the link that the rate is derived from, bit/s.
    pub(super) reference: f64,
    /// The rate so far, bit/s.
    pub(super) rate: f64,
    /// What the link served of this flow, bit/s; NaN if unknown.
    pub(super) served: f64,
    /// Departure of the newest packet reported, s.
    pub(super) departure: f64,
    /// Whether packets were lost.
    pub(super) lost: bool,
}

/// The state of the mode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Competition {
    pressed_since: Option<f64>,
    /// The share before the queue grew.
    settled: f64,
    /// Time and length of the queue, for the trend.
    before: (f64, f64),
    /// The rate while competing.
    rate: Option<f64>,
    calm_since: Option<f64>,
    /// Packets sent from here on show whether the link gives more to a greater rate.
    test_from: f64,
    banned_until: f64,
    /// What the link has to serve then, bit/s.
    test_for: f64,
    cut_at: f64,
    left: Option<(f64, f64)>,
    updated: f64,
}

impl Competition {
    /// Whether the mode is on.
    pub(super) fn is_on(&self) -> bool {
        self.rate.is_some()
    }

    /// Takes a message; the rate in bit/s while competing.
    pub(super) fn update(&mut self, p: Pressure, c: &Config) -> Option<f64> {
        let elapsed = (p.now - self.updated).clamp(0.0, 1.0);
        self.updated = p.now;
        let margin = c.compete_margin.as_secs_f64();
        let is_long = p.queue > p.wanted + margin;
        if self.rate.is_some() {
            self.compete(p, elapsed, is_long, c);
        } else {
            self.watch(p, is_long, c);
        }
        self.rate
    }

    fn watch(&mut self, p: Pressure, is_long: bool, c: &Config) {
        if !is_long {
            self.pressed_since = None;
            // Slowly, so that the share before a cut is kept.
            self.settled =
                if self.settled > 0.0 { self.settled + 0.05 * (p.reference - self.settled) } else { p.reference };
            self.before = (p.departure, p.queue);
            return;
        }
        // By departure: what was sent before the cut says nothing of it.
        let since = self.pressed_since.get_or_insert(p.departure);
        let span = p.departure - self.before.0;
        if span >= TREND {
            // The clock stands still while the queue shrinks.
            if p.queue - self.before.1 < -SHRINKING * span {
                *since += span;
            }
            self.before = (p.departure, p.queue);
        }
        let since = *since;
        if p.departure - since > c.compete_after.as_secs_f64() && p.now > self.banned_until {
            self.test_from = p.now + TEST_TIME;
            let again = self.left.filter(|l| p.now - l.0 < MEMORY).map(|l| l.1);
            let rate = again.unwrap_or(c.compete_share * self.settled).max(p.reference);
            self.rate = Some(rate);
            let gain = libm::sqrt(rate / p.rate.max(1.0)).clamp(1.0, TEST_GAIN);
            self.test_for = if p.served > 0.0 { gain * p.served } else { 0.0 };
            self.calm_since = None;
        }
    }

    fn compete(&mut self, p: Pressure, elapsed: f64, is_long: bool, c: &Config) {
        let Some(rate) = self.rate.as_mut() else { return };
        // Alone on a link that has become slow, a greater rate is not served.
        if p.departure > self.test_from && p.served < (TEST_SHARE * *rate).max(self.test_for) {
            self.banned_until = p.now + BAN;
            self.rate = None;
            self.pressed_since = None;
            return;
        }
        if p.departure > self.test_from {
            self.test_for = 0.0;
        }
        let rtt = p.rtt.max(0.01);
        if p.lost && p.queue > p.wanted && p.now - self.cut_at > rtt {
            *rate *= c.compete_decrease;
            self.cut_at = p.now;
        } else {
            // Beyond half a second, which CUBIC does not heed either.
            let round = rtt.min(0.5);
            *rate += c.compete_increase * PACKET_BITS * elapsed / (round * round);
        }
        if is_long {
            self.calm_since = None;
            return;
        }
        let since = *self.calm_since.get_or_insert(p.now);
        if p.now - since > c.compete_calm.as_secs_f64() {
            self.left = Some((p.now, *rate));
            self.rate = None;
            self.pressed_since = None;
        }
    }
}
