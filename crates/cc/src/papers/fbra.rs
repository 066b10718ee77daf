//! FBRA: congestion control that probes with forward error correction (M. Nagy, V. Singh, J. Ott, L. Eggert, "Congestion
//! Control using FEC for Conversational Multimedia Communication", MMSys 2014, sections 3 and 4).
//!
//! While there is no congestion, parity packets are sent beside the media; if the next report is clean, the media takes
//! over their rate. The code is parity, or Reed-Solomon by `fec_repair`. Cues: one-way delay against percentiles of its history, losses and discards by their position in
//! the reporting interval. Sub-algorithms 1a to 1d are in `state`, followed to the letter. Chosen here, since the paper
//! leaves them open: the bounds of the histories, what is recent, the length of the disabled period, and how the FEC
//! interval follows from the rates (see [`Config`] and [`Fbra`]).
//!
//! Recent losses are a sign of congestion whatever the delay, so that random loss of 1 % leaves 622 of 4,000 kbit/s by
//! `weir compare --scenario pathologies/one-in-a-hundred-lost --controllers fbra --runs 1`.

mod config;
mod history;
mod interval;
pub(crate) mod probe;
mod state;
#[cfg(test)]
mod tests;

pub use config::Config;

use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, IntervalReport, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, ReportPlan, Setup, Spec, Start};
use crate::tunable::SetupError;
use history::{Rates, Recent};
use interval::{Losses, RateMeter};
use probe::{Outcome, Probing};
use state::{Signs, State, Undershoot};
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

/// Number of reports over which the medians of round-trip times and intervals are taken.
const MEDIAN_OF: usize = 15;
/// Assumed reporting interval before it is measured.
const UNKNOWN_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
/// Upper bound of a delay, so that a forged one does not distort the history for long.
const MAX_DELAY: TimeDelta = TimeDelta::from_secs(60);

/// The sender half. It uses interval reports ([`Cue::IntervalReport`]) only.
///
/// - Undershooting uses the rates of the reported interval, measured between departures; a cut never raises the rate.
/// - The disabled period is a multiple of the median reporting interval, and the next report is always ignored, even a
///   later one; the report after it decides on bouncing back by the signs of sub-algorithm 1a.
/// - The FEC interval is `fec_interval_min` in the first probe, when there is nothing to compare with, `fec_interval_max`
///   at a high rate and `fec_interval_low` at a low one. A rate is high from `high_rate_share` both of the initial goodput
///   and of the highest rate of the last two seconds.
/// - The first repair packets of a probe are sent at once, over the packets just sent: PROBE mostly lasts one report, in
///   which a whole group would seldom be completed.
/// - FECRate is the media rate divided by the FEC interval and one: the share of parity packets in all packets sent.
/// - At the ceiling there is no rate to probe for, and STAY continues.
/// - A report without packets only restarts the feedback timeout.
#[derive(Clone, Debug)]
pub struct Fbra {
    config: Config,
    pacing: Gain,
    limits: Limits,
    /// CurrentRate in bit/s, between the limits.
    rate: f64,
    state: State,
    previous: State,
    probing: Probing,
    delays: Recent,
    rates: Rates,
    rate_meter: RateMeter,
    /// Goodput of the first interval without losses.
    initial_goodput: Option<f64>,
    rtts: Recent,
    intervals: Recent,
    heard_at: Option<Timestamp>,
    disabled: Option<Disabled>,
    /// Goodput stored at undershooting, while the next report decides on bouncing back.
    bounce: Option<f64>,
    silence_ends: Option<Timestamp>,
    /// Bits of repair sent since the last report.
    repair_bits: f64,
    last_report: ReportedValues,
    early_reports: u64,
    ignored_reports: u64,
}

/// Rate control is disabled: the next report is ignored, and all before this time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Disabled {
    until: Timestamp,
    next_report: bool,
}

/// Values of the last report, for plots.
#[derive(Clone, Copy, Debug)]
struct ReportedValues {
    delay_ms: f64,
    low_ms: f64,
    high_ms: f64,
    goodput_bps: f64,
}

impl Fbra {
    /// A sender in STAY at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("fbra")?;
        let unknown = f64::NAN;
        Ok(Self {
            config,
            pacing: Gain::new(config.pacing_factor).unwrap_or(Gain::ONE),
            limits: start.limits,
            rate: start.limits.clamp(start.rate).as_bps_f64(),
            state: State::Stay,
            previous: State::Stay,
            probing: Probing::default(),
            delays: Recent::new(config.history as usize),
            rates: Rates::new(),
            rate_meter: RateMeter::default(),
            initial_goodput: None,
            rtts: Recent::new(MEDIAN_OF),
            intervals: Recent::new(MEDIAN_OF),
            heard_at: None,
            disabled: None,
            bounce: None,
            silence_ends: None,
            repair_bits: 0.0,
            last_report: ReportedValues { delay_ms: unknown, low_ms: unknown, high_ms: unknown, goodput_bps: unknown },
            early_reports: 0,
            ignored_reports: 0,
        })
    }

    fn on_report(&mut self, report: &IntervalReport<'_>) {
        let (now, early) = (report.now, self.is_early(report));
        let since_last = self.heard_at.map(|t| now - t);
        self.heard_at = Some(now);
        self.silence_ends = None;
        let repair_bits = core::mem::take(&mut self.repair_bits);
        let losses = Losses::of(report.packets, self.config.recent_share);
        let measured = self.rate_meter.measure(report.packets);
        if let Some(m) = measured {
            let repair = since_last.map_or(0.0, |t| repair_bits / t.as_secs_f64().max(1e-3));
            // The combined rate is at least the greater of the two.
            self.rates.push(now, m.sending + repair);
            self.last_report.goodput_bps = m.goodput;
            if !losses.any_lost {
                self.initial_goodput.get_or_insert(m.goodput);
            }
        }
        let (high, low) = self.correlate(report, &losses);
        if report.packets.is_empty() {
            return;
        }
        if let Some(disabled) = &mut self.disabled
            && (disabled.next_report || now < disabled.until)
        {
            disabled.next_report = false;
            self.ignored_reports += 1;
            return;
        }
        self.disabled = None;
        let signs = Signs { losses, high, low, may_probe: self.may_probe(now) };
        if early {
            self.early_reports += 1;
        }
        self.act(now, &signs, early, measured);
    }

    /// Section 4.3: a report is early if it follows the previous one by less than 1.5 median round-trip times, or 1.5
    /// times the latest if that is less, since the receiver's reports come closer together as soon as the round-trip
    /// time falls.
    fn is_early(&mut self, report: &IntervalReport<'_>) -> bool {
        let since_last = self.heard_at.map(|t| (report.now - t).as_millis_f64());
        if let Some(rtt) = report.rtt.filter(|&t| t > TimeDelta::ZERO) {
            self.rtts.push(rtt.min(MAX_DELAY).as_millis_f64());
        }
        let latest = report.rtt.map_or(f64::INFINITY, TimeDelta::as_millis_f64);
        let rtt = self.rtts.median().map(|m| m.min(latest));
        let early = rtt.zip(since_last).is_some_and(|(r, t)| t < self.config.early_round_trips * r);
        if let Some(t) = since_last.filter(|_| !early) {
            self.intervals.push(t);
        }
        early
    }

    /// Correlated_highOWD and Correlated_lowOWD (section 4.1), against the history before this report; 1 if unknown.
    fn correlate(&mut self, report: &IntervalReport<'_>, losses: &Losses) -> (f64, f64) {
        let Some(delay) = report.one_way_delay else { return (1.0, 1.0) };
        let delay = if self.config.mean_delay { delay.mean } else { delay.last };
        let current = delay.max(TimeDelta::ZERO).min(MAX_DELAY).as_millis_f64();
        let low = self.delays.percentile(self.config.low_percentile);
        let high = self.delays.percentile(self.config.high_percentile);
        if !losses.any_lost && !losses.any_discarded {
            self.delays.push(current);
        }
        self.last_report.delay_ms = current;
        (self.last_report.low_ms, self.last_report.high_ms) = (low.unwrap_or(f64::NAN), high.unwrap_or(f64::NAN));
        let correlated = |mark: Option<f64>| mark.filter(|&m| m > 0.0).map_or(1.0, |m| current / m);
        (correlated(high), correlated(low))
    }

    /// Section 4.3: above 90 % of the highest rate of the last 2 s, STAY must have lasted one more report.
    fn may_probe(&self, now: Timestamp) -> bool {
        let near_highest = self.rate > self.config.stable_share * self.highest_rate(now);
        self.rate < self.limits.ceiling.as_bps_f64() && (!near_highest || self.previous == State::Stay)
    }

    /// Highest rate of the last 2 s; the current rate if none was recorded.
    fn highest_rate(&self, now: Timestamp) -> f64 {
        self.rates.highest(now, self.config.rate_window).unwrap_or(self.rate)
    }

    fn act(&mut self, now: Timestamp, signs: &Signs, early: bool, measured: Option<interval::Rates>) {
        let (bouncing, before) = (self.bounce.take(), self.state);
        if early && self.state != State::Down {
            // "Assumes this is an early report and immediately transits to the DOWN state" (section 4.3);
            // sub-algorithm 1a then decides whether to undershoot.
            self.enter(State::Down);
        }
        let mut step = self.state.step(self.previous, signs, &self.config);
        if early {
            step.next = State::Down;
        }
        if let Some(goodput) = bouncing.filter(|_| self.state == State::Down) {
            let congested =
                signs.losses.recent_lost || signs.losses.any_discarded || signs.high > self.config.alpha_undershoot;
            if congested {
                // Section 4.4 is followed, not line 9 of 1a: "this time does not disable the congestion control".
                (step.next, step.undershoot) = (State::Down, Undershoot::KeepControl);
            } else {
                self.set_rate(self.rate.max(self.config.bounce_share * goodput));
            }
        }
        if step.undershoot != Undershoot::No {
            self.undershoot(measured);
        }
        if step.undershoot == Undershoot::Disable {
            let interval = self.intervals.median().map_or(UNKNOWN_INTERVAL, TimeDelta::from_millis_f64);
            let until = now + interval.mul_f64(self.config.disabled_intervals);
            self.disabled = Some(Disabled { until, next_report: true });
            self.bounce = Some(measured.map_or(self.rate, |m| m.goodput));
        }
        match (self.state, step.next) {
            (State::Stay, State::Probe) => {
                let interval = self.fec_interval(now);
                self.probing.start(interval);
            }
            (State::Probe, State::Probe) => self.probing.lessen(self.config.fec_interval_max),
            (State::Probe, State::Up) if self.probing.repair_packets() < self.config.min_repair_packets => {
                step.next = State::Probe;
            }
            (State::Probe, State::Up) => {
                let fec = self.probing.interval().map_or(0.0, |n| self.rate / (f64::from(n) + 1.0));
                self.set_rate(self.rate + fec);
            }
            _ => {}
        }
        self.enter(step.next);
        self.previous = before;
    }

    /// Changes state. Leaving PROBE stops FEC; the probe is judged when UP ends or if the rate was not raised.
    fn enter(&mut self, next: State) {
        match next {
            State::Probe => {}
            State::Up => self.probing.stop(),
            State::Down => self.probing.judge(Outcome::Failed),
            State::Stay if self.state == State::Up => self.probing.judge(Outcome::Raised),
            State::Stay => self.probing.judge(Outcome::Kept),
        }
        (self.previous, self.state) = (self.state, next);
    }

    /// Section 4.4: subtracts twice the difference between sending rate and goodput, then takes 90 %.
    fn undershoot(&mut self, measured: Option<interval::Rates>) {
        let m = measured.unwrap_or(interval::Rates { sending: self.rate, goodput: self.rate });
        let wanted = self.config.undershoot_share * (m.sending - 2.0 * (m.sending - m.goodput));
        self.set_rate(self.rate.min(wanted));
    }

    /// Section 4.2: low rates get a short interval, high rates a long one.
    fn fec_interval(&self, now: Timestamp) -> u8 {
        let c = &self.config;
        let compared = self.highest_rate(now).max(self.initial_goodput.unwrap_or(0.0));
        let interval = if self.probing.has_none() {
            c.fec_interval_min
        } else if self.rate >= c.high_rate_share * compared {
            c.fec_interval_max
        } else {
            c.fec_interval_low
        };
        interval.clamp(2, u32::from(u8::MAX)) as u8
    }

    fn set_rate(&mut self, bps: f64) {
        self.rate = bps.min(self.limits.ceiling.as_bps_f64()).max(self.limits.floor.as_bps_f64());
    }
}

impl Algorithm for Fbra {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(ReportPlan {
                // Section 4.1: "need not be shorter than 2 x RTT".
                min_round_trips: 2.0,
                min_interval: TimeDelta::from_millis(100),
                // Below the silence of section 4.3, so that two of them do not look like one.
                max_interval: TimeDelta::from_millis(1_900),
                extended: true,
                early: true,
            }),
            params: Config::params(),
            ..Spec::new(
                "fbra",
                "probes with forward error correction, by one-way delay, losses and discards; low at 1 % of random loss \
                 (622 of 4,000 kbit/s), by its rules",
                "Nagy et al., MMSys 2014",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Fbra {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        if packet.is_repair {
            self.repair_bits += packet.size.as_bits() as f64;
            self.probing.on_repair();
        }
        if self.silence_ends.is_none() {
            self.silence_ends = Some(packet.now + self.config.silence);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::IntervalReport(report) = cue {
            self.on_report(report);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.set_rate(self.rate);
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.limits.clamp(DataRate::from_bps_f64(self.rate)))
    }
    /// A probe adds a part of the rate and undershooting follows measured rates, so that the share has no effect.
    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        if let Some(rate) = coupled.rate {
            self.set_rate(rate.as_bps_f64());
        }
    }
    /// Section 4.3: no report for 2 s halves the rate and leads to DOWN.
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence_ends.is_some_and(|t| t <= now) {
            self.set_rate(0.5 * self.rate);
            self.enter(State::Down);
            (self.bounce, self.disabled, self.silence_ends) = (None, None, None);
        }
    }
    fn target(&self) -> Target {
        let rate = self.limits.clamp(DataRate::from_bps_f64(self.rate));
        let code = self.config.fec_repair;
        let repair = match self.probing.interval() {
            Some(interval) => probe::plan(interval, code),
            // At most 100.
            None => probe::standby(self.config.fec_interval_max as u8, code),
        };
        Target { repair, ..Target::paced_by(rate, self.pacing) }
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.silence_ends?, TimeoutReason::FeedbackMissing))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("state", self.state.number());
        out("owd_ms", self.last_report.delay_ms);
        out("owd_p40_ms", self.last_report.low_ms);
        out("owd_p80_ms", self.last_report.high_ms);
        out("goodput_bps", self.last_report.goodput_bps);
        out("early_reports", self.early_reports as f64);
        out("ignored_reports", self.ignored_reports as f64);
        self.probing.metrics(out);
    }
}
