//! Choice of the packet time and bit rate of audio.

use crate::{AUDIO_CLOCK_HZ, MediaError};
use core::fmt;
use weir_units::{DataRate, DataSize, TimeDelta};

/// Duration of a packet: the frame sizes of Opus (RFC 6716, section 2.1.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum PacketTime {
    /// 2.5 ms.
    Ms2_5,
    /// 5 ms.
    Ms5,
    /// 10 ms.
    Ms10,
    /// 20 ms, the usual one (RFC 7587, section 6.1).
    #[default]
    Ms20,
    /// 40 ms.
    Ms40,
    /// 60 ms.
    Ms60,
}

impl PacketTime {
    /// All of them, the shortest first.
    pub const ALL: [Self; 6] = [Self::Ms2_5, Self::Ms5, Self::Ms10, Self::Ms20, Self::Ms40, Self::Ms60];

    /// Samples per channel at [`AUDIO_CLOCK_HZ`], by which RTP timestamps advance.
    pub const fn samples(self) -> u32 {
        let shortest = AUDIO_CLOCK_HZ / 400;
        match self {
            Self::Ms2_5 => shortest,
            Self::Ms5 => 2 * shortest,
            Self::Ms10 => 4 * shortest,
            Self::Ms20 => 8 * shortest,
            Self::Ms40 => 16 * shortest,
            Self::Ms60 => 24 * shortest,
        }
    }
    /// The packet time with this number of samples.
    pub fn of_samples(samples: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.samples() == samples)
    }
    /// The duration.
    pub const fn duration(self) -> TimeDelta {
        TimeDelta::from_nanos(
            self.samples() as i64 * (1_000_000_000 / AUDIO_CLOCK_HZ as i64) + self.samples() as i64 / 3,
        )
    }
    /// The rate of one packet of this size per packet time, rounded up.
    pub fn rate_of(self, size: DataSize) -> DataRate {
        let bits = size.as_bits().saturating_mul(AUDIO_CLOCK_HZ.into());
        DataRate::from_bps(bits.div_ceil(self.samples().into()))
    }
}

impl fmt::Display for PacketTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", f64::from(self.samples()) * 1e3 / f64::from(AUDIO_CLOCK_HZ))
    }
}

/// Bounds of [`choose`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AudioLimits {
    /// Shortest packet time, 20 ms.
    pub min_packet_time: PacketTime,
    /// Longest packet time, 60 ms.
    pub max_packet_time: PacketTime,
    /// Least bit rate of payloads, 6 kbit/s: the least that RFC 7587, section 3.1.1, has for Opus.
    pub min_rate: DataRate,
    /// Greatest bit rate of payloads, 32 kbit/s: fullband speech (RFC 7587, section 3.1.1, has 28 to 40 kbit/s).
    pub max_rate: DataRate,
    /// Greatest share of the rate used by headers, 0.4 (range 0 to 1); above it packets become longer. With 40 bytes
    /// per packet, packets of 20 ms require 40 kbit/s, and of 40 ms 20 kbit/s.
    pub max_header_share: f64,
}

impl Default for AudioLimits {
    fn default() -> Self {
        Self {
            min_packet_time: PacketTime::Ms20,
            max_packet_time: PacketTime::Ms60,
            min_rate: DataRate::from_kbps(6),
            max_rate: DataRate::from_kbps(32),
            max_header_share: 0.4,
        }
    }
}

impl AudioLimits {
    /// Checks every field.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), MediaError> {
        let fail = |field, value: &dyn fmt::Display, expected: &str| {
            Err(MediaError::new("audio limits", field, value, expected.to_owned()))
        };
        if self.max_packet_time < self.min_packet_time {
            return fail("max_packet_time", &self.max_packet_time, "at least min_packet_time");
        }
        if self.min_rate == DataRate::ZERO || self.max_rate < self.min_rate {
            return fail("min_rate", &self.min_rate, "a rate above zero and not above max_rate");
        }
        if !(self.max_header_share > 0.0 && self.max_header_share < 1.0) {
            return fail("max_header_share", &self.max_header_share, "a share between 0 and 1");
        }
        Ok(())
    }

    /// The least rate including headers.
    pub fn least(&self, overhead: DataSize) -> DataRate {
        self.max_packet_time.rate_of(overhead) + self.min_rate
    }
    /// The greatest useful rate including headers.
    pub fn most(&self, overhead: DataSize) -> DataRate {
        self.min_packet_time.rate_of(overhead) + self.max_rate
    }
}

/// Settings of an audio encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AudioSettings {
    /// Duration of a packet.
    pub packet_time: PacketTime,
    /// Bit rate of the payloads, without headers.
    pub bit_rate: DataRate,
}

impl AudioSettings {
    /// The rate including `overhead` header bytes per packet.
    pub fn with_headers(&self, overhead: DataSize) -> DataRate {
        self.packet_time.rate_of(overhead) + self.bit_rate
    }
}

/// Factor by which the rate must exceed a threshold before packets become shorter: an eighth, above the probing steps
/// of controllers.
const MARGIN: f64 = 1.125;

/// The packet time and bit rate for a share of the target rate, with `overhead` header bytes per packet.
///
/// This is the shortest packet time whose headers use at most [`AudioLimits::max_header_share`] of the rate, or else
/// the longest; the bit rate is the rest, within the limits. The rate including headers never exceeds `share`, unless
/// `share` is below [`AudioLimits::least`], which is then used. As `share` rises, the bit rate rises and packets become
/// shorter.
///
/// `current` are the settings in force: packets become shorter only if `share` exceeds the threshold by an eighth, so
/// that a smaller variation changes the packet time at most once.
pub fn choose(
    share: DataRate,
    overhead: DataSize,
    limits: &AudioLimits,
    current: Option<AudioSettings>,
) -> AudioSettings {
    let range = limits.min_packet_time..=limits.max_packet_time;
    let fits = |p: PacketTime| {
        let headers = p.rate_of(overhead);
        let shorter = current.is_some_and(|c| p < c.packet_time);
        let margin = if shorter { MARGIN } else { 1.0 };
        let threshold = (headers.as_bps_f64() / limits.max_header_share).max((headers + limits.min_rate).as_bps_f64());
        share.as_bps_f64() >= threshold * margin
    };
    let mut candidates = PacketTime::ALL.into_iter().filter(|p| range.contains(p));
    let packet_time = candidates.find(|p| fits(*p)).unwrap_or(limits.max_packet_time);
    let left = share.saturating_sub(packet_time.rate_of(overhead));
    AudioSettings { packet_time, bit_rate: left.min(limits.max_rate).max(limits.min_rate) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }
    const IPV4: DataSize = DataSize::from_bytes(40);

    #[test]
    fn packets_become_longer_where_headers_weigh() {
        let at = |share| {
            let s = choose(kbps(share), IPV4, &AudioLimits::default(), None);
            (s.packet_time, s.bit_rate.as_bps())
        };
        // 20 ms cost 16 kbit/s for headers, 40 ms 8, 60 ms 5.333.
        assert_eq!(at(200), (PacketTime::Ms20, 32_000));
        assert_eq!(at(40), (PacketTime::Ms20, 24_000));
        assert_eq!(at(39), (PacketTime::Ms40, 31_000));
        assert_eq!(at(20), (PacketTime::Ms40, 12_000));
        assert_eq!(at(19), (PacketTime::Ms60, 13_666));
        assert_eq!(at(0), (PacketTime::Ms60, 6_000));
        assert_eq!(AudioLimits::default().least(IPV4).as_bps(), 11_334);
        let short = AudioLimits { min_packet_time: PacketTime::Ms2_5, max_rate: kbps(510), ..AudioLimits::default() };
        assert_eq!(choose(kbps(600), IPV4, &short, None).packet_time, PacketTime::Ms2_5);
        assert_eq!(choose(kbps(100), IPV4, &short, None).packet_time, PacketTime::Ms10);
    }

    #[test]
    fn durations_are_exact_and_limits_are_checked() {
        let ms = PacketTime::ALL.map(|p| p.duration().as_nanos());
        assert_eq!(ms, [2_500_000, 5_000_000, 10_000_000, 20_000_000, 40_000_000, 60_000_000]);
        assert_eq!(PacketTime::of_samples(960), Some(PacketTime::Ms20));
        assert_eq!(PacketTime::Ms2_5.to_string(), "2.5 ms");
        let l = AudioLimits::default();
        assert!(l.check().is_ok());
        let wrong = AudioLimits { max_packet_time: PacketTime::Ms10, ..l }.check().unwrap_err().to_string();
        assert!(wrong.contains("max_packet_time is 10 ms"), "{wrong}");
        assert!(AudioLimits { min_rate: kbps(64), ..l }.check().is_err());
        assert!(AudioLimits { max_header_share: f64::NAN, ..l }.check().is_err());
    }

    prop_compose! {
        fn limits()(
            times in (0usize..6, 0usize..6), rates in (500u64..64_000, 500u64..510_000), share in 0.05..0.95f64,
        ) -> AudioLimits {
            AudioLimits {
                min_packet_time: PacketTime::ALL[times.0.min(times.1)],
                max_packet_time: PacketTime::ALL[times.0.max(times.1)],
                min_rate: DataRate::from_bps(rates.0.min(rates.1)),
                max_rate: DataRate::from_bps(rates.0.max(rates.1)),
                max_header_share: share,
            }
        }
    }

    proptest! {
        #[test]
        fn never_above_the_share_where_the_least_fits(
            l in limits(), bps in 0u64..2_000_000, overhead in 0u64..120, current in proptest::option::of(0usize..6),
        ) {
            let (share, overhead) = (DataRate::from_bps(bps), DataSize::from_bytes(overhead));
            let current = current.map(|c| AudioSettings { packet_time: PacketTime::ALL[c], bit_rate: l.min_rate });
            let s = choose(share, overhead, &l, current);
            prop_assert!((l.min_rate..=l.max_rate).contains(&s.bit_rate));
            prop_assert!((l.min_packet_time..=l.max_packet_time).contains(&s.packet_time));
            if share >= l.least(overhead) {
                prop_assert!(s.with_headers(overhead) <= share);
            } else {
                prop_assert_eq!(s.with_headers(overhead), l.least(overhead));
            }
        }

        #[test]
        fn more_share_never_gives_less_or_longer_packets(
            l in limits(), a in 0u64..1_000_000, b in 0u64..1_000_000, overhead in 0u64..120,
        ) {
            let overhead = DataSize::from_bytes(overhead);
            let at = |bps| choose(DataRate::from_bps(bps), overhead, &l, None);
            let (less, more) = (at(a.min(b)), at(a.max(b)));
            prop_assert!(more.packet_time <= less.packet_time);
            // A rate above the maximum of a longer packet is not lost by a shorter one either.
            let most = less.packet_time.rate_of(overhead) + l.max_rate;
            prop_assert!(more.with_headers(overhead) >= less.with_headers(overhead).min(most));
        }

        #[test]
        fn a_share_that_varies_little_does_not_flap(
            l in limits(), bps in 1_000u64..1_000_000, overhead in 0u64..120,
            wobble in proptest::collection::vec(0.95f64..1.05, 20..60),
        ) {
            let overhead = DataSize::from_bytes(overhead);
            let (mut current, mut changes) = (None, 0);
            for w in wobble {
                let next = choose(DataRate::from_bps((bps as f64 * w) as u64), overhead, &l, current);
                changes += u32::from(current.is_some_and(|c: AudioSettings| c.packet_time != next.packet_time));
                current = Some(next);
            }
            prop_assert!(changes <= 1, "{changes}");
        }
    }
}
