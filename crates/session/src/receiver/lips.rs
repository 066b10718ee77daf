//! Lip synchronisation: streams of one end are played by one clock, derived from its sender reports (RFC 3550,
//! section 6.4.1).

use weir_units::{TimeDelta, Timestamp};

/// The least lag is that of the last intervals of this length, so that it follows clocks that differ: 100 ppm are 2 ms in four.
const LAG_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
const LAG_INTERVALS: usize = 4;
/// A report that differs by more from the one before has another relation of timestamps to the wall clock: the source's timestamps
/// have stopped or jumped.
const JUMP: TimeDelta = TimeDelta::from_millis(100);

/// The sender's clock according to a stream's sender reports, and the lag of its packets and of its playout relative to
/// that clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderClock {
    /// RTP timestamp and wall clock of the last report, the latter as time since this end's zero.
    report: Option<(u32, Timestamp)>,
    /// Minimum times from capture to arrival, by both ends' clocks: the path's delay plus the clocks' offset. The interval in
    /// progress is the first.
    lags: [Option<TimeDelta>; LAG_INTERVALS],
    /// When the interval in progress ends.
    ends: Timestamp,
    /// Time from capture to playout of what was played last.
    played_lag: Option<TimeDelta>,
}

impl SenderClock {
    /// Takes a sender report.
    pub(crate) fn on_report(&mut self, rtp_timestamp: u32, wall: Timestamp, clock_rate: u32) {
        if self.captured(rtp_timestamp, clock_rate).is_some_and(|before| (wall - before).abs() > JUMP) {
            self.lags = [None; LAG_INTERVALS];
        }
        self.report = Some((rtp_timestamp, wall));
    }

    /// The sender's wall clock when media with this RTP timestamp was captured.
    fn captured(&self, rtp_timestamp: u32, clock_rate: u32) -> Option<Timestamp> {
        let (reference, wall) = self.report?;
        let ticks = i64::from(rtp_timestamp.wrapping_sub(reference) as i32);
        Some(wall + TimeDelta::from_nanos(ticks * 1_000_000_000 / i64::from(clock_rate.max(1))))
    }

    pub(crate) fn on_packet(&mut self, rtp_timestamp: u32, clock_rate: u32, now: Timestamp) {
        if let Some(captured) = self.captured(rtp_timestamp, clock_rate) {
            if now >= self.ends {
                self.ends = now + LAG_INTERVAL;
                self.lags.copy_within(..LAG_INTERVALS - 1, 1);
                self.lags[0] = None;
            }
            let lag = now - captured;
            self.lags[0] = Some(self.lags[0].map_or(lag, |least| least.min(lag)));
        }
    }

    pub(crate) fn on_played(&mut self, rtp_timestamp: u32, clock_rate: u32, at: Timestamp) {
        self.played_lag = self.captured(rtp_timestamp, clock_rate).map(|captured| at - captured);
    }

    pub(crate) fn least_lag(&self) -> Option<TimeDelta> {
        self.lags.iter().flatten().copied().min()
    }
    pub(crate) fn played_lag(&self) -> Option<TimeDelta> {
        self.played_lag
    }
    /// RTP timestamp and wall clock of the last report.
    pub(crate) fn report(&self) -> Option<(u32, Timestamp)> {
        self.report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lags_do_not_depend_on_the_clocks_rate_and_offset() {
        let ms = Timestamp::from_millis;
        // Both streams are captured at 1,000 ms and 1,500 ms of a clock that is 10 s ahead, and arrive 40 ms later.
        for (rate, reference) in [(48_000u32, u32::MAX - 10), (90_000, 7)] {
            let mut c = SenderClock::default();
            c.on_packet(reference, rate, ms(1_040));
            assert_eq!(c.least_lag(), None, "nothing is known before a report");
            c.on_report(reference, ms(11_000), rate);
            c.on_packet(reference.wrapping_add(rate / 2), rate, ms(1_560));
            c.on_packet(reference.wrapping_add(rate / 2), rate, ms(1_540));
            assert_eq!(c.least_lag(), Some(TimeDelta::from_millis(-9_960)));
            c.on_played(reference.wrapping_add(rate / 2), rate, ms(1_700));
            assert_eq!(c.played_lag(), Some(TimeDelta::from_millis(-9_800)));
        }
    }
}
