//! RED: redundant blocks of other packets before a packet's own data (RFC 2198), and ULPFEC in RED (RFC 5109,
//! section 14.2).
//!
//! RED carries FEC as a redundant block with a timestamp offset of 0, so that repair data has at most 1,023 bytes. A
//! repair packet alone is sent as the primary block without redundant ones, as libwebrtc (as of 2024) does with video;
//! RFC 5109, section 14.2, does not allow FEC alone in such a stream.
//!
//! FEC protects not the RED packets themselves, but the result of [`virtual_packet_into`].

use super::Octets;
use super::octets::Sink;
use crate::Error;
use crate::read::Reader;
use crate::rtp::PacketView;

/// Greatest offset of a block's timestamp before its packet's, in units of the media clock: 14 bits.
pub const MAX_TIMESTAMP_OFFSET: u16 = 0x3fff;
/// Greatest size of a redundant block: 10 bits.
pub const MAX_BLOCK: usize = 0x3ff;

/// The payload of a RED packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Red<'a> {
    /// Blocks of other packets.
    pub redundant: Blocks<'a>,
    /// Payload type of the primary block, 7 bits.
    pub payload_type: u8,
    /// The data of the primary block, described by the RTP header.
    pub primary: Octets<'a>,
}

/// A redundant block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block<'a> {
    /// Payload type, 7 bits.
    pub payload_type: u8,
    /// Sampling time of its data before the RTP header's timestamp, up to [`MAX_TIMESTAMP_OFFSET`].
    pub timestamp_offset: u16,
    /// At most [`MAX_BLOCK`] bytes.
    pub data: Octets<'a>,
}

/// The redundant blocks of a [`Red`]: octets of a received one, or blocks to be written.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Blocks of a received packet, validated by [`Red::parse`].
    Wire(WireBlocks<'a>),
    /// Blocks to write.
    Own(&'a [Block<'a>]),
}

/// Redundant blocks inside a received packet.
#[derive(Clone, Copy, Debug)]
pub struct WireBlocks<'a> {
    headers: &'a [u8],
    data: Octets<'a>,
}

const FOLLOWED: u32 = 0x8000_0000;

impl<'a> Red<'a> {
    /// Parses an RTP payload.
    ///
    /// # Errors
    /// If the payload ends within the headers or a redundant block.
    pub fn parse(payload: Octets<'a>) -> Result<Self, Error> {
        let mut r = Reader::new(payload.bytes, 0);
        let mut redundant = 0;
        let payload_type = loop {
            let mut next = r;
            let first = next.u8("RED block header")?;
            if first & 0x80 == 0 {
                r = next;
                break first;
            }
            redundant += r.u32("RED block header")? as usize & MAX_BLOCK;
        };
        let headers = &payload.bytes[..r.offset() - 1];
        let data = Octets { bytes: r.rest(), zeros: payload.zeros };
        let (data, primary) = data.take("RED redundant blocks", r.offset(), redundant)?;
        Ok(Self { redundant: Blocks::Wire(WireBlocks { headers, data }), payload_type, primary })
    }
    /// Appends the payload and returns the number of zeros that follow.
    ///
    /// `None`, with nothing appended, if a redundant block exceeds [`MAX_BLOCK`] or [`MAX_TIMESTAMP_OFFSET`].
    #[must_use]
    pub fn write_into(&self, out: &mut Vec<u8>) -> Option<u32> {
        let sound = |b: Block<'_>| b.data.len() <= MAX_BLOCK && b.timestamp_offset <= MAX_TIMESTAMP_OFFSET;
        if !self.redundant.iter().all(sound) {
            return None;
        }
        let mut sink = Sink::new(out);
        for b in self.redundant.iter() {
            let (payload_type, offset) = (u32::from(b.payload_type & 0x7f), u32::from(b.timestamp_offset));
            sink.bytes(&(FOLLOWED | payload_type << 24 | offset << 10 | b.data.len() as u32).to_be_bytes());
        }
        sink.bytes(&[self.payload_type & 0x7f]);
        self.redundant.iter().for_each(|b| sink.octets(b.data));
        sink.octets(self.primary);
        Some(sink.finish())
    }
}

/// Appends the packet that FEC protects in place of a RED packet (RFC 5109, section 14.2): RED's headers and redundant
/// blocks are removed, and the payload type is that of the primary block. Sequence number, marker and padding are kept.
/// Returns the number of zeros that follow.
///
/// # Errors
/// If the RTP header or the payload is invalid; nothing is appended then.
pub fn virtual_packet_into(packet: Octets<'_>, out: &mut Vec<u8>) -> Result<u32, Error> {
    let header_len = PacketView::parse_header(packet.bytes)?.header_len();
    let (header, payload) = packet.bytes.split_at(header_len);
    let red = Red::parse(Octets { bytes: payload, zeros: packet.zeros })?;
    let start = out.len();
    out.extend_from_slice(header);
    out[start + 1] = header[1] & 0x80 | red.payload_type;
    out.extend_from_slice(red.primary.bytes);
    Ok(red.primary.zeros)
}

impl<'a> Blocks<'a> {
    /// The blocks in order.
    pub fn iter(&self) -> BlockIter<'a> {
        BlockIter(*self)
    }
}
impl PartialEq for Blocks<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Blocks<'_> {}
impl core::fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over [`Blocks`].
#[derive(Clone, Copy, Debug)]
pub struct BlockIter<'a>(Blocks<'a>);

impl<'a> Iterator for BlockIter<'a> {
    type Item = Block<'a>;
    fn next(&mut self) -> Option<Block<'a>> {
        match &mut self.0 {
            Blocks::Wire(wire) => {
                let (header, headers) = wire.headers.split_first_chunk::<4>()?;
                let bits = u32::from_be_bytes(*header);
                let (data, rest) = wire.data.split_at(bits as usize & MAX_BLOCK)?;
                (wire.headers, wire.data) = (headers, rest);
                let timestamp_offset = (bits >> 10) as u16 & MAX_TIMESTAMP_OFFSET;
                Some(Block { payload_type: header[0] & 0x7f, timestamp_offset, data })
            }
            Blocks::Own(own) => {
                let (first, rest) = own.split_first()?;
                *own = rest;
                Some(*first)
            }
        }
    }
}

#[cfg(test)]
mod tests;
