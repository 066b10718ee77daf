//! The rate control at the receiver (section 3.5).

use super::config::Config;
use crate::parts::receiver_estimate::{Convergence, Growth, OveruseSignal, RateState};
use weir_units::{TimeDelta, Timestamp};

/// Reaction time of the system, in addition to the round-trip time (libwebrtc: 300 ms and the mean time between
/// changes).
const REACTION: TimeDelta = TimeDelta::from_millis(300);
/// b, c1, c2 and d of the increase, times in ms (section 3.5 gives no numbers; libwebrtc).
const STEEPNESS: f64 = 0.0025;
const NOISE_WEIGHT: f64 = -6_700.0 / (33.0 * 33.0);
const MIDDLE: f64 = 800.0;
const RESPONSE_WEIGHT: f64 = 0.85;
/// Greatest increase a second (libwebrtc: 1.3).
const GREATEST_INCREASE: f64 = 1.3;
/// Bounds on the time between two decreases, which is otherwise a round-trip time (libwebrtc's `TimeToReduceFurther`).
const REDUCTION_INTERVAL: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(10), TimeDelta::from_millis(200));
/// Weight of the previous average incoming rate at a decrease (libwebrtc: 0.95).
const KEPT: f64 = 0.95;
/// Standard deviations above the average from which the average is doubted, and from which it is reset.
const ABOVE: (f64, f64) = (2.5, 3.0);

/// The rate relative to the greatest known rate of the path (libwebrtc).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Region {
    MaxUnknown,
    AboveMax,
    NearMax,
}

/// Computes A_hat from the signals and the incoming rate.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    state: RateState,
    region: Region,
    /// A_hat in bit/s.
    estimate: f64,
    updated: Timestamp,
    decreased: Option<Timestamp>,
    maximum: Option<Convergence>,
    growth: Growth,
}

/// The inputs of the increase.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathMeasures {
    /// R_hat in bit/s.
    pub(super) incoming: Option<f64>,
    /// RTT.
    pub(super) rtt: TimeDelta,
    /// var_v_hat in ms^2.
    pub(super) noise: f64,
}

impl RateControl {
    pub(super) fn new(start_bps: f64, now: Timestamp) -> Self {
        let (state, region) = (RateState::Increase, Region::MaxUnknown);
        Self { state, region, estimate: start_bps, updated: now, decreased: None, maximum: None, growth: Growth::new() }
    }

    pub(super) fn state(&self) -> RateState {
        self.state
    }
    pub(super) fn region(&self) -> Region {
        self.region
    }
    /// A_hat in bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.estimate
    }

    /// Runs the control with each frame: decreases at once, at most once per round-trip time, and increases for the
    /// time since the last frame.
    pub(super) fn run(&mut self, now: Timestamp, signal: OveruseSignal, channel: &PathMeasures, config: &Config) {
        let passed = now.saturating_since(self.updated);
        match signal {
            OveruseSignal::Overuse => {
                let (least, most) = REDUCTION_INTERVAL;
                let pause = channel.rtt.max(least).min(most);
                if self.decreased.is_none_or(|t| now - t >= pause) {
                    self.state = RateState::Decrease;
                    self.decrease(now, channel, config);
                }
                self.updated = now;
            }
            OveruseSignal::Underuse => {
                self.state = RateState::Hold;
                self.updated = now;
            }
            // From decrease to hold and then to increase, each after a response time.
            OveruseSignal::Normal if self.state == RateState::Increase => {
                self.increase(passed, channel, config);
                self.updated = now;
            }
            OveruseSignal::Normal if passed >= REACTION + channel.rtt => {
                self.state = if self.state == RateState::Decrease { RateState::Hold } else { RateState::Increase };
                self.updated = now;
            }
            OveruseSignal::Normal => {}
        }
    }

    fn decrease(&mut self, now: Timestamp, channel: &PathMeasures, config: &Config) {
        let Some(incoming) = channel.incoming else { return };
        let share = if self.region == Region::NearMax { config.near_beta } else { config.beta };
        self.estimate = self.estimate.min(share * incoming);
        self.maximum = Some(Convergence::after(self.maximum, incoming * 1e-3, KEPT));
        self.region = Region::NearMax;
        self.decreased = Some(now);
    }

    fn increase(&mut self, passed: TimeDelta, channel: &PathMeasures, config: &Config) {
        let Some(incoming) = channel.incoming else { return };
        if let Some(deviations) = self.maximum.map(|m| m.deviations(incoming * 1e-3)) {
            if deviations > ABOVE.1 {
                (self.region, self.maximum) = (Region::MaxUnknown, None);
            } else if deviations > ABOVE.0 {
                self.region = Region::AboveMax;
            }
        }
        let multiple = match self.region {
            Region::MaxUnknown => config.unknown_increase,
            Region::AboveMax => 1.0,
            Region::NearMax => config.near_increase,
        };
        let per_second = (1.0 + multiple * increase(channel, config)).min(GREATEST_INCREASE);
        let seconds = passed.as_secs_f64().min(1.0);
        let raised =
            self.estimate * self.growth.factor(per_second, seconds) + config.increase_step.as_bps_f64() * seconds;
        let is_bound = incoming > config.unbound_incoming.as_bps_f64() || raised > config.unbound_estimate.as_bps_f64();
        let bound = if is_bound { config.incoming_bound * incoming } else { f64::INFINITY };
        self.estimate = raised.min(bound).max(self.estimate);
    }

    /// Limits the estimate to these bounds.
    pub(super) fn clamp(&mut self, floor: f64, ceiling: f64) {
        self.estimate = self.estimate.min(ceiling).max(floor);
    }
}

/// eta - 1. It is greater the shorter the response time and the lower the noise.
fn increase(channel: &PathMeasures, config: &Config) -> f64 {
    let response = (REACTION + channel.rtt).as_millis_f64();
    let x = STEEPNESS * (RESPONSE_WEIGHT * response - (NOISE_WEIGHT * channel.noise + MIDDLE));
    config.least_increase + config.fast_increase / (1.0 + libm::exp(x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::DataRate;

    const RTT: TimeDelta = TimeDelta::from_millis(200);

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }
    fn channel(incoming: f64) -> PathMeasures {
        PathMeasures { incoming: Some(incoming), rtt: RTT, noise: 4.0 }
    }
    fn run(r: &mut RateControl, ms: i64, signal: OveruseSignal, incoming: f64) -> RateState {
        // Multiples of libwebrtc.
        let c = Config { unknown_increase: 3.0, near_increase: 0.5, ..Config::default() };
        r.run(Timestamp::from_millis(ms), signal, &channel(incoming), &c);
        r.state()
    }
    /// eta - 1 at a response time of 500 ms and a noise of 4: x = 0.0025 * (425 - (-24.6 + 800)).
    fn eta() -> f64 {
        0.005 + 0.0407 / (1.0 + libm::exp(0.0025 * (425.0 + 4.0 * 6_700.0 / 1_089.0 - 800.0)))
    }

    #[test]
    fn increases_less_the_longer_the_response_time() {
        let c = Config::default();
        let at =
            |rtt_ms, noise| increase(&PathMeasures { incoming: None, rtt: TimeDelta::from_millis(rtt_ms), noise }, &c);
        assert!(near(at(200, 4.0), eta()) && (0.033..0.034).contains(&eta()), "{}", eta());
        assert!(at(50, 4.0) > at(200, 4.0) && at(200, 4.0) > at(1_000, 4.0) && at(200, 4.0) > at(200, 100.0));
        assert!((0.005..0.006).contains(&at(3_000, 100.0)) && at(0, 1.0) < 0.0457);
    }

    #[test]
    fn moves_between_states_and_regions() {
        let mut r = RateControl::new(1e6, Timestamp::ZERO);
        assert_eq!(run(&mut r, 1_000, OveruseSignal::Normal, 1e6), RateState::Increase);
        // Three times the increase while the maximum is unknown.
        assert!(near(r.bps(), 1e6 * (1.0 + 3.0 * eta()) + 1e3));
        assert_eq!(run(&mut r, 1_100, OveruseSignal::Overuse, 1e6), RateState::Decrease);
        assert!(near(r.bps(), 0.9e6));
        assert_eq!(r.region(), Region::NearMax);
        // No second decrease before a round-trip time, which counts as at most 200 ms; then by the smaller share.
        run(&mut r, 1_299, OveruseSignal::Overuse, 0.9e6);
        assert!(near(r.bps(), 0.9e6));
        run(&mut r, 1_300, OveruseSignal::Overuse, 0.9e6);
        assert!(near(r.bps(), 0.855e6));
        assert_eq!(run(&mut r, 1_700, OveruseSignal::Normal, 0.9e6), RateState::Decrease);
        assert_eq!(run(&mut r, 1_800, OveruseSignal::Normal, 0.9e6), RateState::Hold);
        assert_eq!(run(&mut r, 1_900, OveruseSignal::Underuse, 0.9e6), RateState::Hold);
        assert_eq!(run(&mut r, 2_399, OveruseSignal::Normal, 0.9e6), RateState::Hold);
        assert_eq!(run(&mut r, 2_400, OveruseSignal::Normal, 0.9e6), RateState::Increase);
        assert!(near(r.bps(), 0.855e6));
        run(&mut r, 3_400, OveruseSignal::Normal, 0.9e6);
        assert!(near(r.bps(), 0.855e6 * (1.0 + 0.5 * eta()) + 1e3));
    }

    #[test]
    fn the_bound_by_the_incoming_rate_may_spare_low_rates() {
        let raised = |start: f64, incoming: f64, config: &Config| {
            let mut r = RateControl::new(start, Timestamp::ZERO);
            r.run(Timestamp::from_secs(1), OveruseSignal::Normal, &channel(incoming), config);
            r.bps() > start
        };
        let draft = Config::default();
        let libwebrtc = Config {
            unbound_incoming: DataRate::from_kbps(100),
            unbound_estimate: DataRate::from_kbps(150),
            ..Config::default()
        };
        // Within the bound, and beyond it at a low rate, at a high estimate and at a high incoming rate.
        let starts = [(100e3, 90e3), (100e3, 50e3), (149.5e3, 50e3), (160e3, 100.1e3)];
        assert_eq!(starts.map(|s| raised(s.0, s.1, &draft)), [true, false, false, false]);
        assert_eq!(starts.map(|s| raised(s.0, s.1, &libwebrtc)), [true, true, false, false]);
    }

    #[test]
    fn forgets_the_maximum_that_it_passes() {
        let mut r = RateControl::new(1e6, Timestamp::ZERO);
        run(&mut r, 0, OveruseSignal::Overuse, 1e6);
        run(&mut r, 500, OveruseSignal::Normal, 1e6);
        run(&mut r, 1_000, OveruseSignal::Normal, 1e6);
        assert_eq!((r.state(), r.region()), (RateState::Increase, Region::NearMax));
        // A standard deviation is sqrt(0.4 * 1000) = 20 kbit/s.
        run(&mut r, 1_100, OveruseSignal::Normal, 1.055e6);
        assert_eq!(r.region(), Region::AboveMax);
        run(&mut r, 1_200, OveruseSignal::Normal, 1.065e6);
        assert_eq!(r.region(), Region::MaxUnknown);
    }

    #[test]
    fn stays_below_a_multiple_of_what_comes_in() {
        let mut r = RateControl::new(1e6, Timestamp::ZERO);
        run(&mut r, 1_000, OveruseSignal::Normal, 0.7e6);
        assert!(near(r.bps(), 1.05e6));
        run(&mut r, 2_000, OveruseSignal::Normal, 0.1e6);
        assert!(near(r.bps(), 1.05e6));
    }
}
