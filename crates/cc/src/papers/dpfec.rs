//! Dynamic probing forward error correction (Matsuzono, Asaeda and Murai, Journal of Information Processing 20(1),
//! 2012): media at a constant rate, and as much Reed-Solomon repair beside it as competing TCP flows tolerate.
//!
//! The media rate is the start rate within the limits and stays constant. The FEC window varies, the number of repair
//! packets in each block of fixed length: it grows by one per ResTime and falls to 0.8 of its value on congestion.
//! Congestion is a loss interval that shrinks by more than a share of TCP's throughput, or that is very short.
//!
//! Choices where the paper is open:
//! - Equation 2 needs p, TCP's loss event rate. The stream's own is used, since in the paper both see the same loss
//!   events: one event among the packets sent in a loss interval. [`Config::by_equation_3`] instead derives TCP's
//!   throughput from the loss interval by equation 3, which needs no p; the impact is then the relative change of the
//!   loss interval.
//! - t_RTO is 4 RTT (RFC 5348, section 3.1).
//! - A loss-interval sample is taken at each SYN time with a loss. LI is unchanged in between, so it is compared with
//!   MinLI only when a sample is taken.
//! - A loss belongs to the SYN time in which the next packet arrives, by the receiver's clock, so that late or merged
//!   feedback gives the same result. A packet is lost when feedback first reports it lost, repair packets included;
//!   marks do not count.
//! - The brackets of equation 6 round to the nearest integer: two packets remain two (0.8 x 2 = 1.6). Rounded down, the
//!   window reaches zero under continuous loss, where figure 7 (c) keeps 5 to 10 packets.
//! - With [`Config::by_conditions`] the threshold is greater where losses are rare, between two values by the loss interval: section
//!   6 leaves a threshold "according to network conditions" to the future, without a rule.
//! - A growing loss interval has no impact. After congestion by MinLI the window does not grow at the end of the same
//!   ResTime.
//! - The window stays unchanged over a ResTime without feedback: silence does not justify sending more.
//! - The pacing rate has room for media and repair together, so that packets are sent as they are produced.

mod config;
mod estimate;

pub use config::Config;
pub use estimate::{impact, max_interval_loss};

use crate::controller::{Controller, Limits, RepairPlan, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket, TransportFeedback};
use crate::spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use estimate::LossInterval;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

/// DP-FEC's sender.
#[derive(Clone, Debug)]
pub struct DpFec {
    config: Config,
    limits: Limits,
    wanted: DataRate,
    /// Fwnd.
    window: u8,
    loss: LossInterval,
    /// LI at the end of the previous ResTime.
    reference: Option<TimeDelta>,
    impact: f64,
    next_decision: Timestamp,
    /// Packets sent in this ResTime, and per second in the previous one.
    sent: u32,
    packet_rate: f64,
    heard: bool,
    congested: bool,
    /// Sum and number of the windows at the ends of ResTimes, for the mean.
    windows: (f64, f64),
}

impl DpFec {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("dpfec")?;
        Ok(Self {
            config,
            limits: start.limits,
            wanted: start.rate,
            window: 0,
            loss: LossInterval::default(),
            reference: None,
            impact: f64::NAN,
            next_decision: start.now + config.res_time,
            sent: 0,
            packet_rate: f64::NAN,
            heard: false,
            congested: false,
            windows: (0.0, 0.0),
        })
    }

    fn block(&self) -> u8 {
        u8::try_from(self.config.block).unwrap_or(u8::MAX)
    }

    fn max_window(&self) -> u8 {
        u8::try_from(self.config.max_window).unwrap_or(u8::MAX).min(self.block() - 1)
    }

    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        for p in feedback.packets {
            self.heard = true;
            let Some(at) = p.arrival else {
                self.loss.on_lost();
                continue;
            };
            if p.was_lost {
                continue;
            }
            if let Some(interval) = self.loss.on_arrival(at, &self.config)
                && interval < self.config.min_li
            {
                self.decrease();
                self.congested = true;
            }
        }
    }

    /// [beta * Fwnd]; the brackets round to the nearest, so that small windows do not fall to zero.
    fn decrease(&mut self) {
        self.window = (self.config.beta * f64::from(self.window) + 0.5) as u8;
    }

    /// Decides at the end of a ResTime.
    fn decide(&mut self, now: Timestamp) {
        let passed = now - self.next_decision + self.config.res_time;
        self.packet_rate = f64::from(self.sent) / passed.as_secs_f64();
        let interval = self.loss.mean();
        self.impact = match (self.reference, interval) {
            (Some(before), Some(after)) => impact(&self.config, before, after, self.packet_rate),
            _ => f64::NAN,
        };
        if self.impact > interval.map_or(self.config.threshold, |li| self.config.threshold_at(li)) {
            self.decrease();
        } else if self.heard && !self.congested {
            self.window = self.window.saturating_add(1).min(self.max_window());
        }
        self.windows = (self.windows.0 + f64::from(self.window), self.windows.1 + 1.0);
        self.reference = interval;
        (self.sent, self.heard, self.congested) = (0, false, false);
        self.next_decision = now + self.config.res_time;
    }
}

impl Algorithm for DpFec {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let syn = Config::default().syn;
        vec![Spec {
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::CongestionControl,
                min_interval: syn,
                max_interval: syn,
                bandwidth_share: 1.0,
            }),
            params: Config::params(),
            ..Spec::new(
                "dpfec",
                "constant media rate, Reed-Solomon repair by its impact on TCP",
                "Matsuzono et al., DP-FEC, 2012, section 3",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for DpFec {
    fn on_packet_sent(&mut self, _: &SentPacket) {
        self.sent = self.sent.saturating_add(1);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(feedback) = cue {
            self.on_feedback(feedback);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.next_decision <= now {
            self.decide(now);
        }
    }
    fn target(&self) -> Target {
        let media = self.limits.clamp(self.wanted);
        let block = self.block();
        // n / k times the media rate, with headroom.
        let expansion = f64::from(block) / f64::from(block - self.window);
        let room = Gain::new(self.config.pacing_factor * expansion).unwrap_or(Gain::ONE);
        let repair = RepairPlan::ReedSolomon { block, repair: self.window };
        Target { repair, ..Target::paced(media, media * room) }
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.next_decision, TimeoutReason::RateUpdate))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("window", f64::from(self.window));
        out("window_mean", self.windows.0 / self.windows.1);
        out("loss_interval_ms", self.loss.mean().map_or(f64::NAN, TimeDelta::as_millis_f64));
        out("impact", if self.impact.is_finite() { self.impact } else { f64::NAN });
        out("loss_events", self.loss.events() as f64);
        out("packets_per_s", self.packet_rate);
    }
}

#[cfg(test)]
mod tests;
