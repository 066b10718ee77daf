//! BBR version 3 (draft-ietf-ccwg-bbr, editors' copy of 2026): a model of the path made of rate and round-trip samples
//! sets pacing rate and window.
//!
//! This file holds the model and the order of the steps; `cycle.rs` the states of bandwidth probing, `loss.rs` the
//! response to losses, `probe_rtt.rs` the round-trip time, `control.rs` rate and window. Names are the draft's.
//!
//! Left out: undoing a response to a spurious loss (the sender does not detect one), and offload: a quantum is two
//! segments.

mod control;
mod cycle;
mod loss;
mod probe_rtt;

use super::{AckInfo, Congestion, CongestionAvoidance, Connection, LostSegment, PathEvent, RateSample, Window};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use weir_units::{TimeDelta, Timestamp};

/// Pacing gain in Startup (2.77), in Drain (0.5), in ProbeBW's four states, and in ProbeRTT.
const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.5;
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
/// Window gain (2), in ProbeBW_UP (2.25) and in ProbeRTT (0.5).
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// LossThresh: tolerated loss in a round trip of probing (2 %).
const LOSS_THRESH: f64 = 0.02;
/// Beta: reduction of the short-term model in a round trip with losses (0.7).
const BETA: f64 = 0.7;
/// Headroom: part of inflight_longterm left to others (0.15).
const HEADROOM: f64 = 0.15;
/// MinPipeCwnd, in segments (4).
const MIN_PIPE_SEGMENTS: f64 = 4.0;
/// MinRTTFilterLen (10 s), ProbeRTTInterval (5 s) and ProbeRTTDuration (200 ms).
const MIN_RTT_FILTER_LEN: TimeDelta = TimeDelta::from_secs(10);
const PROBE_RTT_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
const PROBE_RTT_DURATION: TimeDelta = TimeDelta::from_millis(200);
/// ExtraAckedFilterLen, in round trips (10).
const EXTRA_ACKED_FILTER_LEN: u64 = 10;
/// Growth of the rate that counts as growth of the bandwidth (25 %), and round trips without it that fill the pipe (3).
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_COUNT: u32 = 3;
/// Lost ranges in a round trip that end Startup (BBRStartupFullLossCnt, 6).
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// PacingMarginPercent (1): pacing at 99 % of the bandwidth.
const PACING_MARGIN: f64 = 0.99;
/// Round trips between probes that Reno's would take at most (63).
const RENO_ROUNDS: f64 = 63.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// State of bandwidth probing as acknowledgements show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The maximum of `extra_acked` over the last round trips.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct RoundMax {
    /// Rounds and values, greatest first; each is the greatest since the one before it.
    best: [(u64, f64); 3],
}

impl RoundMax {
    fn update(&mut self, round: u64, value: f64, len: u64) -> f64 {
        let b = &mut self.best;
        if value >= b[0].1 || round - b[2].0 > len {
            *b = [(round, value); 3];
        } else if value >= b[1].1 {
            (b[1], b[2]) = ((round, value), (round, value));
        } else if value >= b[2].1 {
            b[2] = (round, value);
        }
        if round - b[0].0 > len {
            *b = [b[1], b[2], (round, value)];
        }
        b[0].1
    }
}

/// BBR version 3 (draft-ietf-ccwg-bbr). Rates are in bytes a second, volumes in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Bbr {
    state: State,
    ack_phase: AckPhase,
    random: Pcg32,
    initial_cwnd: f64,
    mss: f64,
    pacing_gain: f64,
    cwnd_gain: f64,
    pacing_rate: f64,
    /// Maximum rate of the previous ProbeBW cycle and of this one.
    max_bw: [f64; 2],
    bw: f64,
    bw_shortterm: f64,
    bw_latest: f64,
    inflight_longterm: f64,
    inflight_shortterm: f64,
    inflight_latest: f64,
    max_inflight: f64,
    extra_acked: f64,
    extra_acked_filter: RoundMax,
    extra_acked_start: Option<Timestamp>,
    extra_acked_delivered: f64,
    round_count: u64,
    round_start: bool,
    next_round_delivered: u64,
    loss_round_start: bool,
    loss_round_delivered: u64,
    is_loss_in_round: bool,
    /// Lost ranges in this round trip, for Startup.
    loss_events: u32,
    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: u64,
    is_bw_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    bw_probe_up_rounds: u32,
    rounds_since_probe_up: f64,
    bw_probe_wait: TimeDelta,
    cycle_stamp: Timestamp,
    min_rtt: Option<TimeDelta>,
    min_rtt_stamp: Timestamp,
    probe_rtt_min_delay: TimeDelta,
    probe_rtt_min_stamp: Timestamp,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Timestamp>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    prior_cwnd: u64,
    recovery_round: Option<u64>,
    /// Asks the sender to mark rate samples as limited by the application.
    hides_samples: bool,
}

impl Bbr {
    /// The state at the start of a connection at `now`.
    pub fn new(window: &Window, now: Timestamp, seed: u64) -> Self {
        let mut bbr = Self {
            state: State::Startup,
            ack_phase: AckPhase::Init,
            random: Pcg32::seed_from_u64(seed),
            initial_cwnd: window.cwnd as f64,
            mss: window.mss as f64,
            pacing_gain: STARTUP_PACING_GAIN,
            cwnd_gain: CWND_GAIN,
            pacing_rate: 0.0,
            max_bw: [0.0; 2],
            bw: 0.0,
            bw_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_latest: 0.0,
            max_inflight: f64::INFINITY,
            extra_acked: 0.0,
            extra_acked_filter: RoundMax::default(),
            extra_acked_start: None,
            extra_acked_delivered: 0.0,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            loss_round_start: false,
            loss_round_delivered: 0,
            is_loss_in_round: false,
            loss_events: 0,
            full_bw: 0.0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: f64::INFINITY,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0.0,
            bw_probe_wait: TimeDelta::ZERO,
            cycle_stamp: now,
            min_rtt: None,
            min_rtt_stamp: now,
            probe_rtt_min_delay: TimeDelta::MAX,
            probe_rtt_min_stamp: now,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_cwnd: 0,
            recovery_round: None,
            hides_samples: false,
        };
        // InitPacingRate(): without a round-trip time, 1 ms.
        bbr.pacing_rate = STARTUP_PACING_GAIN * bbr.initial_cwnd / 0.001;
        bbr
    }

    fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }
    fn is_in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }
    fn start_round(&mut self, c: &Connection) {
        self.next_round_delivered = c.delivered;
    }

    /// UpdateRound() and UpdateMaxBw().
    fn update_max_bw(&mut self, c: &Connection, rs: &RateSample) {
        self.round_start = rs.prior_delivered.is_some_and(|p| p >= self.next_round_delivered);
        if self.round_start {
            self.start_round(c);
            self.round_count += 1;
            self.rounds_since_probe_up += 1.0;
        }
        if let Some(rate) = rs.rate
            && (rate >= self.max_bw() || !rs.is_app_limited)
        {
            self.max_bw[1] = self.max_bw[1].max(rate);
        }
    }

    /// AdvanceMaxBwFilter().
    fn advance_max_bw_filter(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// UpdateACKAggregation().
    fn update_ack_aggregation(&mut self, window: &Window, c: &Connection, rs: &RateSample) {
        let start = *self.extra_acked_start.get_or_insert(c.now);
        let mut expected = self.bw * c.now.saturating_since(start).as_secs_f64();
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0.0;
            self.extra_acked_start = Some(c.now);
            expected = 0.0;
        }
        self.extra_acked_delivered += rs.newly_acked as f64;
        let extra = (self.extra_acked_delivered - expected).min(window.cwnd as f64);
        let len = if self.full_bw_reached { EXTRA_ACKED_FILTER_LEN } else { 1 };
        self.extra_acked = self.extra_acked_filter.update(self.round_count, extra, len);
    }

    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    /// CheckFullBWReached().
    fn check_full_bw(&mut self, rs: &RateSample) {
        if self.full_bw_now || !self.round_start || rs.is_app_limited {
            return;
        }
        let rate = rs.rate.unwrap_or(0.0);
        if rate >= self.full_bw * FULL_BW_GROWTH {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_COUNT;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// CheckStartupDone() and CheckDrainDone().
    fn check_startup_and_drain(&mut self, c: &Connection, rs: &RateSample) {
        self.check_startup_high_loss(c, rs);
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            (self.pacing_gain, self.cwnd_gain) = (DRAIN_PACING_GAIN, CWND_GAIN);
            self.drain_start_round = self.round_count;
        }
        if self.state == State::Drain
            && (c.in_flight as f64 <= self.inflight(self.bw, 1.0) || self.round_count > self.drain_start_round + 3)
        {
            self.cwnd_gain = CWND_GAIN;
            self.start_down(c);
        }
    }
}

impl CongestionAvoidance for Bbr {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckInfo) {}
    fn on_congestion(&mut self, window: &Window, _flight: u64, _why: Congestion) -> u64 {
        window.ssthresh
    }

    fn on_sample(&mut self, window: &mut Window, c: &Connection, rs: &RateSample) {
        self.update_latest_signals(c, rs);
        self.update_congestion_signals(window, c, rs);
        self.update_ack_aggregation(window, c, rs);
        self.check_full_bw(rs);
        self.check_startup_and_drain(c, rs);
        self.update_cycle(window, c, rs);
        self.update_min_rtt(c, rs);
        self.check_probe_rtt(window, c, rs);
        self.advance_latest_signals(rs);
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.set_pacing_rate_with_gain(self.pacing_gain);
        self.set_cwnd(window, c, rs);
    }

    fn on_lost(&mut self, window: &mut Window, c: &Connection, lost: &LostSegment) {
        self.handle_lost(window, c, lost);
    }

    fn on_event(&mut self, window: &mut Window, c: &Connection, event: PathEvent) {
        match event {
            PathEvent::Open => {
                // InitPacingRate().
                if let Some(srtt) = c.srtt.filter(|t| *t > TimeDelta::ZERO) {
                    self.pacing_rate = STARTUP_PACING_GAIN * self.initial_cwnd / srtt.as_secs_f64();
                }
            }
            PathEvent::FastRecovery => {
                self.save_cwnd(window, c);
                self.recovery_round = Some(self.round_count);
            }
            PathEvent::Timeout => {
                self.save_cwnd(window, c);
                window.cwnd = c.in_flight + window.mss;
            }
            PathEvent::Recovered => {
                self.restore_cwnd(window);
                self.recovery_round = None;
            }
            PathEvent::Restart => self.restart(window, c),
        }
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }
    fn hides_samples(&self) -> bool {
        self.hides_samples
    }
}

impl Bbr {
    /// PickProbeWait().
    fn pick_probe_wait(&mut self) {
        self.rounds_since_probe_up = f64::from(self.random.random_range(0..2));
        self.bw_probe_wait = TimeDelta::from_secs_f64(2.0 + self.random.random::<f64>());
    }
}
