//! NTP timestamps in RTCP: 64 bits in sender reports, their middle 32 bits elsewhere (RFC 3550, section 4).
//!
//! Weir's clocks start at arbitrary times, so the caller supplies the NTP time of [`Timestamp::ZERO`]. A simulation may
//! choose any; a real endpoint pairs one reading of each clock. The two ends need not agree: only differences of one
//! end's times, and echoes of them, are used.

use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

const SECOND: i64 = 1_000_000_000;

/// A 64-bit NTP timestamp: seconds since 1900 in the upper half, fractions of 2^-32 s in the lower. Wraps in 2036.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct NtpTime(u64);

impl NtpTime {
    /// From the bits in a packet.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
    /// The bits in a packet.
    pub const fn bits(self) -> u64 {
        self.0
    }
    /// The time `t` of a clock whose zero is `zero`, to the nearest 2^-32 s.
    #[inline]
    pub const fn at(t: Timestamp, zero: Self) -> Self {
        let ns = t.as_nanos();
        let (s, frac) = (ns.div_euclid(SECOND), ns.rem_euclid(SECOND) as u64);
        let frac = ((frac << 32) + SECOND as u64 / 2) / SECOND as u64;
        Self(zero.0.wrapping_add((s as u64) << 32).wrapping_add(frac))
    }
    /// The middle 32 bits: units of 2^-16 s, wrapping every 18.2 hours.
    pub const fn compact(self) -> u32 {
        (self.0 >> 16) as u32
    }
    /// Signed time since `earlier`, exact to a nanosecond for up to 68 years.
    pub const fn since(self, earlier: Self) -> TimeDelta {
        let d = self.0.wrapping_sub(earlier.0) as i64;
        let (s, frac) = (d >> 32, (d & 0xffff_ffff) as u64);
        TimeDelta::from_nanos(s * SECOND + ((frac * SECOND as u64 + (1 << 31)) >> 32) as i64)
    }
}

/// A span in units of 2^-16 s as a time, to the nearest nanosecond.
pub const fn compact_to_delta(units: u32) -> TimeDelta {
    TimeDelta::from_nanos(((units as i64) * SECOND + (1 << 15)) >> 16)
}

/// A time in units of 2^-16 s, to the nearest; negative times give 0, times over 18.2 hours the maximum.
pub const fn delta_to_compact(d: TimeDelta) -> u32 {
    let ns = d.as_nanos();
    if ns <= 0 {
        return 0;
    }
    let (s, frac) = (ns / SECOND, ns % SECOND);
    let units = (s << 16) + ((frac << 16) + SECOND / 2) / SECOND;
    if s > 0xffff || units > u32::MAX as i64 { u32::MAX } else { units as u32 }
}

/// A span in units of 2^-32 s as a time, to the nearest nanosecond.
pub const fn span_to_delta(units: u64) -> TimeDelta {
    let (s, frac) = ((units >> 32) as i64, units & 0xffff_ffff);
    TimeDelta::from_nanos(s * SECOND + ((frac * SECOND as u64 + (1 << 31)) >> 32) as i64)
}

/// A time in units of 2^-32 s, to the nearest; negative times give 0, times over 136 years the maximum.
pub const fn delta_to_span(d: TimeDelta) -> u64 {
    let ns = d.as_nanos();
    if ns <= 0 {
        return 0;
    }
    let (s, frac) = ((ns / SECOND) as u64, (ns % SECOND) as u64);
    if s > 0xffff_ffff { u64::MAX } else { (s << 32) + ((frac << 32) + SECOND as u64 / 2) / SECOND as u64 }
}

/// Round-trip time from a report block or DLRR entry: `now` less `last` less `delay`, all in units of 2^-16 s
/// (RFC 3550, section 6.4.1; RFC 3611, section 4.5).
///
/// `None` if `last` is 0 (nothing received yet), or the result is negative (a forged echo or clock step).
pub fn round_trip(now: NtpTime, last: u32, delay: u32) -> Option<TimeDelta> {
    let rtt = now.compact().wrapping_sub(last).wrapping_sub(delay);
    (last != 0 && rtt < 1 << 31).then(|| compact_to_delta(rtt))
}

/// Unwraps the other end's compact NTP timestamps.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompactClock {
    latest: Option<i64>,
}

impl CompactClock {
    /// A clock in its initial state.
    pub const fn new() -> Self {
        Self { latest: None }
    }
    /// The time of `compact`: the nearest (within 9.1 hours) to the latest.
    #[inline]
    pub fn unwrap(&mut self, compact: u32) -> RemoteTimestamp {
        let units = match self.latest {
            None => i64::from(compact),
            Some(l) => l + i64::from(compact.wrapping_sub(l as u32) as i32),
        };
        self.latest = Some(self.latest.map_or(units, |l| l.max(units)));
        let (s, frac) = (units >> 16, units & 0xffff);
        RemoteTimestamp::from_nanos(s * SECOND + ((frac * SECOND + (1 << 15)) >> 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn example_of_rfc_3550() {
        // Section 6.4.1, figure 2: A = b710:8000, LSR = b705:2000, DLSR = 0005:4000 give 6.125 s.
        let now = NtpTime::from_bits(0xb44d_b710_8000_0000);
        assert_eq!(round_trip(now, 0xb705_2000, 0x0005_4000), Some(TimeDelta::from_millis(6_125)));
        assert_eq!(round_trip(now, 0, 0x0005_4000), None);
        assert_eq!(round_trip(now, 0xb710_7fff, 0x0005_4000), None);
    }

    #[test]
    fn compact_is_the_middle() {
        let t = NtpTime::at(Timestamp::from_millis(1_500), NtpTime::from_bits(0x1_0000_0000));
        assert_eq!(t.bits(), 0x2_8000_0000);
        assert_eq!(t.compact(), 0x2_8000);
        assert_eq!(NtpTime::at(Timestamp::from_millis(-250), NtpTime::default()).bits(), 0xffff_ffff_c000_0000);
    }

    #[test]
    fn spans_saturate() {
        assert_eq!(delta_to_compact(TimeDelta::from_millis(-1)), 0);
        assert_eq!(delta_to_compact(TimeDelta::from_millis(500)), 0x8000);
        assert_eq!(delta_to_compact(TimeDelta::from_secs(65_536)), u32::MAX);
        assert_eq!(delta_to_compact(TimeDelta::MAX), u32::MAX);
    }

    #[test]
    fn clock_wraps() {
        let mut c = CompactClock::new();
        let a = c.unwrap(0xffff_0000);
        assert_eq!(c.unwrap(0x0001_0000) - a, TimeDelta::from_secs(2));
        assert_eq!(c.unwrap(0xfffe_0000) - a, TimeDelta::from_secs(-1));
    }

    proptest! {
        #[test]
        fn differences_survive(a in 0i64..1 << 55, d in -(1i64 << 50)..1 << 50, zero: u64) {
            let (t, zero) = (Timestamp::from_nanos(a), NtpTime::from_bits(zero));
            let later = t + TimeDelta::from_nanos(d);
            let got = NtpTime::at(later, zero).since(NtpTime::at(t, zero));
            prop_assert!((got.as_nanos() - d).abs() <= 1);
        }

        #[test]
        fn spans_are_to_the_nearest(ns in 0i64..(1 << 32) * SECOND, units: u64) {
            let d = TimeDelta::from_nanos(ns);
            prop_assert_eq!(span_to_delta(delta_to_span(d)), d);
            // Half a nanosecond is 2.1 units.
            let again = delta_to_span(span_to_delta(units));
            prop_assert!(again.abs_diff(units) <= 3, "{units} is {again}");
        }

        #[test]
        fn compact_spans_survive(units: u32) {
            prop_assert_eq!(delta_to_compact(compact_to_delta(units)), units);
        }
    }
}
