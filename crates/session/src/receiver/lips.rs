//! Lip synchronisation: streams of one end are played by one clock, derived from its sender reports (RFC 3550,
//! section 6.4.1).

use weir_units::{TimeDelta, Timestamp};

/// The sender's clock according to a stream's sender reports, and the lag of its packets and of its playout relative to
/// that clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderClock {
    /// RTP timestamp and wall clock of the last report, the latter as time since this end's zero.
    report: Option<(u32, Timestamp)>,
    /// Minimum time from capture to arrival, by both ends' clocks: the path's delay plus the clocks' offset.
    least_lag: Option<TimeDelta>,
    /// Time from capture to playout of what was played last.
    played_lag: Option<TimeDelta>,
}

impl SenderClock {
    /// Takes a sender report.
    pub(crate) fn on_report(&mut self, rtp_timestamp: u32, wall: Timestamp) {
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
            let lag = now - captured;
            self.least_lag = Some(self.least_lag.map_or(lag, |least| least.min(lag)));
        }
    }

    pub(crate) fn on_played(&mut self, rtp_timestamp: u32, clock_rate: u32, at: Timestamp) {
        self.played_lag = self.captured(rtp_timestamp, clock_rate).map(|captured| at - captured);
    }

    pub(crate) fn least_lag(&self) -> Option<TimeDelta> {
        self.least_lag
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
            c.on_report(reference, ms(11_000));
            c.on_packet(reference.wrapping_add(rate / 2), rate, ms(1_560));
            c.on_packet(reference.wrapping_add(rate / 2), rate, ms(1_540));
            assert_eq!(c.least_lag(), Some(TimeDelta::from_millis(-9_960)));
            c.on_played(reference.wrapping_add(rate / 2), rate, ms(1_700));
            assert_eq!(c.played_lag(), Some(TimeDelta::from_millis(-9_800)));
        }
    }
}
