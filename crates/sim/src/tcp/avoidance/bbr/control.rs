//! Pacing rate and window.

use super::*;

impl Bbr {
    /// The volume that fills the path at a rate; the initial window without a round-trip time.
    pub(super) fn bdp(&self, bw: f64) -> f64 {
        self.min_rtt.map_or(self.initial_cwnd, |rtt| bw * rtt.as_secs_f64())
    }

    /// QuantizationBudget(): room for three quanta of two segments, and for pipelining.
    fn with_budget(&self, cap: f64) -> f64 {
        let quantum = 2.0 * self.mss;
        let cap = cap.max(3.0 * quantum).max(MIN_PIPE_SEGMENTS * self.mss);
        if self.state == State::Up { cap + 2.0 * self.mss } else { cap }
    }

    /// Inflight().
    pub(super) fn inflight(&self, bw: f64, gain: f64) -> f64 {
        self.with_budget(gain * self.bdp(bw))
    }

    /// TargetInflight().
    pub(super) fn target_inflight(&self, window: &Window) -> f64 {
        self.bdp(self.bw).min(window.cwnd as f64)
    }

    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = self.mss.max(HEADROOM * self.inflight_longterm);
        (self.inflight_longterm - headroom).max(MIN_PIPE_SEGMENTS * self.mss)
    }

    pub(super) fn probe_rtt_cwnd(&self) -> f64 {
        (PROBE_RTT_CWND_GAIN * self.bdp(self.bw)).max(MIN_PIPE_SEGMENTS * self.mss)
    }

    pub(super) fn save_cwnd(&mut self, window: &Window, c: &Connection) {
        let is_known = !c.in_recovery && self.state != State::ProbeRtt;
        self.prior_cwnd = if is_known { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }
    pub(super) fn restore_cwnd(&self, window: &mut Window) {
        window.cwnd = window.cwnd.max(self.prior_cwnd);
    }

    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = gain * self.bw * PACING_MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate.max(1.0);
        }
    }

    /// SetCwnd().
    pub(super) fn set_cwnd(&mut self, window: &mut Window, c: &Connection, rs: &RateSample) {
        self.max_inflight = self.with_budget(self.cwnd_gain * self.bdp(self.bw) + self.extra_acked);
        let grown = (window.cwnd + rs.newly_acked) as f64;
        let mut cwnd = if self.full_bw_reached {
            grown.min(self.max_inflight)
        } else if (window.cwnd as f64) < self.max_inflight || (c.delivered as f64) < self.initial_cwnd {
            grown
        } else {
            window.cwnd as f64
        };
        let least = MIN_PIPE_SEGMENTS * self.mss;
        cwnd = cwnd.max(least);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // BoundCwndForModel().
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        window.cwnd = cwnd.min(cap.min(self.inflight_shortterm).max(least)) as u64;
    }
}
