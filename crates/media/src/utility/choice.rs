//! Choice of a shape by the rate over time.

use super::{Shape, Utility};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Spare rate that a larger shape requires before it is taken: a fifth, as for streams that are switched on (libwebrtc's
/// `kDefaultVideoHysteresisFactor`, 1.2).
const MARGIN: f64 = 1.2;
/// Time for which it must have fitted; three times the time for which it did not is taken off. 2 s, chosen here, as for streams.
const HOLD: TimeDelta = TimeDelta::from_secs(2);
/// Time for which the rate may be short of the shape in force: the quantiser carries it. 0.5 s, chosen here: controllers dip by design,
/// and another size costs a key frame.
const CARRY: TimeDelta = TimeDelta::from_millis(500);
/// A rate of less than this part of the need is followed at once.
const STEEP: f64 = 0.5;
/// A shape that is given up again within this time was taken too early: the next hold is twice as long, up to [`MOST_HOLDS`] times.
const TRIAL: TimeDelta = TimeDelta::from_secs(30);
/// Most times that the hold is [`HOLD`].
const MOST_HOLDS: i64 = 16;

/// The shape of a stream's pictures, as the rate decides over time.
///
/// A smaller shape is taken when the rate has been short for a while, or is far too low; a larger one when the rate has been enough for
/// it, with a margin, for longer. Between them is the quantiser. Cheap to ask with each picture.
#[derive(Clone, Debug)]
pub struct ShapeChoice {
    utility: Utility,
    /// Each with its need, the largest first.
    steps: Vec<(Shape, DataRate)>,
    at: usize,
    rate: DataRate,
    /// When it was last asked with a rate.
    asked: Option<Timestamp>,
    /// For how long a larger shape has fitted, and the largest that fitted all the time.
    fits: (TimeDelta, usize),
    short_since: Option<Timestamp>,
    raised: Option<Timestamp>,
    holds: i64,
}

impl ShapeChoice {
    /// Before the first rate.
    pub fn new(utility: Utility) -> Self {
        let steps = utility.shapes().into_iter().map(|s| (s, utility.need(s))).collect();
        Self {
            utility,
            steps,
            at: 0,
            rate: DataRate::ZERO,
            asked: None,
            fits: (TimeDelta::ZERO, 0),
            short_since: None,
            raised: None,
            holds: 1,
        }
    }

    /// The utility that it was made of.
    pub fn utility(&self) -> &Utility {
        &self.utility
    }
    /// The shape in force.
    pub fn shape(&self) -> Shape {
        self.steps[self.at].0
    }
    /// The pictures' rate from now on; zero is a pause.
    pub fn set_rate(&mut self, rate: DataRate) {
        self.rate = rate;
    }

    /// The shape for a rate without a past: the largest whose need it meets, or else the last.
    pub fn shape_at(&self, rate: DataRate) -> Shape {
        self.steps[self.index_at(rate)].0
    }
    fn index_at(&self, rate: DataRate) -> usize {
        self.steps.iter().position(|s| s.1 <= rate).unwrap_or(self.steps.len() - 1)
    }

    /// Applies the rate at this time; returns whether there is another shape.
    pub fn poll(&mut self, now: Timestamp) -> bool {
        let rate = self.rate;
        let Some(asked) = self.asked.replace(now).filter(|_| rate > DataRate::ZERO) else {
            // The first rate is followed at once.
            let index = self.index_at(rate);
            return rate > DataRate::ZERO && core::mem::replace(&mut self.at, index) != index;
        };
        let passed = now.saturating_since(asked).min(HOLD);
        if self.raised.is_some_and(|at| now.saturating_since(at) > TRIAL) {
            (self.raised, self.holds) = (None, 1);
        }
        let before = self.at;
        let enough = self.index_at(rate);
        if enough > self.at {
            self.fits = (TimeDelta::ZERO, 0);
            let since = *self.short_since.get_or_insert(now);
            let is_steep = rate.as_bps_f64() < STEEP * self.steps[self.at].1.as_bps_f64();
            if is_steep || now.saturating_since(since) >= CARRY {
                (self.at, self.short_since) = (enough, None);
                if self.raised.take().is_some() {
                    self.holds = (self.holds * 2).min(MOST_HOLDS);
                }
            }
            return self.at != before;
        }
        self.short_since = None;
        let larger = self.index_at(DataRate::from_bps_f64(rate.as_bps_f64() / MARGIN));
        if larger < self.at {
            self.fits = (self.fits.0 + passed, self.fits.1.max(larger));
            if self.fits.0 >= HOLD * self.holds {
                self.at = self.fits.1;
                (self.fits, self.raised) = ((TimeDelta::ZERO, 0), Some(now));
            }
        } else {
            let left = self.fits.0 - passed * 3;
            self.fits = if left > TimeDelta::ZERO { (left, self.fits.1) } else { (TimeDelta::ZERO, 0) };
        }
        self.at != before
    }
}

#[cfg(test)]
mod tests {
    use super::super::Preference;
    use super::super::tests::of;
    use super::*;
    use proptest::prelude::*;

    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

    /// Polls 30 times a second from `from` to `to` in seconds; returns the number of changes.
    fn run(c: &mut ShapeChoice, from: i64, to: i64, rate: impl Fn(i64) -> u64) -> u32 {
        let mut changes = 0;
        for frame in from * 30..to * 30 {
            c.set_rate(DataRate::from_bps(rate(frame)));
            changes += u32::from(c.poll(Timestamp::from_millis(frame * 1_000 / 30)));
        }
        changes
    }

    #[test]
    fn a_fall_is_followed_after_a_while_and_a_steep_one_at_once() {
        let mut c = ShapeChoice::new(of(Preference::Motion));
        assert!(!c.poll(Timestamp::ZERO));
        assert_eq!(run(&mut c, 0, 2, |_| 500_000), 0);
        assert_eq!((c.shape().width, c.shape().stride), (640, 1));
        // 200 kbit/s are needed: 150 are carried for half a second.
        c.set_rate(KBPS(150));
        assert!(!c.poll(Timestamp::from_millis(2_000)) && !c.poll(Timestamp::from_millis(2_490)));
        assert!(c.poll(Timestamp::from_millis(2_500)));
        assert_eq!(c.shape().width, 480);
        c.set_rate(KBPS(30));
        assert!(c.poll(Timestamp::from_millis(2_510)));
        assert_eq!((c.shape().width, c.shape().stride), (160, 1));
        c.set_rate(KBPS(2));
        assert!(c.poll(Timestamp::from_millis(2_520)));
        assert_eq!((c.shape().width, c.shape().stride), (160, 6));
        // A pause changes nothing.
        c.set_rate(DataRate::ZERO);
        assert!(!c.poll(Timestamp::from_secs(9)));
        assert_eq!(c.shape().stride, 6);
    }

    #[test]
    fn a_rise_is_followed_when_it_has_lasted_to_what_it_always_allowed() {
        let mut c = ShapeChoice::new(of(Preference::Sharpness));
        run(&mut c, 0, 1, |_| 43_000);
        assert_eq!((c.shape().width, c.shape().stride), (480, 6));
        // 87 kbit/s with the margin are enough for a sixth at full size (68), not for a third of them (103).
        assert_eq!(run(&mut c, 1, 2, |_| 87_000), 0);
        assert_eq!(run(&mut c, 2, 4, |_| 400_000), 1);
        assert_eq!((c.shape().width, c.shape().stride), (640, 6));
        assert_eq!(run(&mut c, 4, 7, |_| 400_000), 1);
        assert_eq!(c.shape().stride, 1);
    }

    #[test]
    fn a_shape_that_does_not_last_is_tried_more_rarely() {
        let mut c = ShapeChoice::new(of(Preference::Motion));
        // Three seconds with enough for the full size, and one without: a change each way in all four, if it were followed.
        let changes = run(&mut c, 0, 240, |frame| if frame % 120 < 90 { 300_000 } else { 150_000 });
        assert!((2..=8).contains(&changes), "{changes}");
    }

    proptest! {
        #[test]
        fn more_rate_never_gives_less_of_anything(a in 0u64..2_000_000, b in 0u64..2_000_000) {
            for p in Preference::ALL {
                let c = ShapeChoice::new(of(p));
                let (less, more) = (c.shape_at(DataRate::from_bps(a.min(b))), c.shape_at(DataRate::from_bps(a.max(b))));
                prop_assert!(less.width <= more.width && less.stride >= more.stride);
                let need = c.utility().need(less);
                prop_assert!(need.as_bps() <= a.min(b) || less == *c.utility().shapes().last().expect("one"));
            }
        }

        #[test]
        fn a_rate_that_varies_little_does_not_flap(bps in 5_000u64..1_000_000, wobble in proptest::collection::vec(0.92f64..1.08, 300..900)) {
            for p in Preference::ALL {
                let mut c = ShapeChoice::new(of(p));
                c.set_rate(DataRate::from_bps(bps));
                c.poll(Timestamp::ZERO);
                let mut changes = 0;
                for (frame, w) in wobble.iter().enumerate() {
                    c.set_rate(DataRate::from_bps((bps as f64 * w) as u64));
                    changes += u32::from(c.poll(Timestamp::from_millis(1 + frame as i64 * 33)));
                }
                prop_assert!(changes <= 1, "{changes}");
            }
        }

        #[test]
        fn any_rates_at_any_times(steps in proptest::collection::vec((any::<u64>(), any::<u32>()), 1..50), fps in 0.0f64..500.0) {
            let u = Utility { size: (u32::MAX, 3), frame_rate: fps, ..of(Preference::Sound) };
            let mut c = ShapeChoice::new(u);
            for (bps, ms) in steps {
                c.set_rate(DataRate::from_bps(bps));
                c.poll(Timestamp::from_millis(ms.into()));
                prop_assert!(c.shape().stride >= 1 && c.shape().width <= u.size.0);
            }
        }
    }
}
