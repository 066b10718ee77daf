//! The controller around a decision.

use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket, TransportFeedback};
use crate::spec::{FeedbackFormat, FeedbackPlan, Spec, Start};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Interval of decisions where nothing else is said: 60 ms, the short monitor interval of the MMSys 2024 challenge and the
/// report interval of OpenNetLab's gym.
pub const STEP: TimeDelta = TimeDelta::from_millis(60);
/// Reports an interval, so that each interval has one although reports and intervals are not in step.
const REPORTS: i64 = 2;
/// Shortest interval of reports.
const LEAST_FEEDBACK: TimeDelta = TimeDelta::from_millis(5);
/// Pacing over media rate, so that a frame has left before the next (the factor of [`Fixed`](crate::algorithms::Fixed)).
const PACING: f64 = 2.5;

/// Decides on the next interval's rate.
pub trait Decide: Send {
    /// A packet has been sent.
    fn on_sent(&mut self, packet: &SentPacket);
    /// A report has been received.
    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>);
    /// The media rate from `now` on. `ended` is false at the first call, before which there is no interval.
    fn decide(&mut self, ended: bool, now: Timestamp) -> DataRate;
    /// Internal values, as [`Controller::metrics`].
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let _ = out;
    }
}

/// The entry of a controller that decides every `step`: reports of RFC 8888, two a step.
pub fn spec(name: &str, summary: &str, source: &str, step: TimeDelta) -> Spec {
    let interval = TimeDelta::from_nanos(step.as_nanos() / REPORTS).max(LEAST_FEEDBACK);
    let feedback = FeedbackPlan {
        format: FeedbackFormat::CongestionControl,
        min_interval: interval,
        max_interval: interval,
        bandwidth_share: 1.0,
    };
    Spec { feedback: Some(feedback), ..Spec::new(name, summary, source) }
}

/// Asks for a rate when it is made and every step after. What happens at the end of an interval belongs to the next one.
pub struct IntervalController<D> {
    decide: D,
    step: TimeDelta,
    due: Timestamp,
    started: bool,
    wanted: DataRate,
    limits: Limits,
}

impl<D: Decide> IntervalController<D> {
    /// A controller whose first decision is due at once. A step below 1 ms counts as 1 ms.
    pub fn new(decide: D, start: &Start, step: TimeDelta) -> Self {
        let step = step.max(TimeDelta::from_millis(1));
        Self { decide, step, due: start.now, started: false, wanted: start.rate, limits: start.limits }
    }

    fn advance(&mut self, now: Timestamp) {
        if now < self.due {
            return;
        }
        self.wanted = self.decide.decide(self.started, now);
        self.started = true;
        // Steps that nothing happened in, as after a suspended machine, are left out.
        let behind = now.saturating_since(self.due).as_nanos() / self.step.as_nanos();
        self.due += TimeDelta::from_nanos(self.step.as_nanos().saturating_mul(behind.saturating_add(1)));
    }
}

impl<D: Decide> Controller for IntervalController<D> {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.advance(packet.now);
        self.decide.on_sent(packet);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::TransportFeedback(feedback) = cue {
            self.advance(feedback.now);
            self.decide.on_feedback(feedback);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.advance(now);
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.due, TimeoutReason::RateUpdate))
    }
    fn target(&self) -> Target {
        let media = self.limits.clamp(self.wanted);
        Target::paced(media, DataRate::from_bps_f64(media.as_bps_f64() * PACING).max(media))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.decide.metrics(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::DataSize;

    /// One kbit/s more at each decision, and the intervals' bytes.
    #[derive(Default)]
    struct Counts {
        decisions: u64,
        bytes: Vec<u64>,
    }

    impl Decide for Counts {
        fn on_sent(&mut self, packet: &SentPacket) {
            *self.bytes.last_mut().expect("decided first") += packet.size.as_bytes();
        }
        fn on_feedback(&mut self, _: &TransportFeedback<'_>) {}
        fn decide(&mut self, ended: bool, _: Timestamp) -> DataRate {
            assert_eq!(ended, self.decisions > 0);
            self.decisions += 1;
            self.bytes.push(0);
            DataRate::from_kbps(100 + self.decisions)
        }
    }

    #[test]
    fn decides_at_once_and_every_step_and_what_comes_at_the_end_belongs_to_the_next() {
        let limits = Limits { floor: DataRate::from_kbps(102), ceiling: DataRate::from_kbps(104) };
        let start = Start { limits, rate: DataRate::from_kbps(50), now: Timestamp::from_millis(500) };
        let mut c = IntervalController::new(Counts::default(), &start, STEP);
        let ms = Timestamp::from_millis;
        assert_eq!(c.poll_timeout().map(|t| t.0), Some(ms(500)));
        c.on_timeout(ms(500));
        assert_eq!(c.target().media_rate, limits.floor);
        for (at, bytes) in [(559, 10), (560, 100), (561, 1_000)] {
            c.on_packet_sent(&SentPacket::media(ms(at), 0, DataSize::from_bytes(bytes)));
        }
        assert_eq!(c.decide.bytes, [10, 1_100]);
        assert_eq!(c.target().media_rate, DataRate::from_kbps(102));
        // Ten minutes later: one decision, and the next on the same raster.
        c.on_timeout(ms(600_000));
        assert_eq!((c.decide.decisions, c.poll_timeout().map(|t| t.0)), (3, Some(ms(600_020))));
        c.on_timeout(ms(600_020));
        c.on_timeout(ms(600_080));
        assert_eq!(c.target().media_rate, limits.ceiling);
    }
}
