use super::{MAX_COUNT, RawPacket, SDES, frame};
use crate::read::Reader;
use crate::{Entry, Error};
use core::fmt;

/// Source description (RFC 3550, section 6.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sdes<'a> {
    /// The sources; at most 31 are written.
    pub chunks: Chunks<'a>,
}

/// Type of an item (RFC 3550, section 6.5, and IANA's registry).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SdesType(pub u8);

impl SdesType {
    /// Canonical end-point identifier.
    pub const CNAME: Self = Self(1);
    /// User name.
    pub const NAME: Self = Self(2);
    /// Electronic mail address.
    pub const EMAIL: Self = Self(3);
    /// Phone number.
    pub const PHONE: Self = Self(4);
    /// Geographic location.
    pub const LOC: Self = Self(5);
    /// Application or tool name.
    pub const TOOL: Self = Self(6);
    /// Notice.
    pub const NOTE: Self = Self(7);
    /// Private extension: the value starts with a prefix length and prefix.
    pub const PRIV: Self = Self(8);
}

/// One item of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Item<'a> {
    /// Its type; type 0 would end the chunk and is not written.
    pub kind: SdesType,
    /// UTF-8 text by the RFC but not checked; truncated to 255 bytes.
    pub value: &'a [u8],
}

/// One source and its items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Chunk<'a> {
    /// The source.
    pub ssrc: u32,
    /// Its items.
    pub items: Items<'a>,
}

/// The sources of a packet: its bytes, or a slice to be written.
#[derive(Clone, Copy)]
pub enum Chunks<'a> {
    /// Bytes validated by [`Sdes::parse`].
    Wire(&'a [u8]),
    /// Sources to write.
    Own(&'a [Chunk<'a>]),
}

/// The items of a source: bytes, or a slice to be written.
#[derive(Clone, Copy)]
pub enum Items<'a> {
    /// Bytes validated by [`Sdes::parse`], without the null octets at the end.
    Wire(&'a [u8]),
    /// Items to write.
    Own(&'a [Item<'a>]),
}

impl<'a> Sdes<'a> {
    /// Parses a packet and checks that every chunk and item is complete.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let all = r.rest();
        for _ in 0..raw.count() {
            read_chunk(&mut r)?;
        }
        Ok(Self { chunks: Chunks::Wire(&all[..all.len() - r.len()]) })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.chunks.iter().take(MAX_COUNT).count() as u8, SDES, |out| {
            for chunk in self.chunks.iter().take(MAX_COUNT) {
                let start = out.len();
                chunk.ssrc.write_into(out);
                for item in chunk.items.iter().filter(|i| i.kind.0 != 0) {
                    let value = &item.value[..item.value.len().min(255)];
                    out.extend_from_slice(&[item.kind.0, value.len() as u8]);
                    out.extend_from_slice(value);
                }
                // At least one null octet ends the chunk; further ones fill its last word.
                out.push(0);
                out.resize(start + (out.len() - start).next_multiple_of(4), 0);
            }
        });
    }
}

fn read_chunk<'a>(r: &mut Reader<'a>) -> Result<Chunk<'a>, Error> {
    let start = r.offset();
    let ssrc = r.u32("SDES SSRC")?;
    let items = r.rest();
    let mut length = 0;
    loop {
        if r.u8("SDES item type")? == 0 {
            break;
        }
        let value = r.u8("SDES item length")?;
        r.take("SDES item value", value.into())?;
        length += 2 + usize::from(value);
    }
    let fill = (r.offset() - start).next_multiple_of(4) - (r.offset() - start);
    r.take("SDES chunk padding", fill)?;
    Ok(Chunk { ssrc, items: Items::Wire(&items[..length]) })
}

impl<'a> Chunks<'a> {
    /// The sources in wire order.
    pub fn iter(&self) -> impl Iterator<Item = Chunk<'a>> + use<'a> {
        let (mut wire, own) = match *self {
            Self::Wire(bytes) => (bytes, &[][..]),
            Self::Own(own) => (&[][..], own),
        };
        let read = core::iter::from_fn(move || {
            let mut r = Reader::new(wire, 0);
            let chunk = read_chunk(&mut r).ok();
            wire = r.rest();
            chunk
        });
        read.chain(own.iter().copied())
    }
}

impl<'a> Items<'a> {
    /// The items in wire order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'a>> + use<'a> {
        let (mut wire, own) = match *self {
            Self::Wire(bytes) => (bytes, &[][..]),
            Self::Own(own) => (&[][..], own),
        };
        let read = core::iter::from_fn(move || {
            let (&[kind, length], rest) = wire.split_first_chunk()?;
            let (value, rest) = rest.split_at_checked(length.into())?;
            wire = rest;
            Some(Item { kind: SdesType(kind), value })
        });
        read.chain(own.iter().copied())
    }
    /// The value of the first item of a kind.
    pub fn find(&self, kind: SdesType) -> Option<&'a [u8]> {
        self.iter().find(|i| i.kind == kind).map(|i| i.value)
    }
}

impl Default for Chunks<'_> {
    fn default() -> Self {
        Self::Own(&[])
    }
}
impl PartialEq for Chunks<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Chunks<'_> {}
impl fmt::Debug for Chunks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
impl Default for Items<'_> {
    fn default() -> Self {
        Self::Own(&[])
    }
}
impl PartialEq for Items<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Items<'_> {}
impl fmt::Debug for Items<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
