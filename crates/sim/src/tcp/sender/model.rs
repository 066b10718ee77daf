//! Algorithms that model the path: rate samples, losses and events for them, and pacing.

use super::{Phase, Sender};
use crate::tcp::avoidance::{CongestionAvoidance, Connection, PathEvent};
use crate::tcp::delivery::Delivery;
use crate::tcp::scoreboard::DUP_THRESH;
use crate::tcp_segment::TcpSegment;
use weir_units::{TimeDelta, Timestamp};

/// The sampler of a connection whose algorithm models the path.
#[derive(Clone, Default, Debug)]
pub(super) struct Model {
    delivery: Delivery,
    /// Whether the algorithm knows a round-trip time.
    is_open: bool,
}

impl Model {
    pub(super) fn restart(&mut self) {
        self.delivery.restart();
    }
    fn connection(&self, sender: &Sender, now: Timestamp, is_window_limited: bool) -> Connection {
        Connection {
            now,
            delivered: self.delivery.delivered(),
            in_flight: sender.pipe,
            is_window_limited,
            in_recovery: matches!(sender.phase, Phase::Recovery | Phase::Loss),
            srtt: sender.rto.srtt(),
        }
    }
}

impl Sender {
    /// Passes an event to an algorithm that models the path; returns whether it is one.
    pub(super) fn inform(&mut self, now: Timestamp, event: PathEvent) -> bool {
        let Some(model) = &self.model else { return false };
        let c = model.connection(self, now, false);
        self.avoidance.on_event(&mut self.window, &c, event);
        true
    }

    /// The connection has a round-trip time.
    pub(super) fn open_model(&mut self, now: Timestamp) {
        let is_known = self.rto.srtt().is_some();
        if let Some(model) = self.model.as_mut().filter(|m| is_known && !m.is_open) {
            model.is_open = true;
            self.inform(now, PathEvent::Open);
        }
    }

    /// CheckIfApplicationLimited().
    #[inline]
    pub(super) fn check_application(&mut self) {
        let Some(model) = &mut self.model else { return };
        if self.phase == Phase::Open && self.high >= self.limit && self.pipe < self.window.cwnd {
            model.delivery.limit_by_application(self.pipe);
        }
    }

    /// Processes an acknowledgement after the scoreboard has taken it in.
    #[cold]
    #[inline(never)]
    pub(super) fn on_ack_by_model(&mut self, now: Timestamp, s: &TcpSegment, news: u64, was_limited: bool) {
        self.open_model(now);
        let Some(mut model) = self.model.take() else { return };
        let mut rs = model.delivery.on_ack(now, self.una, s.sack_blocks(), news);
        let by_rack = self.rack_tlp.is_some();
        let mut lost_below = if by_rack { 0 } else { self.board.lost_below(self.window.mss) };
        if by_rack {
            self.detect_losses(now);
        } else if self.dup_acks as usize >= DUP_THRESH {
            lost_below = lost_below.max(self.una + 1);
        }
        self.count_pipe();
        let c = model.connection(self, now, was_limited);
        let has_recovered = c.in_recovery && self.una >= self.recovery_point;
        if has_recovered {
            self.phase = Phase::Open;
            self.resend_first = false;
            self.avoidance.on_event(&mut self.window, &c, PathEvent::Recovered);
        } else if self.phase == Phase::Open && (lost_below > self.una || self.has_lost()) {
            self.start_recovery(now);
            self.avoidance.on_event(&mut self.window, &c, PathEvent::FastRecovery);
        }
        self.high_rxt = self.high_rxt.max(self.una);
        if lost_below > self.una {
            let (avoidance, window) = (&mut self.avoidance, &mut self.window);
            rs.newly_lost = model.delivery.lose(lost_below, |lost| avoidance.on_lost(window, &c, &lost));
        }
        if by_rack {
            rs.newly_lost = self.lose_by_rack(&mut model, &c);
        }
        self.count_pipe();
        let c = model.connection(self, now, was_limited);
        self.avoidance.on_sample(&mut self.window, &c, &rs);
        if self.avoidance.hides_samples() {
            model.delivery.limit_by_application(self.pipe);
        }
        self.model = Some(model);
    }

    /// Passes what RACK has marked as lost to the algorithm; returns its bytes.
    fn lose_by_rack(&mut self, model: &mut Model, c: &Connection) -> u64 {
        let Some(r) = &self.rack_tlp else { return 0 };
        let (avoidance, window) = (&mut self.avoidance, &mut self.window);
        let lost = r.newly_lost().iter();
        lost.map(|l| model.delivery.lose_range(l.start, l.end, |lost| avoidance.on_lost(window, c, &lost))).sum()
    }

    /// RACK has marked losses without an acknowledgement. Returns whether the algorithm models the path.
    pub(super) fn lose_by_model(&mut self, now: Timestamp) -> bool {
        let Some(mut model) = self.model.take() else { return false };
        self.count_pipe();
        let c = model.connection(self, now, false);
        if self.phase == Phase::Open && self.has_lost() {
            self.start_recovery(now);
            self.avoidance.on_event(&mut self.window, &c, PathEvent::FastRecovery);
        }
        self.lose_by_rack(&mut model, &c);
        self.model = Some(model);
        true
    }

    /// The retransmission timer expired; returns whether an algorithm that models the path has set the window.
    pub(super) fn time_out_model(&mut self, now: Timestamp) -> bool {
        if let Some(model) = &mut self.model {
            match &self.rack_tlp {
                None => model.delivery.lose_all(),
                Some(r) => {
                    for l in r.newly_lost() {
                        model.delivery.lose_range(l.start, l.end, |_| ());
                    }
                }
            }
        }
        self.pipe = self.rack_tlp.as_ref().map_or(0, |r| r.in_flight());
        self.inform(now, PathEvent::Timeout)
    }

    /// A segment was sent; `self.pipe` does not yet include it.
    #[inline(never)]
    pub(super) fn sent_by_model(&mut self, now: Timestamp, start: u64, len: u64) {
        let Some(model) = &mut self.model else { return };
        let restarts = self.pipe == 0 && model.delivery.is_app_limited();
        model.delivery.on_sent(now, start, start + len, self.pipe + len);
        if restarts {
            self.inform(now, PathEvent::Restart);
        }
    }

    /// Whether the pacer holds the next segment back.
    #[inline]
    pub(super) fn waits_for_pacer(&mut self, now: Timestamp) -> bool {
        let waits = self.next_send > now;
        self.paced_until = waits.then_some(self.next_send);
        waits
    }

    /// Sets the earliest time of the next segment after one of `len` bytes (draft-ietf-ccwg-bbr, "Pacing Rate").
    pub(super) fn pace(&mut self, now: Timestamp, len: u64) {
        if let Some(rate) = self.avoidance.pacing_rate().filter(|r| *r > 0.0) {
            // A second at most, so that a rate near zero does not stop the flow.
            let gap = (len as f64 / rate).min(1.0);
            self.next_send = self.next_send.max(now) + TimeDelta::from_secs_f64(gap);
        }
    }
}
