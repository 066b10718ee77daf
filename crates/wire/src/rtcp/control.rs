use super::{PSFB, RTPFB, RawPacket, frame, read_list};
use crate::read::be32;
use crate::{Entry, Error, List};
use weir_units::DataRate;

pub(super) const TMMBR_FMT: u8 = 3;
pub(super) const TMMBN_FMT: u8 = 4;
pub(super) const FIR_FMT: u8 = 4;

/// Full intra request (RFC 5104, section 4.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fir<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The "media source" field, 0 by the RFC: the sources are in the entries.
    pub media_ssrc: u32,
    /// The sources requested.
    pub entries: List<'a, FirEntry>,
}

/// A request to one source for a decoder refresh point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FirEntry {
    /// The source.
    pub ssrc: u32,
    /// Number of the request to this source, modulo 256; repetitions keep it.
    pub sequence: u8,
}

impl Entry for FirEntry {
    const SIZE: usize = 8;
    fn read(b: &[u8]) -> Self {
        Self { ssrc: be32(b, 0), sequence: b.get(4).copied().unwrap_or(0) }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        self.ssrc.write_into(out);
        out.extend_from_slice(&[self.sequence, 0, 0, 0]);
    }
}

impl<'a> Fir<'a> {
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("FIR sender SSRC")?, r.u32("FIR media SSRC")?);
        Ok(Self { sender_ssrc, media_ssrc, entries: read_list(r, "FIR entry")? })
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, FIR_FMT, PSFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
            self.entries.write_into(out);
        });
    }
}

/// A bit rate as mantissa * 2^exponent: 6 bits of exponent, and a mantissa of 17 bits in TMMBR (RFC 5104, section
/// 4.2.1.1) or 18 in REMB (draft-alvestrand-rmcat-remb-03, section 2.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScaledRate<const MANTISSA: u32> {
    exponent: u8,
    mantissa: u32,
}

impl<const MANTISSA: u32> ScaledRate<MANTISSA> {
    /// A rate, rounded down to the mantissa's precision.
    pub const fn new(rate: DataRate) -> Self {
        let bps = rate.as_bps();
        let exponent = (64 - bps.leading_zeros()).saturating_sub(MANTISSA);
        Self { exponent: exponent as u8, mantissa: (bps >> exponent) as u32 }
    }
    /// The rate; saturates, since the fields reach 2^81 bit/s.
    pub const fn rate(self) -> DataRate {
        let bps = (self.mantissa as u128) << self.exponent;
        DataRate::from_bps(if bps > u64::MAX as u128 { u64::MAX } else { bps as u64 })
    }
    /// Both fields in the low 6 + `MANTISSA` bits.
    pub const fn bits(self) -> u32 {
        (self.exponent as u32) << MANTISSA | self.mantissa
    }
    /// From both fields.
    pub const fn from_bits(bits: u32) -> Self {
        Self { exponent: (bits >> MANTISSA) as u8 & 0x3f, mantissa: bits & ((1 << MANTISSA) - 1) }
    }
}

/// An entry of TMMBR and TMMBN (RFC 5104, sections 4.2.1.1 and 4.2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    /// TMMBR: the source to be limited. TMMBN: the source of the request.
    pub ssrc: u32,
    /// The limit, overhead included.
    pub max_rate: ScaledRate<17>,
    /// Measured average overhead of a packet in bytes, 9 bits.
    pub overhead: u16,
}

impl Entry for RateLimit {
    const SIZE: usize = 8;
    fn read(b: &[u8]) -> Self {
        let bits = be32(b, 4);
        Self { ssrc: be32(b, 0), max_rate: ScaledRate::from_bits(bits >> 9), overhead: bits as u16 & 0x1ff }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        self.ssrc.write_into(out);
        (self.max_rate.bits() << 9 | u32::from(self.overhead.min(0x1ff))).write_into(out);
    }
}

macro_rules! tmmb {
    ($(#[$doc:meta])* $name:ident, $fmt:ident, $sender:literal, $media:literal, $entry:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name<'a> {
            /// SSRC of the sender.
            pub sender_ssrc: u32,
            /// The "media source" field, 0 by the RFC: the sources are in the entries.
            pub media_ssrc: u32,
            /// The limits.
            pub entries: List<'a, RateLimit>,
        }

        impl<'a> $name<'a> {
            /// Reads a message.
            pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
                let mut r = raw.reader();
                let (sender_ssrc, media_ssrc) = (r.u32($sender)?, r.u32($media)?);
                Ok(Self { sender_ssrc, media_ssrc, entries: read_list(r, $entry)? })
            }
            /// Appends the message.
            pub fn write_into(&self, out: &mut Vec<u8>) {
                frame(out, $fmt, RTPFB, |out| {
                    self.sender_ssrc.write_into(out);
                    self.media_ssrc.write_into(out);
                    self.entries.write_into(out);
                });
            }
        }
    };
}

tmmb! {
    /// Temporary maximum media stream bit rate request (RFC 5104, section 4.2.1).
    Tmmbr, TMMBR_FMT, "TMMBR sender SSRC", "TMMBR media SSRC", "TMMBR entry"
}
tmmb! {
    /// Temporary maximum media stream bit rate notification (RFC 5104, section 4.2.2).
    Tmmbn, TMMBN_FMT, "TMMBN sender SSRC", "TMMBN media SSRC", "TMMBN entry"
}
