use super::{PSFB, RawPacket, frame, read_list};
use crate::read::be32;
use crate::{Entry, Error, List};

pub(super) const PLI_FMT: u8 = 1;
pub(super) const SLI_FMT: u8 = 2;
pub(super) const RPSI_FMT: u8 = 3;

/// Picture loss indication (RFC 4585, section 6.3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pli {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream that needs a refresh.
    pub media_ssrc: u32,
}

impl Pli {
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'_>) -> Result<Self, Error> {
        let mut r = raw.reader();
        Ok(Self { sender_ssrc: r.u32("PLI sender SSRC")?, media_ssrc: r.u32("PLI media SSRC")? })
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, PLI_FMT, PSFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
        });
    }
}

/// Slice loss indication (RFC 4585, section 6.3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sli<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream.
    pub media_ssrc: u32,
    /// The macroblocks lost.
    pub entries: List<'a, SliEntry>,
}

/// A run of lost macroblocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SliEntry {
    /// The first macroblock, 13 bits.
    pub first: u16,
    /// Number of macroblocks, 13 bits.
    pub number: u16,
    /// Low 6 bits of the picture's number.
    pub picture_id: u8,
}

impl Entry for SliEntry {
    const SIZE: usize = 4;
    fn read(b: &[u8]) -> Self {
        let bits = be32(b, 0);
        Self { first: (bits >> 19) as u16, number: (bits >> 6) as u16 & 0x1fff, picture_id: bits as u8 & 0x3f }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        let (first, number) = (u32::from(self.first & 0x1fff), u32::from(self.number & 0x1fff));
        (first << 19 | number << 6 | u32::from(self.picture_id & 0x3f)).write_into(out);
    }
}

impl<'a> Sli<'a> {
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("SLI sender SSRC")?, r.u32("SLI media SSRC")?);
        Ok(Self { sender_ssrc, media_ssrc, entries: read_list(r, "SLI entry")? })
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, SLI_FMT, PSFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
            self.entries.write_into(out);
        });
    }
}

/// Reference picture selection indication (RFC 4585, section 6.3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rpsi<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream.
    pub media_ssrc: u32,
    /// RTP payload type whose codec defines the bit string, 7 bits.
    pub payload_type: u8,
    /// The codec's bit string, in whole bytes.
    pub bit_string: &'a [u8],
    /// Padding bits at the end of `bit_string`, 0 to 7.
    pub unused_bits: u8,
}

impl<'a> Rpsi<'a> {
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("RPSI sender SSRC")?, r.u32("RPSI media SSRC")?);
        let offset = r.offset();
        let (padding_bits, payload_type) = (r.u8("RPSI padding bits")?, r.u8("RPSI payload type")? & 0x7f);
        let rest = r.rest();
        if usize::from(padding_bits) > rest.len() * 8 {
            return Err(Error::Value {
                field: "RPSI padding bits",
                offset,
                value: padding_bits.into(),
                expected: "at most the bits after the payload type",
            });
        }
        let bit_string = &rest[..rest.len() - usize::from(padding_bits / 8)];
        Ok(Self { sender_ssrc, media_ssrc, payload_type, bit_string, unused_bits: padding_bits % 8 })
    }
    /// Appends the message; the bit string is truncated to 65,535 bytes.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let bits = &self.bit_string[..self.bit_string.len().min(65_535)];
        let fill = (2 + bits.len()).next_multiple_of(4) - (2 + bits.len());
        let unused = if bits.is_empty() { 0 } else { self.unused_bits & 7 };
        frame(out, RPSI_FMT, PSFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
            out.extend_from_slice(&[fill as u8 * 8 + unused, self.payload_type & 0x7f]);
            out.extend_from_slice(bits);
        });
    }
}
