//! Intervals as the numbers that a policy reads, and its answer as a rate.

use super::meter::{Interval, Meter};
use weir_units::DataRate;

/// Rates at the ends of the action's scale, in bit/s: 50 kbit/s, below which no video is of use, and 20 Mbit/s.
pub const RATE_RANGE: (f64, f64) = (50e3, 20e6);
/// The time at which a delay counts as one half of its scale, in ms.
const HALF_MS: f64 = 100.0;
/// Features an interval of [`Observation::Recent`].
const FEATURES: usize = 8;
/// Greatest number of intervals of [`Observation::Recent`].
const MOST_RECENT: usize = 64;
/// Short monitor intervals in a long one: 60 ms and 600 ms.
const SHORT_IN_LONG: usize = 10;
/// Monitor intervals of each kind.
const MONITORED: usize = 5;
/// Features of a monitor interval.
const MMSYS_FEATURES: usize = 15;
/// Delay of the first packet by definition, in ms (OpenNetLab's `PacketRecord`, `base_delay_ms`).
const BASE_DELAY_MS: f64 = 200.0;
/// Bound of raw features, beyond which no call has any.
const GREATEST: f64 = 1e12;

/// Input of a policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Observation {
    /// The latest intervals, the newest first, each with eight numbers from -1 to 1: rate received, rate sent and target (see
    /// [`normalised`]), queueing delay and least queueing delay of the interval, share lost, round-trip time, and whether
    /// there was a report. A time t in ms becomes t / (t + 100). Intervals before the call are zeros.
    Recent(usize),
    /// The 150 numbers of the second bandwidth estimation challenge (ACM MMSys 2024), from its data description
    /// (`microsoft.com/en-us/research/academic-program/bandwidth-estimation-challenge/data/`): 15 features, each of the five
    /// latest intervals of 60 ms and then of the five latest of 600 ms. Here the newest interval is first, which the description
    /// leaves open; the means that the organisers' baseline subtracts agree with it, and with the units and the offset of delays. Packets
    /// count when they are reported rather than when they arrive; all are video.
    Mmsys2024,
}

impl Observation {
    /// The observation with this many numbers, if there is one.
    pub fn of_len(len: usize) -> Option<Self> {
        let recent = len / FEATURES;
        if len == Self::Mmsys2024.len() {
            return Some(Self::Mmsys2024);
        }
        (len.is_multiple_of(FEATURES) && (1..=MOST_RECENT).contains(&recent)).then_some(Self::Recent(recent))
    }
    /// How many numbers it has.
    pub const fn len(self) -> usize {
        match self {
            Self::Recent(n) => n * FEATURES,
            Self::Mmsys2024 => MMSYS_FEATURES * 2 * MONITORED,
        }
    }
    /// Whether it has none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// How many intervals a meter has to keep for it.
    pub const fn intervals(self) -> usize {
        match self {
            Self::Recent(n) => n,
            Self::Mmsys2024 => MONITORED * SHORT_IN_LONG,
        }
    }
    /// Writes the numbers; `out` has [`Self::len`] of them.
    pub fn write(self, meter: &Meter, out: &mut [f32]) {
        out.fill(0.0);
        let all = meter.intervals();
        match self {
            Self::Recent(n) => {
                for (i, to) in all.iter().take(n).zip(out.chunks_exact_mut(FEATURES)) {
                    to.copy_from_slice(&recent(i));
                }
            }
            Self::Mmsys2024 => {
                let mut put = |position: usize, features: [f64; MMSYS_FEATURES]| {
                    for (f, value) in features.into_iter().enumerate() {
                        if let Some(to) = out.get_mut(f * 2 * MONITORED + position) {
                            *to = value.clamp(-GREATEST, GREATEST) as f32;
                        }
                    }
                };
                for (n, i) in all.iter().take(MONITORED).enumerate() {
                    put(n, monitored(i));
                }
                for n in 0..MONITORED {
                    let mut parts = all.iter().skip(n * SHORT_IN_LONG).take(SHORT_IN_LONG);
                    let Some(newest) = parts.next() else { break };
                    put(MONITORED + n, monitored(&parts.fold(*newest, |newer, older| newer.merged(older))));
                }
            }
        }
    }
}

/// A rate in bit/s on a logarithmic scale: -1 at the lower end of [`RATE_RANGE`] and below, 1 at the upper end and above.
pub fn normalised(bps: f64) -> f64 {
    let (low, high) = RATE_RANGE;
    2.0 * libm::log(bps.clamp(low, high) / low) / libm::log(high / low) - 1.0
}

/// The rate of an action, -1 to 1: the inverse of [`normalised`]. What is not a number counts as -1.
pub fn rate(action: f64) -> DataRate {
    let (low, high) = RATE_RANGE;
    let action = if action.is_nan() { -1.0 } else { action.clamp(-1.0, 1.0) };
    DataRate::from_bps_f64(low * libm::exp((action + 1.0) / 2.0 * libm::log(high / low)))
}

fn recent(i: &Interval) -> [f32; FEATURES] {
    let delay = |ms: f64| ms.max(0.0) / (ms.max(0.0) + HALF_MS);
    let least = if i.received_packets == 0 { 0.0 } else { i.delay_min_ms - i.least_delay_ms };
    [
        normalised(i.receive_rate()),
        normalised(i.send_rate()),
        normalised(i.target_bps),
        delay(i.queue_delay_ms()),
        delay(least),
        i.loss(),
        delay(i.rtt_ms().unwrap_or(0.0)),
        f64::from(u8::from(i.reports > 0)),
    ]
    .map(|v| v as f32)
}

/// The 15 features of a monitor interval, in the description's order and units (bit/s, packets, bytes, ms).
fn monitored(i: &Interval) -> [f64; MMSYS_FEATURES] {
    let packets = f64::from(i.received_packets);
    let any = |value: f64| if i.received_packets > 0 { value } else { 0.0 };
    let mean = i.delay_ms().unwrap_or(0.0);
    let (gaps, gap_sum) = (f64::from(i.gaps.max(1)), i.gap_sum_ms);
    let gap = gap_sum / gaps;
    let least = BASE_DELAY_MS + i.delay_min_ms;
    [
        i.receive_rate(),
        packets,
        i.received.as_bytes() as f64,
        i.queue_delay_ms(),
        mean,
        BASE_DELAY_MS + i.least_delay_ms,
        any(if least.abs() > 1e-6 { (BASE_DELAY_MS + mean) / least } else { 0.0 }),
        any(mean - i.delay_min_ms),
        gap,
        libm::sqrt((i.gap_squares / gaps - gap * gap).max(0.0)),
        i.loss(),
        f64::from(i.lost) / f64::from(i.loss_runs.max(1)),
        any((packets - f64::from(i.probes)) / packets.max(1.0)),
        0.0,
        any(f64::from(i.probes) / packets.max(1.0)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataSize, TimeDelta, Timestamp};

    #[test]
    fn actions_and_rates_are_inverse_on_a_logarithmic_scale() {
        let middle = (RATE_RANGE.0 * RATE_RANGE.1).sqrt();
        for (action, bps) in [(-1.0, 50e3), (0.0, middle), (1.0, 20e6), (-7.0, 50e3), (9.0, 20e6), (f64::NAN, 50e3)] {
            assert!((rate(action).as_bps_f64() - bps).abs() <= 1.0, "{action}");
        }
        assert!((normalised(rate(0.3).as_bps_f64()) - 0.3).abs() < 1e-5);
        assert_eq!((normalised(0.0), normalised(1e9)), (-1.0, 1.0));
    }

    #[test]
    fn lengths_name_observations() {
        assert_eq!(Observation::of_len(150), Some(Observation::Mmsys2024));
        assert_eq!(Observation::of_len(40), Some(Observation::Recent(5)));
        for len in [0, 7, 41, 8 * (MOST_RECENT + 1)] {
            assert_eq!(Observation::of_len(len), None, "{len}");
        }
    }

    #[test]
    fn the_challenges_features_are_at_their_indices() {
        let mut meter = Meter::new(Timestamp::ZERO, Observation::Mmsys2024.intervals());
        for n in 1..=12_i64 {
            let packet = crate::cue::PacketResult {
                sequence: n as u64,
                departure: Timestamp::from_millis(60 * n - 40),
                arrival: Some(weir_units::RemoteTimestamp::from_millis(60 * n - 20 + n)),
                size: DataSize::from_bytes(750),
                ecn: weir_units::Ecn::NotEct,
                probe: 0,
                was_lost: false,
            };
            meter.on_feedback(&crate::cue::TransportFeedback {
                now: Timestamp::from_millis(60 * n - 1),
                packets: &[packet],
                bytes_in_flight: DataSize::ZERO,
                rtt: None,
            });
            meter.end(Timestamp::from_millis(60 * n), 1e6);
        }
        let mut out = [0.0; 150];
        Observation::Mmsys2024.write(&meter, &mut out);
        let feature = |number: usize, position: usize| f64::from(out[(number - 1) * 10 + position]);
        // 750 bytes in 60 ms; 7,500 bytes in 600 ms; of the second long interval only two short ones have been.
        assert_eq!((feature(1, 0), feature(1, 5)), (100e3, 100e3));
        assert_eq!((feature(3, 0), feature(3, 5), feature(3, 6), feature(3, 7)), (750.0, 7_500.0, 1_500.0, 0.0));
        // The delay has grown by 1 ms an interval, from 200 ms by definition.
        assert_eq!((feature(4, 0), feature(4, 5), feature(5, 1), feature(6, 9)), (11.0, 6.5, 10.0, 0.0));
        assert_eq!((feature(6, 0), feature(7, 5), feature(8, 5)), (200.0, f64::from((206.5_f64 / 202.0) as f32), 4.5));
        assert_eq!((feature(9, 5), feature(10, 5), feature(11, 0), feature(13, 0)), (61.0, 0.0, 0.0, 1.0));
        assert_eq!(TimeDelta::from_millis(60), super::super::STEP);
    }
}
