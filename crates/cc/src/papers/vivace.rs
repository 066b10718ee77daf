//! PCC Vivace: the sending rate climbs a utility of rate, growth of the round-trip time and loss, measured by trial.
//!
//! M. Dong et al., "PCC Vivace: Online-Learning Congestion Control", NSDI 2018. In the order of a packet's way:
//!
//! `interval` (packets sent at one rate, for about a round trip) → when all of its packets are reported, `utility` → `learner` (starting,
//! searching) → the rate of the next intervals → target.
//!
//! | rule | source |
//! |---|---|
//! | u = x^0.9 - 900 x max(0, d(RTT)/dt) - 11.35 x L, x in Mbit/s | the paper's utility and constants |
//! | starting: the rate doubles while the utility grows | the paper, slow start |
//! | searching: intervals at 1.05 and 0.95 of the rate, in random order; two pairs, which have to agree, after a change of direction, else one | the program, `search` |
//! | a step is the utility's gradient, times an amplifier that grows with the steps in one direction ... | the program, `decide` |
//! | ... within 0.05 of the rate, 0.06 more after each step that this has cut | the program, `kInitialBoundary`, `kBoundaryIncrement`; the paper has 0.1 |
//! | a growth of the round-trip time within the regression's own error is none | the later program, `ComputeRttGradientError` |
//!
//! The program is the authors' for the paper (PCCproject/PCC-Uspace at 98ac946, `pcc-gradient/sender/app/pcc.h`); the later one is the same
//! repository's at 30c2cfe, of 2020 (`pcc_utility_manager.cpp`). Its state MOVING, which skips a search after steps of more than a tenth, is
//! left out. Both have bounds in Mbit/s that exceed many calls (least rate 1.3 and .5, least step .5); here the bounds are the application's,
//! and the least step is a share of the rate.
//!
//! For media the paper says nothing. The choices made:
//!
//! - The media rate is the rate of the interval, and includes RTP's header: the encoder makes the trials. The rate of an interval is what was
//!   sent, as in the program; an interval in which the source sent less than four fifths of its rate decides nothing.
//! - A window of 2.5 times the rate for a smoothed round-trip time bounds what a fallen link holds (the later program's
//!   `FLAGS_bytes_in_flight_gain`, which it does not apply).
//! - Arrival times take the place of those of acknowledgements: the growth is that of the one-way delay.

mod config;
mod interval;
mod learner;
mod utility;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket, TransportFeedback};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
use interval::Intervals;
use learner::{Learner, Measured};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// RTP header with one extension, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);
/// Round-trip time before the first report (the later program's `kInitialRtt`).
const INITIAL_RTT: TimeDelta = TimeDelta::from_millis(100);
/// Weight of a new report in the smoothed round-trip time (RFC 6298).
const SMOOTHING: f64 = 1.0 / 8.0;
/// Window as a multiple of the rate for a smoothed round-trip time.
const WINDOW_GAIN: f64 = 2.5;
/// Least window in packets of 1,500 bytes, for a report's interval.
const MIN_WINDOW: u64 = 10 * 1_500;

/// Vivace, sender side.
#[derive(Clone, Debug)]
pub struct Vivace {
    config: Config,
    limits: Limits,
    intervals: Intervals,
    learner: Learner,
    rtt: TimeDelta,
    has_rtt: bool,
    target: Target,
}

impl Vivace {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("vivace")?;
        let rate = start.limits.clamp(start.rate);
        Ok(Self {
            config,
            limits: start.limits,
            intervals: Intervals::default(),
            learner: Learner::new(&config, start.limits, rate),
            rtt: INITIAL_RTT,
            has_rtt: false,
            target: Target { overhead: RTP_HEADER, ..Target::paced(rate, rate) },
        })
    }

    /// The same with a seed for the order of trials.
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.learner.seed(seed);
        self
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        if let Some(rtt) = f.rtt {
            let rtt = crate::parts::rtt::bounded(rtt);
            self.rtt = if self.has_rtt { self.rtt + (rtt - self.rtt).mul_f64(SMOOTHING) } else { rtt };
            self.has_rtt = true;
        }
        for p in f.packets {
            self.intervals.on_fate(p);
        }
        while let Some(done) = self.intervals.take_done() {
            let rate = done.sent_rate();
            let fills = rate >= self.config.least_fill * done.rate.as_bps_f64();
            let utility = utility::of(&self.config, &done);
            self.learner.on_interval(&Measured { trial: done.trial, rate, utility, counts: fills });
        }
    }

    /// Begins an interval at the learner's next rate if the current one is over.
    fn next_interval(&mut self, now: Timestamp) {
        let length = self.rtt.max(self.config.least_interval);
        if self.intervals.is_over(now, length) {
            let (rate, trial) = self.learner.next();
            self.intervals.begin(rate, trial, now);
            self.set_target(rate);
        }
    }

    fn set_target(&mut self, rate: DataRate) {
        let rate = self.limits.clamp(rate);
        let window = (WINDOW_GAIN * rate.as_bps_f64() / 8.0 * self.rtt.as_secs_f64()) as u64;
        self.target = Target {
            overhead: RTP_HEADER,
            window: Some(DataSize::from_bytes(window.max(MIN_WINDOW))),
            // Frames leave before the next one, and trials stay apart.
            ..Target::paced(rate, DataRate::from_bps_f64(self.config.pacing * rate.as_bps_f64()))
        };
    }
}

impl Algorithm for Vivace {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::CongestionControl,
                min_interval: TimeDelta::from_millis(10),
                max_interval: TimeDelta::from_millis(100),
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new(
                "vivace",
                "Gradient ascent on a utility of rate, growth of the delay and loss, by trial",
                "PCC Vivace, Dong et al., NSDI 2018",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        let vivace = Self::new(Config::from_params(name, &setup.params)?, &setup.start())?;
        Ok(Pair::alone(vivace.with_seed(setup.seed)))
    }
}

impl Controller for Vivace {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.next_interval(packet.now);
        self.intervals.on_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(f) = cue {
            self.on_feedback(f);
            self.next_interval(f.now);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.learner.set_limits(limits);
        self.set_target(self.target.media_rate);
    }
    fn target(&self) -> Target {
        self.target
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("rate_bps", self.learner.rate());
        out("utility", self.learner.utility());
        out("mode", self.learner.mode_number());
        out("rtt_ms", self.rtt.as_millis_f64());
    }
}
