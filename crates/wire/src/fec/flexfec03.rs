//! FlexFEC as browsers have it: draft-ietf-payload-flexible-fec-scheme-03, in SDP "flexfec-03".
//!
//! It became RFC 8627 ([`super::flexfec`]) with another header. Here the protected stream is in the FEC header, after a count,
//! and a k bit of 1 says that a part of the mask is the last (section 4.2, figure 12). This is what libwebrtc
//! reads (`Flexfec03HeaderReader`): repair (R = 0) of one stream by a flexible mask (F = 0), of at most three parts.
//!
//! By the draft bit j stands for the packet j + 1 after the base. Its base is itself protected, and libwebrtc takes bit j
//! for the packet j after it: so does this module. Bases of libwebrtc's may precede the first protected packet.

use super::octets::Sink;
use super::parity::{FLAGS, Recovery};
use super::{Coverage, Mask, Octets, Pattern};
use crate::Error;
use crate::read::Reader;

/// Bytes of the FEC header with the shortest mask.
pub const LEAST_HEADER: usize = 20;
/// Bytes of the FEC header with the longest mask.
pub const LONGEST_HEADER: usize = 32;
/// Range of the longest mask in packets, from the base.
pub const LONGEST_MASK: u32 = 109;

const RETRANSMISSION: u16 = 0x8000;
const FIXED: u16 = 0x4000;
/// Packets of the first part of a mask, and of the first two.
const PARTS: (u32, u32) = (15, 46);

/// The payload of a repair packet for one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'a> {
    /// The fields XORed over the protected packets.
    pub recovery: Recovery,
    /// The protected stream.
    pub ssrc: u32,
    /// The sequence number from which the mask counts (SN base).
    pub base: u16,
    /// The packets relative to the base.
    pub mask: Mask,
    /// The XOR of everything after the fixed headers.
    pub payload: Octets<'a>,
}

impl<'a> Repair<'a> {
    /// Parses an RTP payload. Reserved bits are ignored, as the draft has it.
    ///
    /// # Errors
    /// If the FEC header is cut off, it is that of a retransmission or of packets by offsets (R or F), it has another number of
    /// streams than one, or its mask is empty or has a fourth part.
    pub fn parse(payload: Octets<'a>) -> Result<Self, Error> {
        let mut r = Reader::new(payload.bytes, 0);
        let flags = r.u16("FlexFEC-03 flags")?;
        let (length, timestamp) = (r.u16("FlexFEC-03 length recovery")?, r.u32("FlexFEC-03 TS recovery")?);
        if flags & (RETRANSMISSION | FIXED) != 0 {
            let value = (flags >> 14).into();
            let expected = "0: repair by a flexible mask";
            return Err(Error::Value { field: "FlexFEC-03 R and F", offset: 0, value, expected });
        }
        let offset = r.offset();
        let [streams, ..] = r.u32("FlexFEC-03 SSRC count")?.to_be_bytes();
        if streams != 1 {
            let value = streams.into();
            return Err(Error::Value { field: "FlexFEC-03 SSRC count", offset, value, expected: "1" });
        }
        let (ssrc, base) = (r.u32("FlexFEC-03 SSRC")?, r.u16("FlexFEC-03 SN base")?);
        let offset = r.offset();
        let mask = Self::read_mask(&mut r)?;
        if mask.is_empty() {
            return Err(Error::Value { field: "FlexFEC-03 mask", offset, value: 0, expected: "a bit set" });
        }
        let recovery = Recovery { flags: flags & FLAGS, timestamp, length };
        Ok(Self { recovery, ssrc, base, mask, payload: Octets { bytes: r.rest(), zeros: payload.zeros } })
    }

    /// The parts of a mask; each begins with its k bit, after which the lowest packet is the most significant bit.
    fn read_mask(r: &mut Reader<'_>) -> Result<Mask, Error> {
        let first = r.u16("FlexFEC-03 mask")?;
        let mut bits = u128::from((first << 1).reverse_bits());
        if first >> 15 != 0 {
            return Ok(Mask::from_bits(bits));
        }
        let second = r.u32("FlexFEC-03 mask, bits 15 to 45")?;
        bits |= u128::from((second << 1).reverse_bits()) << PARTS.0;
        if second >> 31 != 0 {
            return Ok(Mask::from_bits(bits));
        }
        let offset = r.offset();
        let third = r.u64("FlexFEC-03 mask, bits 46 to 108")?;
        bits |= u128::from((third << 1).reverse_bits()) << PARTS.1;
        if third >> 63 != 0 {
            return Ok(Mask::from_bits(bits));
        }
        Err(Error::Value { field: "FlexFEC-03 third k bit", offset, value: 0, expected: "1: three parts at most" })
    }

    /// The protected packets.
    pub const fn coverage(&self) -> Coverage {
        Coverage { base: self.base, pattern: Pattern::Mask(self.mask) }
    }
    /// Appends the parity of the protected strings, and returns the number of zeros that follow.
    pub fn string_into(&self, out: &mut Vec<u8>) -> u32 {
        self.recovery.join_into(self.payload, out)
    }
    /// Appends the payload with the shortest mask that fits, and returns the number of zeros that follow.
    ///
    /// `None`, with nothing appended, if the mask is empty or has a packet 109 or more after the base.
    #[must_use]
    pub fn write_into(&self, out: &mut Vec<u8>) -> Option<u32> {
        let (bits, span) = (self.mask.bits(), self.mask.span());
        if !(1..=LONGEST_MASK).contains(&span) {
            return None;
        }
        let mut sink = Sink::new(out);
        sink.bytes(&(self.recovery.flags & FLAGS).to_be_bytes());
        sink.bytes(&self.recovery.length.to_be_bytes());
        sink.bytes(&self.recovery.timestamp.to_be_bytes());
        // One stream, and the reserved bits.
        sink.bytes(&[1, 0, 0, 0]);
        sink.bytes(&self.ssrc.to_be_bytes());
        sink.bytes(&self.base.to_be_bytes());
        let last = |until: u32| u64::from(span <= until);
        let first = (bits as u16).reverse_bits() >> 1 | (last(PARTS.0) << 15) as u16;
        sink.bytes(&first.to_be_bytes());
        if span > PARTS.0 {
            let second = ((bits >> PARTS.0) as u32).reverse_bits() >> 1 | (last(PARTS.1) << 31) as u32;
            sink.bytes(&second.to_be_bytes());
        }
        if span > PARTS.1 {
            let third = ((bits >> PARTS.1) as u64).reverse_bits() >> 1 | last(LONGEST_MASK) << 63;
            sink.bytes(&third.to_be_bytes());
        }
        sink.octets(self.payload);
        Some(sink.finish())
    }
}

#[cfg(test)]
mod tests;
