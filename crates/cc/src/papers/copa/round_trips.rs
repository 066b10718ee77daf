//! Round-trip times: the least, the standing, the greatest and the smoothed one (section 2.1 and 2.2).

use super::config::Config;
use crate::parts::recent_least::RecentLeast;
use weir_units::{TimeDelta, Timestamp};

/// Least round-trip time that is believed, so that a rate is finite.
const LEAST: TimeDelta = TimeDelta::from_micros(100);
/// Before the first sample.
const INITIAL: TimeDelta = TimeDelta::from_millis(100);
/// Weight of a new packet in the smoothed round-trip time (RFC 6298).
const SMOOTHING: f64 = 1.0 / 8.0;
/// Weight of a new report in the time for which one collects packets.
const COLLECTION: f64 = 1.0 / 8.0;
/// Round trips over which the greatest one counts (section 2.2).
const GREATEST: i64 = 4;

/// Growth of a report's way and wait that is a step of the receiver's clock: longer than reports wait. Weir's choice.
const CLOCK_STEP: TimeDelta = TimeDelta::from_secs(1);

#[derive(Clone, Debug, Default)]
pub(super) struct RoundTrips {
    least_window: TimeDelta,
    standing_window: f64,
    /// The report's way and wait, with the difference of the clocks.
    back: RecentLeast,
    least: RecentLeast,
    standing: RecentLeast,
    /// Negative ones.
    greatest: RecentLeast,
    smoothed: Option<TimeDelta>,
    /// Time between reports, smoothed.
    collection: TimeDelta,
    last_report: Option<Timestamp>,
}

impl RoundTrips {
    pub(super) fn new(config: &Config) -> Self {
        Self { least_window: config.least_window, standing_window: config.standing_window, ..Self::default() }
    }

    /// A report has been received at `now`; the round-trip time of its latest packet, and that packet's one-way delay.
    pub(super) fn on_report(&mut self, rtt: TimeDelta, one_way: TimeDelta, now: Timestamp) {
        let back = rtt - one_way;
        if self.back.get().is_some_and(|least| back - least > CLOCK_STEP) {
            // Another receiver, or its clock was set: nothing measured before counts.
            let (least_window, standing_window) = (self.least_window, self.standing_window);
            *self = Self { least_window, standing_window, ..Self::default() };
        }
        self.back.observe(back, now, self.least_window);
        if let Some(last) = self.last_report.replace(now) {
            // A gap without packets is no collection.
            let interval = (now - last).min(rtt.max(INITIAL));
            self.collection += (interval - self.collection).mul_f64(COLLECTION);
        }
    }

    /// The round-trip time of a packet with this one-way delay.
    pub(super) fn of(&self, one_way: TimeDelta) -> TimeDelta {
        (one_way + self.back.get().unwrap_or(TimeDelta::ZERO)).max(LEAST)
    }

    /// A packet's round-trip time, and when it ended.
    pub(super) fn on_packet(&mut self, rtt: TimeDelta, now: Timestamp) {
        let smoothed = self.smoothed.get_or_insert(rtt);
        *smoothed += (rtt - *smoothed).mul_f64(SMOOTHING);
        let smoothed = *smoothed;
        self.least.observe(rtt, now, self.least_window);
        self.standing.observe(rtt, now, smoothed.mul_f64(self.standing_window));
        self.greatest.observe(-rtt, now, (smoothed + self.collection) * GREATEST);
    }

    pub(super) fn smoothed(&self) -> TimeDelta {
        self.smoothed.unwrap_or(INITIAL)
    }
    /// A smoothed round trip with the time for which a report collects packets: what passes until a step shows its effect, for which
    /// the paper's acknowledgements take a round trip.
    pub(super) fn lap(&self) -> TimeDelta {
        self.smoothed() + self.collection
    }
    pub(super) fn standing(&self) -> TimeDelta {
        self.standing.get().unwrap_or(INITIAL)
    }
    /// The standing queueing delay, d_q.
    pub(super) fn queue(&self) -> TimeDelta {
        self.least.get().map_or(TimeDelta::ZERO, |least| (self.standing() - least).max(TimeDelta::ZERO))
    }
    /// The greatest queueing delay of the last round trips.
    pub(super) fn greatest_queue(&self) -> TimeDelta {
        match (self.least.get(), self.greatest.get()) {
            (Some(least), Some(greatest)) => (-greatest - least).max(TimeDelta::ZERO),
            _ => TimeDelta::ZERO,
        }
    }
    /// The time for which a report collects packets.
    pub(super) fn collection(&self) -> TimeDelta {
        self.collection
    }
}
