/// Number of sequence numbers: 2^48.
const MODULUS: u64 = 1 << 48;

/// A 48-bit sequence number that wraps, compared modulo 2^48 (RFC 4340, section 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Seq48(u64);

impl Seq48 {
    /// The number with these low 48 bits.
    pub const fn new(n: u64) -> Self {
        Self(n % MODULUS)
    }
    /// The number, below 2^48.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number incremented by `n`.
    #[must_use]
    pub const fn add(self, n: u64) -> Self {
        Self((self.0 + n % MODULUS) % MODULUS)
    }
    /// The number decremented by `n`.
    #[must_use]
    pub const fn sub(self, n: u64) -> Self {
        Self((self.0 + MODULUS - n % MODULUS) % MODULUS)
    }
    /// The next number.
    #[must_use]
    pub const fn next(self) -> Self {
        self.add(1)
    }
    /// Signed distance from `earlier`, in -2^47 to 2^47 - 1.
    pub const fn since(self, earlier: Self) -> i64 {
        let d = (self.0 + MODULUS - earlier.0) % MODULUS;
        if d >= MODULUS / 2 { d as i64 - MODULUS as i64 } else { d as i64 }
    }
    /// Whether this number comes after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }
    /// Whether this number is in the circular range from `low` to `high`, inclusive.
    pub const fn is_within(self, low: Self, high: Self) -> bool {
        (self.0 + MODULUS - low.0) % MODULUS <= (high.0 + MODULUS - low.0) % MODULUS
    }
    /// The later of the two.
    #[must_use]
    pub const fn max(self, other: Self) -> Self {
        if other.is_after(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_circle_closes() {
        let last = Seq48::new(MODULUS - 1);
        assert_eq!((last.next(), Seq48::new(0).sub(1)), (Seq48::new(0), last));
        assert!(Seq48::new(5).is_after(last) && !last.is_after(Seq48::new(5)));
        assert_eq!((Seq48::new(5).since(last), last.since(Seq48::new(5))), (6, -6));
        assert_eq!(Seq48::new(0).since(Seq48::new(MODULUS / 2)), -(1 << 47));
        assert_eq!(last.max(Seq48::new(2)), Seq48::new(2));
        assert_eq!(last.add(u64::MAX).get(), (MODULUS - 1 + u64::MAX % MODULUS) % MODULUS);
    }

    #[test]
    fn a_range_may_wrap() {
        let (low, high) = (Seq48::new(MODULUS - 3), Seq48::new(4));
        assert!([low, high, Seq48::new(0)].iter().all(|s| s.is_within(low, high)));
        assert!(![Seq48::new(5), low.sub(1), Seq48::new(1 << 40)].iter().any(|s| s.is_within(low, high)));
        assert!(low.is_within(low, low) && !high.is_within(low, low));
    }
}
