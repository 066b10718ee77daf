//! The target rate: the delay-based estimate, limited by loss (draft-ietf-rmcat-gcc-02, section 6).
//!
//! libwebrtc is followed where it differs from the draft: the loss share is computed once per second from at least 20
//! packets; the rate grows to 1.08 times the least rate of the last second (the draft: 1.05 times the last rate at each
//! report), and falls once per round trip and 300 ms (libwebrtc, as of 2024: `SendSideBandwidthEstimation`).

use super::loss_v2::{LossState, LossV2, Sums};
use crate::controller::Limits;
use crate::cue::PacketResult;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The loss share is computed at this interval (libwebrtc: `kLossUpdateInterval`) ...
const REPORT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);
/// ... from at least this many packets (libwebrtc: `kLimitNumPackets`).
const MIN_PACKETS: u64 = 20;
/// Older loss shares have no effect: 1.2 times 5 s (libwebrtc: `kMaxRtcpFeedbackInterval`).
const MAX_REPORT_AGE: TimeDelta = TimeDelta::from_secs(6);
/// Without loss within this time from the start, the delay-based estimate is used at once (libwebrtc: `kStartPhase`).
const START_PHASE: TimeDelta = TimeDelta::from_secs(2);
/// The rate grows from the least rate of this window (libwebrtc: `kBweIncreaseInterval`).
const INCREASE_WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// Factor of growth over the window, and an offset in bit/s so that low rates can grow.
const INCREASE: (f64, f64) = (1.08, 1_000.0);
/// Least time between two decreases beyond a round trip (libwebrtc: `kBweDecreaseInterval`).
const DECREASE_INTERVAL: TimeDelta = TimeDelta::from_millis(300);
/// The rate never falls below this, regardless of the floor (libwebrtc: `kCongestionControllerMinBitrate`).
pub(super) const MIN_RATE: DataRate = DataRate::from_kbps(5);

/// The constants of the rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossConfig {
    /// Up to this loss share the rate grows.
    pub(super) low: f64,
    /// Above this loss share the rate falls.
    pub(super) high: f64,
    /// Factor applied to the rate after each interval without feedback.
    pub(super) silence_factor: f64,
}

/// Combines the limits by delay and loss.
#[derive(Clone, Debug)]
pub(super) struct LossRule {
    config: LossConfig,
    limits: Limits,
    rate: f64,
    delay_limit: Option<f64>,
    receiver_limit: Option<DataRate>,
    lost: u64,
    expected: u64,
    next_report: Option<Timestamp>,
    first_report: Option<Timestamp>,
    last_report: Option<Timestamp>,
    share: f64,
    decreased: bool,
    last_decrease: Option<Timestamp>,
    lowest: SlidingMin,
    v2: Option<Box<LossV2>>,
}

impl LossRule {
    pub(super) fn new(config: LossConfig, start: DataRate, limits: Limits, v2: Option<Box<LossV2>>) -> Self {
        let mut rule = Self {
            config,
            limits,
            rate: start.as_bps_f64(),
            delay_limit: None,
            receiver_limit: None,
            lost: 0,
            expected: 0,
            next_report: None,
            first_report: None,
            last_report: None,
            share: 0.0,
            decreased: false,
            last_decrease: None,
            lowest: SlidingMin::new(),
            v2,
        };
        rule.set_limits(limits);
        rule
    }

    /// The target rate.
    pub(super) fn rate(&self) -> DataRate {
        let rate = DataRate::from_bps_f64(self.rate);
        self.limits.clamp(self.receiver_limit.map_or(rate, |r| rate.min(r)))
    }
    /// The loss share computed last.
    pub(super) fn share(&self) -> f64 {
        self.share
    }

    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        if let Some(v2) = &mut self.v2 {
            v2.set_limits(limits);
        }
        self.set(self.rate);
    }
    /// Sets the receiver's limit; zero removes it, as in libwebrtc.
    pub(super) fn set_receiver_limit(&mut self, rate: DataRate) {
        self.receiver_limit = Some(rate).filter(|&r| r > DataRate::ZERO);
    }
    pub(super) fn set_delay_limit(&mut self, rate: DataRate) {
        self.delay_limit = Some(rate.as_bps_f64());
        self.set(self.rate);
    }

    fn set(&mut self, rate: f64) {
        let rate = self.delay_limit.map_or(rate, |d| rate.min(d));
        let floor = self.limits.floor.max(MIN_RATE).as_bps_f64();
        self.rate = rate.min(self.limits.ceiling.as_bps_f64()).max(floor);
    }

    /// A probe has measured this rate: both parts continue from it.
    pub(super) fn jump(&mut self, rate: DataRate) {
        self.delay_limit = None;
        self.set(rate.as_bps_f64());
        self.lowest.clear();
    }

    /// Coupling with other flows has set the rate: what limits it moves along.
    pub(super) fn couple(&mut self, rate: DataRate) {
        let factor = rate.as_bps_f64() / self.rate.max(1.0);
        self.lowest.scale(factor);
        if let Some(v2) = &mut self.v2 {
            v2.scale(factor);
        }
        self.delay_limit = Some(rate.as_bps_f64());
        self.set(rate.as_bps_f64());
    }

    /// Counts the packets of one feedback message; `regained` were reported lost earlier.
    pub(super) fn on_packets(&mut self, lost: u64, expected: u64, regained: u64, now: Timestamp) {
        self.lost = (self.lost + lost).saturating_sub(regained);
        self.expected += expected;
        if self.next_report.is_some_and(|t| now <= t) {
            return;
        }
        self.next_report = Some(now + REPORT_INTERVAL);
        self.first_report.get_or_insert(now);
        if self.expected < MIN_PACKETS {
            return;
        }
        self.share = (self.lost as f64 / self.expected as f64).min(1.0);
        (self.lost, self.expected) = (0, 0);
        self.decreased = false;
        self.last_report = Some(now);
    }

    /// Passes one feedback message to version 2, if in use.
    pub(super) fn observe(
        &mut self,
        packets: &[PacketResult],
        sums: Option<Sums>,
        acked: Option<DataRate>,
        in_alr: bool,
    ) {
        if let Some(v2) = &mut self.v2 {
            v2.update(packets, sums, acked.map(DataRate::as_bps_f64), self.delay_limit, in_alr);
        }
    }
    /// The limit of the rate by version 2; the draft's rule never blocks probes.
    pub(super) fn state(&self) -> LossState {
        self.v2.as_ref().map_or(LossState::DelayBased, |v2| v2.state())
    }

    /// Updates the rate; call it with each feedback message.
    pub(super) fn update(&mut self, rtt: TimeDelta, now: Timestamp) {
        let starting = self.first_report.is_none_or(|t| now - t < START_PHASE);
        let v2 = self.v2.as_ref().and_then(|v2| v2.rate());
        if v2.is_none()
            && self.share == 0.0
            && starting
            && let Some(delay) = self.delay_limit
            && delay > self.rate
        {
            self.lowest.clear();
            self.lowest.push(now, self.rate);
            self.set(delay);
            return;
        }
        self.lowest.expire(now, INCREASE_WINDOW);
        self.lowest.push(now, self.rate);
        if let Some(rate) = v2 {
            self.set(rate);
        } else if self.last_report.is_some_and(|t| now - t < MAX_REPORT_AGE) {
            if self.share <= self.config.low {
                let base = self.lowest.min().unwrap_or(self.rate);
                self.set(base * INCREASE.0 + INCREASE.1);
            } else if self.share > self.config.high
                && !self.decreased
                && self.last_decrease.is_none_or(|t| now - t >= DECREASE_INTERVAL + rtt)
            {
                self.last_decrease = Some(now);
                self.decreased = true;
                self.set(self.rate * (1.0 - 0.5 * self.share));
            }
        }
    }

    /// Feedback is overdue. Returns whether the rate could still be reduced.
    pub(super) fn back_off(&mut self, now: Timestamp) {
        self.last_decrease = Some(now);
        self.set(self.rate * self.config.silence_factor);
    }
    /// Whether the rate is at its minimum.
    pub(super) fn at_floor(&self) -> bool {
        self.rate <= self.limits.floor.max(MIN_RATE).as_bps_f64()
    }
}

const HISTORY: usize = 32;

/// Minimum over a sliding window. Entries ascend from front to back. A full ring drops higher entries until the front
/// has expired; the minimum may then be older, but never higher, than the true one.
#[derive(Clone, Debug)]
struct SlidingMin {
    entries: [(Timestamp, f64); HISTORY],
    first: usize,
    len: usize,
}

impl SlidingMin {
    fn new() -> Self {
        Self { entries: [(Timestamp::ZERO, 0.0); HISTORY], first: 0, len: 0 }
    }
    fn clear(&mut self) {
        self.len = 0;
    }
    fn scale(&mut self, factor: f64) {
        self.entries.iter_mut().for_each(|e| e.1 *= factor);
    }
    fn min(&self) -> Option<f64> {
        (self.len > 0).then(|| self.entries[self.first].1)
    }
    fn expire(&mut self, now: Timestamp, window: TimeDelta) {
        while self.len > 0 && now - self.entries[self.first].0 >= window {
            self.first = (self.first + 1) % HISTORY;
            self.len -= 1;
        }
    }
    fn push(&mut self, now: Timestamp, value: f64) {
        while self.len > 0 && value <= self.entries[(self.first + self.len - 1) % HISTORY].1 {
            self.len -= 1;
        }
        if self.len < HISTORY {
            self.entries[(self.first + self.len) % HISTORY] = (now, value);
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;
    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn rule(start: u64) -> LossRule {
        let config = LossConfig { low: 0.02, high: 0.1, silence_factor: 0.8 };
        let mut r = LossRule::new(config, KBPS(start), Limits { floor: KBPS(50), ceiling: KBPS(10_000) }, None);
        r.set_delay_limit(KBPS(9_000));
        r
    }
    /// Feedback every 100 ms, each message on 100 packets.
    fn run(r: &mut LossRule, from_ms: i64, to_ms: i64, lost: u64) {
        for t in (from_ms..to_ms).step_by(100) {
            let now = Timestamp::from_millis(t);
            r.on_packets(lost, 100, 0, now);
            r.update(RTT, now);
        }
    }

    #[test]
    fn without_loss_the_start_follows_the_delay_based_estimate() {
        let mut r = rule(500);
        run(&mut r, 0, 100, 0);
        assert_eq!(r.rate(), KBPS(9_000));
    }

    #[test]
    fn little_loss_grows_by_eight_percent_a_second() {
        let mut r = rule(500);
        run(&mut r, 0, 10_000, 1);
        // The first step is immediate; the window allows the next within 0.9 to 1 s: 10 or 11 steps.
        let step = |n: i32| (0..n).fold(500.0, |r, _| r * 1.08 + 1.0);
        let got = r.rate().as_kbps_f64();
        assert!(got >= step(9) && got <= step(12), "{got}");
    }

    #[test]
    fn loss_between_the_thresholds_changes_nothing() {
        let mut r = rule(500);
        run(&mut r, 0, 20_000, 5);
        assert_eq!(r.rate(), KBPS(500));
    }

    #[test]
    fn much_loss_takes_half_its_share() {
        let mut r = rule(1_000);
        run(&mut r, 0, 1_000, 20);
        assert_eq!(r.rate(), KBPS(900));
        run(&mut r, 1_000, 2_100, 20);
        assert_eq!(r.rate(), KBPS(810));
    }

    #[test]
    fn packets_that_turn_up_take_their_loss_back() {
        let mut r = rule(1_000);
        r.on_packets(0, 100, 0, Timestamp::ZERO);
        r.on_packets(30, 100, 0, Timestamp::from_millis(500));
        r.on_packets(0, 100, 30, Timestamp::from_millis(1_100));
        assert_eq!(r.share(), 0.0);
    }

    #[test]
    fn few_packets_give_no_loss_fraction() {
        let mut r = rule(1_000);
        r.on_packets(10, 19, 0, Timestamp::ZERO);
        assert_eq!(r.share(), 0.0);
        r.on_packets(0, 1, 0, Timestamp::from_millis(1_100));
        assert_eq!(r.share(), 0.5);
    }

    #[test]
    fn limits_and_the_delay_based_estimate_bind() {
        let mut r = rule(1_000);
        r.set_limits(Limits { floor: KBPS(50), ceiling: KBPS(300) });
        assert_eq!(r.rate(), KBPS(300));
        r.set_delay_limit(KBPS(10));
        assert_eq!(r.rate(), KBPS(50));
        r.jump(KBPS(200));
        assert_eq!(r.rate(), KBPS(200));
        r.set_receiver_limit(KBPS(150));
        assert_eq!(r.rate(), KBPS(150));
        r.set_receiver_limit(KBPS(1));
        assert_eq!(r.rate(), KBPS(50));
        r.set_receiver_limit(DataRate::ZERO);
        assert_eq!(r.rate(), KBPS(200));
    }

    #[test]
    fn the_sliding_minimum_is_that_of_its_window() {
        let mut m = SlidingMin::new();
        for (t, v) in [(0, 3.0), (200, 1.0), (400, 2.0), (600, 4.0)] {
            m.push(Timestamp::from_millis(t), v);
        }
        assert_eq!(m.min(), Some(1.0));
        m.expire(Timestamp::from_millis(1_200), TimeDelta::from_secs(1));
        assert_eq!(m.min(), Some(2.0));
        for i in 0..100 {
            m.push(Timestamp::from_millis(1_200 + i), 5.0 + i as f64);
        }
        m.expire(Timestamp::from_millis(1_600), TimeDelta::from_secs(1));
        assert_eq!(m.min(), Some(5.0));
    }
}
