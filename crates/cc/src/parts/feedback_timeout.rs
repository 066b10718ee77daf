//! Timeout for feedback that is overdue after a packet.

use crate::controller::TimeoutReason;
use weir_units::{TimeDelta, Timestamp};

/// Starts at the first packet after the last feedback, and restarts at each expiry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedbackTimeout {
    wait: TimeDelta,
    at: Option<Timestamp>,
}

impl FeedbackTimeout {
    /// Expires `wait` after a packet; never if that is zero.
    pub(crate) const fn new(wait: TimeDelta) -> Self {
        Self { wait, at: None }
    }
    pub(crate) fn on_packet(&mut self, now: Timestamp) {
        if self.at.is_none() {
            self.arm(now);
        }
    }
    pub(crate) fn on_feedback(&mut self) {
        self.at = None;
    }
    /// Whether it has expired by `now`; if so it restarts.
    pub(crate) fn expire(&mut self, now: Timestamp) -> bool {
        let expired = self.at.is_some_and(|t| t <= now);
        if expired {
            self.arm(now);
        }
        expired
    }
    /// As [`crate::Controller::poll_timeout`].
    pub(crate) fn poll(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.at?, TimeoutReason::FeedbackMissing))
    }
    fn arm(&mut self, now: Timestamp) {
        self.at = (self.wait > TimeDelta::ZERO).then(|| now + self.wait);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_from_the_first_packet_and_again_from_expiry() {
        let at = Timestamp::from_millis;
        let mut t = FeedbackTimeout::new(TimeDelta::from_millis(100));
        assert_eq!(t.poll(), None);
        t.on_packet(at(10));
        t.on_packet(at(50));
        assert_eq!(t.poll().map(|p| p.0), Some(at(110)));
        assert!(!t.expire(at(109)) && t.expire(at(110)));
        assert_eq!(t.poll().map(|p| p.0), Some(at(210)));
        t.on_feedback();
        assert_eq!(t.poll(), None);
        let mut never = FeedbackTimeout::new(TimeDelta::ZERO);
        never.on_packet(at(10));
        assert_eq!(never.poll(), None);
    }
}
