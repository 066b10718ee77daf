/// The ECN field of an IP header (RFC 3168, section 5; ECT(1) as in RFC 9331).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable (00).
    #[default]
    NotEct = 0b00,
    /// ECN-capable, codepoint ECT(1) (01).
    Ect1 = 0b01,
    /// ECN-capable, codepoint ECT(0) (10).
    Ect0 = 0b10,
    /// Congestion experienced (11).
    Ce = 0b11,
}

impl Ecn {
    /// The field from its two bits; higher bits are ignored.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }
    /// The two bits of the field.
    pub const fn bits(self) -> u8 {
        self as u8
    }
    /// Whether a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}
