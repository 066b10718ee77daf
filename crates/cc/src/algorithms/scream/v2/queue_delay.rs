//! The queue delay as congestion signal: its average, its variation and its standing part (draft, sections 4.2.1.4 and
//! 4.5.1).

use super::super::base_delay::BaseDelay;
use super::config::Config;
use weir_units::{TimeDelta, Timestamp};

/// QDELAY_MIN_AVG_ALPHA: averaging factor of the least queue delay (C++; draft, section 4.5.1: 1/256 a round trip) ...
const STANDING_AVG_G: f64 = 1.0 / 8.0;
/// ... each this many round trips (C++; draft: 1).
const STANDING_ROUND_TRIPS: i64 = 100;
/// Bound of a single variation, as a multiple of QDELAY_DEV_THRESHOLD (C++; draft: none).
const DEV_LIMIT: f64 = 2.0;

/// Queue delay of one path. Times are in seconds where the draft averages them.
#[derive(Clone, Debug)]
pub(super) struct QueueDelay {
    base: BaseDelay,
    /// qdelay.
    current: f64,
    /// qdelay_avg, above the standing part.
    average: f64,
    /// qdelay_max_avg and qdelay_min_avg.
    max_average: f64,
    min_average: Option<f64>,
    /// qdelay_dev_avg.
    variation: f64,
    /// Least queue delay since `standing_since`, and its average: qdelay_min and qdelay_min_avg of section 4.5.1.
    least: f64,
    standing: f64,
    standing_since: Timestamp,
    averaged_at: Timestamp,
}

impl QueueDelay {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        Self {
            base: BaseDelay::new(config.base_delay_interval, config.base_delay_history, now),
            current: 0.0,
            average: 0.0,
            max_average: 0.0,
            min_average: None,
            variation: 0.0,
            least: f64::INFINITY,
            standing: 0.0,
            standing_since: now,
            averaged_at: now,
        }
    }

    /// Takes the one-way delay of an acknowledged packet.
    pub(super) fn on_packet(&mut self, delay: TimeDelta, now: Timestamp, config: &Config) {
        self.base.update(delay, now);
        self.current = self.base.queue_delay(delay).as_secs_f64();
        self.least = self.least.min(self.current);
        self.min_average = Some(self.min_average.map_or(self.current, |m| m.min(self.current)));
        self.max_average = self.max_average.max(self.current).min(config.qdelay_target.as_secs_f64());
    }

    /// The averages, at most once per shorter of round trip and `reduction_interval`.
    pub(super) fn average(&mut self, now: Timestamp, srtt: TimeDelta, config: &Config) {
        if now - self.averaged_at < srtt.min(config.reduction_interval) {
            return;
        }
        self.averaged_at = now;
        if now - self.standing_since > srtt * STANDING_ROUND_TRIPS && self.least.is_finite() {
            let lower = self.least < self.standing;
            self.standing += if lower { 1.0 } else { STANDING_AVG_G } * (self.least - self.standing);
            (self.least, self.standing_since) = (f64::INFINITY, now);
        }
        let above = self.current - self.standing;
        self.average += if above < self.average { 1.0 } else { config.qdelay_avg_g } * (above - self.average);
        let Some(least) = self.min_average else { return };
        let threshold = config.qdelay_dev_threshold.as_secs_f64();
        let variation = (self.max_average - least).clamp(0.0, DEV_LIMIT * threshold);
        self.variation += config.qdelay_dev_avg_g * (variation - self.variation);
        self.max_average *= 1.0 - config.qdelay_min_max_avg_g;
        self.min_average = Some(least + config.qdelay_min_max_avg_g * (self.max_average - least));
    }

    /// The delay that is there now is no longer counted as queue: the base is measured again.
    pub(super) fn reset(&mut self, config: &Config, now: Timestamp) {
        self.base = BaseDelay::new(config.base_delay_interval, config.base_delay_history, now);
        (self.current, self.standing) = (0.0, 0.0);
    }

    /// qdelay in seconds.
    pub(super) fn current(&self) -> f64 {
        self.current
    }
    /// qdelay_avg in seconds.
    pub(super) fn averaged(&self) -> f64 {
        self.average
    }
    /// The part that has been there for 100 round trips and more, in seconds.
    pub(super) fn standing(&self) -> f64 {
        self.standing
    }
    /// ref_wnd_delay_scale: 1 where the queue delay does not vary, 0 from QDELAY_DEV_THRESHOLD.
    pub(super) fn window_scale(&self, config: &Config) -> f64 {
        if !config.reduce_jitter {
            return 1.0;
        }
        (1.0 - self.variation / config.qdelay_dev_threshold.as_secs_f64()).clamp(0.0, 1.0)
    }
    /// l4s_alpha_v: 0 up to half of the target, 1 from the target.
    pub(super) fn virtual_alpha(&self, config: &Config) -> f64 {
        let half = config.qdelay_target.as_secs_f64() / 2.0;
        ((self.average - half) / half).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn the_average_rises_by_a_quarter_and_falls_at_once() {
        let c = Config::default();
        let mut q = QueueDelay::new(&c, at(0));
        q.on_packet(ms(50), at(0), &c);
        q.on_packet(ms(130), at(30), &c);
        q.average(at(30), ms(200), &c);
        assert!(close(q.averaged(), 0.02), "a quarter of 80 ms");
        q.average(at(50), ms(200), &c);
        assert!(close(q.averaged(), 0.02), "not before 30 ms have passed");
        q.on_packet(ms(60), at(60), &c);
        q.average(at(60), ms(200), &c);
        assert!(close(q.averaged(), 0.01));
    }

    #[test]
    fn the_virtual_mark_grows_from_half_of_the_target_to_the_target() {
        let c = Config { qdelay_avg_g: 1.0, ..Config::default() };
        let mut q = QueueDelay::new(&c, at(0));
        let mut alpha = |t, delay| {
            q.on_packet(ms(delay), at(t), &c);
            q.average(at(t), ms(200), &c);
            q.virtual_alpha(&c)
        };
        assert_eq!(alpha(30, 0), 0.0);
        assert_eq!(alpha(60, 50), 0.0);
        assert!(close(alpha(90, 75), 0.5));
        assert_eq!(alpha(120, 400), 1.0);
    }

    #[test]
    fn variation_slows_the_window_and_passes() {
        let c = Config::default();
        let mut q = QueueDelay::new(&c, at(0));
        let mut step = |t: i64, delay| {
            q.on_packet(ms(delay), at(t), &c);
            q.average(at(t), ms(200), &c);
            q.window_scale(&c)
        };
        assert_eq!(step(30, 0), 1.0);
        let jittery = (2..200).map(|i| step(i * 30, i % 2 * 40)).last().expect("steps");
        assert_eq!(jittery, 0.0);
        let calm = (200..600).map(|i| step(i * 30, 0)).last().expect("steps");
        assert!(calm > 0.99, "{calm}");
        assert_eq!(q.window_scale(&Config { reduce_jitter: false, ..c }), 1.0);
    }

    #[test]
    fn what_stands_for_100_round_trips_is_found_and_can_be_reset() {
        let c = Config::default();
        let mut q = QueueDelay::new(&c, at(0));
        q.on_packet(ms(100), at(0), &c);
        for t in (30..8_100).step_by(30) {
            q.on_packet(ms(140), at(t), &c);
            q.average(at(t), ms(20), &c);
        }
        // The first 2 s hold the base; three more are averaged by an eighth: 40 ms (1 - (7/8)^3).
        assert!(close(q.standing(), 0.04 * (1.0 - 0.875_f64.powi(3))), "{}", q.standing());
        assert!(q.averaged() < 0.04 - q.standing() + 1e-9);
        q.reset(&c, at(9_000));
        q.on_packet(ms(140), at(9_000), &c);
        assert_eq!((q.current(), q.standing()), (0.0, 0.0));
    }
}
