//! ULPFEC: XOR parity with uneven protection by levels (RFC 5109).
//!
//! Level 0 covers what follows the fixed header of its packets up to a protection length, level 1 continues from there
//! with its own set of packets, and so on (section 7.4). In terms of the [protected string](super::parity), level 0 is
//! its prefix and the first L0 octets after it, and level n the next Ln octets: [`super::Octets::slice`] extracts them.
//! A single level up to the end of the longest packet protects whole packets.
//!
//! As a separate stream the repair packets have the SSRC of the protected stream and their own sequence numbers
//! (sections 7.2 and 14.1); in RED they are redundant blocks (section 14.2).

use super::octets::Sink;
use super::parity::{FLAGS, Recovery};
use super::{Coverage, Mask, Octets, Pattern};
use crate::Error;
use crate::read::Reader;

/// Bytes of the FEC header (section 7.3).
pub const HEADER: usize = 10;
/// Range of the short mask in packets, from the base.
pub const SHORT_MASK: u32 = 16;
/// Range of the long mask in packets.
pub const LONG_MASK: u32 = 48;

const LONG: u16 = 0x4000;

/// The payload of a repair packet (section 7.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'a> {
    /// The fields XORed over the packets of level 0.
    pub recovery: Recovery,
    /// The lowest sequence number protected at any level (SN base).
    pub base: u16,
    /// The levels from 0.
    pub levels: Levels<'a>,
}

/// One protection level (section 7.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level<'a> {
    /// The packets relative to the base.
    pub mask: Mask,
    /// The XOR of their octets at this level. Its length is the protection length.
    pub payload: Octets<'a>,
}

/// The levels of a [`Repair`]: octets of a received one, or levels to be written.
#[derive(Clone, Copy)]
pub enum Levels<'a> {
    /// Levels of a received packet, validated by [`Repair::parse`].
    Wire(WireLevels<'a>),
    /// Levels to write.
    Own(&'a [Level<'a>]),
}

/// Levels inside a received packet.
#[derive(Clone, Copy, Debug)]
pub struct WireLevels<'a> {
    long: bool,
    octets: Octets<'a>,
}

impl<'a> Repair<'a> {
    /// Parses an RTP payload or a block of RED. The E bit is ignored (section 7.3).
    ///
    /// # Errors
    /// If a header or a level is cut off, or a level protects no packet.
    pub fn parse(payload: Octets<'a>) -> Result<Self, Error> {
        let mut r = Reader::new(payload.bytes, 0);
        let (flags, base) = (r.u16("ULPFEC flags")?, r.u16("ULPFEC SN base")?);
        let (timestamp, length) = (r.u32("ULPFEC TS recovery")?, r.u16("ULPFEC length recovery")?);
        let recovery = Recovery { flags: flags & FLAGS, timestamp, length };
        let wire = WireLevels { long: flags & LONG != 0, octets: Octets { bytes: r.rest(), zeros: payload.zeros } };
        let (mut left, mut offset) = (wire.octets, HEADER);
        loop {
            let rest = wire.read(left, offset)?.1;
            if rest.is_empty() {
                return Ok(Self { recovery, base, levels: Levels::Wire(wire) });
            }
            offset += left.len() - rest.len();
            left = rest;
        }
    }
    /// Set of packets that a level of this repair packet protects.
    pub const fn coverage(&self, level: &Level<'_>) -> Coverage {
        Coverage { base: self.base, pattern: Pattern::Mask(level.mask) }
    }
    /// Appends the parity of the protected strings at level 0, and returns the number of zeros that follow.
    pub fn string_into(&self, out: &mut Vec<u8>) -> u32 {
        self.recovery.join_into(self.levels.iter().next().map_or(Octets::default(), |l| l.payload), out)
    }
    /// Appends the payload with the short mask if it suffices, and returns the number of zeros that follow.
    ///
    /// `None`, with nothing appended, if the format cannot express it: no level, a level that protects no packet or one
    /// 48 or more after the base, or a protection length above 65,535.
    #[must_use]
    pub fn write_into(&self, out: &mut Vec<u8>) -> Option<u32> {
        let sound = |l: Level<'_>| !l.mask.is_empty() && l.mask.span() <= LONG_MASK && l.payload.len() <= 0xffff;
        if self.levels.iter().next().is_none() || !self.levels.iter().all(sound) {
            return None;
        }
        let long = self.levels.iter().any(|l| l.mask.span() > SHORT_MASK);
        let mut sink = Sink::new(out);
        let flags = self.recovery.flags & FLAGS | if long { LONG } else { 0 };
        sink.bytes(&flags.to_be_bytes());
        sink.bytes(&self.base.to_be_bytes());
        sink.bytes(&self.recovery.timestamp.to_be_bytes());
        sink.bytes(&self.recovery.length.to_be_bytes());
        for level in self.levels.iter() {
            sink.bytes(&(level.payload.len() as u16).to_be_bytes());
            // The base is the most significant bit.
            let bits = (level.mask.bits() as u64).reverse_bits().to_be_bytes();
            sink.bytes(&bits[..if long { 6 } else { 2 }]);
            sink.octets(level.payload);
        }
        Some(sink.finish())
    }
}

impl<'a> WireLevels<'a> {
    /// The first level in `octets`, which start at `offset` of the payload, and the rest.
    fn read(&self, octets: Octets<'a>, offset: usize) -> Result<(Level<'a>, Octets<'a>), Error> {
        let mut r = Reader::new(octets.bytes, offset);
        let length = r.u16("ULPFEC protection length")?;
        let mut bits = [0; 8];
        let mask_offset = r.offset();
        let mask = r.take("ULPFEC mask", if self.long { 6 } else { 2 })?;
        bits[..mask.len()].copy_from_slice(mask);
        let mask = Mask::from_bits(u64::from_be_bytes(bits).reverse_bits().into());
        if mask.is_empty() {
            return Err(Error::Value { field: "ULPFEC mask", offset: mask_offset, value: 0, expected: "a bit set" });
        }
        let rest = Octets { bytes: r.rest(), zeros: octets.zeros };
        let (payload, rest) = rest.take("ULPFEC level payload", r.offset(), length.into())?;
        Ok((Level { mask, payload }, rest))
    }
}

impl<'a> Levels<'a> {
    /// The levels from 0.
    pub fn iter(&self) -> LevelIter<'a> {
        LevelIter(*self)
    }
}
impl PartialEq for Levels<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Levels<'_> {}
impl core::fmt::Debug for Levels<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over [`Levels`].
#[derive(Clone, Copy, Debug)]
pub struct LevelIter<'a>(Levels<'a>);

impl<'a> Iterator for LevelIter<'a> {
    type Item = Level<'a>;
    fn next(&mut self) -> Option<Level<'a>> {
        match &mut self.0 {
            Levels::Wire(wire) if wire.octets.is_empty() => None,
            Levels::Wire(wire) => {
                let (level, rest) = wire.read(wire.octets, 0).ok()?;
                wire.octets = rest;
                Some(level)
            }
            Levels::Own(own) => {
                let (first, rest) = own.split_first()?;
                *own = rest;
                Some(*first)
            }
        }
    }
}

#[cfg(test)]
mod tests;
