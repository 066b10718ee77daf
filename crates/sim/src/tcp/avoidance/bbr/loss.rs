//! The response to losses: the short-term model between probes, the long-term model while probing.

use super::*;

impl Bbr {
    /// UpdateLatestDeliverySignals().
    pub(super) fn update_latest_signals(&mut self, c: &Connection, rs: &RateSample) {
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(rs.rate.unwrap_or(0.0));
        self.inflight_latest = self.inflight_latest.max(rs.delivered as f64);
        if rs.prior_delivered.is_some_and(|p| p >= self.loss_round_delivered) {
            self.loss_round_delivered = c.delivered;
            self.loss_round_start = true;
        }
    }

    /// AdvanceLatestDeliverySignals().
    pub(super) fn advance_latest_signals(&mut self, rs: &RateSample) {
        if self.loss_round_start {
            self.bw_latest = rs.rate.unwrap_or(0.0);
            self.inflight_latest = rs.delivered as f64;
        }
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn reset_short_term(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (f64::INFINITY, f64::INFINITY);
    }

    /// UpdateCongestionSignals() with AdaptLowerBoundsFromCongestion().
    pub(super) fn update_congestion_signals(&mut self, window: &Window, c: &Connection, rs: &RateSample) {
        self.update_max_bw(c, rs);
        if !self.loss_round_start {
            return;
        }
        if !self.is_probing_bw() && self.is_loss_in_round {
            if self.bw_shortterm.is_infinite() {
                self.bw_shortterm = self.max_bw();
            }
            if self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = window.cwnd as f64;
            }
            self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
            self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
        }
        // Startup counts a round trip's losses before they are forgotten.
        if self.state != State::Startup {
            self.forget_losses();
        }
    }

    fn forget_losses(&mut self) {
        self.is_loss_in_round = false;
        self.loss_events = 0;
    }

    /// CheckStartupHighLoss(): a whole round trip in recovery, with more loss than is tolerated, in six ranges or more.
    pub(super) fn check_startup_high_loss(&mut self, c: &Connection, rs: &RateSample) {
        if self.state != State::Startup || !self.loss_round_start {
            return;
        }
        let in_recovery = self.recovery_round.is_some_and(|r| self.round_count > r);
        let is_high = rs.lost as f64 > rs.in_flight as f64 * LOSS_THRESH;
        if c.in_recovery && in_recovery && is_high && self.loss_events >= STARTUP_FULL_LOSS_COUNT {
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.bw).max(self.inflight_latest);
        }
        self.forget_losses();
    }

    /// HandleLostPacket().
    pub(super) fn handle_lost(&mut self, window: &Window, c: &Connection, lost: &LostSegment) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = c.delivered;
        }
        self.is_loss_in_round = true;
        self.loss_events += u32::from(lost.begins_range);
        if !self.is_bw_probe_sample || lost.lost as f64 <= lost.in_flight as f64 * LOSS_THRESH {
            return;
        }
        // InflightAtLoss(): where within this segment the losses passed the threshold.
        let size = lost.size as f64;
        let before = lost.in_flight as f64 - size;
        let lost_before = lost.lost as f64 - size;
        let prefix = (LOSS_THRESH * before - lost_before) / (1.0 - LOSS_THRESH);
        self.inflight_too_high(window, c, before + prefix, lost.is_app_limited);
    }

    /// HandleInflightTooHigh().
    fn inflight_too_high(&mut self, window: &Window, c: &Connection, in_flight: f64, is_app_limited: bool) {
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !is_app_limited {
            self.inflight_longterm = in_flight.max(self.target_inflight(window) * BETA);
        }
        if self.state == State::Up {
            self.start_down(c);
        }
    }
}
