//! When a receiver half reports its estimate.

use weir_units::{TimeDelta, Timestamp};

/// Reports are sent periodically while packets arrive, and at once after a fall of the estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportTimer {
    reported_bps: Option<f64>,
    reported_at: Timestamp,
    /// Whether a packet has arrived since the last report.
    has_arrivals: bool,
}

impl ReportTimer {
    /// The first report is due an interval after `now`.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { reported_bps: None, reported_at: now, has_arrivals: false }
    }
    /// A packet has arrived.
    pub(crate) fn on_packet(&mut self) {
        self.has_arrivals = true;
    }
    /// The last reported estimate, in bit/s.
    pub(crate) fn reported_bps(&self) -> Option<f64> {
        self.reported_bps
    }
    /// When the next report is due; `None` while no packet has arrived since the last.
    pub(crate) fn due_at(&self, interval: TimeDelta) -> Option<Timestamp> {
        self.has_arrivals.then(|| self.reported_at + interval)
    }
    /// Whether to send a report at `now`: it is due, or packets have arrived and `at_once` is set.
    pub(crate) fn is_due(&self, now: Timestamp, interval: TimeDelta, at_once: bool) -> bool {
        self.due_at(interval).is_some_and(|at| at <= now || at_once)
    }
    /// A report of this estimate is sent.
    pub(crate) fn on_report(&mut self, bps: f64, now: Timestamp) {
        *self = Self { reported_bps: Some(bps), reported_at: now, has_arrivals: false };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_each_interval_while_packets_arrive_and_at_once_on_a_fall() {
        let at = Timestamp::from_millis;
        let interval = TimeDelta::from_millis(100);
        let mut t = ReportTimer::new(at(0));
        assert_eq!((t.due_at(interval), t.is_due(at(500), interval, true)), (None, false));
        t.on_packet();
        assert_eq!(t.due_at(interval), Some(at(100)));
        assert!(
            !t.is_due(at(99), interval, false)
                && t.is_due(at(99), interval, true)
                && t.is_due(at(100), interval, false)
        );
        t.on_report(5e5, at(100));
        assert_eq!((t.reported_bps(), t.due_at(interval)), (Some(5e5), None));
        t.on_packet();
        assert_eq!(t.due_at(interval), Some(at(200)));
    }
}
