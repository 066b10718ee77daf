//! Congestion estimation (section 3.2.1 and 3.2.2).

use super::config::Config;
use crate::tcp::throughput::{Equation, TcpFlow};
use weir_units::{RemoteTimestamp, TimeDelta};

/// LI: the mean time between SYN times with a loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossInterval {
    mean: Option<TimeDelta>,
    /// SYN time of the last loss event, counted from zero of the receiver's clock.
    last_event: Option<i64>,
    /// Whether a packet was lost and none has arrived since.
    lost: bool,
    events: u64,
}

impl LossInterval {
    /// LI; `None` before the second loss event.
    pub(super) fn mean(&self) -> Option<TimeDelta> {
        self.mean
    }
    /// Loss events so far.
    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// A packet was reported lost.
    pub(super) fn on_lost(&mut self) {
        self.lost = true;
    }

    /// A packet has arrived. Returns LI if this completes a sample.
    pub(super) fn on_arrival(&mut self, at: RemoteTimestamp, config: &Config) -> Option<TimeDelta> {
        if !std::mem::take(&mut self.lost) {
            return None;
        }
        let slot = at.as_nanos().div_euclid(config.syn.as_nanos());
        if self.last_event.is_some_and(|last| slot <= last) {
            return None;
        }
        self.events += 1;
        let last = self.last_event.replace(slot)?;
        let sample = config.syn * slot.saturating_sub(last);
        let mean = match self.mean {
            None => sample,
            Some(before) => before.mul_f64(config.alpha) + sample.mul_f64(1.0 - config.alpha),
        };
        self.mean = Some(mean);
        Some(mean)
    }
}

/// TCP1_bw in bytes per second at a loss interval. `None` if unbounded.
fn tcp_rate(config: &Config, interval: TimeDelta, packets_per_second: f64) -> Option<f64> {
    let mss = config.mss.as_bytes() as f64;
    let (interval, rtt) = (interval.as_secs_f64(), config.rtt.as_secs_f64());
    if config.by_equation_3 {
        return Some(interval * 2.0 * mss / (rtt * rtt));
    }
    let p = (interval * packets_per_second).recip();
    TcpFlow::new(config.mss, config.rtt).segments_per_second(Equation::Full, p).map(|pps| pps * mss)
}

/// The change in FEC impact when the loss interval changes from `before` to `after`, at this number of stream packets a
/// second (equation 5). Zero if the interval has not become shorter, or nothing was sent.
pub fn impact(config: &Config, before: TimeDelta, after: TimeDelta, packets_per_second: f64) -> f64 {
    let shorter = (before - after).as_secs_f64();
    if shorter <= 0.0 {
        return 0.0;
    }
    let (mss, rtt) = (config.mss.as_bytes() as f64, config.rtt.as_secs_f64());
    let rate = tcp_rate(config, after, packets_per_second);
    rate.map_or(0.0, |rate| shorter / rate * 2.0 * mss / (rtt * rtt))
}

/// How far the loss interval may fall, down to `interval`, before this counts as congestion: the greatest acceptable
/// change in the paper's figure 3.
pub fn max_interval_loss(config: &Config, interval: TimeDelta, packets_per_second: f64) -> TimeDelta {
    let (mss, rtt) = (config.mss.as_bytes() as f64, config.rtt.as_secs_f64());
    match tcp_rate(config, interval, packets_per_second) {
        Some(rate) => TimeDelta::from_secs_f64(config.threshold_at(interval) * rate * rtt * rtt / (2.0 * mss)),
        None => TimeDelta::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() <= 1e-3 * expected, "{value} is not {expected}");
    }

    #[test]
    fn the_threshold_by_conditions_is_between_two() {
        let plain = Config::default();
        let config = Config { by_conditions: true, min_li: ms(50), free_li: ms(250), ..plain };
        assert_eq!(plain.threshold_at(ms(1_000)), 0.1);
        for (interval, expected) in [(10, 0.1), (50, 0.1), (150, 0.2), (250, 0.3), (9_000, 0.3)] {
            near(config.threshold_at(ms(interval)), expected);
        }
    }

    #[test]
    fn losses_of_one_syn_time_are_one_event() {
        let config = Config::default();
        let mut l = LossInterval::default();
        let mut loss = |at_ms: i64| {
            l.on_lost();
            l.on_arrival(RemoteTimestamp::from_millis(at_ms), &config)
        };
        assert_eq!(loss(1_003), None, "the first event has no interval before it");
        assert_eq!(loss(1_009), None);
        assert_eq!(loss(1_010), Some(ms(10)), "the least sample");
        // 9 + 0.1 * 200.
        assert_eq!(loss(1_217), Some(ms(29)));
        assert_eq!(loss(1_219), None);
        assert_eq!(loss(900), None, "a clock that goes back");
        assert_eq!(l.on_arrival(RemoteTimestamp::from_millis(1_300), &config), None, "no loss");
        assert_eq!((l.events(), l.mean()), (3, Some(ms(29))));
    }

    #[test]
    fn equation_5_by_hand() {
        let config = Config::default();
        // 2,500 packets a second and LI = 0.1 s: p = 1 / 250. 0.01 * sqrt(0.008 / 3) + 0.04 * 3 * sqrt(0.0015) * 0.004
        // * 1.000512 = 0.00051640 + 0.0000186 = 0.00053500: TCP1_bw = 2,728,972 bytes per second.
        // 2 MSS / RTT^2 = 29.2 * 10^6; 0.0099 s * 29.2 * 10^6 / 2,728,972 = 0.10593.
        near(impact(&config, ms(100) + TimeDelta::from_micros(9_900), ms(100), 2_500.0), 0.105_93);
        near(max_interval_loss(&config, ms(100), 2_500.0).as_millis_f64(), 9.345_8);
        near(max_interval_loss(&Config { threshold: 0.3, ..config }, ms(100), 2_500.0).as_millis_f64(), 28.037);
    }

    #[test]
    fn by_equation_3_the_impact_is_the_relative_change() {
        let config = Config { by_equation_3: true, ..Config::default() };
        near(impact(&config, ms(120), ms(100), 2_500.0), 0.2);
        near(max_interval_loss(&config, ms(100), 2_500.0).as_millis_f64(), 10.0);
        near(max_interval_loss(&config, ms(1_000), f64::NAN).as_millis_f64(), 100.0);
    }

    #[test]
    fn a_longer_interval_is_no_impact_and_nothing_sent_gives_no_estimate() {
        let config = Config::default();
        assert_eq!(impact(&config, ms(100), ms(100), 2_500.0), 0.0);
        assert_eq!(impact(&config, ms(100), ms(200), 2_500.0), 0.0);
        // p is at most 1.
        assert!(impact(&config, ms(200), ms(100), 0.0).is_finite());
        assert_eq!(impact(&config, ms(200), ms(100), f64::NAN), 0.0);
    }

    #[test]
    fn the_acceptable_change_grows_with_the_interval() {
        let config = Config::default();
        let at = |n: i64| max_interval_loss(&config, ms(n), 2_500.0);
        assert!(at(35) < at(100) && at(100) < at(400) && at(400) < at(1_000));
        assert!(at(35) > ms(3) && at(1_000) < ms(50));
    }
}
