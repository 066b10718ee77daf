//! Brings a rate down when feedback stops, under any controller.
//!
//! A sender without feedback does not know what it does to the path. RFC 8085, section 3.1.1, asks for a rate that falls then,
//! and RFC 8083 for a stop in the end. Controllers have rules of their own for it, and some have none; this one holds
//! for all of them: a cap on the target, at most half of the rate after [`Config::half_after`], the least rate after
//! [`Config::floor_after`]. When feedback returns, the cap doubles with it up to the rate from before, and is gone.

use weir_units::{DataRate, TimeDelta, Timestamp};

/// The cap doubles at most so often once feedback has returned: a round trip of most calls is shorter.
const RAISE_INTERVAL: TimeDelta = TimeDelta::from_millis(200);
/// Reporting intervals without feedback before the first and the second step, where those are longer.
const INTERVALS: [i64; 2] = [3, 6];

/// When and how far the rate falls.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Without feedback for so long, the rate is at most half of what it was; 0 to 60 s.
    pub half_after: TimeDelta,
    /// Without feedback for so long, the rate is at most [`Self::floor`]; more than [`Self::half_after`].
    pub floor_after: TimeDelta,
    /// The least rate.
    pub floor: DataRate,
}

impl Config {
    /// 2 s and 5 s, which are our choice: RFC 8083's time-outs are three reporting intervals, and those of live calls
    /// are shorter.
    pub const fn to_floor(floor: DataRate) -> Self {
        Self { half_after: TimeDelta::from_secs(2), floor_after: TimeDelta::from_secs(5), floor }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Free,
    Half,
    Floor,
}

/// The cap of one path.
#[derive(Clone, Copy, Debug)]
pub struct FeedbackGuard {
    config: Config,
    /// The regular reporting interval.
    interval: TimeDelta,
    /// The first packet after the last feedback.
    waiting: Option<Timestamp>,
    /// Media rate at that packet, without this cap.
    before: DataRate,
    step: Step,
    cap: Option<DataRate>,
    raise_at: Timestamp,
}

impl FeedbackGuard {
    /// A guard that has seen nothing.
    pub const fn new(config: Config) -> Self {
        Self {
            config,
            interval: TimeDelta::ZERO,
            waiting: None,
            before: DataRate::ZERO,
            step: Step::Free,
            cap: None,
            raise_at: Timestamp::ZERO,
        }
    }

    /// The regular reporting interval has been computed again: steps come no sooner than 3 and 6 of them.
    pub fn on_rtcp_interval(&mut self, interval: TimeDelta) {
        self.interval = interval;
    }

    /// A packet was sent under a target of `media_rate`.
    #[inline]
    pub fn on_packet_sent(&mut self, now: Timestamp, media_rate: DataRate) {
        if self.waiting.is_none() {
            self.waiting = Some(now);
            if self.cap.is_none() {
                self.before = media_rate;
            }
        }
    }

    /// Feedback on what was sent was received, of any kind. Whether the cap has changed.
    #[inline]
    pub fn on_feedback(&mut self, now: Timestamp) -> bool {
        (self.waiting, self.step) = (None, Step::Free);
        let Some(cap) = self.cap.filter(|_| now >= self.raise_at) else { return false };
        let raised = DataRate::from_bps(cap.as_bps().saturating_mul(2));
        self.cap = (raised < self.before).then_some(raised);
        self.raise_at = now + RAISE_INTERVAL;
        true
    }

    /// Upper bound of the target; `None` if there is none.
    pub const fn cap(&self) -> Option<DataRate> {
        self.cap
    }

    /// When to call [`Self::on_timeout`].
    #[inline]
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        let since = self.waiting?;
        match self.step {
            Step::Free => Some(since + self.config.half_after.max(self.interval * INTERVALS[0])),
            Step::Half => Some(since + self.config.floor_after.max(self.interval * INTERVALS[1])),
            Step::Floor => None,
        }
    }

    /// Takes the step whose time has come. Whether the cap has changed.
    pub fn on_timeout(&mut self, now: Timestamp) -> bool {
        let mut changed = false;
        while self.poll_timeout().is_some_and(|at| at <= now) {
            let (step, rate) = match self.step {
                Step::Free => (Step::Half, half(self.before)),
                Step::Half | Step::Floor => (Step::Floor, self.config.floor),
            };
            self.step = step;
            let rate = rate.max(self.config.floor);
            self.cap = Some(self.cap.map_or(rate, |cap| cap.min(rate)));
            changed = true;
        }
        changed
    }
}

fn half(rate: DataRate) -> DataRate {
    DataRate::from_bps(rate.as_bps() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: DataRate = DataRate::from_kbps(4_000);

    fn guard() -> FeedbackGuard {
        FeedbackGuard::new(Config::to_floor(DataRate::from_kbps(100)))
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn half_after_two_seconds_and_the_floor_after_five() {
        let mut g = guard();
        assert_eq!(g.poll_timeout(), None);
        g.on_packet_sent(at(1_000), RATE);
        g.on_packet_sent(at(2_900), RATE);
        assert_eq!((g.poll_timeout(), g.on_timeout(at(2_999)), g.cap()), (Some(at(3_000)), false, None));
        assert!(g.on_timeout(at(3_000)));
        assert_eq!((g.cap(), g.poll_timeout()), (Some(half(RATE)), Some(at(6_000))));
        assert!(g.on_timeout(at(6_000)));
        assert_eq!((g.cap(), g.poll_timeout()), (Some(DataRate::from_kbps(100)), None));
        // Both at once where nobody looked in between.
        let mut late = guard();
        late.on_packet_sent(at(0), RATE);
        assert!(late.on_timeout(at(60_000)));
        assert_eq!(late.cap(), Some(DataRate::from_kbps(100)));
    }

    #[test]
    fn the_cap_doubles_with_feedback_and_goes_at_the_rate_from_before() {
        let mut g = guard();
        g.on_packet_sent(at(0), RATE);
        g.on_timeout(at(5_000));
        let mut caps = Vec::new();
        for i in 0..40 {
            let now = at(20_000 + 50 * i);
            g.on_packet_sent(now, DataRate::from_kbps(100));
            g.on_feedback(now);
            caps.push(g.cap().map(DataRate::as_bps));
        }
        caps.dedup();
        assert_eq!(caps, [Some(200_000), Some(400_000), Some(800_000), Some(1_600_000), Some(3_200_000), None]);
        assert_eq!(g.poll_timeout(), None);
    }

    #[test]
    fn rare_reports_are_waited_for() {
        let mut g = guard();
        g.on_rtcp_interval(TimeDelta::from_secs(5));
        g.on_packet_sent(at(0), RATE);
        assert_eq!(g.poll_timeout(), Some(at(15_000)));
        g.on_timeout(at(15_000));
        assert_eq!((g.cap(), g.poll_timeout()), (Some(half(RATE)), Some(at(30_000))));
    }

    #[test]
    fn a_second_silence_while_it_recovers_does_not_forget_the_rate_from_before() {
        let mut g = guard();
        g.on_packet_sent(at(0), RATE);
        g.on_timeout(at(5_000));
        g.on_feedback(at(6_000));
        g.on_packet_sent(at(6_100), DataRate::from_kbps(200));
        assert!(g.on_timeout(at(8_100)));
        assert_eq!(g.cap(), Some(DataRate::from_kbps(200)), "not raised by a step");
        assert!(g.on_timeout(at(11_100)));
        assert_eq!(g.cap(), Some(DataRate::from_kbps(100)));
    }
}
