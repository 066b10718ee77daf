//! The half at the media sender.

use super::config::Config;
use super::receiver::CnaduReceiver;
use super::rtt_history::RttHistory;
use crate::algorithms::nada::loss_intervals::LossIntervals;
use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, Fate, IntervalPacket, IntervalReport, NextDataUnit, ReportBlock, SentPacket};
use crate::parts::feedback_timeout::FeedbackTimeout;
use crate::parts::mean_size::MeanSize;
use crate::parts::rtt;
use crate::spec::{Algorithm, Pair, ReportPlan, Setup, Spec, Start};
use crate::tcp::throughput::{Equation, TcpFlow};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

/// Factor applied to the rate when reports are missing for the timeout.
const TIMEOUT_FACTOR: f64 = 0.5;
/// Most packets that one report block counts for where there are no run lengths.
const MAX_EXPECTED: u64 = 10_000;
/// One report per round-trip time; RTCP's share of the bandwidth is the other bound.
pub(crate) const REPORTS: ReportPlan = ReportPlan {
    min_round_trips: 1.0,
    min_interval: TimeDelta::from_millis(200),
    max_interval: TimeDelta::from_secs(1),
    extended: true,
    early: false,
};

/// The state of the path by the newest report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Level {
    /// No congestion: the rate lies between the estimates.
    Calm,
    /// Round-trip times are growing, or the receiver's buffer is empty: the rate does not rise.
    Holding,
    /// Packets were lost: the lesser estimate.
    Lossy,
    /// Packets missed playout, or round-trip times lie far above past ones: at most the lesser estimate.
    Congested,
}

/// The sender: a rate between its own estimate and the receiver's.
#[derive(Clone, Debug)]
pub struct Cnadu {
    config: Config,
    pacing: Gain,
    limits: Limits,
    /// In bit/s, between the limits.
    rate: f64,
    /// The receiver's last reported estimate in bit/s.
    requested: Option<f64>,
    losses: LossIntervals,
    /// Upper bound after discards, in bit/s.
    discard_bound: Option<f64>,
    tcp: Option<f64>,
    history: RttHistory,
    percentiles: Option<[TimeDelta; 2]>,
    rtt: Option<TimeDelta>,
    level: Level,
    lossy: bool,
    discards: f64,
    /// Whether the receiver has ever reported buffered media.
    has_played: bool,
    playout_delay: Option<TimeDelta>,
    extended: bool,
    /// Consecutive packets lost up to the newest.
    run: u32,
    reported: Timestamp,
    size: MeanSize,
    silence: FeedbackTimeout,
    start: Timestamp,
}

impl Cnadu {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("cnadu")?;
        Ok(Self {
            config,
            pacing: Gain::new(config.pacing_factor).unwrap_or(Gain::ONE),
            limits: start.limits,
            rate: start.limits.clamp(start.rate).as_bps_f64(),
            requested: None,
            losses: LossIntervals::default(),
            discard_bound: None,
            tcp: None,
            history: RttHistory::new(),
            percentiles: None,
            rtt: None,
            level: Level::Calm,
            lossy: false,
            discards: 0.0,
            has_played: false,
            playout_delay: None,
            extended: false,
            run: 0,
            reported: start.now,
            size: MeanSize::default(),
            silence: FeedbackTimeout::new(config.feedback_timeout),
            start: start.now,
        })
    }

    fn clip(&mut self) {
        self.rate = self.limits.clamp_bps(self.rate);
    }

    fn merge(&self) -> TimeDelta {
        self.rtt.unwrap_or(TimeDelta::ZERO)
    }

    fn on_block(&mut self, block: &ReportBlock) {
        self.rtt = block.rtt.map(rtt::bounded).or(self.rtt);
        let fraction = block.loss();
        self.lossy = fraction > 0.0;
        if !self.extended {
            let expected = block.expected.min(MAX_EXPECTED);
            let lost = libm::round(fraction * expected as f64) as u32;
            let (at, merge) = (block.now - self.start, self.merge());
            (1..expected.saturating_sub(u64::from(lost))).for_each(|_| self.losses.on_packet(0, at, merge));
            if expected > 0 {
                self.losses.on_packet(lost, at, merge);
            }
            self.conclude(block.now, 0.0);
        }
    }

    fn on_interval(&mut self, report: &IntervalReport<'_>) {
        self.extended = true;
        self.rtt = report.rtt.map(rtt::bounded).or(self.rtt);
        if report.packets.is_empty() {
            return;
        }
        let (mut lost, mut discarded) = (0u64, 0u64);
        let merge = self.merge();
        for IntervalPacket { departure, fate, .. } in report.packets {
            match fate {
                Fate::Lost => (self.run, lost) = (self.run.saturating_add(1), lost + 1),
                Fate::Received | Fate::Discarded => {
                    self.losses.on_packet(core::mem::take(&mut self.run), *departure - self.start, merge);
                    discarded += u64::from(*fate == Fate::Discarded);
                }
            }
        }
        self.lossy = lost > 0;
        self.conclude(report.now, discarded as f64 / report.packets.len() as f64);
    }

    /// Derives the level and the sender's own estimate from a report.
    fn conclude(&mut self, now: Timestamp, discards: f64) {
        let passed = now.saturating_since(self.reported).as_secs_f64().min(1.0);
        self.reported = now;
        self.discards = discards;
        let missed = discards > self.config.discard_share;
        let segment = self.size.get();
        let p = self.losses.mean(true).map_or(0.0, f64::recip);
        let flow = TcpFlow::new(segment, self.rtt.unwrap_or(TimeDelta::ZERO));
        self.tcp = flow.throughput(Equation::Full, p).map(DataRate::as_bps_f64);
        let far = 2.0 * self.limits.ceiling.as_bps_f64();
        self.discard_bound = if missed {
            Some(self.rate.min(self.discard_bound.unwrap_or(f64::MAX)) * (1.0 - 0.5 * discards))
        } else {
            let raise = 1.0 + self.config.discard_recovery * passed;
            self.discard_bound.map(|b| b * raise).filter(|&b| b < far)
        };
        self.percentiles = self.history.percentiles([self.config.low_percentile, self.config.high_percentile]);
        let above = |percentile: usize, factor: f64| {
            self.rtt.zip(self.percentiles).is_some_and(|(rtt, p)| rtt > p[percentile].mul_f64(factor))
        };
        self.level = if missed || above(1, self.config.high_factor) {
            Level::Congested
        } else if self.lossy {
            Level::Lossy
        } else if above(0, self.config.low_factor) {
            Level::Holding
        } else {
            Level::Calm
        };
        if let Some(rtt) = self.rtt.filter(|_| !self.lossy && !missed) {
            self.history.push(rtt);
        }
        self.choose();
    }

    fn on_next_unit(&mut self, unit: &NextDataUnit) {
        self.playout_delay = unit.playout_delay;
        self.has_played |= unit.playout_delay.is_some();
    }

    /// The sender's own estimate in bit/s; `None` while nothing bounds it.
    pub(crate) fn own(&self) -> Option<f64> {
        match (self.tcp, self.discard_bound) {
            (Some(t), Some(d)) => Some(t.min(d)),
            (t, d) => t.or(d),
        }
    }

    /// Sets the rate between the estimates that the level allows. Idempotent.
    fn choose(&mut self) {
        let (low, high) = match (self.own(), self.requested) {
            (None, None) => return,
            (Some(own), None) => (own.min(self.rate), own.min(self.rate)),
            // No loss or late packet so far: the sender has no bound of its own.
            (None, Some(requested)) => (requested, requested),
            (Some(own), Some(requested)) => {
                let own = own.min(self.config.sender_bound * requested);
                (own.min(requested), own.max(requested))
            }
        };
        let starved = self.has_played && self.playout_delay.is_none();
        self.rate = match self.level {
            Level::Congested => self.rate.min(low),
            Level::Lossy => low,
            Level::Holding => self.rate.min(high),
            Level::Calm if starved => self.rate.min(high),
            Level::Calm => low + self.config.between * (high - low),
        };
        self.clip();
    }
}

impl Algorithm for Cnadu {
    type Receiver = CnaduReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(REPORTS),
            params: Config::params(),
            ..Spec::new(
                "cnadu",
                "Conversational NADU: frame arrival and playout at the receiver, TFRC and delay at the sender",
                "Singh, Ott and Curcio, WoWMoM 2012",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, CnaduReceiver>, SetupError> {
        let (config, start) = (Config::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, CnaduReceiver::new(config, &start)?))
    }
}

impl Controller for Cnadu {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.size.on_packet(packet);
        self.silence.on_packet(packet.now);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::ReceiverEstimate(estimate) => {
                self.requested = Some(estimate.rate.as_bps_f64());
                self.choose();
            }
            Cue::ReportBlock(block) => self.on_block(block),
            Cue::IntervalReport(report) => self.on_interval(report),
            Cue::NextDataUnit(unit) => self.on_next_unit(unit),
            _ => return,
        }
        self.silence.on_feedback();
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.clip();
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.expire(now) {
            self.rate *= TIMEOUT_FACTOR;
            self.clip();
        }
    }
    fn target(&self) -> Target {
        let rate = self.limits.clamp(DataRate::from_bps_f64(self.rate));
        Target::paced_by(rate, self.pacing)
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.silence.poll()
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let ms = |t: Option<TimeDelta>| t.map_or(f64::NAN, TimeDelta::as_millis_f64);
        out("receiver_bps", self.requested.unwrap_or(f64::NAN));
        out("sender_bps", self.own().unwrap_or(f64::NAN));
        out("tcp_bps", self.tcp.unwrap_or(f64::NAN));
        out("loss_event_rate", self.losses.mean(true).map_or(0.0, f64::recip));
        out("discarded", self.discards);
        // Calm 0, holding 1, lossy 2, congested 3.
        let level = match self.level {
            Level::Calm => 0.0,
            Level::Holding => 1.0,
            Level::Lossy => 2.0,
            Level::Congested => 3.0,
        };
        out("level", level);
        out("rtt_ms", ms(self.rtt));
        out("rtt_low_percentile_ms", ms(self.percentiles.map(|p| p[0])));
        out("rtt_high_percentile_ms", ms(self.percentiles.map(|p| p[1])));
        out("playout_delay_ms", ms(self.playout_delay));
    }
}

#[cfg(test)]
mod tests;
