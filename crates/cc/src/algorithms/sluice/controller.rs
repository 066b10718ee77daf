//! The interface of all controllers.

use super::Sluice;
use super::decision::{Rates, flight};
use super::mode::Mode;
use super::quantity::{Bits, Rate, Span};
use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, QueueState, SentPacket};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Interval between two cuts while feedback is missing.
const CUT_INTERVAL: TimeDelta = TimeDelta::from_millis(25);
/// Queue from which missing feedback cuts the rate in competitive mode.
const SILENT_QUEUE: Span = Span::secs(1.0);

impl Controller for Sluice {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.flight.send(Bits::new(packet.size.as_bits() as f64));
        if self.due.is_none() {
            self.timing.send(self.time(packet.now));
            self.arm(packet.now, true);
        }
    }

    #[inline]
    fn on_queue(&mut self, queue: &QueueState) -> bool {
        let waiting = Bits::new(queue.queued.as_bits() as f64 - queue.added.as_bits() as f64);
        let is_marked = self.path.view().l4s.is_some();
        let has_changed = self.room.is_some() || (waiting != self.waiting && is_marked);
        self.waiting = waiting;
        if has_changed {
            self.update_target();
        }
        has_changed
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::TransportFeedback(f) => self.on_feedback(f),
            Cue::CapacityNotice(n) => {
                let now = self.time(n.now);
                self.bounds.notice.announce(n.rate.into(), now);
                self.apply_bounds(now);
            }
            Cue::ReceiverEstimate(e) => {
                self.bounds.requested = Some(e.rate.into());
                self.apply_bounds(self.time(e.now));
            }
            _ => return,
        }
        self.update_target();
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.bounds.limits = limits;
        self.apply_bounds(self.time(now));
        self.update_target();
    }

    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.history.rate().into())
    }

    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        // The rate on a busy link is measured, so that another would not last: the share alone moves it.
        self.weight = coupled.increase.clamp(0.01, 1.0);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.end_drain(now);
        if self.due.is_some_and(|due| now >= due) {
            self.miss_feedback(now);
        }
        self.update_target();
    }

    fn target(&self) -> Target {
        self.target
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let drained = self.state.drains.end().map(|end| {
            let at = end.on_clock(self.start) + TimeDelta::from_micros(1);
            (at, TimeoutReason::RateUpdate)
        });
        let missing = self.due.map(|at| (at, TimeoutReason::FeedbackMissing));
        match (drained, missing) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let view = self.path.view();
        let bps = |rate: Option<Rate>| rate.map_or(f64::NAN, Rate::as_bps);
        out("capacity_bps", bps(view.capacity()));
        out("queue_ms", view.standing.delay.as_millis());
        out("queue_expected_ms", self.queue.expected.as_millis());
        out("queue_wanted_ms", self.queue.wanted.as_millis());
        out("busy_share", view.busy);
        out("use_share", self.usage.sent());
        out("stall_ms", view.stall.as_millis());
        out("jitter_ms", view.jitter.as_millis());
        out("residual_ms", view.residual.as_millis());
        out("noise_ms", self.path.residual_noise().as_millis());
        out("burst_ms", self.usage.burst().as_millis());
        out("marked", view.marked);
        out("mark_bound_bps", bps(view.bound()));
        out("mark_alpha", self.path.mark_alpha());
        out("answer_bound_bps", bps(self.answer.bound()));
        out("notice_bps", bps(self.bounds.notice.announced()));
        out("chance", self.losses.chance());
        out("compete", f64::from(u8::from(self.state.competition.is_on())));
        out("mode", self.state.mode.number());
        out("starting", f64::from(u8::from(self.state.is_starting)));
        out("rounds", f64::from(self.growth.rounds()));
    }
}

impl Sluice {
    /// Returns to the rate after a drain that has ended.
    fn end_drain(&mut self, now: Timestamp) {
        let now = self.time(now);
        if let Some(rate) = self.state.drains.take_end(now) {
            self.set_rates(Rates::same(rate), now);
        }
    }

    /// Cuts the rate by the queue that the packet awaited must be in.
    fn miss_feedback(&mut self, now: Timestamp) {
        self.due = Some(now + CUT_INTERVAL);
        let now = self.time(now);
        let queue = self.timing.unreported_queue(now);
        if self.state.competition.is_on() && queue < SILENT_QUEUE {
            return;
        }
        let is_bounded = self.bounding_room().is_some();
        let queue = if is_bounded { queue - flight::OUTLASTED } else { queue };
        if is_bounded && queue <= self.queue.wanted {
            return;
        }
        // The end of a drain would raise the rate again while nothing is known of the path.
        let before = self.state.drains.cut_short().unwrap_or(self.history.rate());
        self.before_silence.get_or_insert((before, now));
        let factor = 1.0 + (self.queue.wanted - queue) / Span::from(self.config.correction.time);
        let base = self.history.rate().at_most(self.path.view().capacity());
        self.state.mode = Mode::Unreported;
        self.set_rates(Rates { rate: base * factor.clamp(0.0, 1.0), reference: self.history.reference() }, now);
        self.growth.interrupt();
    }
}
