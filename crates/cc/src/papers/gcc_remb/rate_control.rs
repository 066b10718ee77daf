//! The rate control at the receiver (section 5.5).

use super::config::Config;
use crate::parts::receiver_estimate::{Convergence, OveruseSignal, RateState};
use weir_units::{TimeDelta, Timestamp};

/// Reaction time of estimator and detector, part of the response time.
const REACTION: TimeDelta = TimeDelta::from_millis(100);
/// Bounds on the time between two decreases, which is otherwise a round-trip time (libwebrtc's `TimeToReduceFurther`).
const REDUCTION_INTERVAL: (TimeDelta, TimeDelta) = (TimeDelta::from_millis(10), TimeDelta::from_millis(200));
/// Weight of the previous average incoming rate at decreases (the draft's 0.95).
const KEPT: f64 = 0.95;

/// Computes A_hat from the signals and the incoming rate.
#[derive(Clone, Debug)]
pub(super) struct RateControl {
    state: RateState,
    /// A_hat in bit/s.
    estimate: f64,
    updated: Timestamp,
    decreased: Option<Timestamp>,
    convergence: Option<Convergence>,
}

impl RateControl {
    pub(super) fn new(start_bps: f64, now: Timestamp) -> Self {
        Self { state: RateState::Increase, estimate: start_bps, updated: now, decreased: None, convergence: None }
    }

    pub(super) fn state(&self) -> RateState {
        self.state
    }
    /// A_hat in bit/s.
    pub(super) fn bps(&self) -> f64 {
        self.estimate
    }

    /// Runs the control if it is due: at once on over-use without a reaction so far, else once per response time.
    pub(super) fn run(
        &mut self,
        now: Timestamp,
        signal: OveruseSignal,
        incoming: Option<f64>,
        rtt: TimeDelta,
        config: &Config,
    ) {
        let response = REACTION + rtt;
        match signal {
            OveruseSignal::Overuse => {
                let (least, most) = REDUCTION_INTERVAL;
                let pause = rtt.max(least).min(most);
                if self.decreased.is_none_or(|t| now - t >= pause) {
                    self.state = RateState::Decrease;
                    self.decrease(now, incoming, config);
                }
            }
            OveruseSignal::Underuse => {
                self.state = RateState::Hold;
                self.updated = now;
            }
            OveruseSignal::Normal if now - self.updated >= response => {
                self.state = match self.state {
                    RateState::Decrease => RateState::Hold,
                    RateState::Hold | RateState::Increase => RateState::Increase,
                };
                if self.state == RateState::Increase {
                    self.increase(now - self.updated, incoming, response, config);
                }
                self.updated = now;
            }
            OveruseSignal::Normal => {}
        }
    }

    fn decrease(&mut self, now: Timestamp, incoming: Option<f64>, config: &Config) {
        let Some(incoming) = incoming else { return };
        self.estimate = self.estimate.min(config.beta * incoming);
        self.convergence = Some(Convergence::after(self.convergence, incoming * 1e-3, KEPT));
        (self.decreased, self.updated) = (Some(now), now);
    }

    fn increase(&mut self, passed: TimeDelta, incoming: Option<f64>, response: TimeDelta, config: &Config) {
        let Some(incoming) = incoming else { return };
        if self.convergence.is_some_and(|c| c.deviations(incoming * 1e-3) > 3.0) {
            self.convergence = None;
        }
        let close = self.convergence.is_some_and(|c| c.deviations(incoming * 1e-3) >= -3.0);
        let increased = if close {
            let alpha = 0.5 * passed.ratio(response).unwrap_or(1.0).min(1.0);
            self.estimate + f64::max(1_000.0, alpha * expected_packet_bits(self.estimate))
        } else {
            self.estimate * libm::pow(config.increase, passed.as_secs_f64().min(1.0))
        };
        self.estimate = increased.min(config.incoming_bound * incoming).max(self.estimate);
    }

    /// Limits the estimate to these bounds.
    pub(super) fn clamp(&mut self, floor: f64, ceiling: f64) {
        self.estimate = self.estimate.min(ceiling).max(floor);
    }
}

/// Packet size at 30 frames per second and at most 1,200 bytes.
fn expected_packet_bits(bps: f64) -> f64 {
    let bits_per_frame = bps / 30.0;
    bits_per_frame / libm::ceil(bits_per_frame / 9_600.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(200);

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn run(r: &mut RateControl, ms: i64, signal: OveruseSignal, incoming: f64) -> RateState {
        r.run(at(ms), signal, Some(incoming), RTT, &Config::default());
        r.state()
    }

    #[test]
    fn expects_packets_as_section_5_5() {
        // 10,000 bits per frame: two packets of 5,000.
        assert!(near(expected_packet_bits(300e3), 5_000.0));
        assert!(near(expected_packet_bits(240e3), 8_000.0));
        assert!(near(expected_packet_bits(0.0), 0.0));
    }

    #[test]
    fn moves_between_states_as_the_table() {
        let mut r = RateControl::new(1e6, at(0));
        assert_eq!(r.state(), RateState::Increase);
        assert_eq!(run(&mut r, 300, OveruseSignal::Normal, 1e6), RateState::Increase);
        assert_eq!(run(&mut r, 310, OveruseSignal::Underuse, 1e6), RateState::Hold);
        assert_eq!(run(&mut r, 320, OveruseSignal::Underuse, 1e6), RateState::Hold);
        assert_eq!(run(&mut r, 330, OveruseSignal::Normal, 1e6), RateState::Hold);
        assert_eq!(run(&mut r, 620, OveruseSignal::Normal, 1e6), RateState::Increase);
        assert_eq!(run(&mut r, 630, OveruseSignal::Overuse, 1e6), RateState::Decrease);
        assert_eq!(run(&mut r, 931, OveruseSignal::Normal, 1e6), RateState::Hold);
        assert_eq!(run(&mut r, 940, OveruseSignal::Overuse, 1e6), RateState::Decrease);
        assert_eq!(run(&mut r, 950, OveruseSignal::Underuse, 1e6), RateState::Hold);
    }

    #[test]
    fn decreases_to_beta_of_the_incoming_rate_once_a_round_trip() {
        let mut r = RateControl::new(1e6, at(0));
        run(&mut r, 10, OveruseSignal::Overuse, 900e3);
        assert!(near(r.bps(), 765e3));
        run(&mut r, 100, OveruseSignal::Overuse, 500e3);
        assert!(near(r.bps(), 765e3));
        run(&mut r, 210, OveruseSignal::Overuse, 500e3);
        assert!(near(r.bps(), 425e3));
        run(&mut r, 410, OveruseSignal::Overuse, 2e6);
        assert!(near(r.bps(), 425e3));
    }

    #[test]
    fn increases_by_8_percent_a_second_far_from_convergence() {
        let mut r = RateControl::new(1e6, at(0));
        run(&mut r, 500, OveruseSignal::Normal, 1e6);
        assert!(near(r.bps(), 1e6 * libm::pow(1.08, 0.5)));
        run(&mut r, 5_500, OveruseSignal::Normal, 1e6);
        assert!(near(r.bps(), 1e6 * libm::pow(1.08, 1.5)));
        // Not beyond 1.5 times the incoming rate, but not reduced to it either.
        run(&mut r, 6_000, OveruseSignal::Normal, 760e3);
        assert!(near(r.bps(), 1.14e6), "{}", r.bps());
        run(&mut r, 7_000, OveruseSignal::Normal, 100e3);
        assert!(near(r.bps(), 1.14e6), "{}", r.bps());
    }

    #[test]
    fn increases_by_half_a_packet_a_response_time_near_convergence() {
        let mut r = RateControl::new(1e6, at(0));
        run(&mut r, 0, OveruseSignal::Overuse, 1e6);
        run(&mut r, 300, OveruseSignal::Normal, 1e6);
        assert_eq!(r.state(), RateState::Hold);
        run(&mut r, 600, OveruseSignal::Normal, 1e6);
        // 850,000 / 30 = 28,333 bits in 3 packets; half of one.
        assert!(near(r.bps(), 850e3 + 850e3 / 30.0 / 3.0 / 2.0), "{}", r.bps());
        // 3 standard deviations are 3 * sqrt(0.4 * 1000) = 60 kbit/s: beyond that the average is reset.
        let before = r.bps();
        run(&mut r, 1_600, OveruseSignal::Normal, 1.07e6);
        assert!(near(r.bps(), before * 1.08));
        assert!(r.convergence.is_none());
    }

    #[test]
    fn a_slow_slope_gains_a_kilobit_at_least() {
        let mut r = RateControl::new(20e3, at(0));
        run(&mut r, 0, OveruseSignal::Overuse, 20e3);
        run(&mut r, 300, OveruseSignal::Normal, 20e3);
        run(&mut r, 600, OveruseSignal::Normal, 20e3);
        assert!(near(r.bps(), 18e3));
    }

    #[test]
    fn averages_the_rate_at_decreases() {
        let mut r = RateControl::new(2e6, at(0));
        run(&mut r, 0, OveruseSignal::Overuse, 1_000e3);
        run(&mut r, 1_000, OveruseSignal::Overuse, 1_040e3);
        let c = r.convergence.expect("two decreases");
        // 0.95 * 1000 + 0.05 * 1040 = 1002; error 38: 0.95 * 0.4 + 0.05 * 38^2 / 1002.
        assert!(near(c.average, 1_002.0) && near(c.variance, 0.38 + 0.05 * 1_444.0 / 1_002.0));
        run(&mut r, 2_000, OveruseSignal::Overuse, 500e3);
        assert!(near(r.convergence.expect("restarted").average, 500.0));
    }
}
