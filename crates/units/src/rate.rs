use crate::{DataSize, Gain, TimeDelta};
use core::fmt;
use core::ops::{Add, AddAssign, Mul};

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DataRate(u64);

impl DataRate {
    /// Rate zero.
    pub const ZERO: Self = Self(0);

    /// A rate in bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Self(bps)
    }
    /// A rate in 1,000 bits per second.
    pub const fn from_kbps(kbps: u64) -> Self {
        Self(kbps.saturating_mul(1_000))
    }
    /// A rate in 1,000,000 bits per second.
    pub const fn from_mbps(mbps: u64) -> Self {
        Self(mbps.saturating_mul(1_000_000))
    }
    /// A rate from fractional bits per second, rounded; negative and NaN become zero.
    pub fn from_bps_f64(bps: f64) -> Self {
        Self((bps + 0.5) as u64)
    }
    /// Bits a second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Bits a second as a float, for numeric kernels.
    pub const fn as_bps_f64(self) -> f64 {
        self.0 as f64
    }
    /// Thousands of bits per second as a float.
    pub const fn as_kbps_f64(self) -> f64 {
        self.0 as f64 * 1e-3
    }
    /// The rate of `size` per `time`, or `None` if `time` is zero or negative.
    pub fn from_size_over(size: DataSize, time: TimeDelta) -> Option<Self> {
        let ns = time.as_nanos();
        (ns > 0).then(|| Self::from_bps_f64(size.as_bits() as f64 * 1e9 / ns as f64))
    }
    /// How long `size` takes at this rate, rounded up to a nanosecond, or `None` at rate zero.
    pub fn time_for(self, size: DataSize) -> Option<TimeDelta> {
        if self.0 == 0 {
            return None;
        }
        let bits = size.as_bits();
        // The 64-bit branch covers up to about 2 GB and keeps 128-bit division out of the simulator's hot loop.
        Some(TimeDelta::from_nanos(match bits.checked_mul(1_000_000_000) {
            Some(n) => i64::try_from(n.div_ceil(self.0)).unwrap_or(i64::MAX),
            None => {
                let ns = (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(self.0));
                i64::try_from(ns).unwrap_or(i64::MAX)
            }
        }))
    }
    /// The bytes transmitted in `time` at this rate, rounded down; zero for a negative time.
    pub fn size_in(self, time: TimeDelta) -> DataSize {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(0);
        match self.0.checked_mul(ns) {
            Some(bit_ns) => DataSize::from_bytes(bit_ns / 8_000_000_000),
            None => {
                let bytes = u128::from(self.0) * u128::from(ns) / 8_000_000_000;
                DataSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
        }
    }
    /// This rate less `other`, or zero if `other` is larger.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// This rate as a multiple of `other`, or `None` if `other` is zero.
    pub fn ratio(self, other: Self) -> Option<f64> {
        (other.0 != 0).then(|| self.0 as f64 / other.0 as f64)
    }
}

impl Add for DataRate {
    type Output = Self;
    fn add(self, o: Self) -> Self {
        Self(self.0.saturating_add(o.0))
    }
}
impl AddAssign for DataRate {
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}
impl Mul<Gain> for DataRate {
    type Output = Self;
    fn mul(self, g: Gain) -> Self {
        Self::from_bps_f64(self.0 as f64 * g.as_f64())
    }
}
impl fmt::Debug for DataRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kbit/s", self.as_kbps_f64())
    }
}
impl fmt::Display for DataRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn serialisation_time_is_exact() {
        let r = DataRate::from_mbps(2);
        assert_eq!(r.time_for(DataSize::from_bytes(1_500)), Some(TimeDelta::from_millis(6)));
        assert_eq!(DataRate::ZERO.time_for(DataSize::from_bytes(1)), None);
        assert_eq!(
            DataRate::from_bps(3).time_for(DataSize::from_bytes(1)).map(TimeDelta::as_nanos),
            Some(2_666_666_667)
        );
    }

    #[test]
    fn gain_scales() {
        assert_eq!(DataRate::from_kbps(1_000) * Gain::new(0.85).expect("finite"), DataRate::from_kbps(850));
    }

    proptest! {
        #[test]
        fn time_and_size_are_inverse(bytes in 1u64..100_000, kbps in 1u64..10_000_000) {
            let (r, s) = (DataRate::from_kbps(kbps), DataSize::from_bytes(bytes));
            let t = r.time_for(s).expect("rate above zero");
            let back = r.size_in(t);
            prop_assert!(back >= s && back.as_bytes() <= s.as_bytes() + 1 + r.as_bps() / 8_000_000_000);
        }

        #[test]
        fn both_widths_agree(bytes in 1_900_000_000u64..2_600_000_000, bps in 1u64..u64::MAX) {
            let wide = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(bps));
            let got = DataRate::from_bps(bps).time_for(DataSize::from_bytes(bytes)).expect("rate above zero");
            prop_assert_eq!(i128::from(got.as_nanos()), i128::try_from(wide).expect("fits").min(i128::from(i64::MAX)));
        }
    }
}
