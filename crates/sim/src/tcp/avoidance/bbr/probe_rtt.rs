//! ProbeRTT, and restarts from idle.

use super::*;

impl Bbr {
    /// UpdateMinRTT().
    pub(super) fn update_min_rtt(&mut self, c: &Connection, rs: &RateSample) {
        self.probe_rtt_expired = c.now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = rs.rtt
            && (rtt < self.probe_rtt_min_delay || self.probe_rtt_expired)
        {
            self.probe_rtt_min_delay = rtt;
            self.probe_rtt_min_stamp = c.now;
        }
        let has_expired = c.now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        if self.probe_rtt_min_delay < TimeDelta::MAX
            && (has_expired || self.min_rtt.is_none_or(|least| self.probe_rtt_min_delay < least))
        {
            self.min_rtt = Some(self.probe_rtt_min_delay);
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    /// CheckProbeRTT().
    pub(super) fn check_probe_rtt(&mut self, window: &mut Window, c: &Connection, rs: &RateSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd(window, c);
            self.state = State::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, PROBE_RTT_CWND_GAIN);
            self.probe_rtt_done_stamp = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(c);
        }
        self.hides_samples = self.state == State::ProbeRtt;
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(window, c);
        }
        if rs.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, window: &mut Window, c: &Connection) {
        if self.probe_rtt_done_stamp.is_none() {
            if c.in_flight as f64 <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = Some(c.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.start_round(c);
            }
            return;
        }
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done {
            self.check_probe_rtt_done(window, c);
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, c: &Connection) {
        if self.probe_rtt_done_stamp.is_none_or(|t| c.now <= t) {
            return;
        }
        self.probe_rtt_min_stamp = c.now;
        self.restore_cwnd(window);
        self.hides_samples = false;
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(c);
            self.start_cruise();
        } else {
            self.state = State::Startup;
            (self.pacing_gain, self.cwnd_gain) = (STARTUP_PACING_GAIN, CWND_GAIN);
        }
    }

    /// HandleRestartFromIdle().
    pub(super) fn restart(&mut self, window: &mut Window, c: &Connection) {
        self.idle_restart = true;
        self.extra_acked_start = Some(c.now);
        if self.is_in_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(window, c);
        }
    }
}
