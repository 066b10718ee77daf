//! The model of the path and the states that follow from it (libwebrtc's `BbrNetworkController`).

use super::aggregation::Aggregation;
use super::config::Config;
use super::cycle::Cycle;
use super::max_filter::MaxFilter;
use super::recovery::{LossRecovery, Recovery};
use super::sampler::Sampler;
use super::{PACKET, scale, times};
use crate::controller::Coupled;
use crate::cue::{SentPacket, TransportFeedback};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Pacing gain in STARTUP after a loss, if configured (`kStartupAfterLossGain`).
const STARTUP_AFTER_LOSS: f64 = 1.5;
/// The queue counts as drained up to this multiple of the target window.
const DRAINED: f64 = 1.25;

/// State of the controller (STARTUP, DRAIN, PROBE_BW, PROBE_RTT).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Raises the rate with each round trip until the bandwidth no longer grows.
    Startup,
    /// Drains the queue that this has built.
    Drain,
    /// Sends at the bandwidth, with a phase above and one below it in each cycle.
    ProbeBw,
    /// Empties the path to measure its least round-trip time.
    ProbeRtt,
}

/// Path model and state machine.
#[derive(Clone, Debug)]
pub(super) struct Network {
    config: Config,
    mode: Mode,
    sampler: Sampler,
    bandwidth: MaxFilter<DataRate>,
    min_rtt: Option<TimeDelta>,
    min_rtt_at: Timestamp,
    last_rtt: TimeDelta,
    /// Round trips so far; one ends when a packet after this is acknowledged.
    rounds: u64,
    round_ends_after: Option<u64>,
    recovery: LossRecovery,
    aggregation: Aggregation,
    pacing_gain: f64,
    window_gain: f64,
    pacing_rate: Option<DataRate>,
    window: DataSize,
    in_flight: DataSize,
    cycle: Cycle,
    is_full: bool,
    full_bandwidth: DataRate,
    rounds_without_growth: u32,
    last_is_app_limited: bool,
    /// Nothing was in flight, and samples are marked.
    leaves_quiescence: bool,
    probe_rtt_ends: Option<Timestamp>,
    probe_rtt_round_passed: bool,
    /// Of a coupled flow: the rate that its group has left it, and the bandwidth then.
    given: Option<(DataRate, DataRate)>,
    /// Factor on what pacing gains exceed 1 by, once the bandwidth is found: the share of a group of coupled flows.
    share: f64,
}

impl Network {
    pub(super) fn new(config: Config, now: Timestamp) -> Self {
        let window = u64::from(config.bandwidth_window);
        let mut network = Self {
            config,
            mode: Mode::Startup,
            sampler: Sampler::default(),
            bandwidth: MaxFilter::new(window),
            min_rtt: None,
            min_rtt_at: now,
            last_rtt: TimeDelta::ZERO,
            rounds: 0,
            round_ends_after: None,
            recovery: LossRecovery::new(),
            aggregation: Aggregation::new(window, config.aggregation_gain),
            pacing_gain: 1.0,
            window_gain: 1.0,
            pacing_rate: None,
            window: config.initial_window,
            in_flight: DataSize::ZERO,
            cycle: Cycle::new(config.probe_gain, now),
            is_full: config.startup_rounds == 0,
            full_bandwidth: DataRate::ZERO,
            rounds_without_growth: 0,
            last_is_app_limited: false,
            leaves_quiescence: false,
            probe_rtt_ends: None,
            probe_rtt_round_passed: false,
            given: None,
            share: 1.0,
        };
        network.cruise_or_start(now);
        network
    }

    /// Sets the seed of the phase in which each PROBE_BW begins.
    pub(super) fn seed(&mut self, seed: u64, now: Timestamp) {
        self.cycle.seed(seed);
        if self.mode == Mode::ProbeBw {
            self.enter_probe_bw(now);
        }
    }

    pub(super) fn mode(&self) -> Mode {
        self.mode
    }
    /// The bandwidth; `None` before the first sample.
    pub(super) fn bandwidth(&self) -> Option<DataRate> {
        Some(self.bandwidth.best()).filter(|b| *b > DataRate::ZERO)
    }
    /// The bandwidth; of a coupled flow the rate that its group has left it and what the bandwidth has changed by since, so that
    /// the group's sum is that of the bandwidths.
    pub(super) fn used_bandwidth(&self) -> Option<DataRate> {
        let Some((rate, then)) = self.given else { return self.bandwidth() };
        let now = self.bandwidth().unwrap_or(then);
        Some((rate + now.saturating_sub(then)).saturating_sub(then.saturating_sub(now)))
    }
    pub(super) fn couple(&mut self, coupled: &Coupled) {
        self.share = coupled.increase;
        if let Some(rate) = coupled.rate {
            self.given = Some((rate, self.bandwidth().unwrap_or(rate)));
        }
        // A share of 1 is that of a flow on its own.
        self.given = self.given.filter(|_| coupled.increase < 1.0);
        self.set_pacing_rate();
    }
    /// A pacing gain of this flow: coupled flows together probe for as much more as one flow would. Their windows, multiples of
    /// their bandwidths, add up to one flow's as they are.
    fn shared(&self, gain: f64) -> f64 {
        if gain > 1.0 && self.is_full { 1.0 + (gain - 1.0) * self.share } else { gain }
    }
    pub(super) fn min_rtt(&self) -> Option<TimeDelta> {
        self.min_rtt
    }
    pub(super) fn pacing_gain(&self) -> f64 {
        self.pacing_gain
    }
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }
    pub(super) fn in_flight(&self) -> DataSize {
        self.in_flight
    }
    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_on()
    }

    /// Whether more is sent than the bandwidth, with padding where media is short (`IsProbingForMoreBandwidth`).
    pub(super) fn is_probing(&self) -> bool {
        self.mode == Mode::Startup || self.mode == Mode::ProbeBw && self.pacing_gain > 1.0
    }

    /// Before the first bandwidth, what the initial window sends in a round trip, with the gain of STARTUP.
    pub(super) fn pacing_rate(&self) -> DataRate {
        self.pacing_rate.unwrap_or_else(|| scale(self.initial_rate(), self.config.startup_gain))
    }

    /// Bytes that may be in flight (`GetCongestionWindow`).
    pub(super) fn window(&self) -> DataSize {
        if self.mode == Mode::ProbeRtt {
            return self.probe_rtt_window();
        }
        let limit = self.recovery.window().filter(|_| self.has_recovery_window());
        limit.map_or(self.window, |limit| limit.min(self.window))
    }

    pub(super) fn on_sent(&mut self, packet: &SentPacket) {
        // libwebrtc's flight has the packet in it, so that nothing ever counts as first; the sampler's own rule, and
        // the draft (section "Transmitting a data packet"), mean the flight before it.
        let is_first = packet.bytes_in_flight <= packet.size;
        self.leaves_quiescence |= is_first && self.sampler.is_app_limited();
        self.aggregation.on_sent(packet.now);
        self.sampler.on_sent(packet, is_first);
        self.in_flight = packet.bytes_in_flight;
    }

    pub(super) fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        if f.packets.is_empty() {
            return;
        }
        let prior_in_flight = core::mem::replace(&mut self.in_flight, f.bytes_in_flight);
        let acked_before = self.sampler.acked();
        let mut lost = DataSize::ZERO;
        let mut has_losses = false;
        for p in f.packets.iter().filter(|p| p.arrival.is_none() && !p.was_lost) {
            self.sampler.on_lost(p.sequence);
            lost += p.size;
            has_losses = true;
        }
        let (mut round_start, mut expired) = (false, false);
        if let Some(last) = f.packets.iter().rev().find(|p| p.arrival.is_some()) {
            round_start = self.update_round(last.sequence);
            expired = self.take_samples(f);
            let (last_sent, first) = (self.sampler.last_sent(), self.first_recovery());
            if self.recovery.update(last.sequence, last_sent, has_losses, round_start, first) {
                self.round_ends_after = last_sent;
            }
            let acked = self.sampler.acked().saturating_sub(acked_before);
            let drained = self.in_flight <= times(self.target_window(self.pacing_gain), DRAINED);
            self.aggregation.on_acked(acked, drained, self.bandwidth.best(), self.rounds, f.now);
            self.sampler.forget_before(last.sequence);
        }
        if self.mode == Mode::ProbeBw {
            self.update_phase(prior_in_flight, has_losses, f.now);
        }
        if round_start && !self.is_full {
            self.check_full();
        }
        self.leave_startup_or_drain(f.now);
        self.probe_rtt(round_start, expired, f.now);
        let acked = self.sampler.acked().saturating_sub(acked_before);
        self.set_pacing_rate();
        self.set_window(acked);
        if self.has_recovery_window() {
            self.recovery.set_window(acked, lost, self.in_flight, self.config.min_window);
        }
    }

    fn update_round(&mut self, acked: u64) -> bool {
        let is_start = self.round_ends_after.is_none_or(|end| acked > end);
        if is_start {
            self.rounds += 1;
            self.round_ends_after = self.sampler.last_sent();
        }
        is_start
    }

    /// Updates bandwidth and least round-trip time; returns whether the latter had expired.
    fn take_samples(&mut self, f: &TransportFeedback<'_>) -> bool {
        let mut least: Option<TimeDelta> = None;
        for p in f.packets.iter().filter(|p| p.arrival.is_some()) {
            let Some(sample) = self.sampler.on_acked(p.sequence, f.now) else { continue };
            self.last_is_app_limited = sample.is_app_limited;
            least = Some(least.map_or(sample.rtt, |l| l.min(sample.rtt)));
            if !sample.is_app_limited || sample.bandwidth > self.bandwidth.best() {
                self.bandwidth.update(sample.bandwidth, self.rounds);
            }
        }
        let Some(rtt) = least else { return false };
        self.last_rtt = rtt;
        let expired = self.min_rtt.is_some() && f.now > self.min_rtt_at + self.config.min_rtt_expiry;
        if expired || self.min_rtt.is_none_or(|least| rtt < least) {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), f.now);
        }
        expired
    }

    fn first_recovery(&self) -> Recovery {
        if self.mode == Mode::Startup {
            Recovery::from_number(self.config.startup_recovery)
        } else {
            Recovery::Conservation
        }
    }
    fn has_recovery_window(&self) -> bool {
        !(self.config.rate_based_recovery || self.config.startup_rate_based && self.mode == Mode::Startup)
    }

    fn rtt(&self) -> TimeDelta {
        self.min_rtt.unwrap_or(self.config.initial_rtt)
    }
    fn initial_rate(&self) -> DataRate {
        DataRate::from_size_over(self.config.initial_window, self.rtt()).unwrap_or(DataRate::ZERO)
    }
    /// The bandwidth-delay product times `gain`, or the initial window times `gain`; not below the least window.
    fn target_window(&self, gain: f64) -> DataSize {
        let bandwidth = self.used_bandwidth().unwrap_or(DataRate::ZERO);
        let product = times(bandwidth.size_in(self.rtt()), gain);
        let window = if product.is_zero() { times(self.config.initial_window, gain) } else { product };
        window.max(self.config.min_window)
    }
    fn probe_rtt_window(&self) -> DataSize {
        if self.config.probe_rtt_by_bdp {
            self.target_window(self.config.probe_rtt_window_gain)
        } else {
            self.config.min_window
        }
    }

    fn cruise_or_start(&mut self, now: Timestamp) {
        if self.is_full {
            return self.enter_probe_bw(now);
        }
        self.mode = Mode::Startup;
        self.pacing_gain = self.config.startup_gain;
        self.window_gain = self.config.startup_gain;
    }

    fn enter_probe_bw(&mut self, now: Timestamp) {
        self.mode = Mode::ProbeBw;
        self.window_gain = self.config.window_gain;
        self.pacing_gain = self.cycle.begin(now);
    }

    fn update_phase(&mut self, prior_in_flight: DataSize, has_losses: bool, now: Timestamp) {
        let is_drained = prior_in_flight <= self.target_window(1.0);
        let mut advances = now - self.cycle.since() > self.rtt();
        if self.pacing_gain > 1.0 && !has_losses && prior_in_flight < self.target_window(self.pacing_gain) {
            // The probe has not yet put as much in flight as it tests.
            advances = false;
        }
        if self.pacing_gain < 1.0 && is_drained {
            advances = true;
        }
        if !advances {
            return;
        }
        let next = self.cycle.advance(now);
        if self.config.fully_drain && self.pacing_gain < 1.0 && next == 1.0 && !is_drained {
            return;
        }
        self.pacing_gain = next;
    }

    fn check_full(&mut self) {
        if self.last_is_app_limited {
            return;
        }
        let bandwidth = self.bandwidth.best();
        if bandwidth >= scale(self.full_bandwidth, self.config.startup_growth) {
            (self.full_bandwidth, self.rounds_without_growth) = (bandwidth, 0);
            return;
        }
        self.rounds_without_growth += 1;
        self.is_full = self.rounds_without_growth >= self.config.startup_rounds
            || self.config.startup_exit_on_loss && self.recovery.is_on();
    }

    fn leave_startup_or_drain(&mut self, now: Timestamp) {
        let rise = self.config.startup_rtt_rise;
        let has_risen = rise > TimeDelta::ZERO && self.min_rtt.is_some_and(|least| self.last_rtt - least > rise);
        if self.mode == Mode::Startup && (self.is_full || has_risen) {
            self.mode = Mode::Drain;
            self.pacing_gain = 1.0 / self.config.startup_gain;
            self.window_gain = self.config.startup_gain;
        }
        if self.mode == Mode::Drain && self.in_flight <= self.target_window(1.0) {
            self.enter_probe_bw(now);
        }
    }

    fn probe_rtt(&mut self, round_start: bool, expired: bool, now: Timestamp) {
        if expired && !self.leaves_quiescence && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.pacing_gain = 1.0;
            self.probe_rtt_ends = None;
        }
        self.leaves_quiescence = false;
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.sampler.on_app_limited();
        let Some(ends) = self.probe_rtt_ends else {
            // The window is checked before a packet is sent, so that one may exceed it.
            if self.in_flight < self.probe_rtt_window() + PACKET {
                self.probe_rtt_ends = Some(now + self.config.probe_rtt_time);
                self.probe_rtt_round_passed = false;
            }
            return;
        };
        self.probe_rtt_round_passed |= round_start;
        if now >= ends && self.probe_rtt_round_passed {
            self.min_rtt_at = now;
            self.cruise_or_start(now);
        }
    }

    fn set_pacing_rate(&mut self) {
        let Some(bandwidth) = self.used_bandwidth() else { return };
        let target = scale(bandwidth, self.shared(self.pacing_gain));
        if self.config.rate_based_recovery && self.recovery.is_on() {
            self.pacing_rate = Some(scale(self.bandwidth.third_best(), self.pacing_gain));
        }
        self.pacing_rate = Some(match self.pacing_rate {
            _ if self.is_full => target,
            None => self.initial_rate(),
            Some(_) if self.config.startup_slower_after_loss && self.recovery.has_lost() => {
                scale(bandwidth, STARTUP_AFTER_LOSS)
            }
            // STARTUP does not slow down.
            Some(rate) => rate.max(target),
        });
    }

    fn set_window(&mut self, acked: DataSize) {
        if self.mode == Mode::ProbeRtt {
            return;
        }
        let mut target = self.target_window(self.window_gain);
        if self.is_full {
            target += self.aggregation.extra();
            self.window = target.min(self.window + acked);
        } else if self.window < target || self.sampler.acked() < self.config.initial_window {
            // The window does not shrink before STARTUP has found the bandwidth.
            self.window += acked;
        }
        self.window = self.window.max(self.config.min_window).min(self.config.max_window);
    }
}
