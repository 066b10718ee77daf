//! ProbeBW: the cycle of deceleration, cruising, refilling and acceleration.

use super::*;

impl Bbr {
    pub(super) fn start_down(&mut self, c: &Connection) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_inc = f64::INFINITY;
        self.pick_probe_wait();
        self.cycle_stamp = c.now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(c);
        self.enter(State::Down);
    }

    pub(super) fn start_cruise(&mut self) {
        self.enter(State::Cruise);
    }

    fn start_refill(&mut self, c: &Connection) {
        self.reset_short_term();
        self.bw_probe_up_rounds = 0;
        self.bw_probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(c);
        self.enter(State::Refill);
    }

    fn start_up(&mut self, window: &Window, c: &Connection, rs: &RateSample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(c);
        self.reset_full_bw();
        self.full_bw = rs.rate.unwrap_or(0.0);
        self.enter(State::Up);
        self.raise_slope(window);
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        (self.pacing_gain, self.cwnd_gain) = match state {
            State::Down => (DOWN_PACING_GAIN, CWND_GAIN),
            State::Up => (UP_PACING_GAIN, UP_CWND_GAIN),
            _ => (1.0, CWND_GAIN),
        };
    }

    /// UpdateProbeBWCyclePhase().
    pub(super) fn update_cycle(&mut self, window: &Window, c: &Connection, rs: &RateSample) {
        if !self.full_bw_reached || self.adapt_long_term(window, c, rs) {
            return;
        }
        match self.state {
            State::Down | State::Cruise => {
                let refills = self.probes_in_time(window, c);
                if !refills && self.state == State::Down && self.is_time_to_cruise(c) {
                    self.start_cruise();
                }
            }
            State::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_up(window, c, rs);
            }
            State::Up => {
                let goes_down = self.is_time_to_go_down(window, c, rs);
                if goes_down {
                    self.prev_probe_too_high = false;
                    self.start_down(c);
                }
            }
            _ => {}
        }
    }

    /// IsTimeToProbeBW().
    fn probes_in_time(&mut self, window: &Window, c: &Connection) -> bool {
        let reno = (self.target_inflight(window) / self.mss).min(RENO_ROUNDS);
        let is_time = c.now > self.cycle_stamp + self.bw_probe_wait || self.rounds_since_probe_up >= reno;
        if is_time {
            self.start_refill(c);
        }
        is_time
    }

    fn is_time_to_cruise(&self, c: &Connection) -> bool {
        let in_flight = c.in_flight as f64;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw(), 1.0)
    }

    fn is_time_to_go_down(&mut self, window: &Window, c: &Connection, rs: &RateSample) -> bool {
        if self.prev_probe_too_high && c.in_flight as f64 >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if c.is_window_limited && window.cwnd as f64 >= self.inflight_longterm {
            // The bandwidth is limited by inflight_longterm.
            self.reset_full_bw();
            self.full_bw = rs.rate.unwrap_or(0.0);
            return false;
        }
        self.full_bw_now
    }

    /// RaiseInflightLongtermSlope().
    fn raise_slope(&mut self, window: &Window) {
        let growth = f64::from(1u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (window.cwnd as f64 / growth).max(self.mss);
    }

    /// ProbeInflightLongtermUpward().
    fn probe_upward(&mut self, window: &Window, c: &Connection, rs: &RateSample) {
        if !c.is_window_limited || (window.cwnd as f64) < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += rs.newly_acked as f64;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * self.mss;
        }
        if self.round_start {
            self.raise_slope(window);
        }
    }

    /// AdaptLongTermModel(). Returns whether the state has changed.
    fn adapt_long_term(&mut self, window: &Window, c: &Connection, rs: &RateSample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_bw_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            if self.is_in_probe_bw() && !rs.is_app_limited {
                self.advance_max_bw_filter();
            }
            if self.is_in_probe_bw() && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_refill(c);
                return true;
            }
        }
        let is_safe = rs.lost as f64 <= rs.in_flight as f64 * LOSS_THRESH;
        if is_safe && self.inflight_longterm.is_finite() {
            self.inflight_longterm = self.inflight_longterm.max(rs.in_flight as f64);
            if self.state == State::Up {
                self.probe_upward(window, c, rs);
            }
        }
        false
    }
}
