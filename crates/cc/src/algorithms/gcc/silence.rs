//! Back-off when feedback is missing.
//!
//! A round-trip time above a limit lowers the rate in steps (libwebrtc, as of 2024: `RttBasedBackoff`, with a limit of
//! 3 s and a factor of 0.8 per second). It is either measured, or follows from the time for which packets have been
//! sent without feedback. Below the limit the rate is held. Only time up to the last departure counts, so a sender that
//! pauses is not affected.

use weir_units::{TimeDelta, Timestamp};

/// Measures the time since feedback.
#[derive(Clone, Debug)]
pub(super) struct Silence {
    limit: TimeDelta,
    interval: TimeDelta,
    last_feedback: Option<Timestamp>,
    rtt: TimeDelta,
    last_sent: Timestamp,
    next: Option<Timestamp>,
}

impl Silence {
    pub(super) fn new(limit: TimeDelta, interval: TimeDelta, now: Timestamp) -> Self {
        Self { limit, interval, last_feedback: None, rtt: TimeDelta::ZERO, last_sent: now, next: None }
    }

    pub(super) fn on_sent(&mut self, now: Timestamp) {
        // Before the first feedback, counts from the first packet.
        self.last_feedback.get_or_insert(now);
        self.last_sent = now;
    }
    /// Feedback on received packets, the last of which was sent `rtt` ago.
    pub(super) fn on_feedback(&mut self, rtt: TimeDelta, now: Timestamp) {
        self.last_feedback = Some(now);
        self.rtt = rtt.max(TimeDelta::ZERO);
    }
    /// Whether the round-trip time, measured or inferred, exceeds the limit.
    pub(super) fn is_over(&self) -> bool {
        self.last_feedback.is_some_and(|t| self.last_sent.saturating_since(t) + self.rtt > self.limit)
    }
    /// Whether a reduction is due.
    #[inline]
    pub(super) fn step(&mut self, now: Timestamp) -> bool {
        if !self.is_over() {
            self.next = None;
            return false;
        }
        let due = self.next.is_none_or(|t| now >= t);
        if due {
            self.next = Some(now + self.interval);
        }
        due
    }
    /// When the next reduction is due, while the round-trip time exceeds the limit.
    #[inline]
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn steps_once_a_second_after_three_seconds_of_sending() {
        let mut s = Silence::new(TimeDelta::from_secs(3), TimeDelta::from_secs(1), at(0));
        s.on_sent(at(0));
        s.on_feedback(TimeDelta::from_millis(200), at(1_000));
        let mut steps = vec![];
        for t in (1_000..7_000).step_by(50) {
            s.on_sent(at(t));
            if s.step(at(t)) {
                steps.push(t);
            }
        }
        // 1,000 + 3,000 - 200 ms is the limit itself; the next packet exceeds it.
        assert_eq!(steps, [3_850, 4_850, 5_850, 6_850]);
        assert_eq!(s.next(), Some(at(7_850)));
        s.on_feedback(TimeDelta::from_millis(200), at(7_000));
        assert!(!s.step(at(7_000)) && s.next().is_none());
    }

    #[test]
    fn an_idle_sender_misses_no_report() {
        let mut s = Silence::new(TimeDelta::from_secs(3), TimeDelta::from_secs(1), at(0));
        s.on_sent(at(0));
        assert!(!s.step(at(60_000)));
    }
}
