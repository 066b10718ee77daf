use super::{AckInfo, Congestion, CongestionAvoidance, Connection, LostSegment, PathEvent, RateSample, Window};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;
use weir_units::{TimeDelta, Timestamp};

/// Gain of pacing and window in Startup, 2 / ln 2, and of pacing in Drain its inverse.
const HIGH_GAIN: f64 = 2.885;
/// Pacing gains of the eight phases of ProbeBW, and the window's gain.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CWND_GAIN: f64 = 2.0;
/// Round trips of the bandwidth filter (a cycle and two).
const BW_ROUNDS: u64 = 10;
/// Length of the filter of the round-trip time, and least time in ProbeRTT.
const MIN_RTT_WINDOW: TimeDelta = TimeDelta::from_secs(10);
const PROBE_RTT_TIME: TimeDelta = TimeDelta::from_millis(200);
/// Least window, in segments.
const MIN_SEGMENTS: f64 = 4.0;
/// Growth of the bandwidth in Startup, and round trips without it that end Startup.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_COUNT: u32 = 3;
/// Pacing at 99 % of the bandwidth.
const PACING_MARGIN: f64 = 0.99;
/// Round trips of a slot of the aggregation filter, and the most that it adds to the window, as time at the bandwidth.
const EXTRA_ACKED_ROUNDS: u32 = 5;
const EXTRA_ACKED_MAX: f64 = 0.1;
/// Rate in bytes a second below which a quantum is one segment (1.2 Mbit/s), and the greatest quantum in bytes.
const LOW_RATE: f64 = 150_000.0;
const MAX_QUANTUM: f64 = 65_536.0;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// BBR version 1, as in Linux (`net/ipv4/tcp_bbr.c` of Linux 6.18; draft-cardwell-iccrg-bbr-congestion-control-00).
///
/// It paces at a gain times the maximum rate of ten round trips and bounds the data in flight by twice the product of
/// that rate and the minimum round-trip time of ten seconds. Losses change the window for a round trip only. Rates are
/// in bytes a second, volumes in bytes.
///
/// Left out: detection of policers by long-term sampling.
#[derive(Clone, PartialEq, Debug)]
pub struct Bbr1 {
    state: State,
    random: Pcg32,
    initial_cwnd: f64,
    mss: f64,
    /// The greatest rates of the last round trips, with their round; the front is the greatest.
    bw: Vec<(u64, f64)>,
    rounds: u64,
    round_start: bool,
    next_round_delivered: u64,
    full_bw: f64,
    full_bw_count: u32,
    min_rtt: Option<TimeDelta>,
    min_rtt_at: Timestamp,
    probe_rtt_until: Option<Timestamp>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    phase: usize,
    phase_at: Timestamp,
    pacing_rate: f64,
    prior_cwnd: u64,
    conserves_packets: bool,
    extra_acked: [f64; 2],
    extra_acked_rounds: u32,
    extra_acked_start: Timestamp,
    epoch_acked: f64,
    hides_samples: bool,
}

impl Bbr1 {
    /// The state at the start of a connection at `now`.
    pub fn new(window: &Window, now: Timestamp, seed: u64) -> Self {
        let initial_cwnd = window.cwnd as f64;
        Self {
            state: State::Startup,
            random: Pcg32::seed_from_u64(seed),
            initial_cwnd,
            mss: window.mss as f64,
            bw: vec![],
            rounds: 0,
            round_start: false,
            next_round_delivered: 0,
            full_bw: 0.0,
            full_bw_count: 0,
            min_rtt: None,
            min_rtt_at: now,
            probe_rtt_until: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            phase: 0,
            phase_at: now,
            pacing_rate: HIGH_GAIN * initial_cwnd / 0.001,
            prior_cwnd: 0,
            conserves_packets: false,
            extra_acked: [0.0; 2],
            extra_acked_rounds: 0,
            extra_acked_start: now,
            epoch_acked: 0.0,
            hides_samples: false,
        }
    }

    fn max_bw(&self) -> f64 {
        self.bw.first().map_or(0.0, |b| b.1)
    }
    fn full_bw_reached(&self) -> bool {
        self.full_bw_count >= FULL_BW_COUNT
    }
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBw => CYCLE[self.phase],
            State::ProbeRtt => 1.0,
        }
    }
    fn cwnd_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw => CWND_GAIN,
            State::ProbeRtt => 1.0,
        }
    }

    /// The volume in flight that a gain aims at, with room for three quanta.
    fn inflight(&self, gain: f64) -> f64 {
        let bdp = self.min_rtt.map_or(self.initial_cwnd, |rtt| gain * self.max_bw() * rtt.as_secs_f64());
        self.with_budget(bdp)
    }
    fn with_budget(&self, volume: f64) -> f64 {
        let least = if self.pacing_rate < LOW_RATE { 1.0 } else { 2.0 };
        let quantum = ((self.pacing_rate / 1_024.0).min(MAX_QUANTUM) / self.mss).floor().max(least);
        let mut segments = (volume / self.mss).ceil() + 3.0 * quantum;
        segments += segments % 2.0;
        if self.state == State::ProbeBw && self.phase == 0 {
            segments += 2.0;
        }
        segments * self.mss
    }

    fn update_bw(&mut self, c: &Connection, rs: &RateSample) {
        self.round_start = rs.prior_delivered.is_some_and(|p| p >= self.next_round_delivered);
        if self.round_start {
            self.next_round_delivered = c.delivered;
            self.rounds += 1;
            self.conserves_packets = false;
        }
        let Some(rate) = rs.rate.filter(|&r| !rs.is_app_limited || r >= self.max_bw()) else { return };
        let oldest = self.rounds.saturating_sub(BW_ROUNDS);
        // In decreasing order: what is older and smaller can never be the maximum again.
        while self.bw.last().is_some_and(|b| b.1 <= rate) {
            self.bw.pop();
        }
        self.bw.push((self.rounds, rate));
        self.bw.retain(|b| b.0 >= oldest);
    }

    fn update_ack_aggregation(&mut self, window: &Window, c: &Connection, rs: &RateSample) {
        if rs.newly_acked == 0 {
            return;
        }
        if self.round_start {
            self.extra_acked_rounds += 1;
            if self.extra_acked_rounds >= EXTRA_ACKED_ROUNDS {
                self.extra_acked_rounds = 0;
                self.extra_acked = [self.extra_acked[1], 0.0];
            }
        }
        let mut expected = self.max_bw() * c.now.saturating_since(self.extra_acked_start).as_secs_f64();
        if self.epoch_acked <= expected {
            (self.epoch_acked, self.extra_acked_start, expected) = (0.0, c.now, 0.0);
        }
        self.epoch_acked += rs.newly_acked as f64;
        let extra = (self.epoch_acked - expected).min(window.cwnd as f64);
        self.extra_acked[1] = self.extra_acked[1].max(extra);
    }

    fn update_phase(&mut self, c: &Connection, rs: &RateSample) {
        if self.state != State::ProbeBw {
            return;
        }
        let in_flight = c.in_flight as f64;
        let is_full = self.min_rtt.is_none_or(|rtt| c.now.saturating_since(self.phase_at) > rtt);
        let gain = CYCLE[self.phase];
        let ends = if gain > 1.0 {
            is_full && (rs.newly_lost > 0 || in_flight >= self.inflight(gain))
        } else if gain < 1.0 {
            is_full || in_flight <= self.inflight(1.0)
        } else {
            is_full
        };
        if ends {
            self.advance_phase(c.now);
        }
    }
    fn advance_phase(&mut self, now: Timestamp) {
        self.phase = (self.phase + 1) % CYCLE.len();
        self.phase_at = now;
    }
    fn start_probe_bw(&mut self, now: Timestamp) {
        self.state = State::ProbeBw;
        // Any phase but that of the gain below 1 comes first.
        self.phase = CYCLE.len() - 1 - self.random.random_range(0..CYCLE.len() - 1);
        self.advance_phase(now);
    }

    fn check_full_bw(&mut self, rs: &RateSample) {
        if self.full_bw_reached() || !self.round_start || rs.is_app_limited {
            return;
        }
        if self.max_bw() >= self.full_bw * FULL_BW_GROWTH {
            (self.full_bw, self.full_bw_count) = (self.max_bw(), 0);
            return;
        }
        self.full_bw_count += 1;
    }

    fn check_drain(&mut self, c: &Connection) {
        if self.state == State::Startup && self.full_bw_reached() {
            self.state = State::Drain;
        }
        if self.state == State::Drain && c.in_flight as f64 <= self.inflight(1.0) {
            self.start_probe_bw(c.now);
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, c: &Connection, rs: &RateSample) {
        let has_expired = c.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = rs.rtt
            && (has_expired || self.min_rtt.is_none_or(|least| rtt < least))
        {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), c.now);
        }
        if has_expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_cwnd(window, c);
            self.probe_rtt_until = None;
        }
        self.hides_samples = self.state == State::ProbeRtt;
        if self.state == State::ProbeRtt {
            match self.probe_rtt_until {
                None if c.in_flight as f64 <= MIN_SEGMENTS * self.mss => {
                    self.probe_rtt_until = Some(c.now + PROBE_RTT_TIME);
                    self.probe_rtt_round_done = false;
                    self.next_round_delivered = c.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done {
                        self.check_probe_rtt_done(window, c);
                    }
                }
            }
        }
        if rs.delivered > 0 {
            self.idle_restart = false;
        }
    }
    fn check_probe_rtt_done(&mut self, window: &mut Window, c: &Connection) {
        if self.probe_rtt_until.is_none_or(|t| c.now <= t) {
            return;
        }
        self.min_rtt_at = c.now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.hides_samples = false;
        if self.full_bw_reached() {
            self.start_probe_bw(c.now);
        } else {
            self.state = State::Startup;
        }
    }

    fn save_cwnd(&mut self, window: &Window, c: &Connection) {
        let is_known = !c.in_recovery && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_known { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    fn pace(&mut self, gain: f64) {
        let rate = gain * self.max_bw() * PACING_MARGIN;
        if self.full_bw_reached() || rate > self.pacing_rate {
            self.pacing_rate = rate.max(1.0);
        }
    }

    fn set_cwnd(&mut self, window: &mut Window, c: &Connection, rs: &RateSample) {
        let mut cwnd = window.cwnd as f64;
        let acked = rs.newly_acked as f64;
        cwnd = (cwnd - rs.newly_lost as f64).max(self.mss);
        if self.conserves_packets {
            cwnd = cwnd.max(c.in_flight as f64 + acked);
        } else {
            let bdp = self.min_rtt.map_or(self.initial_cwnd, |t| self.cwnd_gain() * self.max_bw() * t.as_secs_f64());
            let extra = self.extra_acked[0].max(self.extra_acked[1]).min(EXTRA_ACKED_MAX * self.max_bw());
            let target = self.with_budget(bdp + if self.full_bw_reached() { extra } else { 0.0 });
            if self.full_bw_reached() {
                cwnd = (cwnd + acked).min(target);
            } else if cwnd < target || (c.delivered as f64) < self.initial_cwnd {
                cwnd += acked;
            }
            cwnd = cwnd.max(MIN_SEGMENTS * self.mss);
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(MIN_SEGMENTS * self.mss);
        }
        window.cwnd = cwnd as u64;
    }
}

impl CongestionAvoidance for Bbr1 {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckInfo) {}
    fn on_congestion(&mut self, window: &Window, _flight: u64, _why: Congestion) -> u64 {
        window.ssthresh
    }

    fn on_sample(&mut self, window: &mut Window, c: &Connection, rs: &RateSample) {
        self.update_bw(c, rs);
        self.update_ack_aggregation(window, c, rs);
        self.update_phase(c, rs);
        self.check_full_bw(rs);
        self.check_drain(c);
        self.update_min_rtt(window, c, rs);
        self.pace(self.pacing_gain());
        self.set_cwnd(window, c, rs);
    }

    fn on_lost(&mut self, _window: &mut Window, _c: &Connection, _lost: &LostSegment) {}

    fn on_event(&mut self, window: &mut Window, c: &Connection, event: PathEvent) {
        match event {
            PathEvent::Open => {
                if let Some(srtt) = c.srtt.filter(|t| *t > TimeDelta::ZERO) {
                    self.pacing_rate = HIGH_GAIN * self.initial_cwnd / srtt.as_secs_f64();
                }
            }
            PathEvent::FastRecovery => {
                self.save_cwnd(window, c);
                // For a round trip, a segment is sent for each that was delivered.
                self.conserves_packets = true;
                self.next_round_delivered = c.delivered;
                window.cwnd = c.in_flight.max(window.mss);
            }
            PathEvent::Timeout => {
                self.save_cwnd(window, c);
                self.full_bw = 0.0;
                window.cwnd = c.in_flight + window.mss;
            }
            PathEvent::Recovered => {
                window.cwnd = window.cwnd.max(self.prior_cwnd);
                self.conserves_packets = false;
            }
            PathEvent::Restart => {
                self.idle_restart = true;
                (self.extra_acked_start, self.epoch_acked) = (c.now, 0.0);
                if self.state == State::ProbeBw {
                    self.pace(1.0);
                } else if self.state == State::ProbeRtt {
                    self.check_probe_rtt_done(window, c);
                }
            }
        }
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }
    fn hides_samples(&self) -> bool {
        self.hides_samples
    }
}
