//! Extended reports (RFC 3611).
//!
//! Blocks of a type that Weir does not know, or of one that it knows with another length, stay in [`Block::Other`] with
//! their bytes. A new type is a variant of [`Block`], one arm in its reading and one in its writing.

use super::{MAX_PACKET, RawPacket, XR, frame};
use crate::ntp::NtpTime;
use crate::read::{Reader, be32};
use crate::{Entry, Error, List};
use core::fmt;

/// Block type of the receiver reference time (section 4.4).
pub const RRTR: u8 = 4;
/// Block type of the delay since the last RRTR (section 4.5).
pub const DLRR: u8 = 5;

/// Extended report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Xr<'a> {
    /// Who sends it.
    pub ssrc: u32,
    /// What it reports.
    pub blocks: Blocks<'a>,
}

/// One report block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Receiver reference time: when the report was sent, by its sender's clock.
    Rrtr(NtpTime),
    /// Delay since the last receiver reference time of each receiver.
    Dlrr(List<'a, DlrrEntry>),
    /// Any other block.
    Other(RawBlock<'a>),
}

/// A block as its header frames it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawBlock<'a> {
    /// Block type.
    pub block_type: u8,
    /// The octet that each type defines for itself.
    pub type_specific: u8,
    /// What follows the block header, in whole words; zeros fill the last one.
    pub body: &'a [u8],
}

/// Echo of one receiver's reference time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlrrEntry {
    /// The receiver.
    pub ssrc: u32,
    /// Middle 32 bits of its last reference time, 0 for none yet.
    pub last_rr: u32,
    /// Time since that came, in units of 2^-16 s.
    pub delay_since_last_rr: u32,
}

impl Entry for DlrrEntry {
    const SIZE: usize = 12;
    fn read(b: &[u8]) -> Self {
        Self { ssrc: be32(b, 0), last_rr: be32(b, 4), delay_since_last_rr: be32(b, 8) }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        [self.ssrc, self.last_rr, self.delay_since_last_rr].iter().for_each(|w| w.write_into(out));
    }
}

impl<'a> Block<'a> {
    fn from_raw(raw: RawBlock<'a>) -> Self {
        match (raw.block_type, raw.body.len()) {
            (RRTR, 8) => {
                Self::Rrtr(NtpTime::from_bits(u64::from(be32(raw.body, 0)) << 32 | u64::from(be32(raw.body, 4))))
            }
            (DLRR, length) if length % DlrrEntry::SIZE == 0 => Self::Dlrr(List::from_wire(raw.body)),
            _ => Self::Other(raw),
        }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (block_type, type_specific) = match self {
            Self::Rrtr(_) => (RRTR, 0),
            Self::Dlrr(_) => (DLRR, 0),
            Self::Other(raw) => (raw.block_type, raw.type_specific),
        };
        out.extend_from_slice(&[block_type, type_specific, 0, 0]);
        match self {
            Self::Rrtr(ntp) => out.extend_from_slice(&ntp.bits().to_be_bytes()),
            Self::Dlrr(entries) => entries.write_into(out),
            Self::Other(raw) => out.extend_from_slice(raw.body),
        }
        out.resize(start + (out.len() - start).next_multiple_of(4), 0);
        let words = ((out.len() - start) / 4 - 1) as u16;
        out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
    }
}

/// The blocks of a report: its bytes, or the caller's own.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Bytes that [`Xr::parse`] has checked.
    Wire(&'a [u8]),
    /// Blocks to write.
    Own(&'a [Block<'a>]),
}

impl<'a> Blocks<'a> {
    /// The blocks in the order of the wire.
    pub fn iter(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let (wire, own) = match *self {
            Self::Wire(bytes) => (bytes, &[][..]),
            Self::Own(own) => (&[][..], own),
        };
        let mut r = Reader::new(wire, 0);
        let read = core::iter::from_fn(move || read_block(&mut r).ok().map(Block::from_raw));
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

impl<'a> Xr<'a> {
    /// Reads a report and checks that every block is whole.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let ssrc = r.u32("XR SSRC")?;
        let blocks = Blocks::Wire(r.rest());
        while !r.is_empty() {
            read_block(&mut r)?;
        }
        Ok(Self { ssrc, blocks })
    }
    /// Appends the report; blocks that would pass the length field are left out.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, 0, XR, |out| {
            self.ssrc.write_into(out);
            let start = out.len();
            for block in self.blocks.iter() {
                let before = out.len();
                block.write_into(out);
                if out.len() - start > MAX_PACKET - 8 {
                    out.truncate(before);
                    break;
                }
            }
        });
    }
}

fn read_block<'a>(r: &mut Reader<'a>) -> Result<RawBlock<'a>, Error> {
    let (block_type, type_specific) = (r.u8("XR block type")?, r.u8("XR type-specific octet")?);
    let words = r.u16("XR block length")?;
    Ok(RawBlock { block_type, type_specific, body: r.take("XR block", usize::from(words) * 4)? })
}
