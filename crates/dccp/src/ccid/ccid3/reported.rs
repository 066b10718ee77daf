//! Loss intervals as the receiver tells them, at the sender: the loss event rate that it uses.

use super::options::{INTERVALS, Interval};
use weir_cc::tfrc::LossIntervals;
use weir_units::{Seq48, TimeDelta, Timestamp};

/// Round trips of a short interval (RFC 4828, section 3).
const SHORT: i64 = 2;

/// What is known of loss intervals.
#[derive(Clone, Debug)]
pub(super) struct ReportedIntervals {
    small_packets: bool,
    discounting: bool,
    lengths: LossIntervals,
    /// The number that the open interval starts with, and when that was first told.
    newest: Option<(Seq48, Timestamp)>,
    /// The length of the interval before the first event, once there was one.
    first_length: Option<f64>,
    p: f64,
}

impl ReportedIntervals {
    pub(super) fn new(small_packets: bool, discounting: bool) -> Self {
        let lengths = LossIntervals::new();
        Self { small_packets, discounting, lengths, newest: None, first_length: None, p: 0.0 }
    }

    /// p.
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.p
    }

    /// Takes a report in, newest first; whether it tells of a new loss event. `synthetic` is asked for the length of the
    /// interval before the first event (RFC 5348, section 6.3.1), whatever the receiver says of it.
    pub(super) fn on_report(
        &mut self,
        now: Timestamp,
        rtt: TimeDelta,
        told: &[(Seq48, Interval)],
        synthetic: impl FnOnce() -> f64,
    ) -> bool {
        // Those that begin with a loss; the first of all may follow them.
        let events = told.iter().take_while(|(_, i)| i.lossy > 0).count();
        let Some(&(start, open)) = told.first().filter(|_| events > 0) else { return false };
        let before = self.newest;
        let is_new = before.is_none_or(|(newest, _)| start.is_after(newest));
        let since = before.map_or(now, |b| if is_new { now } else { b.1 });
        match before.and_then(|(newest, _)| told[..events].iter().position(|t| t.0 == newest)) {
            Some(new) => {
                let lasted = before.map_or(TimeDelta::ZERO, |b| now - b.1);
                for n in (1..=new).rev() {
                    // Intervals that are told together lasted no longer than the time between reports.
                    let lasted = if n == new { lasted } else { TimeDelta::ZERO };
                    let length = self.length(&told[n].1, lasted, rtt);
                    self.lengths.on_event(0, Some(length), self.discounting);
                }
            }
            // The first event, or the receiver has joined intervals, or more than it tells are new.
            None => self.rebuild(told, events, rtt, synthetic),
        }
        self.newest = Some((start, since));
        let is_short = self.small_packets && now - since <= rtt * SHORT;
        self.p = self.lengths.loss_event_rate_with((!is_short).then_some(open.data as f64), self.discounting);
        is_new
    }

    fn rebuild(&mut self, told: &[(Seq48, Interval)], events: usize, rtt: TimeDelta, synthetic: impl FnOnce() -> f64) {
        self.lengths = LossIntervals::new();
        // With nine intervals told, the one before the oldest is not needed.
        if events < INTERVALS {
            let first = *self.first_length.get_or_insert_with(|| synthetic().max(1.0));
            self.lengths.on_event(0, Some(first), self.discounting);
        }
        for (_, interval) in told[1..events].iter().rev() {
            let length = self.length(interval, TimeDelta::MAX, rtt);
            self.lengths.on_event(0, Some(length), self.discounting);
        }
    }

    /// The length that an interval counts with.
    fn length(&self, interval: &Interval, lasted: TimeDelta, rtt: TimeDelta) -> f64 {
        let packets = interval.data as f64;
        if self.small_packets && lasted <= rtt * SHORT { packets / interval.dropped.max(1) as f64 } else { packets }
    }

    /// Takes a loss event rate in as the receiver computes it, from one that tells no intervals: data packets an interval.
    pub(super) fn on_rate(&mut self, packets: u32) -> bool {
        let p = if packets == u32::MAX { 0.0 } else { 1.0 / f64::from(packets.max(1)) };
        let before = std::mem::replace(&mut self.p, p);
        p > before
    }
}
