//! Transport-wide congestion control feedback (draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1).
//!
//! Where the draft contradicts itself, its figures and libwebrtc (as of 2024) are followed: the packet type is 205
//! (section 3.1's text has 206), and in a one-bit status vector 1 means received (the text of section 3.1.4 has the
//! reverse, its example does not). The reserved status symbol 11, which two examples show as "received without a
//! delta", is rejected.

mod builder;

pub use builder::{Builder, DEFAULT_MAX_SIZE};

use super::{RTPFB, RawPacket, frame};
use crate::Error;
use crate::read::{Reader, be16};
use weir_units::{RemoteTimestamp, TimeDelta};

/// The message's FMT value.
pub const FMT: u8 = 15;
/// Nanoseconds in a unit of the reference time.
const REFERENCE_UNIT: i64 = 64_000_000;
/// Nanoseconds in a unit of a receive delta.
const DELTA_UNIT: i64 = 250_000;
/// Longest run of a run-length chunk (13 bits).
const MAX_RUN: usize = 0x1fff;

const NOT_RECEIVED: u8 = 0;
const SMALL_DELTA: u8 = 1;
const LARGE_DELTA: u8 = 2;

/// A received message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback<'a> {
    /// The sender of the feedback.
    pub sender_ssrc: u32,
    /// A stream that it concerns.
    pub media_ssrc: u32,
    /// Transport-wide sequence number of the first packet reported on.
    pub base_sequence: u16,
    /// Packets reported on.
    pub status_count: u16,
    /// Reference time in units of 64 ms, 24 bits, signed.
    pub reference: i32,
    /// Counts the messages of this sender, modulo 256.
    pub feedback_count: u8,
    chunks: &'a [u8],
    deltas: &'a [u8],
}

impl<'a> Feedback<'a> {
    /// Parses a message and checks that statuses and deltas are complete.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let (sender_ssrc, media_ssrc) = (r.u32("TWCC sender SSRC")?, r.u32("TWCC media SSRC")?);
        let (base_sequence, status_count) = (r.u16("TWCC base sequence")?, r.u16("TWCC status count")?);
        let time_and_count = r.u32("TWCC reference time")?;
        let (chunks, delta_bytes) = read_chunks(&mut r, usize::from(status_count))?;
        let deltas = r.take("TWCC receive deltas", delta_bytes)?;
        Ok(Self {
            sender_ssrc,
            media_ssrc,
            base_sequence,
            status_count,
            reference: time_and_count as i32 >> 8,
            feedback_count: time_and_count as u8,
            chunks,
            deltas,
        })
    }
    /// The reference time by the receiver's clock, which wraps every 12.4 days; see [`ReferenceClock`].
    pub const fn reference_time(&self) -> RemoteTimestamp {
        RemoteTimestamp::from_nanos(self.reference as i64 * REFERENCE_UNIT)
    }
    /// Each packet's transport-wide sequence number and, if it was received, its arrival after the reference time.
    pub const fn statuses(&self) -> Statuses<'a> {
        Statuses {
            chunks: self.chunks,
            deltas: self.deltas,
            sequence: self.base_sequence,
            left: self.status_count,
            chunk: ChunkCursor { bits: 0, width: 0, left: 0 },
            ticks: 0,
        }
    }
    /// The status chunks as received.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = Chunk> + use<'a> {
        self.chunks.chunks_exact(2).map(|c| Chunk::from_bits(be16(c, 0)))
    }
    /// Appends the message with the chunks as received.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        let fixed = Fixed {
            sender_ssrc: self.sender_ssrc,
            media_ssrc: self.media_ssrc,
            base_sequence: self.base_sequence,
            status_count: self.status_count,
            reference: self.reference,
            feedback_count: self.feedback_count,
        };
        frame(out, FMT, RTPFB, |out| {
            fixed.write_into(out);
            self.chunks().for_each(|c| out.extend_from_slice(&c.bits().to_be_bytes()));
            out.extend_from_slice(self.deltas);
        });
    }
    /// Number of zero octets at the end that fill the last word.
    pub(super) const fn fill(&self) -> usize {
        (4 - (self.chunks.len() + self.deltas.len()) % 4) % 4
    }
}

/// Parses the chunks of `count` statuses; returns them and the number of delta bytes that they announce.
#[inline]
fn read_chunks<'a>(r: &mut Reader<'a>, count: usize) -> Result<(&'a [u8], usize), Error> {
    let reserved =
        |offset| Error::Value { field: "TWCC packet status symbol", offset, value: 3, expected: "0, 1 or 2" };
    let all = r.rest();
    let (mut left, mut delta_bytes) = (count, 0);
    while left > 0 {
        let offset = r.offset();
        let bits = r.u16("TWCC packet status chunk")?;
        let covered = match Chunk::from_bits(bits) {
            Chunk::Run { symbol, length } => {
                let n = usize::from(length).min(left);
                if symbol == 3 {
                    return Err(reserved(offset));
                }
                delta_bytes += n * usize::from(symbol);
                n
            }
            Chunk::OneBit(_) => {
                let n = left.min(14);
                delta_bytes += (bits << 2 >> (16 - n)).count_ones() as usize;
                n
            }
            Chunk::TwoBit(_) => {
                let n = left.min(7);
                let symbols = bits << 2 >> (16 - 2 * n);
                let (high, low) = (symbols >> 1 & 0x5555, symbols & 0x5555);
                if high & low != 0 {
                    return Err(reserved(offset));
                }
                delta_bytes += (2 * high.count_ones() + low.count_ones()) as usize;
                n
            }
        };
        left -= covered;
    }
    Ok((&all[..all.len() - r.len()], delta_bytes))
}

/// A packet status chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chunk {
    /// A repeated symbol.
    Run {
        /// The symbol, 0 to 3.
        symbol: u8,
        /// Number of repetitions, up to 8,191.
        length: u16,
    },
    /// Fourteen symbols of one bit, the first in bit 13.
    OneBit(u16),
    /// Seven symbols of two bits, the first in bits 13 and 12.
    TwoBit(u16),
}

impl Chunk {
    /// The chunk of 16 bits.
    #[inline]
    pub const fn from_bits(bits: u16) -> Self {
        match bits >> 14 {
            0b10 => Self::OneBit(bits & 0x3fff),
            0b11 => Self::TwoBit(bits & 0x3fff),
            _ => Self::Run { symbol: (bits >> 13) as u8 & 3, length: bits & MAX_RUN as u16 },
        }
    }
    /// The chunk as in the packet.
    #[inline]
    pub const fn bits(self) -> u16 {
        match self {
            Self::Run { symbol, length } => (symbol as u16 & 3) << 13 | length & MAX_RUN as u16,
            Self::OneBit(list) => 0x8000 | list & 0x3fff,
            Self::TwoBit(list) => 0xc000 | list & 0x3fff,
        }
    }
}

/// Iterator over [`Feedback::statuses`].
#[derive(Clone, Copy, Debug)]
pub struct Statuses<'a> {
    chunks: &'a [u8],
    deltas: &'a [u8],
    sequence: u16,
    left: u16,
    chunk: ChunkCursor,
    ticks: i64,
}

/// The remaining symbols of one chunk: the next in the top bits; `width` 0 if all are equal.
#[derive(Clone, Copy, Debug)]
struct ChunkCursor {
    bits: u16,
    width: u8,
    left: u16,
}

impl Iterator for Statuses<'_> {
    type Item = (u16, Option<TimeDelta>);
    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        while self.chunk.left == 0 {
            let (bits, rest) = self.chunks.split_first_chunk()?;
            self.chunks = rest;
            let bits = u16::from_be_bytes(*bits);
            self.chunk = match Chunk::from_bits(bits) {
                Chunk::Run { symbol, length } => ChunkCursor { bits: u16::from(symbol) << 14, width: 0, left: length },
                Chunk::OneBit(list) => ChunkCursor { bits: list << 2, width: 1, left: 14 },
                Chunk::TwoBit(list) => ChunkCursor { bits: list << 2, width: 2, left: 7 },
            };
        }
        self.chunk.left -= 1;
        let symbol = self.chunk.bits >> if self.chunk.width == 1 { 15 } else { 14 };
        self.chunk.bits <<= self.chunk.width;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        match symbol as u8 {
            SMALL_DELTA => {
                let (delta, rest) = self.deltas.split_first()?;
                self.deltas = rest;
                self.ticks += i64::from(*delta);
            }
            LARGE_DELTA => {
                let (delta, rest) = self.deltas.split_first_chunk()?;
                self.deltas = rest;
                self.ticks += i64::from(i16::from_be_bytes(*delta));
            }
            _ => return Some((sequence, None)),
        }
        Some((sequence, Some(TimeDelta::from_nanos(self.ticks * DELTA_UNIT))))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left.into()))
    }
}

/// Unwraps 24-bit reference times.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReferenceClock {
    latest: Option<i64>,
}

impl ReferenceClock {
    /// A clock in its initial state.
    pub const fn new() -> Self {
        Self { latest: None }
    }
    /// The time of `reference`: the nearest (within 6.2 days) to the latest.
    #[inline]
    pub fn unwrap(&mut self, reference: i32) -> RemoteTimestamp {
        let units = match self.latest {
            None => i64::from(reference),
            Some(l) => l + i64::from(reference.wrapping_sub(l as i32) << 8 >> 8),
        };
        self.latest = Some(self.latest.map_or(units, |l| l.max(units)));
        RemoteTimestamp::from_nanos(units.saturating_mul(REFERENCE_UNIT))
    }
}

struct Fixed {
    sender_ssrc: u32,
    media_ssrc: u32,
    base_sequence: u16,
    status_count: u16,
    reference: i32,
    feedback_count: u8,
}

impl Fixed {
    fn write_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.sender_ssrc.to_be_bytes());
        out.extend_from_slice(&self.media_ssrc.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.status_count.to_be_bytes());
        out.extend_from_slice(&((self.reference as u32) << 8 | u32::from(self.feedback_count)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests;
