/// A 16-bit sequence number that wraps, compared by RFC 1982 serial arithmetic (RFC 3550, appendix A.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub struct Seq16(u16);

impl Seq16 {
    /// From the number in a packet.
    pub const fn new(n: u16) -> Self {
        Self(n)
    }
    /// The number in a packet.
    pub const fn get(self) -> u16 {
        self.0
    }
    /// The number incremented by `n`.
    pub const fn add(self, n: u16) -> Self {
        Self(self.0.wrapping_add(n))
    }
    /// Signed distance from `earlier`, in -32,768 to 32,767.
    pub const fn since(self, earlier: Self) -> i16 {
        self.0.wrapping_sub(earlier.0) as i16
    }
    /// Whether this number comes after `other`.
    pub const fn is_after(self, other: Self) -> bool {
        self.since(other) > 0
    }
}

/// Unwraps 16-bit sequence numbers to 64 bits, each to the nearest to the highest so far.
///
/// The first number maps to itself plus 65,536, so that numbers from shortly before it stay positive.
#[derive(Clone, Debug, Default)]
pub struct SeqUnwrapper {
    highest: Option<u64>,
}

impl SeqUnwrapper {
    /// An unwrapper in its initial state.
    pub const fn new() -> Self {
        Self { highest: None }
    }
    /// The 64-bit number of `n`; updates the highest.
    pub fn unwrap(&mut self, n: u16) -> u64 {
        let full = self.peek(n);
        self.highest = Some(self.highest.map_or(full, |h| h.max(full)));
        full
    }
    /// The 64-bit number of `n`, without changing the state.
    pub fn peek(&self, n: u16) -> u64 {
        match self.highest {
            None => u64::from(n) + 65_536,
            Some(h) => h.saturating_add_signed(i64::from(Seq16(n).since(Seq16(h as u16)))),
        }
    }
    /// The highest 64-bit number so far.
    pub const fn highest(&self) -> Option<u64> {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wraps_both_ways() {
        let mut u = SeqUnwrapper::new();
        let a = u.unwrap(65_535);
        assert_eq!(u.unwrap(0), a + 1);
        assert_eq!(u.unwrap(65_534), a - 1);
        assert_eq!(u.highest(), Some(a + 1));
        assert!(Seq16::new(2).is_after(Seq16::new(65_530)));
        assert_eq!(Seq16::new(65_530).since(Seq16::new(2)), -8);
    }

    proptest! {
        #[test]
        fn follows_any_walk(start: u16, steps in proptest::collection::vec(-20_000i64..30_000, 1..200)) {
            let mut u = SeqUnwrapper::new();
            let mut truth = i64::from(start) + 65_536 * 100;
            let mut high = truth;
            let offset = truth - i64::try_from(u.unwrap(truth as u16)).expect("small");
            for s in steps {
                truth = (high + s).max(high - 30_000);
                prop_assert_eq!(i64::try_from(u.unwrap(truth as u16)).expect("small") + offset, truth);
                high = high.max(truth);
            }
        }
    }
}
