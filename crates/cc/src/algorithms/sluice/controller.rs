//! The interface of all controllers.

use super::{Doing, Sluice};
use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// RTP header with the extension for transport-wide numbers, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);

impl Controller for Sluice {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        if self.due.is_none() {
            self.waiting_since = Some(self.seconds(packet.now));
            self.arm(packet.now, true);
        }
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::TransportFeedback(f) => self.on_feedback(f),
            Cue::CapacityNotice(n) => {
                let now = self.seconds(n.now);
                self.notice.announce(n.rate.as_bps_f64(), now);
                self.set_rate(self.rate, self.reference, now);
            }
            Cue::ReceiverEstimate(e) => {
                self.requested = e.rate.as_bps_f64();
                let now = self.seconds(e.now);
                self.set_rate(self.rate, self.reference, now);
            }
            _ => {}
        }
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.limits = limits;
        let now = self.seconds(now);
        self.set_rate(self.rate, self.reference, now);
    }

    fn coupled_rate(&self) -> Option<DataRate> {
        Some(DataRate::from_bps_f64(self.rate))
    }

    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        // The rate on a busy link is measured, so that another would not last: the share alone moves it.
        self.weight = coupled.increase.clamp(0.01, 1.0);
    }

    fn on_timeout(&mut self, now: Timestamp) {
        let t = self.seconds(now);
        if self.after_drain > 0.0 && t >= self.draining_until {
            self.set_rate(self.after_drain, self.after_drain, t);
            self.after_drain = 0.0;
        }
        if self.due.is_none_or(|t| now < t) {
            return;
        }
        // The packet that is waited for is in a queue of at least this length.
        let since = self.waiting_since.unwrap_or(self.newest);
        let queue = t - since - self.rtt - self.interval;
        if self.competition.is_on() && queue < 1.0 {
            self.due = Some(now + TimeDelta::from_millis(25));
            return;
        }
        let factor = 1.0 + (self.wanted - queue) / self.config.drain_time.as_secs_f64();
        let base = if self.capacity.is_finite() { self.capacity.min(self.rate) } else { self.rate };
        self.doing = Doing::Unreported;
        self.set_rate(base * factor.clamp(0.0, 1.0), self.reference, t);
        self.rounds = 0;
        self.due = Some(now + TimeDelta::from_millis(25));
    }

    fn target(&self) -> Target {
        let pacing = self.pacing();
        Target {
            overhead: RTP_HEADER,
            ..Target::paced(self.limits.clamp(DataRate::from_bps_f64(self.rate)), DataRate::from_bps_f64(pacing))
        }
    }

    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let drained = (self.after_drain > 0.0).then(|| {
            let at = self.start + TimeDelta::from_secs_f64(self.draining_until) + TimeDelta::from_micros(1);
            (at, TimeoutReason::RateUpdate)
        });
        let missing = self.due.map(|at| (at, TimeoutReason::FeedbackMissing));
        match (drained, missing) {
            (Some(a), Some(b)) => Some(if a.0 <= b.0 { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("capacity_bps", self.capacity);
        out("queue_ms", self.queue * 1e3);
        out("queue_expected_ms", self.expected * 1e3);
        out("queue_wanted_ms", self.wanted * 1e3);
        out("busy_share", self.busy);
        out("use_share", self.usage.sent());
        out("stall_ms", self.stall * 1e3);
        out("jitter_ms", self.jitter.mean() * 1e3);
        out(
            "residual_ms",
            1e3 * self.residual.delay(self.config.residual_share, self.config.residual_most.as_secs_f64()),
        );
        out("noise_ms", 1e3 * self.residual.noise());
        out("burst_ms", 1e3 * self.usage.burst());
        out("marked", self.marked);
        out("mark_bound_bps", Some(self.scalable.bound()).filter(|b| b.is_finite()).unwrap_or(f64::NAN));
        out("mark_alpha", self.scalable.alpha());
        out("compete", f64::from(u8::from(self.competition.is_on())));
        out("mode", self.doing.number());
        out("starting", f64::from(u8::from(self.starting)));
        out("rounds", f64::from(self.rounds));
    }
}
