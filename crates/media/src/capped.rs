//! A source whose application does not always have as much to send as the target allows.

use crate::forwarded::forwarded;
use crate::{Frame, FrameSource, MediaError, Source};
use std::sync::Arc;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The greatest rate that an application has to send, by steps of time: a game that is paused, a shared screen that changes
/// now and then. Zero is nothing to send. Cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub struct Caps(Arc<Table>);

#[derive(PartialEq, Debug)]
struct Table {
    steps: Vec<(TimeDelta, DataRate)>,
    period: Option<TimeDelta>,
}

impl Caps {
    /// Caps and their beginnings, counted from the start of the source, in increasing order; with `period` they repeat.
    ///
    /// # Errors
    /// No steps, a first one that is not at zero, steps out of order, or a period that ends before the last one begins.
    pub fn new(steps: Vec<(TimeDelta, DataRate)>, period: Option<TimeDelta>) -> Result<Self, MediaError> {
        let fail = |field, value: &dyn std::fmt::Display, expected| {
            Err(MediaError::new("capped source", field, value, expected))
        };
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
            return fail("steps", &"empty", "at least one step");
        };
        if first.0 != TimeDelta::ZERO {
            return fail("steps[0].at", &first.0, "0: the first cap holds from the start");
        }
        if let Some(w) = steps.windows(2).find(|w| w[1].0 <= w[0].0) {
            return fail("steps.at", &w[1].0, "a later time than that of the step before");
        }
        match period.filter(|&p| p <= last.0) {
            Some(p) => fail("period", &p, "a longer time than that of the last step"),
            None => Ok(Self(Arc::new(Table { steps, period }))),
        }
    }

    /// The caps that begin before this time since the start, each with its beginning.
    pub fn steps_until(&self, end: TimeDelta) -> Vec<(TimeDelta, DataRate)> {
        let mut all = Vec::new();
        let mut next = Some(TimeDelta::ZERO);
        while let Some(at) = next.filter(|&at| at < end) {
            let (rate, following) = self.at(at);
            all.push((at, rate));
            next = following;
        }
        all
    }

    /// The cap at a time since the start, and when the next one begins, if one does.
    fn at(&self, since: TimeDelta) -> (DataRate, Option<TimeDelta>) {
        let Table { steps, period } = &*self.0;
        let since = since.max(TimeDelta::ZERO);
        let (base, within) = match period {
            Some(p) => {
                let within = TimeDelta::from_nanos(since.as_nanos() % p.as_nanos());
                (since - within, within)
            }
            None => (TimeDelta::ZERO, since),
        };
        let next = steps.partition_point(|s| s.0 <= within);
        let begins = steps.get(next).map(|s| s.0).or(*period).map(|t| base + t);
        (steps[next.max(1) - 1].1, begins)
    }
}

/// A source under a cap.
#[derive(Debug)]
pub struct CappedSource {
    source: Source,
    caps: Caps,
    start: Timestamp,
    wanted: DataRate,
    cap: DataRate,
    /// When the next cap begins.
    next: Option<Timestamp>,
}

impl CappedSource {
    /// Caps a source from `start` on.
    pub fn new(source: Source, caps: Caps, start: Timestamp) -> Self {
        let (cap, next) = caps.at(TimeDelta::ZERO);
        Self { source, start, wanted: DataRate::ZERO, cap, next: next.map(|t| start + t), caps }
    }

    /// Applies the cap of this time; returns whether it is another one.
    fn step(&mut self, now: Timestamp) -> bool {
        if self.next.is_none_or(|at| at > now) {
            return false;
        }
        let (cap, next) = self.caps.at(now - self.start);
        self.next = next.map(|t| self.start + t);
        core::mem::replace(&mut self.cap, cap) != cap
    }
}

impl FrameSource for CappedSource {
    forwarded!(source);

    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        self.step(now);
        self.wanted = rate;
        self.source.on_target(rate.min(self.cap), now);
    }
    fn next_frame_at(&self) -> Option<Timestamp> {
        match (self.source.next_frame_at(), self.next) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        if self.step(now) {
            self.source.on_target(self.wanted.min(self.cap), now);
        }
        self.source.poll_frame(now)
    }
    fn generated_rate(&self) -> DataRate {
        self.source.generated_rate()
    }
    fn skip_picture(&mut self, now: Timestamp) -> bool {
        self.source.skip_picture(now)
    }
    fn leave_out(&mut self, one_of: u32, now: Timestamp) {
        self.source.leave_out(one_of, now);
    }
}

impl From<CappedSource> for Source {
    fn from(source: CappedSource) -> Self {
        Self::Custom(Box::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PerfectCodec;
    use proptest::prelude::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;
    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

    fn caps(steps: &[(i64, u64)], period: Option<i64>) -> Caps {
        Caps::new(steps.iter().map(|s| (MS(s.0), KBPS(s.1))).collect(), period.map(MS)).expect("sound")
    }
    /// Bytes made in each span of 100 ms.
    fn made(s: &mut CappedSource, spans: i64) -> Vec<u64> {
        let mut bytes = vec![0; spans as usize];
        while let Some(at) = s.next_frame_at().filter(|&at| at < Timestamp::from_millis(100 * spans)) {
            if let Some(f) = s.poll_frame(at) {
                bytes[(at.as_millis() / 100) as usize] += f.size.as_bytes();
            }
        }
        bytes
    }

    #[test]
    fn no_more_is_made_than_target_and_cap_allow() {
        let source = PerfectCodec::frames(MS(20), Timestamp::ZERO).into();
        let mut s = CappedSource::new(source, caps(&[(0, 800), (200, 0), (400, 8_000)], Some(600)), Timestamp::ZERO);
        s.on_target(KBPS(1_600), Timestamp::ZERO);
        let bytes = made(&mut s, 12);
        // 10 kB at 800 kbit/s, nothing, 20 kB at the target; after that again.
        for (span, &got) in bytes.iter().enumerate() {
            let expected = [10_000, 10_000, 0, 0, 20_000, 20_000][span % 6];
            assert!(got.abs_diff(expected) <= 4_000, "{got} for {expected} in span {span}: {bytes:?}");
        }
        let sum: u64 = bytes.iter().sum();
        assert!(sum.abs_diff(120_000) <= 8_000, "{sum}");
    }

    #[test]
    fn caps_without_a_period_end_with_the_last() {
        let c = caps(&[(0, 1), (10, 2)], None);
        assert_eq!(c.at(MS(0)), (KBPS(1), Some(MS(10))));
        assert_eq!(c.at(MS(10)), (KBPS(2), None));
        assert_eq!(c.at(MS(1_000_000)), (KBPS(2), None));
        assert_eq!(c.at(MS(-5)), (KBPS(1), Some(MS(10))));
    }

    #[test]
    fn errors_name_the_step() {
        let err = |steps: &[(i64, u64)], period: Option<i64>| {
            let steps = steps.iter().map(|s| (MS(s.0), KBPS(s.1))).collect();
            Caps::new(steps, period.map(MS)).expect_err("unsound").to_string()
        };
        assert!(err(&[], None).contains("at least one step"));
        assert!(err(&[(5, 1)], None).contains("steps[0].at"));
        assert!(err(&[(0, 1), (0, 2)], None).contains("a later time"));
        assert!(err(&[(0, 1), (9, 2)], Some(9)).contains("period"));
    }

    proptest! {
        #[test]
        fn the_next_cap_is_always_later(
            gaps in proptest::collection::vec(1i64..5_000, 0..8), period in proptest::option::of(1i64..5_000), at in 0i64..100_000,
        ) {
            let mut steps = vec![(0, 0)];
            gaps.iter().enumerate().for_each(|(k, g)| steps.push((steps[k].0 + g, k as u64 + 1)));
            let last = steps[steps.len() - 1].0;
            let c = caps(&steps, period.map(|p| last + p));
            let (_, next) = c.at(MS(at));
            prop_assert!(next.is_none_or(|n| n > MS(at)));
            prop_assert_eq!(next.is_none(), period.is_none() && at >= last);
        }
    }
}
