//! Numbers of the paths of a call.

/// One of the paths between two ends, numbered by the end that opens them.
///
/// An end with one path uses only [`PathId::FIRST`]. The number is local to the two ends and is not sent: protocols
/// with their own numbers (Multipath DCCP's Address ID) map them to this one.
///
/// ```
/// use weir_units::PathId;
/// let wifi = PathId::FIRST;
/// let cellular = PathId::new(1);
/// assert_eq!(PathId::default(), wifi);
/// assert!(wifi < cellular);
/// assert_eq!(cellular.index(), 1);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct PathId(u8);

impl PathId {
    /// The initial path, number 0; the only one of a single-path call.
    pub const FIRST: Self = Self(0);

    /// The path with this number (0 to 255).
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The index into a table of paths.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl core::fmt::Display for PathId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_and_indices_are_the_same_and_the_first_is_zero() {
        assert_eq!(PathId::FIRST, PathId::new(0));
        assert_eq!(PathId::default(), PathId::FIRST);
        for number in [0, 1, 255] {
            let path = PathId::new(number);
            assert_eq!((path.number(), path.index()), (number, usize::from(number)));
            assert_eq!(path.to_string(), number.to_string());
        }
    }
}
