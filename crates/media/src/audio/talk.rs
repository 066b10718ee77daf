//! Alternating talk spurts and pauses.

use crate::MediaError;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use weir_units::{TimeDelta, Timestamp};

/// Mean lengths of talk spurts and pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TalkConfig {
    /// Mean talk spurt.
    pub spurt: TimeDelta,
    /// Mean pause.
    pub pause: TimeDelta,
}

impl TalkConfig {
    /// One party of a conversation: 1.004 s and 1.587 s (ITU-T P.59, table 1), which is 38.8 % of the time.
    pub const CONVERSATION: Self = Self { spurt: TimeDelta::from_millis(1_004), pause: TimeDelta::from_millis(1_587) };

    /// Checks both. Errors: one is not from 1 ms to 1 h.
    pub(crate) fn check(&self) -> Result<(), MediaError> {
        for (field, value) in [("spurt", self.spurt), ("pause", self.pause)] {
            if !(TimeDelta::from_millis(1)..=TimeDelta::from_secs(3_600)).contains(&value) {
                return Err(MediaError::new("talk spurts", field, value, "1 ms to 1 h"));
            }
        }
        Ok(())
    }
}

/// Talk spurts and pauses of exponential length, as a function of time only: the result for a time does not depend on
/// the calls, as long as times do not go back.
#[derive(Clone, Debug)]
pub struct TalkSpurts {
    config: TalkConfig,
    rng: Pcg64Mcg,
    talking: bool,
    until: Timestamp,
}

impl TalkSpurts {
    /// Begins with a talk spurt at `start`.
    ///
    /// # Errors
    /// A mean is not from 1 ms to 1 h.
    pub fn new(config: TalkConfig, start: Timestamp, seed: u64) -> Result<Self, MediaError> {
        config.check()?;
        let mut rng = Pcg64Mcg::new((u128::from(seed) << 64) | u128::from(seed ^ 0x7461_6c6b_7370_7572));
        let until = start + exponential(config.spurt, &mut rng);
        Ok(Self { config, rng, talking: true, until })
    }

    /// Whether there is speech at `at`.
    pub fn is_talking(&mut self, at: Timestamp) -> bool {
        while self.until <= at {
            self.talking = !self.talking;
            let mean = if self.talking { self.config.spurt } else { self.config.pause };
            self.until += exponential(mean, &mut self.rng);
        }
        self.talking
    }

    /// End of the spurt or pause of the last call of [`Self::is_talking`].
    pub const fn until(&self) -> Timestamp {
        self.until
    }
}

/// At least a millisecond, so that time advances.
fn exponential(mean: TimeDelta, rng: &mut Pcg64Mcg) -> TimeDelta {
    let u = ((rng.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    mean.mul_f64(-libm::log(u)).max(TimeDelta::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_those_asked_for() {
        let mut talk = TalkSpurts::new(TalkConfig::CONVERSATION, Timestamp::ZERO, 1).unwrap();
        let (mut at, mut spurts, mut pauses) = (Timestamp::ZERO, vec![], vec![]);
        for _ in 0..20_000 {
            let talking = talk.is_talking(at);
            let length = (talk.until() - at).as_secs_f64();
            if talking {
                spurts.push(length)
            } else {
                pauses.push(length)
            }
            at = talk.until();
        }
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        // Exponential: the deviation of a mean of 10,000 is 1 %.
        assert!((mean(&spurts) / 1.004 - 1.0).abs() < 0.04, "{}", mean(&spurts));
        assert!((mean(&pauses) / 1.587 - 1.0).abs() < 0.04, "{}", mean(&pauses));
        let median = |mut v: Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v[v.len() / 2]
        };
        assert!((median(spurts) / 1.004 - 2f64.ln()).abs() < 0.04);
    }

    #[test]
    fn speech_does_not_depend_on_the_time_of_the_query() {
        let make = || TalkSpurts::new(TalkConfig::CONVERSATION, Timestamp::ZERO, 7).unwrap();
        let (mut often, mut seldom) = (make(), make());
        for ms in 0..60_000 {
            let at = Timestamp::from_millis(ms);
            let talking = often.is_talking(at);
            if ms % 730 == 0 {
                assert_eq!(seldom.is_talking(at), talking, "{ms}");
            }
        }
        let wrong = TalkConfig { pause: TimeDelta::ZERO, ..TalkConfig::CONVERSATION };
        assert!(TalkSpurts::new(wrong, Timestamp::ZERO, 1).unwrap_err().to_string().contains("pause"));
    }
}
