use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// A signed span of time in nanoseconds (about ±292 years).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TimeDelta(i64);

impl TimeDelta {
    /// Zero time.
    pub const ZERO: Self = Self(0);
    /// The longest representable span.
    pub const MAX: Self = Self(i64::MAX);

    /// A span of whole nanoseconds.
    pub const fn from_nanos(ns: i64) -> Self {
        Self(ns)
    }
    /// A span of whole microseconds.
    pub const fn from_micros(us: i64) -> Self {
        Self(us.saturating_mul(1_000))
    }
    /// A span of whole milliseconds.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// A span of whole seconds.
    pub const fn from_secs(s: i64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }
    /// A span from fractional seconds, rounded to the nearest nanosecond; saturates, and NaN becomes zero.
    pub fn from_secs_f64(s: f64) -> Self {
        Self(round(s * 1e9))
    }
    /// A span from fractional milliseconds, rounded to the nearest nanosecond; saturates, and NaN becomes zero.
    pub fn from_millis_f64(ms: f64) -> Self {
        Self(round(ms * 1e6))
    }
    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
    /// Whole microseconds, towards zero.
    pub const fn as_micros(self) -> i64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, towards zero.
    pub const fn as_millis(self) -> i64 {
        self.0 / 1_000_000
    }
    /// Fractional seconds.
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// Fractional milliseconds.
    pub const fn as_millis_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }
    /// Whether the span is negative.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }
    /// The absolute value.
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }
    /// The span multiplied by a factor; saturates, and NaN becomes zero.
    pub fn mul_f64(self, k: f64) -> Self {
        Self(round(self.0 as f64 * k))
    }
    /// The ratio of this span to `other`, or `None` if `other` is zero.
    pub fn ratio(self, other: Self) -> Option<f64> {
        (other.0 != 0).then(|| self.0 as f64 / other.0 as f64)
    }
}

/// The sum, saturated. A branch that is hardly ever taken costs two instructions; `saturating_add` has six without one.
#[inline]
const fn sum(a: i64, b: i64) -> i64 {
    match a.checked_add(b) {
        Some(sum) => sum,
        None => bound(a),
    }
}

/// The difference, saturated, as [`sum`].
#[inline]
const fn difference(a: i64, b: i64) -> i64 {
    match a.checked_sub(b) {
        Some(difference) => difference,
        None => bound(a),
    }
}

/// The end of the range passed from `a`: a sum or difference that overflows has its sign.
#[cold]
const fn bound(a: i64) -> i64 {
    if a < 0 { i64::MIN } else { i64::MAX }
}

fn round(x: f64) -> i64 {
    // `as` saturates and maps NaN to 0; rounds half away from zero without std's `round`.
    (if x < 0.0 { x - 0.5 } else { x + 0.5 }) as i64
}

impl Add for TimeDelta {
    type Output = Self;
    #[inline]
    fn add(self, o: Self) -> Self {
        Self(sum(self.0, o.0))
    }
}
impl Sub for TimeDelta {
    type Output = Self;
    #[inline]
    fn sub(self, o: Self) -> Self {
        Self(difference(self.0, o.0))
    }
}
impl AddAssign for TimeDelta {
    #[inline]
    fn add_assign(&mut self, o: Self) {
        *self = *self + o;
    }
}
impl SubAssign for TimeDelta {
    #[inline]
    fn sub_assign(&mut self, o: Self) {
        *self = *self - o;
    }
}
impl Neg for TimeDelta {
    type Output = Self;
    #[inline]
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}
impl Mul<i64> for TimeDelta {
    type Output = Self;
    #[inline]
    fn mul(self, k: i64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}
impl Div<i64> for TimeDelta {
    type Output = Self;
    /// Divides towards zero. A zero divisor is a programming error and panics.
    #[inline]
    fn div(self, k: i64) -> Self {
        Self(self.0.saturating_div(k))
    }
}
impl fmt::Debug for TimeDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.as_millis_f64())
    }
}
impl fmt::Display for TimeDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

macro_rules! timestamp {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(i64);

        impl $name {
            /// Zero of the clock.
            pub const ZERO: Self = Self(0);
            /// The latest representable time.
            pub const MAX: Self = Self(i64::MAX);

            /// A time in whole nanoseconds after zero of the clock.
            pub const fn from_nanos(ns: i64) -> Self {
                Self(ns)
            }
            /// A time in whole microseconds after zero of the clock.
            pub const fn from_micros(us: i64) -> Self {
                Self(us.saturating_mul(1_000))
            }
            /// A time in whole milliseconds after zero of the clock.
            pub const fn from_millis(ms: i64) -> Self {
                Self(ms.saturating_mul(1_000_000))
            }
            /// A time in whole seconds after zero of the clock.
            pub const fn from_secs(s: i64) -> Self {
                Self(s.saturating_mul(1_000_000_000))
            }
            /// A time from fractional seconds, rounded to the nearest nanosecond.
            pub fn from_secs_f64(s: f64) -> Self {
                Self(round(s * 1e9))
            }
            /// Nanoseconds after zero of the clock.
            pub const fn as_nanos(self) -> i64 {
                self.0
            }
            /// Microseconds after zero of the clock, towards zero.
            pub const fn as_micros(self) -> i64 {
                self.0 / 1_000
            }
            /// Milliseconds after zero of the clock, towards zero.
            pub const fn as_millis(self) -> i64 {
                self.0 / 1_000_000
            }
            /// Fractional seconds after the clock's zero.
            pub const fn as_secs_f64(self) -> f64 {
                self.0 as f64 * 1e-9
            }
            /// Time since `earlier`, or zero if `earlier` is later.
            #[inline]
            pub const fn saturating_since(self, earlier: Self) -> TimeDelta {
                let d = difference(self.0, earlier.0);
                TimeDelta(if d < 0 { 0 } else { d })
            }
        }
        impl Add<TimeDelta> for $name {
            type Output = Self;
            #[inline]
            fn add(self, d: TimeDelta) -> Self {
                Self(sum(self.0, d.0))
            }
        }
        impl AddAssign<TimeDelta> for $name {
            #[inline]
            fn add_assign(&mut self, d: TimeDelta) {
                *self = *self + d;
            }
        }
        impl Sub<TimeDelta> for $name {
            type Output = Self;
            #[inline]
            fn sub(self, d: TimeDelta) -> Self {
                Self(difference(self.0, d.0))
            }
        }
        impl Sub for $name {
            type Output = TimeDelta;
            #[inline]
            fn sub(self, o: Self) -> TimeDelta {
                TimeDelta(difference(self.0, o.0))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{} s", self.as_secs_f64())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self, f)
            }
        }
    };
}

timestamp! {
    /// A time on this end's monotonic clock, in nanoseconds. Time enters Weir only as an argument of this type.
    Timestamp
}
timestamp! {
    /// A time on the other end's clock, in nanoseconds, with unknown offset: it subtracts only from its own kind.
    RemoteTimestamp
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn converts_between_units() {
        assert_eq!(TimeDelta::from_millis(3).as_micros(), 3_000);
        assert_eq!(TimeDelta::from_secs_f64(0.1), TimeDelta::from_millis(100));
        assert_eq!(TimeDelta::from_millis_f64(-2.5).as_nanos(), -2_500_000);
        assert_eq!(TimeDelta::from_secs_f64(f64::NAN), TimeDelta::ZERO);
        assert_eq!(TimeDelta::from_secs_f64(1e300), TimeDelta::MAX);
    }

    #[test]
    fn since_saturates_at_zero() {
        let (a, b) = (Timestamp::from_millis(5), Timestamp::from_millis(9));
        assert_eq!(b.saturating_since(a), TimeDelta::from_millis(4));
        assert_eq!(a.saturating_since(b), TimeDelta::ZERO);
        assert_eq!(a - b, TimeDelta::from_millis(-4));
    }

    proptest! {
        #[test]
        fn sums_and_differences_saturate(a: i64, b: i64) {
            let (x, y) = (TimeDelta::from_nanos(a), TimeDelta::from_nanos(b));
            let (t, u) = (Timestamp::from_nanos(a), Timestamp::from_nanos(b));
            let (sum, difference) = (a.saturating_add(b), a.saturating_sub(b));
            prop_assert_eq!([(x + y).as_nanos(), (t + y).as_nanos()], [sum; 2]);
            prop_assert_eq!([(x - y).as_nanos(), (t - y).as_nanos(), (t - u).as_nanos()], [difference; 3]);
            prop_assert_eq!(t.saturating_since(u).as_nanos(), difference.max(0));
        }

        #[test]
        fn no_arithmetic_panics(a: i64, b: i64, k in 1i64..1_000) {
            let (t, d) = (Timestamp::from_nanos(a), TimeDelta::from_nanos(b));
            let _ = (t + d, t - d, t - Timestamp::from_nanos(b), d * k, d / k, -d, d.abs(), d.mul_f64(1e9));
        }
    }
}
