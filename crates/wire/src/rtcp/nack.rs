use super::{RTPFB, RawPacket, frame, read_list};
use crate::read::be16;
use crate::{Entry, Error, List};

pub(super) const FMT: u8 = 1;

/// Generic NACK (RFC 4585, section 6.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Nack<'a> {
    /// SSRC of the sender.
    pub sender_ssrc: u32,
    /// The stream with missing packets.
    pub media_ssrc: u32,
    /// The packets missing.
    pub entries: List<'a, NackEntry>,
}

/// Up to 17 missing packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NackEntry {
    /// The first one's sequence number (PID).
    pub first: u16,
    /// Bit i (0 is the least significant) stands for packet `first` + i + 1 (BLP).
    pub following: u16,
}

impl NackEntry {
    /// The sequence numbers from the first.
    pub fn sequences(self) -> impl Iterator<Item = u16> {
        let rest = (0..16).filter(move |i| self.following >> i & 1 != 0);
        core::iter::once(self.first).chain(rest.map(move |i| self.first.wrapping_add(i + 1)))
    }
}

impl Entry for NackEntry {
    const SIZE: usize = 4;
    fn read(b: &[u8]) -> Self {
        Self { first: be16(b, 0), following: be16(b, 2) }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        (u32::from(self.first) << 16 | u32::from(self.following)).write_into(out);
    }
}

impl<'a> Nack<'a> {
    /// Reads a message.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("NACK sender SSRC")?, r.u32("NACK media SSRC")?);
        Ok(Self { sender_ssrc, media_ssrc, entries: read_list(r, "NACK entry")? })
    }
    /// The sequence numbers of the missing packets.
    pub fn sequences(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.entries.iter().flat_map(NackEntry::sequences)
    }
    /// Appends the message.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, FMT, RTPFB, |out| {
            self.sender_ssrc.write_into(out);
            self.media_ssrc.write_into(out);
            self.entries.write_into(out);
        });
    }
}

/// Packs ascending sequence numbers (with wrap-around) into entries.
#[derive(Clone, Debug)]
pub struct NackPacker<I> {
    sequences: I,
    open: Option<NackEntry>,
}

impl<I: Iterator<Item = u16>> NackPacker<I> {
    /// A packer of `sequences`; reordered or repeated ones cost another entry.
    pub fn new(sequences: impl IntoIterator<IntoIter = I>) -> Self {
        Self { sequences: sequences.into_iter(), open: None }
    }
}

impl<I: Iterator<Item = u16>> Iterator for NackPacker<I> {
    type Item = NackEntry;
    fn next(&mut self) -> Option<NackEntry> {
        for sequence in self.sequences.by_ref() {
            let fresh = NackEntry { first: sequence, following: 0 };
            match &mut self.open {
                None => self.open = Some(fresh),
                Some(entry) => match sequence.wrapping_sub(entry.first) {
                    0 => {}
                    distance @ 1..=16 => entry.following |= 1 << (distance - 1),
                    _ => return self.open.replace(fresh),
                },
            }
        }
        self.open.take()
    }
}
