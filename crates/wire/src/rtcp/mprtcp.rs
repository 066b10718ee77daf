//! Multipath RTCP (draft-ietf-avtcore-mprtp-03, sections 9.2 and 9.3): reports on single subflows, and the addresses at
//! which an end takes part in more of them.
//!
//! A packet has blocks. Blocks of type 0 carry whole RTCP packets about one subflow, whose sequence numbers are the
//! subflow's own; the others carry an address each.
//!
//! The draft counts the length of a block in two ways. Section 9.2.1 leaves the block's first word out for type 0,
//! and section 9.3 includes it for addresses (2 for IPv4, 5 for IPv6). Both are followed here. A length of zero is
//! invalid (section 9.2): such a block is a word long and ignored.

use super::{MAX_PACKET, MPRTCP, Packet, RawPacket, parse_compound};
use crate::Error;
use crate::read::{Reader, be16};
use core::fmt;
use core::net::{Ipv4Addr, Ipv6Addr};

/// Block type of reports on a subflow (section 12.2).
pub const SUBFLOW_REPORT: u8 = 0;
/// Block type of an IPv4 address.
pub const IPV4_ADDRESS: u8 = 1;
/// Block type of an IPv6 address.
pub const IPV6_ADDRESS: u8 = 2;
/// Block type of a DNS name.
pub const DNS_NAME: u8 = 3;

/// Most bytes of reports in one block, by its length field of 8 bits.
pub const MAX_REPORTS: usize = 255 * 4;
/// Longest DNS name in bytes, as text (RFC 1035, section 2.3.4).
pub const MAX_NAME: usize = 253;

/// Reports on subflows of a stream, or addresses for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mprtcp<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream that it concerns ("SSRC of first source").
    pub media_ssrc: u32,
    /// Its content.
    pub blocks: Blocks<'a>,
}

/// One block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Reports on one subflow.
    Reports(SubflowReports<'a>),
    /// An address.
    Interface(Interface<'a>),
    /// A block of another type, or with an address that the draft does not allow.
    Other(RawBlock<'a>),
}

/// RTCP packets about one subflow: its sender or receiver report, and extended reports or feedback after it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SubflowReports<'a> {
    /// The subflow's identifier.
    pub subflow: u16,
    /// The packets' bytes, in whole words and at most [`MAX_REPORTS`].
    pub reports: &'a [u8],
}

impl<'a> SubflowReports<'a> {
    /// The packets. Offsets in errors count from the first of them.
    ///
    /// Multipath RTCP inside is an error, so that there is no nesting to follow.
    pub fn packets(&self) -> impl Iterator<Item = Result<Packet<'a>, Error>> + use<'a> {
        parse_compound(self.reports).map(|packet| match packet {
            Ok(Packet::Mprtcp(_)) => Err(Error::Value {
                field: "RTCP packet type in a subflow's reports",
                offset: 1,
                value: MPRTCP.into(),
                expected: "any but that of MPRTCP",
            }),
            other => other,
        })
    }
}

impl fmt::Debug for SubflowReports<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubflowReports").field("subflow", &self.subflow).field("bytes", &self.reports.len()).finish()
    }
}

/// An address at which an end sends and receives RTP and RTCP (section 9.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interface<'a> {
    port: u16,
    address: InterfaceAddress<'a>,
}

/// The forms of an address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum InterfaceAddress<'a> {
    /// IPv4.
    V4(Ipv4Addr),
    /// IPv6.
    V6(Ipv6Addr),
    /// A DNS name in UTF-8, to be resolved.
    Name(&'a str),
}

impl<'a> Interface<'a> {
    /// An address and a port. `None` if the port is 0, or if a name is empty, has a null octet or is longer than
    /// [`MAX_NAME`].
    pub fn new(port: u16, address: InterfaceAddress<'a>) -> Option<Self> {
        let valid = match address {
            InterfaceAddress::Name(name) => {
                (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|octet| octet != 0)
            }
            InterfaceAddress::V4(_) | InterfaceAddress::V6(_) => true,
        };
        (port != 0 && valid).then_some(Self { port, address })
    }
    /// The UDP port, never 0.
    pub const fn port(&self) -> u16 {
        self.port
    }
    /// The address.
    pub const fn address(&self) -> InterfaceAddress<'a> {
        self.address
    }

    fn from_raw(raw: &RawBlock<'a>) -> Option<Self> {
        let (port, rest) = (be16(raw.body, 0), &raw.body[2..]);
        let address = match raw.block_type {
            IPV4_ADDRESS => InterfaceAddress::V4(Ipv4Addr::from(<[u8; 4]>::try_from(rest).ok()?)),
            IPV6_ADDRESS => InterfaceAddress::V6(Ipv6Addr::from(<[u8; 16]>::try_from(rest).ok()?)),
            DNS_NAME => {
                // Zeros fill the last word only; more of them are no name's.
                let end = rest.iter().rposition(|octet| *octet != 0).map_or(0, |last| last + 1);
                if rest.len() - end > 3 {
                    return None;
                }
                InterfaceAddress::Name(core::str::from_utf8(&rest[..end]).ok()?)
            }
            _ => return None,
        };
        Self::new(port, address)
    }
}

/// A block framed by its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawBlock<'a> {
    /// Block type, not [`SUBFLOW_REPORT`].
    pub block_type: u8,
    /// The bytes after the length: two, and whole words.
    pub body: &'a [u8],
}

impl<'a> Block<'a> {
    fn from_raw(raw: RawBlock<'a>) -> Self {
        if raw.block_type == SUBFLOW_REPORT {
            return Self::Reports(SubflowReports { subflow: be16(raw.body, 0), reports: &raw.body[2..] });
        }
        Interface::from_raw(&raw).map_or(Self::Other(raw), Self::Interface)
    }
}

/// The blocks of a packet: its bytes, or a slice to be written.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Bytes validated by [`Mprtcp::parse`].
    Wire(&'a [u8]),
    /// Blocks to write.
    Own(&'a [Block<'a>]),
}

impl<'a> Blocks<'a> {
    /// The blocks in wire order, without ignored ones.
    pub fn iter(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let (wire, own) = match *self {
            Self::Wire(bytes) => (bytes, &[][..]),
            Self::Own(own) => (&[][..], own),
        };
        let mut r = Reader::new(wire, 0);
        let read = core::iter::from_fn(move || {
            // One word at least is taken each time.
            while !r.is_empty() {
                if let Some(raw) = read_block(&mut r).ok()? {
                    return Some(Block::from_raw(raw));
                }
            }
            None
        });
        read.chain(own.iter().copied())
    }
}

impl Default for Blocks<'_> {
    fn default() -> Self {
        Self::Own(&[])
    }
}
impl PartialEq for Blocks<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Blocks<'_> {}
impl fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The next block; `None` if its length of zero has it ignored.
fn read_block<'a>(r: &mut Reader<'a>) -> Result<Option<RawBlock<'a>>, Error> {
    let (block_type, length) = (r.u8("MPRTCP block type")?, r.u8("MPRTCP block length")?);
    let after_first = if block_type == SUBFLOW_REPORT { length } else { length.saturating_sub(1) };
    let body = r.take("MPRTCP block", 2 + usize::from(after_first) * 4)?;
    Ok((length > 0).then_some(RawBlock { block_type, body }))
}

impl<'a> Mprtcp<'a> {
    /// Parses a packet and checks that every block is complete. What blocks contain is parsed on access.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("MPRTCP SSRC")?, r.u32("MPRTCP media SSRC")?);
        let blocks = Blocks::Wire(r.rest());
        while !r.is_empty() {
            read_block(&mut r)?;
        }
        Ok(Self { sender_ssrc, media_ssrc, blocks })
    }
    /// Appends the packet; blocks that do not fit are left out.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out, self.sender_ssrc, self.media_ssrc);
        for block in self.blocks.iter() {
            match block {
                Block::Reports(r) => writer.reports(r.subflow, |out| out.extend_from_slice(r.reports)),
                Block::Interface(i) => writer.interface(&i),
                Block::Other(raw) => writer.block(raw.block_type, |out| out.extend_from_slice(raw.body)),
            };
        }
        writer.finish();
    }
}

/// Writes a packet directly into the caller's bytes, block by block.
///
/// ```
/// use weir_wire::rtcp::{ReceiverReport, mprtcp::Writer};
/// let mut out = Vec::new();
/// let mut writer = Writer::new(&mut out, 1, 2);
/// assert!(writer.reports(7, |out| ReceiverReport { ssrc: 1, ..Default::default() }.write_into(out)));
/// writer.finish();
/// assert_eq!(out.len(), 12 + 4 + 8);
/// ```
#[derive(Debug)]
#[must_use = "finish() completes the packet"]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
}

impl<'o> Writer<'o> {
    /// Starts a packet about the stream `media_ssrc`.
    pub fn new(out: &'o mut Vec<u8>, sender_ssrc: u32, media_ssrc: u32) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0x80, MPRTCP, 0, 0]);
        out.extend_from_slice(&sender_ssrc.to_be_bytes());
        out.extend_from_slice(&media_ssrc.to_be_bytes());
        Self { out, start }
    }
    /// Adds reports on a subflow, the RTCP packets that `reports` appends. Returns `false`, with nothing added, if there
    /// are none, if they exceed [`MAX_REPORTS`], or if the packet is full (256 kB).
    pub fn reports(&mut self, subflow: u16, reports: impl FnOnce(&mut Vec<u8>)) -> bool {
        self.block(SUBFLOW_REPORT, |out| {
            out.extend_from_slice(&subflow.to_be_bytes());
            reports(out);
        })
    }
    /// Adds an address, those with the highest priority first (section 8.1.4). Returns `false`, with nothing added, if
    /// the packet is full.
    pub fn interface(&mut self, interface: &Interface<'_>) -> bool {
        let block_type = match interface.address {
            InterfaceAddress::V4(_) => IPV4_ADDRESS,
            InterfaceAddress::V6(_) => IPV6_ADDRESS,
            InterfaceAddress::Name(_) => DNS_NAME,
        };
        self.block(block_type, |out| {
            out.extend_from_slice(&interface.port.to_be_bytes());
            match interface.address {
                InterfaceAddress::V4(a) => out.extend_from_slice(&a.octets()),
                InterfaceAddress::V6(a) => out.extend_from_slice(&a.octets()),
                InterfaceAddress::Name(name) => out.extend_from_slice(name.as_bytes()),
            }
        })
    }
    /// Size of the packet so far.
    pub fn size(&self) -> usize {
        self.out.len() - self.start
    }
    /// Completes the packet.
    pub fn finish(self) {
        super::set_length(self.out, self.start);
    }

    /// Adds a block with the bytes appended by `body`, and fills its last word with zeros.
    fn block(&mut self, block_type: u8, body: impl FnOnce(&mut Vec<u8>)) -> bool {
        let at = self.out.len();
        self.out.extend_from_slice(&[block_type, 0]);
        body(self.out);
        let size = (self.out.len() - at).next_multiple_of(4);
        self.out.resize(at + size, 0);
        let length = if block_type == SUBFLOW_REPORT { size / 4 - 1 } else { size / 4 };
        match u8::try_from(length) {
            Ok(length) if length > 0 && self.size() <= MAX_PACKET => {
                self.out[at + 1] = length;
                true
            }
            _ => {
                self.out.truncate(at);
                false
            }
        }
    }
}

#[cfg(test)]
mod tests;
