//! Distributions of times, and CPU time by purpose.

use nix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::time::Duration;
use weir_units::TimeDelta;

/// Maximum values kept; beyond it, every other one is removed.
const MAX_VALUES: usize = 1 << 17;

/// A distribution of times in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// How many there were.
    pub count: u64,
    /// Mean.
    pub mean_ms: f64,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Collects times; bounded.
#[derive(Clone, Debug)]
pub(crate) struct TimeSeries {
    values: Vec<TimeDelta>,
    stride: u64,
    count: u64,
    sum_ms: f64,
    max: TimeDelta,
}

impl Default for TimeSeries {
    fn default() -> Self {
        Self { values: Vec::new(), stride: 1, count: 0, sum_ms: 0.0, max: TimeDelta::ZERO }
    }
}

impl TimeSeries {
    pub(crate) fn push(&mut self, value: TimeDelta) {
        if self.count.is_multiple_of(self.stride) {
            if self.values.len() == MAX_VALUES {
                let mut keep = false;
                self.values.retain(|_| {
                    keep = !keep;
                    keep
                });
                self.stride *= 2;
            }
            self.values.push(value);
        }
        self.count += 1;
        self.sum_ms += value.as_millis_f64();
        self.max = self.max.max(value);
    }

    /// `None` if there is no value.
    pub(crate) fn summary(&self) -> Option<Times> {
        let mut sorted = self.values.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        let at = |q: f64| sorted[((last as f64 * q).round() as usize).min(last)].as_millis_f64();
        Some(Times {
            count: self.count,
            mean_ms: self.sum_ms / self.count as f64,
            p50_ms: at(0.5),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            max_ms: self.max.as_millis_f64(),
        })
    }
}

/// CPU time of this thread so far.
pub(crate) fn thread_time() -> Duration {
    // Every kernel that runs this has the clock.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Into::into)
}

/// Purposes of a call loop's CPU time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    Session,
    Srtp,
    Socket,
    Observer,
}

/// Shares of one core, by purpose.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuShares {
    /// The session: packetisation, pacing, reports, the controller, playout.
    pub session: f64,
    /// Protection.
    pub srtp: f64,
    /// System calls on the socket, waiting included.
    pub socket: f64,
    /// The call's observer.
    pub observer: f64,
}

/// Measures a thread's CPU time by part. Each measurement costs some hundred nanoseconds, so it is off by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuMeter {
    on: bool,
    at: Option<(Part, Duration)>,
    sums: [Duration; 4],
}

impl CpuMeter {
    pub(crate) fn switch_on(&mut self) {
        self.on = true;
    }

    #[inline]
    pub(crate) fn enter(&mut self, part: Part) {
        if self.on {
            self.look(part);
        }
    }

    #[cold]
    fn look(&mut self, part: Part) {
        let now = thread_time();
        if let Some((before, since)) = self.at {
            self.sums[before as usize] += now.saturating_sub(since);
        }
        self.at = Some((part, now));
    }

    /// Shares of this time; `None` if nothing was measured.
    pub(crate) fn shares(&self, time: TimeDelta) -> Option<CpuShares> {
        let seconds = time.as_secs_f64();
        let share = |p: Part| self.sums[p as usize].as_secs_f64() / seconds;
        (self.on && seconds > 0.0).then(|| CpuShares {
            session: share(Part::Session),
            srtp: share(Part::Srtp),
            socket: share(Part::Socket),
            observer: share(Part::Observer),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_known_times_also_of_more_than_are_kept() {
        for (n, tolerance) in [(1_001i64, 1e-4f64), (400_001, 0.05)] {
            let mut s = TimeSeries::default();
            assert_eq!(s.summary(), None);
            for i in 0..n {
                // 0 to 100 ms, in an order of no meaning.
                s.push(TimeDelta::from_nanos((i * 7_919 % n) * 100_000_000 / (n - 1)));
            }
            let t = s.summary().unwrap();
            assert_eq!((t.count, t.max_ms), (n as u64, 100.0));
            for (found, expected) in [(t.mean_ms, 50.0), (t.p50_ms, 50.0), (t.p95_ms, 95.0), (t.p99_ms, 99.0)] {
                assert!((found - expected).abs() <= tolerance, "{found} {expected}");
            }
            assert!(s.values.len() <= MAX_VALUES);
        }
    }

    #[test]
    fn processor_time_is_reported_by_parts() {
        let mut m = CpuMeter::default();
        m.enter(Part::Session);
        assert_eq!(m.shares(TimeDelta::from_secs(1)), None);
        m.switch_on();
        m.enter(Part::Srtp);
        let begin = thread_time();
        let mut x = 1u64;
        while thread_time() - begin < Duration::from_millis(20) {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        m.enter(Part::Socket);
        let s = m.shares(TimeDelta::from_secs(1)).unwrap();
        assert!((0.02..0.2).contains(&s.srtp) && s.session == 0.0, "{s:?}");
    }
}
