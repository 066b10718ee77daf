//! One-way delay at the receiver without synchronised clocks.
//!
//! The method is that of B. Ngamwongwattana and R. Thompson, "Sync & Sense" (IEEE Transactions on Instrumentation and
//! Measurement, vol. 59, no. 5, 2010), as described by M. Nagy et al. ("Congestion Control using FEC for Conversational
//! Multimedia Communication", section 4.1), which is the only source used: arrivals and the known packetisation give
//! each packet's queuing delay relative to the least delayed one; adding a base gives the one-way delay. Chosen here:
//! the base is half of the minimum round-trip time, so that an asymmetric path has a wrong base and a correct queuing
//! delay; the least delayed packet is taken from a window of [`WINDOW`], so that 100 ppm between the clocks cause an
//! error of at most 6 ms.

use crate::cue::OneWayDelay;
use weir_units::{TimeDelta, Timestamp};

/// The window of the least delayed packet: the last 50 to 60 s.
pub(crate) const WINDOW: TimeDelta = TimeDelta::from_secs(60);
const BUCKETS: usize = 6;
/// Without a round-trip time, nothing is reported for this long after the first packet, since the base would jump ...
const RTT_PATIENCE: TimeDelta = TimeDelta::from_secs(3);
/// ... and then the base is this (ITU-T G.114 speaks of up to 150 ms for most calls; a short path).
const UNKNOWN_BASE: TimeDelta = TimeDelta::from_millis(50);
/// A larger change of timestamps against arrivals is a restart of the stream, not delay.
const RESTART: TimeDelta = TimeDelta::from_secs(10);

/// Measures one-way delay from arrivals and RTP timestamps.
///
/// Of the packets of a frame, which share a timestamp, the first to arrive is measured: the others queue behind it at
/// the sender and on the path. Time in the encoder and in the sender's queue cannot be distinguished from network
/// delay; only its variation shows.
#[derive(Clone, Debug)]
pub struct OneWayDelayMeter {
    clock_rate: u32,
    /// First and latest arrival.
    heard: Option<(Timestamp, Timestamp)>,
    newest: Option<Newest>,
    least: LeastTransit,
    least_rtt: Option<TimeDelta>,
    interval: Option<Interval>,
}

/// The newest frame.
#[derive(Clone, Copy, Debug)]
struct Newest {
    rtp_timestamp: u32,
    /// Ticks since the first frame.
    ticks: i64,
    transit: TimeDelta,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    /// Queuing delays; the base is added when they are reported.
    min: TimeDelta,
    last: TimeDelta,
    sum_ns: i128,
    frames: i64,
}

impl OneWayDelayMeter {
    /// A meter for RTP timestamps of `clock_rate` ticks a second; 0 counts as 1.
    pub fn new(clock_rate: u32) -> Self {
        Self {
            clock_rate: clock_rate.max(1),
            heard: None,
            newest: None,
            least: LeastTransit::default(),
            least_rtt: None,
            interval: None,
        }
    }

    /// A media packet has been received. Repair packets are not passed in.
    pub fn on_packet(&mut self, now: Timestamp, rtp_timestamp: u32) {
        self.heard = Some((self.heard.map_or(now, |h| h.0), now));
        let ticks = match self.newest {
            None => 0,
            Some(n) => {
                // Differences of up to half the circle forwards, else backwards (RFC 3550, section 5.1: timestamps
                // wrap).
                let step = rtp_timestamp.wrapping_sub(n.rtp_timestamp) as i32;
                n.ticks.saturating_add(i64::from(step))
            }
        };
        let transit = (now - Timestamp::ZERO) - self.media_time(ticks);
        match self.newest {
            Some(n) if (transit - n.transit).abs() > RESTART => self.least = LeastTransit::default(),
            // Further packets of a frame, and reordered frames.
            Some(n) if ticks <= n.ticks => return,
            _ => {}
        }
        self.newest = Some(Newest { rtp_timestamp, ticks, transit });
        self.least.observe(transit, now);
        let queuing = transit - self.least.get().unwrap_or(transit);
        let i = self.interval.get_or_insert(Interval { min: queuing, last: queuing, sum_ns: 0, frames: 0 });
        i.min = i.min.min(queuing);
        i.last = queuing;
        i.sum_ns += i128::from(queuing.as_nanos());
        i.frames += 1;
    }

    /// Converts ticks of the media clock to time.
    fn media_time(&self, ticks: i64) -> TimeDelta {
        const SECOND: i64 = 1_000_000_000;
        if let Some(product) = ticks.checked_mul(SECOND) {
            return TimeDelta::from_nanos(product / i64::from(self.clock_rate));
        }
        // 128 bits hold the product for any length of stream; 64 suffice for the first day.
        let nanos = i128::from(ticks) * i128::from(SECOND) / i128::from(self.clock_rate);
        TimeDelta::from_nanos(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// The session has measured the round-trip time. Zero and negative ones are ignored.
    pub fn on_rtt(&mut self, rtt: TimeDelta) {
        if rtt > TimeDelta::ZERO {
            self.least_rtt = Some(self.least_rtt.map_or(rtt, |least| least.min(rtt)));
        }
    }

    /// The delays of frames since the last call. `None` if there were none, and for the first 3 s while no round-trip
    /// time is known.
    pub fn take_interval(&mut self) -> Option<OneWayDelay> {
        let interval = self.interval.take()?;
        let base = match (self.least_rtt, self.heard) {
            (Some(rtt), _) => rtt / 2,
            (None, Some((first, latest))) if latest - first >= RTT_PATIENCE => UNKNOWN_BASE,
            (None, _) => return None,
        };
        let mean = i64::try_from(interval.sum_ns / i128::from(interval.frames)).unwrap_or(i64::MAX);
        Some(OneWayDelay {
            min: base + interval.min,
            mean: base + TimeDelta::from_nanos(mean),
            last: base + interval.last,
        })
    }
}

/// The minimum transit time of the window, in buckets of 10 s.
#[derive(Clone, Copy, Debug, Default)]
struct LeastTransit {
    buckets: [Option<TimeDelta>; BUCKETS],
    current: usize,
    bucket_start: Option<Timestamp>,
}

impl LeastTransit {
    fn observe(&mut self, transit: TimeDelta, now: Timestamp) {
        let mut start = self.bucket_start.unwrap_or(now);
        if now - start >= WINDOW {
            *self = Self::default();
            start = now;
        }
        while now - start >= WINDOW / BUCKETS as i64 {
            start += WINDOW / BUCKETS as i64;
            self.current = (self.current + 1) % BUCKETS;
            self.buckets[self.current] = None;
        }
        self.bucket_start = Some(start);
        let bucket = &mut self.buckets[self.current];
        *bucket = Some(bucket.map_or(transit, |b| b.min(transit)));
    }

    fn get(&self) -> Option<TimeDelta> {
        self.buckets.iter().flatten().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE: u32 = 90_000;
    /// 30 frames per second.
    const FRAME: u32 = 3_000;

    fn us(n: i64) -> TimeDelta {
        TimeDelta::from_micros(n)
    }
    fn ms(n: f64) -> TimeDelta {
        TimeDelta::from_millis_f64(n)
    }
    /// Departure of frame `k`, by a clock unrelated to the receiver's.
    fn departure(k: i64) -> Timestamp {
        Timestamp::from_secs(1_000) + TimeDelta::from_nanos(k * 1_000_000_000 / 30)
    }
    /// Meters frames with these one-way delays, starting at frame 0 with timestamp `first`.
    fn report(meter: &mut OneWayDelayMeter, from: i64, first: u32, delays_ms: &[f64]) {
        for (k, &d) in (from..).zip(delays_ms) {
            meter.on_packet(departure(k) + ms(d), first.wrapping_add(k as u32 * FRAME));
        }
    }
    #[track_caller]
    fn near(got: TimeDelta, want_ms: f64) {
        // A tick of the media clock is 11 us.
        assert!((got - ms(want_ms)).abs() <= us(12), "{got:?} is not {want_ms} ms");
    }

    #[test]
    fn reports_min_mean_and_last_over_half_the_min_round_trip() {
        let mut m = OneWayDelayMeter::new(RATE);
        m.on_rtt(ms(130.0));
        m.on_rtt(ms(100.0));
        m.on_rtt(ms(170.0));
        m.on_rtt(ms(0.0));
        m.on_rtt(ms(-5.0));
        // For any true delay and clock offset: the base is 50 ms, the rest is queuing.
        report(&mut m, 0, 7, &[73.0, 93.0, 83.0, 75.0]);
        let d = m.take_interval().expect("four frames");
        near(d.min, 50.0);
        near(d.mean, 50.0 + (0.0 + 20.0 + 10.0 + 2.0) / 4.0);
        near(d.last, 52.0);
        assert_eq!(m.take_interval(), None);
        // The base is kept across intervals.
        report(&mut m, 4, 7, &[103.0]);
        let d = m.take_interval().expect("one frame");
        near(d.min, 80.0);
        assert_eq!((d.min, d.mean), (d.last, d.last));
    }

    #[test]
    fn counts_the_first_packet_of_a_frame_and_none_that_was_overtaken() {
        let mut m = OneWayDelayMeter::new(RATE);
        m.on_rtt(ms(100.0));
        report(&mut m, 0, 0, &[20.0]);
        // The frame's other packets, and frame 0 after frame 1.
        m.on_packet(departure(0) + ms(25.0), 0);
        report(&mut m, 1, 0, &[30.0]);
        m.on_packet(departure(1) + ms(35.0), FRAME);
        m.on_packet(departure(1) + ms(40.0), 0);
        let d = m.take_interval().expect("two frames");
        near(d.mean, 55.0);
        near(d.last, 60.0);
    }

    #[test]
    fn waits_for_a_round_trip_time_and_then_does_without() {
        let mut m = OneWayDelayMeter::new(RATE);
        report(&mut m, 0, 0, &[20.0; 90]);
        // 89 frames after the first: 2,967 ms.
        assert_eq!(m.take_interval(), None);
        report(&mut m, 90, 0, &[29.0]);
        near(m.take_interval().expect("3 s are over").last, 59.0);
        m.on_rtt(ms(24.0));
        report(&mut m, 91, 0, &[20.0]);
        near(m.take_interval().expect("known").last, 12.0);
    }

    #[test]
    fn the_timestamp_wraps() {
        let mut m = OneWayDelayMeter::new(RATE);
        m.on_rtt(ms(100.0));
        let first = u32::MAX - 5 * FRAME;
        report(&mut m, 0, first, &[20.0; 20]);
        let d = m.take_interval().expect("reported");
        near(d.min, 50.0);
        near(d.mean, 50.0);
        report(&mut m, 20, first, &[33.0]);
        near(m.take_interval().expect("reported").last, 63.0);
    }

    #[test]
    fn clock_drift_makes_a_bounded_error() {
        for (ppm, most_ms) in [(100.0, 6.1), (-100.0, 0.02)] {
            let mut m = OneWayDelayMeter::new(RATE);
            m.on_rtt(ms(100.0));
            let mut worst = (0.0f64, f64::MAX);
            for k in 0..30 * 600 {
                let drift = ppm * 1e-6 * (k as f64 / 30.0) * 1e3;
                report(&mut m, k, 0, &[20.0 + drift]);
                let error = m.take_interval().expect("reported").last.as_millis_f64() - 50.0;
                worst = (worst.0.max(error), if k > 30 * 60 { worst.1.min(error) } else { worst.1 });
            }
            assert!(worst.0 <= most_ms, "{ppm} ppm: {worst:?}");
            // The window is 50 to 60 s long.
            assert!(ppm < 0.0 || worst.1 >= 4.9, "{ppm} ppm: {worst:?}");
        }
    }

    #[test]
    fn a_lower_path_is_followed_at_once_and_a_longer_one_after_the_window() {
        let mut m = OneWayDelayMeter::new(RATE);
        m.on_rtt(ms(40.0));
        report(&mut m, 0, 0, &[70.0; 30]);
        report(&mut m, 30, 0, &[30.0]);
        near(m.take_interval().expect("reported").last, 20.0);
        let mut last = TimeDelta::ZERO;
        for k in 31..31 + 30 * 61 {
            report(&mut m, k, 0, &[60.0]);
            last = m.take_interval().expect("reported").last;
            if k < 31 + 30 * 49 {
                near(last, 50.0);
            }
        }
        near(last, 20.0);
    }

    #[test]
    fn a_new_start_of_the_stream_is_no_delay() {
        for jump in [900_000 + FRAME, 0u32.wrapping_sub(950_000), 1 << 31] {
            let mut m = OneWayDelayMeter::new(RATE);
            m.on_rtt(ms(100.0));
            report(&mut m, 0, 0, &[20.0; 30]);
            m.take_interval();
            report(&mut m, 30, jump, &[20.0, 25.0]);
            let d = m.take_interval().expect("reported");
            near(d.min, 50.0);
            near(d.last, 55.0);
        }
        // Less than 10 s is delay.
        let mut m = OneWayDelayMeter::new(RATE);
        m.on_rtt(ms(100.0));
        report(&mut m, 0, 0, &[20.0; 30]);
        report(&mut m, 30, 0, &[9_990.0]);
        near(m.take_interval().expect("reported").last, 10_020.0);
    }

    proptest! {
        #[test]
        fn never_panics_and_never_reports_less_than_the_base(
            rate in prop_oneof![Just(0), Just(1), Just(RATE), any::<u32>()],
            packets in prop::collection::vec((0i64..3_000_000_000, any::<u32>(), any::<i64>()), 1..200),
        ) {
            let mut m = OneWayDelayMeter::new(rate);
            let (mut now, mut rtt) = (Timestamp::ZERO, None::<TimeDelta>);
            for (k, &(gap, timestamp, rtt_ns)) in packets.iter().enumerate() {
                now += TimeDelta::from_nanos(gap);
                m.on_packet(now, timestamp);
                if k % 7 == 3 {
                    let sample = TimeDelta::from_nanos(rtt_ns);
                    m.on_rtt(sample);
                    rtt = Some(sample).filter(|&s| s > TimeDelta::ZERO).into_iter().chain(rtt).min();
                }
                if k % 3 == 0 && let Some(d) = m.take_interval() {
                    prop_assert!(d.min <= d.mean && d.min <= d.last, "{d:?}");
                    prop_assert!(d.min >= rtt.map_or(UNKNOWN_BASE, |r| r / 2), "{d:?}");
                }
            }
        }
    }
}
