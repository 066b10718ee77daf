//! The condition of a path by the other end's reports (thesis, section 6.1.1).

use weir_units::{DataRate, DataSize, Timestamp};

/// Intervals with discards from which a path is congested ("three successive intervals").
const CONGESTED_AFTER: u32 = 3;
/// Intervals with losses alone from which a path is lossy ("successive intervals").
const LOSSY_AFTER: u32 = 2;

/// A report on a path, since the report before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathReport {
    /// When it was received.
    pub now: Timestamp,
    /// Packets that should have arrived.
    pub expected: u64,
    /// Packets that did not.
    pub lost: u64,
    /// Packets that arrived too late to be played.
    pub discarded: u64,
    /// Mean size of the packets sent on the path, with RTP header.
    pub mean_size: DataSize,
}

/// The classes of the thesis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Condition {
    /// Neither losses nor discards in the last interval.
    #[default]
    NonCongested,
    /// Losses and discards in one or two intervals.
    MildlyCongested,
    /// The same in three successive ones.
    Congested,
    /// Losses without discards in successive intervals.
    Lossy,
}

/// State of one path, from its reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathRecord {
    condition: Condition,
    /// Successive intervals with discards, and with losses alone.
    discarding: u32,
    losing: u32,
    last: Option<Timestamp>,
    received: Option<DataRate>,
    loss: f64,
}

impl PathRecord {
    pub(super) const fn condition(&self) -> Condition {
        self.condition
    }
    /// The estimated receiver rate over the last interval; `None` before the second report.
    pub(super) const fn received(&self) -> Option<DataRate> {
        self.received
    }
    /// Share of packets lost in the last interval.
    pub(super) const fn loss(&self) -> f64 {
        self.loss
    }

    /// A report has come. The thesis leaves open what one interval of losses alone is: mildly congested here, since the
    /// path is not free of losses, and "lossy" takes successive ones.
    pub(super) fn on_report(&mut self, report: &PathReport) {
        let arrived = report.expected.saturating_sub(report.lost);
        let since = self.last.replace(report.now).map(|last| report.now.saturating_since(last));
        if let Some(time) = since {
            self.received = DataRate::from_size_over(report.mean_size * arrived, time).or(self.received);
        }
        self.loss = if report.expected == 0 { 0.0 } else { report.lost as f64 / report.expected as f64 };
        (self.discarding, self.losing) = match (report.discarded > 0, report.lost > 0) {
            (true, _) => (self.discarding.saturating_add(1), 0),
            (false, true) => (0, self.losing.saturating_add(1)),
            (false, false) => (0, 0),
        };
        self.condition = match (self.discarding, self.losing) {
            (0, 0) => Condition::NonCongested,
            (CONGESTED_AFTER.., _) => Condition::Congested,
            (0, LOSSY_AFTER..) => Condition::Lossy,
            _ => Condition::MildlyCongested,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(seconds: i64, lost: u64, discarded: u64) -> PathReport {
        let mean_size = DataSize::from_bytes(1_000);
        PathReport { now: Timestamp::from_secs(seconds), expected: 100, lost, discarded, mean_size }
    }
    fn conditions(intervals: &[(u64, u64)]) -> Vec<Condition> {
        let mut record = PathRecord::default();
        let each = intervals.iter().zip(0..).map(|((lost, discarded), s)| {
            record.on_report(&report(s, *lost, *discarded));
            record.condition()
        });
        each.collect()
    }

    #[test]
    fn conditions_follow_the_thesis() {
        use Condition::{Congested, Lossy, MildlyCongested, NonCongested};
        assert_eq!(conditions(&[(0, 0), (0, 0)]), [NonCongested; 2]);
        // Discards and losses: mildly congested once and twice, congested from the third on, and free at once without.
        let expected = [MildlyCongested, MildlyCongested, Congested, Congested, NonCongested];
        assert_eq!(conditions(&[(2, 1), (1, 1), (1, 3), (0, 1), (0, 0)]), expected);
        // Losses alone.
        assert_eq!(conditions(&[(1, 0), (1, 0), (1, 0), (0, 0)]), [MildlyCongested, Lossy, Lossy, NonCongested]);
        // Discards end a run of losses alone, and the other way round.
        let expected = [MildlyCongested, MildlyCongested, MildlyCongested, MildlyCongested, Lossy];
        assert_eq!(conditions(&[(1, 0), (1, 1), (1, 1), (1, 0), (1, 0)]), expected);
    }

    #[test]
    fn the_receiver_rate_is_what_arrived_by_time() {
        let mut record = PathRecord::default();
        record.on_report(&report(0, 10, 0));
        assert_eq!((record.received(), record.loss()), (None, 0.1));
        record.on_report(&report(2, 20, 0));
        // 80 packets of 1,000 bytes in 2 s.
        assert_eq!((record.received(), record.loss()), (Some(DataRate::from_kbps(320)), 0.2));
        // Two reports at one instant leave it, and an empty one is a rate of zero.
        record.on_report(&report(2, 0, 0));
        assert_eq!(record.received(), Some(DataRate::from_kbps(320)));
        record.on_report(&PathReport { expected: 0, ..report(3, 0, 0) });
        assert_eq!((record.received(), record.loss()), (Some(DataRate::ZERO), 0.0));
    }
}
