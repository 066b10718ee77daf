use weir_units::Seq48;

/// A sequence or acknowledgement number as carried in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireSequence {
    /// All 48 bits.
    Long(Seq48),
    /// The low 24 bits.
    Short(u32),
}

const LOW: u64 = 0xff_ffff;

impl WireSequence {
    /// The short form of a number.
    pub const fn short(number: Seq48) -> Self {
        Self::Short((number.get() & LOW) as u32)
    }
    /// Whether it has 24 bits.
    pub const fn is_short(self) -> bool {
        matches!(self, Self::Short(_))
    }
    /// The number with zeros for the high bits that a short one lacks, as a Reset without a connection has it
    /// (RFC 4340, section 8.3.1).
    pub const fn zero_extended(self) -> Seq48 {
        match self {
            Self::Long(s) => s,
            Self::Short(low) => Seq48::new(low as u64 & LOW),
        }
    }
    /// The whole number; a short one is taken as the nearest to `reference` (RFC 4340, section 7.6): the greatest number sent
    /// for an acknowledgement, the greatest received for a sequence number.
    pub const fn extend(self, reference: Seq48) -> Seq48 {
        const HALF: u64 = 1 << 23;
        match self {
            Self::Long(s) => s,
            Self::Short(low) => {
                let low = low as u64 & LOW;
                let (high, near) = (reference.get() >> 24, reference.get() & LOW);
                // At half the circle both circular comparisons hold, as the RFC defines them: the high bits change
                // then.
                let high = if low.wrapping_sub(near) & LOW <= HALF && low < near {
                    high.wrapping_add(1)
                } else if near.wrapping_sub(low) & LOW <= HALF && near < low {
                    high.wrapping_sub(1)
                } else {
                    high
                };
                Seq48::new((high & LOW) << 24 | low)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extended(low: u32, reference: u64) -> u64 {
        WireSequence::Short(low).extend(Seq48::new(reference)).get()
    }

    #[test]
    fn the_nearest_is_taken() {
        assert_eq!(extended(5, 0x12_0000_0003), 0x12_0000_0005);
        assert_eq!(extended(1, 0x12_00ff_fffe), 0x12_0100_0001);
        assert_eq!(extended(0xff_fffe, 0x12_0000_0001), 0x11_ffff_fffe);
        // The circle of 2^48 closes too.
        assert_eq!(extended(0, 0xffff_ffff_ffff), 0);
        assert_eq!(extended(0xff_ffff, 0), 0xffff_ffff_ffff);
        // Bits above the 24 have no meaning.
        assert_eq!(extended(0xab00_0005, 3), 5);
        assert_eq!(WireSequence::Short(0xab00_0005).zero_extended(), Seq48::new(5));
    }

    #[test]
    fn half_the_circle_away_the_high_bits_change() {
        // RFC 4340, section 7.6, to the letter: "less than or equal to 2^23" holds in both directions.
        assert_eq!(extended(0x80_0000, 0x05_0000_0000), 0x04_ff80_0000);
        assert_eq!(extended(0, 0x05_0080_0000), 0x05_0100_0000);
        assert_eq!(extended(0x7f_ffff, 0x05_0000_0000), 0x05_007f_ffff);
        assert_eq!(extended(0x80_0001, 0x05_0000_0000), 0x04_ff80_0001);
    }
}
