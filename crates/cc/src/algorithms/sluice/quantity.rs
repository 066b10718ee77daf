//! Quantities of the controller's arithmetic: floats with a dimension.
//!
//! Means, products and logarithms of times and rates are no whole nanoseconds and no whole bits a second. What enters and
//! leaves the controller is a [`Timestamp`], [`TimeDelta`] or [`DataRate`], and is converted at that border.

use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Sub};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Bits of a usual packet.
pub(super) const PACKET: Bits = Bits::new(9_600.0);

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
        pub(super) struct $name(f64);

        impl $name {
            /// Nothing of it.
            pub(super) const ZERO: Self = Self(0.0);
        }
        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul<f64> for $name {
            type Output = Self;
            fn mul(self, factor: f64) -> Self {
                Self(self.0 * factor)
            }
        }
        impl Mul<$name> for f64 {
            type Output = $name;
            fn mul(self, quantity: $name) -> $name {
                $name(self * quantity.0)
            }
        }
        impl MulAssign<f64> for $name {
            fn mul_assign(&mut self, factor: f64) {
                self.0 *= factor;
            }
        }
        impl Div<f64> for $name {
            type Output = Self;
            fn div(self, divisor: f64) -> Self {
                Self(self.0 / divisor)
            }
        }
        impl Div for $name {
            type Output = f64;
            fn div(self, other: Self) -> f64 {
                self.0 / other.0
            }
        }
    };
}

quantity! {
    /// A span of time.
    Span
}
quantity! {
    /// An amount of data per time.
    Rate
}
quantity! {
    /// An amount of data.
    Bits
}

/// A time, by the span since the controller's start.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub(super) struct Time(f64);

impl Span {
    /// The lesser of the two.
    pub(super) fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
    /// The greater of the two.
    pub(super) fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
    /// The span limited to a range.
    pub(super) fn clamp(self, least: Self, most: Self) -> Self {
        Self(self.0.clamp(least.0, most.0))
    }
    /// A span in seconds.
    pub(super) const fn secs(s: f64) -> Self {
        Self(s)
    }
    /// Seconds.
    pub(super) const fn as_secs(self) -> f64 {
        self.0
    }
    /// Milliseconds.
    pub(super) const fn as_millis(self) -> f64 {
        self.0 * 1e3
    }
    /// The absolute value.
    pub(super) fn abs(self) -> Self {
        Self(self.0.abs())
    }
}

impl From<TimeDelta> for Span {
    fn from(time: TimeDelta) -> Self {
        Self(time.as_secs_f64())
    }
}

impl From<Span> for TimeDelta {
    fn from(span: Span) -> Self {
        Self::from_secs_f64(span.0)
    }
}

impl Rate {
    /// The lesser of the two.
    pub(super) fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
    /// The greater of the two.
    pub(super) fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
    /// The rate, or the bound if there is one that is less.
    pub(super) fn at_most(self, bound: Option<Self>) -> Self {
        bound.map_or(self, |b| self.min(b))
    }
    /// The rate, or the bound if there is one that is greater.
    pub(super) fn at_least(self, bound: Option<Self>) -> Self {
        bound.map_or(self, |b| self.max(b))
    }
    /// The rate unless it is zero or negative.
    pub(super) fn positive(self) -> Option<Self> {
        (self.0 > 0.0).then_some(self)
    }
    /// A rate in bit/s.
    pub(super) const fn bps(bps: f64) -> Self {
        Self(bps)
    }
    /// Bits a second.
    pub(super) const fn as_bps(self) -> f64 {
        self.0
    }
    /// The rate half of the way between two, in logarithms.
    pub(super) fn geometric_mean(self, other: Self) -> Self {
        Self(libm::sqrt(self.0 * other.0))
    }
}

impl From<DataRate> for Rate {
    fn from(rate: DataRate) -> Self {
        Self(rate.as_bps_f64())
    }
}

impl From<Rate> for DataRate {
    fn from(rate: Rate) -> Self {
        Self::from_bps_f64(rate.0)
    }
}

impl Bits {
    /// The greater of the two.
    pub(super) fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
    /// So many bits.
    pub(super) const fn new(bits: f64) -> Self {
        Self(bits)
    }
    /// Bits.
    pub(super) const fn as_bits(self) -> f64 {
        self.0
    }
}

impl Time {
    /// The controller's start.
    pub(super) const START: Self = Self(0.0);

    /// A time in seconds after the controller's start.
    #[cfg(test)]
    pub(super) const fn secs(s: f64) -> Self {
        Self(s)
    }
    /// The time `at` of a controller that started at `start`.
    pub(super) fn of(at: Timestamp, start: Timestamp) -> Self {
        Self((at - start).as_secs_f64())
    }
    /// The time on the clock of a controller that started at `start`.
    pub(super) fn on_clock(self, start: Timestamp) -> Timestamp {
        start + TimeDelta::from_secs_f64(self.0)
    }
    /// The later of the two.
    pub(super) fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }
}

impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0 - span.0)
    }
}

impl Mul<Span> for Rate {
    type Output = Bits;
    fn mul(self, span: Span) -> Bits {
        Bits(self.0 * span.0)
    }
}
impl Div<Span> for Bits {
    type Output = Rate;
    fn div(self, span: Span) -> Rate {
        Rate(self.0 / span.0)
    }
}
impl Div<Rate> for Bits {
    type Output = Span;
    fn div(self, rate: Rate) -> Span {
        Span(self.0 / rate.0)
    }
}
