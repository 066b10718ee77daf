//! Exponential growth by the second.

/// Powers of a factor, with a cache of the last one: evenly spaced frames repeat it, and a power costs as much as the
/// rest of a receiver's work per packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    per_second: f64,
    seconds: f64,
    factor: f64,
}

impl Growth {
    pub(crate) fn new() -> Self {
        Self { per_second: 1.0, seconds: 0.0, factor: 1.0 }
    }
    /// `per_second` to the power of `seconds`.
    pub(crate) fn factor(&mut self, per_second: f64, seconds: f64) -> f64 {
        if (per_second, seconds) != (self.per_second, self.seconds) {
            *self = Self { per_second, seconds, factor: libm::pow(per_second, seconds) };
        }
        self.factor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_power_independent_of_previous_calls() {
        let mut g = Growth::new();
        for (per_second, seconds) in
            [(1.05, 0.033), (1.05, 0.033), (1.05, 0.034), (1.08, 0.034), (1.0, 0.0), (1.05, 0.033)]
        {
            assert_eq!(g.factor(per_second, seconds).to_bits(), libm::pow(per_second, seconds).to_bits());
        }
    }
}
