use super::Config;
use weir_units::TimeDelta;

/// Weight of a sample in the mean (RFC 2988, section 2.3: alpha is 1/8).
const ALPHA: f64 = 1.0 / 8.0;
/// Weight of a sample's deviation (RFC 2988, section 2.3: beta is 1/4).
const BETA: f64 = 1.0 / 4.0;
/// K (RFC 2988, section 2.2).
const K: f64 = 4.0;
/// G, the clock's granularity (RFC 2988, section 2): a timer's of 1 ms.
const GRANULARITY: TimeDelta = TimeDelta::from_millis(1);
/// Timeouts that double it; the bound on the timeout is reached first.
const MAX_BACKOFF: u32 = 20;

/// Round-trip time and transmit timeout (RFC 2988, with the minimum of RFC 4341).
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeout {
    mean: Option<TimeDelta>,
    deviation: TimeDelta,
    backoff: u32,
    initial: TimeDelta,
    min: TimeDelta,
    max: TimeDelta,
}

impl Timeout {
    pub(super) fn new(config: &Config, rtt: Option<TimeDelta>) -> Self {
        let mut timeout = Self {
            mean: None,
            deviation: TimeDelta::ZERO,
            backoff: 0,
            initial: config.initial_timeout,
            min: config.min_timeout,
            max: config.max_timeout.max(config.min_timeout),
        };
        if let Some(rtt) = rtt {
            timeout.on_sample(rtt);
        }
        timeout
    }
    /// SRTT.
    pub(super) const fn rtt(&self) -> Option<TimeDelta> {
        self.mean
    }
    pub(super) fn on_sample(&mut self, rtt: TimeDelta) {
        let rtt = rtt.max(TimeDelta::from_micros(1));
        self.backoff = 0;
        if let Some(mean) = self.mean {
            self.deviation = self.deviation.mul_f64(1.0 - BETA) + (mean - rtt).abs().mul_f64(BETA);
            self.mean = Some(mean.mul_f64(1.0 - ALPHA) + rtt.mul_f64(ALPHA));
        } else {
            (self.mean, self.deviation) = (Some(rtt), rtt / 2);
        }
    }
    /// It has run out (RFC 2988, section 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
    }
    pub(super) fn duration(&self) -> TimeDelta {
        let base = self.mean.map_or(self.initial, |m| m + self.deviation.mul_f64(K).max(GRANULARITY));
        (base.max(self.min) * (1i64 << self.backoff)).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }

    #[test]
    fn follows_rfc_2988() {
        let mut t = Timeout::new(&Config::default(), None);
        assert_eq!(t.duration(), ms(1_000));
        t.back_off();
        assert_eq!(t.duration(), ms(2_000));
        t.on_sample(ms(400));
        // SRTT = R, RTTVAR = R / 2: 400 + 4 * 200.
        assert_eq!((t.rtt(), t.duration()), (Some(ms(400)), ms(1_200)));
        t.on_sample(ms(480));
        // RTTVAR = 3/4 * 200 + 1/4 * 80 = 170, SRTT = 7/8 * 400 + 1/8 * 480 = 410.
        assert_eq!((t.rtt(), t.duration()), (Some(ms(410)), ms(1_090)));
        for want in [2_180, 4_360, 8_720, 17_440, 34_880, 64_000, 64_000] {
            t.back_off();
            assert_eq!(t.duration(), ms(want));
        }
        (0..200).for_each(|_| t.on_sample(ms(50)));
        assert_eq!(t.duration(), ms(200), "no less than the minimum");
        for _ in 0..200 {
            t.on_sample(ms(700));
        }
        // 1 ms of granularity when there is no deviation.
        assert!((ms(700)..=ms(702)).contains(&t.duration()), "{:?}", t.duration());
    }
}
