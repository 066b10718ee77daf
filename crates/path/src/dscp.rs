//! Differentiated services: code points, and the classes that queue disciplines distinguish.

/// A differentiated services code point (RFC 2474), 0 to 63.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Dscp(u8);

/// Names and code points, in the order of IANA's registry.
const NAMES: [(&str, u8); 25] = [
    ("DF", 0),
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
    // The name of the default in RFC 2474.
    ("default", 0),
];

impl Dscp {
    /// The default code point.
    pub const DF: Self = Self(0);

    /// The code point of a name: RFC 2474 (`CS0` to `CS7`), RFC 2597 (`AF11` to `AF43`), RFC 3246 (`EF`), RFC 5865 (`VA`),
    /// RFC 8622 (`LE`); `DF` is the default.
    pub fn by_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|n| n.0 == name).map(|n| Self(n.1))
    }

    /// All names of code points.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|n| n.0)
    }

    /// The six bits.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The class in which queue disciplines by class queue its packets. Code points without a class of their own get the
    /// default's (RFC 2474, section 4.1).
    pub const fn class(self) -> Class {
        match self.0 {
            // CS5 to CS7, VA and EF.
            40 | 44 | 46 | 48 | 56 => Class::Expedited,
            // CS3, CS4, AF3x and AF4x.
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 => Class::Assured,
            // LE and CS1.
            1 | 8 => Class::Lower,
            _ => Class::Default,
        }
    }
}

/// A class of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Audio and signalling: EF, VA, CS5 to CS7 (RFC 8837, table 1: audio of medium and high priority is EF).
    Expedited,
    /// Video: AF4x, AF3x, CS4 and CS3 (RFC 8837, table 1: interactive video is AF4x, other video AF3x).
    Assured,
    /// All else.
    Default,
    /// Lower effort: LE and CS1 (RFC 8837, table 1: very low priority is LE, CS1 before).
    Lower,
}

impl Class {
    /// All classes, in order of priority.
    pub const ALL: [Self; 4] = [Self::Expedited, Self::Assured, Self::Default, Self::Lower];

    /// Its position in [`Self::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Self::Expedited => 0,
            Self::Assured => 1,
            Self::Default => 2,
            Self::Lower => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_their_numbers_and_classes() {
        let of = |name: &str| Dscp::by_name(name).expect("a name");
        // RFC 2597, section 6: AF class n with drop precedence m is 8 n + 2 m; RFC 2474: class selector n is 8 n.
        for n in 1..=4u8 {
            for m in 1..=3u8 {
                assert_eq!(of(&format!("AF{n}{m}")).bits(), 8 * n + 2 * m);
            }
        }
        for n in 0..=7u8 {
            assert_eq!(of(&format!("CS{n}")).bits(), 8 * n);
        }
        assert_eq!((of("EF").bits(), of("VA").bits(), of("LE").bits(), of("DF")), (0b10_1110, 0b10_1100, 1, Dscp::DF));
        assert_eq!(of("EF").class(), Class::Expedited);
        assert_eq!((of("AF41").class(), of("AF33").class()), (Class::Assured, Class::Assured));
        assert_eq!((of("LE").class(), of("CS1").class()), (Class::Lower, Class::Lower));
        assert_eq!(
            (of("AF11").class(), of("CS2").class(), Dscp(63).class()),
            (Class::Default, Class::Default, Class::Default)
        );
        assert_eq!(Dscp::by_name("ef"), None);
        assert_eq!(Class::ALL.map(Class::index), [0, 1, 2, 3]);
        assert!(Dscp::names().all(|n| Dscp::by_name(n).is_some()));
    }
}
