//! The least time between two changes of the bit rate, fixed or by the round trip.
//!
//! S. Jero, 2013, section 5.2, asks for a rule by which to set it; section 4.3.1 expects that it depends on the round-trip
//! time and on its variance, and section 4.3.2 that no interval is needed while a round trip is about a frame's time. The
//! thesis has no rule. The one here is the simplest with these properties and is our own:
//!
//! interval = max(`update_interval`, n max(R + K V - T, 0))
//!
//! R and V are the round-trip time and its mean deviation (RFC 6298, section 2), T is the time of `interval_frames` frames, n is
//! `interval_round_trips` and K `interval_deviations`.

use super::config::Config;
use weir_units::{TimeDelta, Timestamp};

/// Weight of a sample in R (RFC 6298, section 2: alpha).
const RTT_WEIGHT: f64 = 1.0 / 8.0;
/// Weight of a sample in V (RFC 6298, section 2: beta).
const DEVIATION_WEIGHT: f64 = 1.0 / 4.0;
/// Weight of a frame's time in its mean; about the last 32, as for mean packet sizes in TFRC. Chosen here.
const FRAME_WEIGHT: f64 = 1.0 / 32.0;
/// The longest time between frames that counts: a pause is no frame's time. Chosen here.
const LONGEST_FRAME: TimeDelta = TimeDelta::from_secs(1);

/// The interval between changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    fixed: TimeDelta,
    round_trips: f64,
    deviations: f64,
    frames: f64,
    /// R and V in s, and when the last sample was taken.
    rtt: Option<(f64, f64, Timestamp)>,
    /// Mean time between frames in s.
    frame_s: Option<f64>,
    last_frame: Option<Timestamp>,
}

impl Interval {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            fixed: config.update_interval,
            round_trips: config.interval_round_trips,
            deviations: config.interval_deviations,
            frames: config.interval_frames,
            rtt: None,
            frame_s: None,
            last_frame: None,
        }
    }

    /// A frame was handed over.
    pub(super) fn on_frame(&mut self, now: Timestamp) {
        if let Some(last) = self.last_frame.replace(now) {
            let passed = now.saturating_since(last);
            if passed > TimeDelta::ZERO && passed <= LONGEST_FRAME {
                let s = passed.as_secs_f64();
                self.frame_s = Some(self.frame_s.map_or(s, |mean| mean + (s - mean) * FRAME_WEIGHT));
            }
        }
    }

    /// The transport has this round-trip time; at most one sample a round trip counts, so that the deviation does not depend on
    /// how often it is asked.
    pub(super) fn on_rtt(&mut self, sample: TimeDelta, now: Timestamp) {
        let sample = sample.as_secs_f64();
        self.rtt = match self.rtt {
            None => Some((sample, sample / 2.0, now)),
            Some((rtt, _, at)) if now.saturating_since(at).as_secs_f64() < rtt => self.rtt,
            Some((rtt, deviation, _)) => {
                let deviation = deviation + ((rtt - sample).abs() - deviation) * DEVIATION_WEIGHT;
                Some((rtt + (sample - rtt) * RTT_WEIGHT, deviation, now))
            }
        };
    }

    /// The interval now.
    pub(super) fn get(&self) -> TimeDelta {
        let Some((rtt, deviation, _)) = self.rtt.filter(|_| self.round_trips > 0.0) else { return self.fixed };
        let frames = self.frames * self.frame_s.unwrap_or(0.0);
        let beyond = (rtt + self.deviations * deviation - frames).max(0.0);
        TimeDelta::from_secs_f64(self.round_trips * beyond).max(self.fixed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(round_trips: f64, fixed_ms: i64) -> Interval {
        Interval::new(&Config {
            interval_round_trips: round_trips,
            update_interval: TimeDelta::from_millis(fixed_ms),
            ..Config::default()
        })
    }
    fn frames(i: &mut Interval) {
        (0..200).for_each(|k| i.on_frame(Timestamp::from_millis(40 * k)));
    }

    #[test]
    fn without_round_trips_it_is_fixed() {
        let mut i = interval(0.0, 700);
        frames(&mut i);
        i.on_rtt(TimeDelta::from_millis(400), Timestamp::ZERO);
        assert_eq!(i.get(), TimeDelta::from_millis(700));
    }

    #[test]
    fn it_is_the_round_trip_with_its_deviation_less_two_frames() {
        let mut i = interval(4.0, 0);
        assert_eq!(i.get(), TimeDelta::ZERO, "nothing is known yet");
        frames(&mut i);
        i.on_rtt(TimeDelta::from_millis(200), Timestamp::ZERO);
        // RFC 6298: V is half the first sample. 4 (200 + 4 100 - 2 40) ms.
        assert!((i.get().as_millis_f64() - 2_080.0).abs() < 1e-3, "{}", i.get());
        // Within a round trip no sample counts.
        i.on_rtt(TimeDelta::from_millis(1_000), Timestamp::from_millis(199));
        assert!((i.get().as_millis_f64() - 2_080.0).abs() < 1e-3, "{}", i.get());
        // R = 200 + (280 - 200) / 8 = 210, V = 100 + (80 - 100) / 4 = 95: 4 (210 + 380 - 80).
        i.on_rtt(TimeDelta::from_millis(280), Timestamp::from_millis(200));
        assert!((i.get().as_millis_f64() - 2_040.0).abs() < 1e-3, "{}", i.get());
    }

    #[test]
    fn a_short_steady_round_trip_needs_none() {
        let mut i = interval(8.0, 40);
        frames(&mut i);
        (0..100).for_each(|k| i.on_rtt(TimeDelta::from_millis(30), Timestamp::from_millis(40 * k)));
        assert_eq!(i.get(), TimeDelta::from_millis(40), "the fixed interval is the least");
        (0..100).for_each(|k| i.on_rtt(TimeDelta::from_millis(240), Timestamp::from_millis(10_000 + 300 * k)));
        assert!((1_270.0..1_300.0).contains(&i.get().as_millis_f64()), "8 (240 - 80) ms: {}", i.get());
    }

    #[test]
    fn a_pause_is_no_frame() {
        let mut i = interval(1.0, 0);
        frames(&mut i);
        i.on_frame(Timestamp::from_secs(60));
        i.on_rtt(TimeDelta::from_millis(100), Timestamp::from_secs(60));
        assert!((i.get().as_millis_f64() - 220.0).abs() < 1e-3, "{}", i.get());
    }
}
