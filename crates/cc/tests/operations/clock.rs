//! The other end's clock, which drifts, is set and is coarse.

use super::*;

/// A clock against this end's. Times before the last change are by the clock from then on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OtherClock {
    since: Timestamp,
    ahead_ns: i64,
    ppm: i64,
    granularity_ns: i64,
}

impl OtherClock {
    /// Sets the clock by `step_ms` at `now`, and its drift and granularity from then on.
    pub(super) fn change(&mut self, now: Timestamp, step_ms: i16, ppm: i16, granularity_us: u16) {
        self.ahead_ns += self.drifted(now) + i64::from(step_ms) * 1_000_000;
        self.since = now;
        (self.ppm, self.granularity_ns) = (ppm.into(), i64::from(granularity_us) * 1_000);
    }
    /// The other end's time.
    pub(super) fn read(&self, at: Timestamp) -> RemoteTimestamp {
        let ns = at.as_nanos() + self.drifted(at) + self.ahead_ns;
        RemoteTimestamp::from_nanos(ns - ns.rem_euclid(self.granularity_ns.max(1)))
    }
    fn drifted(&self, at: Timestamp) -> i64 {
        (at - self.since).as_nanos() / 1_000_000 * self.ppm
    }
}
