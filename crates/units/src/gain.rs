use core::fmt;

/// A finite factor that scales a rate.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub struct Gain(f64);

impl Gain {
    /// The factor 1.
    pub const ONE: Self = Self(1.0);

    /// A factor, or `None` if it is infinite or NaN.
    pub const fn new(factor: f64) -> Option<Self> {
        if factor.is_finite() { Some(Self(factor)) } else { None }
    }
    /// The factor as a float.
    pub const fn as_f64(self) -> f64 {
        self.0
    }
}

impl fmt::Debug for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}
