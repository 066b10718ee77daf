//! Loss intervals as the receiver reports them, at the sender: the loss event rate that it uses.

use super::corrupt::CorruptEvents;
use super::options::{INTERVALS, Interval};
use weir_cc::tcp::LossIntervals;
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Round trips of a short interval (RFC 4828, section 3).
const SHORT: i64 = 2;

/// The loss intervals known to the sender.
#[derive(Clone, Debug)]
pub(super) struct ReportedIntervals {
    small_packets: bool,
    discounting: bool,
    lengths: LossIntervals,
    /// The first number of the open interval, and when it was first reported.
    newest: Option<(Seq48, Timestamp)>,
    /// The length of the interval before the first event, once there was one.
    first_length: Option<f64>,
    corrupt: CorruptEvents,
    p: f64,
}

impl ReportedIntervals {
    pub(super) fn new(small_packets: bool, discounting: bool) -> Self {
        let lengths = LossIntervals::new();
        let corrupt = CorruptEvents::default();
        Self { small_packets, discounting, lengths, newest: None, first_length: None, corrupt, p: 0.0 }
    }

    /// A packet was reported corrupt; the intervals of the next report do not include it.
    pub(super) fn on_corrupt(&mut self, now: Timestamp, rtt: TimeDelta, sequence: Seq48) {
        self.corrupt.on_corrupt(now, rtt, sequence, self.newest.map(|n| n.1));
    }

    /// p.
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// Processes a report, newest first; returns whether it contains a new loss event. `synthetic` computes the length
    /// of the interval before the first event (RFC 5348, section 6.3.1), regardless of the length reported for it.
    pub(super) fn on_report(
        &mut self,
        now: Timestamp,
        rtt: TimeDelta,
        reported: &[(Seq48, Interval)],
        synthetic: impl FnOnce() -> f64,
    ) -> bool {
        let (reported, count) = self.corrupt.part(reported);
        let reported = &reported[..count];
        // Intervals that begin with a loss; the very first may follow them.
        let events = reported.iter().take_while(|(_, i)| i.lossy > 0).count();
        let Some(&(start, open)) = reported.first().filter(|_| events > 0) else { return false };
        let before = self.newest;
        let is_new = before.is_none_or(|(newest, _)| start.is_after(newest));
        let since = before.map_or(now, |b| if is_new { now } else { b.1 });
        match before.and_then(|(newest, _)| reported[..events].iter().position(|t| t.0 == newest)) {
            Some(new) => {
                let lasted = before.map_or(TimeDelta::ZERO, |b| now - b.1);
                for n in (1..=new).rev() {
                    // Intervals that are reported together lasted no longer than the time between reports.
                    let lasted = if n == new { lasted } else { TimeDelta::ZERO };
                    let length = self.length(&reported[n].1, lasted, rtt);
                    self.lengths.on_event(0, Some(length), self.discounting);
                }
            }
            // The first event, or the receiver has merged intervals, or more are new than it reports.
            None => self.rebuild(reported, events, rtt, synthetic),
        }
        self.newest = Some((start, since));
        let is_short = self.small_packets && now - since <= rtt * SHORT;
        self.p = self.lengths.loss_event_rate_with((!is_short).then_some(open.data as f64), self.discounting);
        is_new
    }

    fn rebuild(&mut self, reported: &[(Seq48, Interval)], events: usize, rtt: TimeDelta, synthetic: impl FnOnce() -> f64) {
        self.lengths = LossIntervals::new();
        // With nine intervals reported, the one before the oldest is not needed.
        if events < INTERVALS {
            let first = *self.first_length.get_or_insert_with(|| synthetic().max(1.0));
            self.lengths.on_event(0, Some(first), self.discounting);
        }
        for (_, interval) in reported[1..events].iter().rev() {
            let length = self.length(interval, TimeDelta::MAX, rtt);
            self.lengths.on_event(0, Some(length), self.discounting);
        }
    }

    /// The effective length of an interval.
    fn length(&self, interval: &Interval, lasted: TimeDelta, rtt: TimeDelta) -> f64 {
        let packets = interval.data as f64;
        if self.small_packets && lasted <= rtt * SHORT { packets / interval.dropped.max(1) as f64 } else { packets }
    }

    /// Uses the loss event rate of a receiver that reports no intervals: data packets per interval.
    pub(super) fn on_rate(&mut self, packets: u32) -> bool {
        let p = if packets == u32::MAX { 0.0 } else { 1.0 / f64::from(packets.max(1)) };
        let before = std::mem::replace(&mut self.p, p);
        p > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// A report of intervals of these data lengths, newest first and each preceded by a lost packet; the very first is
    /// last.
    fn reported(start: u64, lengths: &[u64]) -> Vec<(Seq48, Interval)> {
        let mut end = Seq48::new(start).add(lengths[0]);
        let mut all = Vec::new();
        for (n, &data) in lengths.iter().enumerate() {
            let is_first = n + 1 == lengths.len() && lengths.len() < INTERVALS;
            let lossy = if is_first { 0 } else { 1 };
            end = end.sub(data);
            all.push((end, Interval { lossless: data - lossy, lossy, data, dropped: lossy }));
        }
        all
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn the_first_interval_is_the_synthetic_one() {
        let mut r = ReportedIntervals::new(false, true);
        assert!(!r.on_report(at(0), RTT, &reported(1_000, &[500]), || unreachable!()), "no loss yet");
        assert_eq!(r.loss_event_rate(), 0.0);
        assert!(r.on_report(at(100), RTT, &reported(1_500, &[1, 500]), || 40.0));
        assert_eq!(r.loss_event_rate(), 1.0 / 40.0);
        // The open one grows past it: I_0 alone of k = 1, then both.
        assert!(!r.on_report(at(200), RTT, &reported(1_500, &[60, 500]), || unreachable!()));
        assert_eq!(r.loss_event_rate(), 1.0 / 60.0);
        assert!(r.on_report(at(300), RTT, &reported(1_560, &[2, 60, 500]), || unreachable!()));
        assert_eq!(r.loss_event_rate(), 2.0 / 100.0);
    }

    #[test]
    fn reports_that_were_lost_are_caught_up_with() {
        let lengths = [5, 10, 20, 30, 40, 50, 60, 70, 80];
        // One after the other, or all at once, or the first four and then the rest.
        let mut each = ReportedIntervals::new(false, false);
        for n in (0..9).rev() {
            each.on_report(
                at(0),
                RTT,
                &reported(9_000 - lengths.iter().skip(1).take(n).sum::<u64>(), &lengths[n..]),
                || 80.0,
            );
        }
        let mut once = ReportedIntervals::new(false, false);
        assert!(once.on_report(at(0), RTT, &reported(9_000, &lengths), || unreachable!("nine are reported")));
        // 10 + 20 + 30 + 40 + 0.8 * 50 + 0.6 * 60 + 0.4 * 70 + 0.2 * 80 = 220 over 6.
        assert!((once.loss_event_rate() - 6.0 / 220.0).abs() < 1e-12);
        assert!((each.loss_event_rate() - 6.0 / 220.0).abs() < 1e-12, "{}", each.loss_event_rate());
    }

    #[test]
    fn joined_intervals_are_taken_as_they_are() {
        let mut r = ReportedIntervals::new(false, false);
        r.on_report(at(0), RTT, &reported(1_000, &[5, 50, 100]), || 100.0);
        assert_eq!(r.loss_event_rate(), 2.0 / 150.0);
        // The receiver has found the packet that began the newest.
        assert!(!r.on_report(at(100), RTT, &reported(950, &[55, 100]), || unreachable!()));
        assert_eq!(r.loss_event_rate(), 1.0 / 100.0);
    }

    #[test]
    fn short_intervals_of_small_packets_count_their_losses() {
        let mut r = ReportedIntervals::new(true, false);
        let with = |start, lengths: &[u64], dropped| {
            let mut all = reported(start, lengths);
            all.iter_mut().filter(|(_, i)| i.lossy > 0).for_each(|(_, i)| (i.lossy, i.dropped) = (4, dropped));
            all
        };
        r.on_report(at(0), RTT, &with(1_000, &[5, 100], 4), || 100.0);
        // 150 ms later: 40 packets with 4 losses count as 10; the open one is short and omitted.
        r.on_report(at(150), RTT, &with(1_040, &[5, 40, 100], 4), || unreachable!());
        assert_eq!(r.loss_event_rate(), 2.0 / 110.0);
        r.on_report(at(300), RTT, &with(1_040, &[90, 40, 100], 4), || unreachable!());
        assert_eq!(r.loss_event_rate(), 2.0 / 110.0);
        // Once it is longer than two round trips it counts, and stays one event.
        r.on_report(at(400), RTT, &with(1_040, &[190, 40, 100], 4), || unreachable!());
        assert_eq!(r.loss_event_rate(), 2.0 / 200.0);
        r.on_report(at(500), RTT, &with(1_240, &[5, 200, 40, 100], 4), || unreachable!());
        assert_eq!(r.loss_event_rate(), 3.0 / 310.0);
    }

    #[test]
    fn a_rate_without_intervals_is_believed() {
        let mut r = ReportedIntervals::new(false, true);
        assert!(!r.on_rate(u32::MAX) && r.loss_event_rate() == 0.0);
        assert!(r.on_rate(50) && r.loss_event_rate() == 0.02);
        assert!(!r.on_rate(60) && r.on_rate(0) && r.loss_event_rate() == 1.0);
    }
}
