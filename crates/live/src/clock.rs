//! The clock of a call: the monotonic clock as [`Timestamp`], and the time of day for sender reports.

use std::time::{Duration, Instant, SystemTime};
use weir_units::{TimeDelta, Timestamp};

/// NTP seconds (since 1900) of the Unix epoch (RFC 868).
const NTP_OF_UNIX: u64 = 2_208_988_800;
/// A kernel's receive timestamp older than this was taken before the clock of day was set: it is ignored.
const MAX_AGE: TimeDelta = TimeDelta::from_secs(1);

/// A monotonic clock with its own zero. Ends in one process may share one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
    /// Time of day at the zero, since 1970.
    unix: Duration,
    /// How much faster it runs, in parts per billion, and since when.
    drift: (i64, Timestamp),
}

/// Both of a machine's clocks at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The monotonic one.
    pub now: Timestamp,
    /// The time of day, since 1970.
    pub unix: Duration,
}

#[expect(clippy::disallowed_methods, reason = "this is the room of clocks")]
fn both() -> (Instant, Duration) {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (Instant::now(), unix)
}

fn delta(d: Duration) -> TimeDelta {
    TimeDelta::from_nanos(i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

impl Clock {
    /// A clock whose zero is now. NTP times made from it are up to a second early.
    pub fn starting_now() -> Self {
        let (zero, unix) = both();
        Self { zero, unix, drift: (0, Timestamp::ZERO) }
    }

    /// A clock whose zero is the last whole second of the time of day, so that NTP times made from it are exact.
    pub fn of_day() -> Self {
        let (now, unix) = both();
        let past = Duration::from_nanos(unix.subsec_nanos().into());
        let (zero, unix) = now.checked_sub(past).map_or((now, unix), |zero| (zero, unix - past));
        Self { zero, unix, drift: (0, Timestamp::ZERO) }
    }

    /// This clock, faster by `ppb` parts per billion from `since` on, slower if negative: that of another machine. The time of day is
    /// this machine's.
    pub fn drifting(self, ppb: i64, since: Timestamp) -> Self {
        Self { drift: (ppb, since), ..self }
    }

    /// The time that it shows this long after its zero.
    fn shown(&self, elapsed: Duration) -> Timestamp {
        let (ppb, since) = self.drift;
        let now = Timestamp::ZERO + delta(elapsed);
        let past = i128::from(now.saturating_since(since).max(TimeDelta::ZERO).as_nanos());
        let gained = (past * i128::from(ppb)).div_euclid(1_000_000_000);
        now + TimeDelta::from_nanos(i64::try_from(gained).unwrap_or(0))
    }

    /// The time since the zero.
    #[expect(clippy::disallowed_methods, reason = "this is the room of clocks")]
    pub fn now(&self) -> Timestamp {
        self.shown(Instant::now().saturating_duration_since(self.zero))
    }

    /// Both clocks at once.
    pub fn reading(&self) -> Reading {
        let (now, unix) = both();
        Reading { now: self.shown(now.saturating_duration_since(self.zero)), unix }
    }

    /// NTP seconds (since 1900) of the zero, for [`weir_session::EndConfig::ntp_epoch`]; they wrap in 2036, like
    /// NTP's own.
    pub fn ntp_epoch(&self) -> u32 {
        (self.unix.as_secs() + NTP_OF_UNIX) as u32
    }

    /// The time of day of an instant, since 1970, for captures.
    pub fn unix(&self, at: Timestamp) -> Duration {
        self.unix + Duration::from_nanos(u64::try_from(at.as_nanos()).unwrap_or(0))
    }
}

impl Reading {
    /// When a datagram was received, from the kernel's timestamp in time of day. That clock may be set meanwhile, so
    /// only its distance from now is used, and only if that is small.
    pub fn arrival(&self, kernel: Option<Duration>) -> Timestamp {
        let age = kernel.and_then(|k| self.unix.checked_sub(k)).map(delta);
        self.now - age.filter(|a| *a <= MAX_AGE).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_day_begins_at_a_whole_second_and_both_clocks_agree() {
        let clock = Clock::of_day();
        let r = clock.reading();
        assert!(r.now >= Timestamp::ZERO && r.now < Timestamp::from_secs(2), "{}", r.now);
        let found = clock.unix(r.now);
        assert!(found.abs_diff(r.unix) < Duration::from_millis(20), "{found:?} {:?}", r.unix);
        // 2026 to 2036 in NTP's first era.
        assert!((3_976_214_400..=u32::MAX).contains(&clock.ntp_epoch()), "{}", clock.ntp_epoch());
        let zero = clock.unix(Timestamp::ZERO);
        assert_eq!(zero.subsec_nanos(), 0);
    }

    #[test]
    fn another_machines_clock_gains_or_loses_since_the_begin() {
        let plain = Clock::starting_now();
        let at = |ppb: i64, s: u64| {
            let shown = plain.drifting(ppb, Timestamp::from_secs(10)).shown(Duration::from_secs(s));
            (shown - Timestamp::ZERO).as_micros()
        };
        assert_eq!(
            [at(0, 1_010), at(200_000, 1_010), at(-100_000, 1_010)],
            [1_010_000_000, 1_010_200_000, 1_009_900_000]
        );
        assert_eq!(at(200_000, 5), 5_000_000, "before it");
    }

    #[test]
    fn arrivals_lie_in_the_near_past() {
        let r = Reading { now: Timestamp::from_secs(100), unix: Duration::from_secs(1_000) };
        let at = |ms: u64| r.arrival(Some(Duration::from_millis(ms)));
        assert_eq!(at(999_990), Timestamp::from_secs(100) - TimeDelta::from_millis(10));
        // The clock of day was set back, or far ahead, or the kernel has no timestamp.
        assert_eq!([at(1_000_001), at(900_000), r.arrival(None)], [Timestamp::from_secs(100); 3]);
    }
}
