use super::{Chunk, DELTA_UNIT, FMT, Fixed, LARGE_DELTA, MAX_RUN, NOT_RECEIVED, REFERENCE_UNIT, SMALL_DELTA};
use crate::rtcp::{RTPFB, frame};
use weir_units::Timestamp;

/// Default size limit of a message: it fits into a 1,280-byte MTU with other packets.
pub const DEFAULT_MAX_SIZE: usize = 1_100;
/// Bytes before the first chunk.
const FIXED: usize = 20;

/// Collects arrivals and writes them as one message. If it is reused with [`reset`](Builder::reset), it does not
/// allocate.
///
/// ```
/// use weir_units::{TimeDelta, Timestamp};
/// use weir_wire::rtcp::{Packet, parse_compound, twcc};
/// let t = Timestamp::from_millis(1_000);
/// let mut builder = twcc::Builder::new(1, 2, 0, 100, t);
/// assert!(builder.push(100, Some(t)));
/// assert!(builder.push(102, Some(t + TimeDelta::from_millis(5)))); // 101 is reported as not received
/// let mut out = Vec::new();
/// builder.finish_into(&mut out);
/// let Some(Ok(Packet::Twcc(feedback))) = parse_compound(&out).next() else { panic!() };
/// assert_eq!(feedback.statuses().filter(|(_, arrival)| arrival.is_some()).count(), 2);
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    sender_ssrc: u32,
    media_ssrc: u32,
    feedback_count: u8,
    base_sequence: u16,
    reference: i64,
    last_tick: i64,
    symbols: Vec<u8>,
    deltas: Vec<u8>,
    /// Number of chunks for runs of 14 or more "not received" statuses, and the statuses in them.
    gap_chunks: usize,
    gap_symbols: usize,
    max_size: usize,
}

impl Builder {
    /// A builder for a first message; the arguments after the SSRCs are those of [`Builder::reset`].
    pub fn new(
        sender_ssrc: u32,
        media_ssrc: u32,
        feedback_count: u8,
        base_sequence: u16,
        reference: Timestamp,
    ) -> Self {
        let mut builder = Self {
            sender_ssrc,
            media_ssrc,
            feedback_count,
            base_sequence,
            reference: 0,
            last_tick: 0,
            symbols: Vec::new(),
            deltas: Vec::new(),
            gap_chunks: 0,
            gap_symbols: 0,
            max_size: DEFAULT_MAX_SIZE,
        };
        builder.reset(feedback_count, base_sequence, reference);
        builder
    }
    /// Limits the message to `bytes`, header included: at least 64, at most 60,000.
    #[must_use]
    pub fn with_max_size(mut self, bytes: usize) -> Self {
        self.max_size = bytes.clamp(64, 60_000);
        self
    }
    /// Sets the stream named in messages.
    pub const fn set_media_ssrc(&mut self, ssrc: u32) {
        self.media_ssrc = ssrc;
    }
    /// Starts a new message on packets from `base_sequence`. `reference` is the first arrival to be reported, or any
    /// time within 8 s of it; it is rounded down to a multiple of 64 ms.
    pub fn reset(&mut self, feedback_count: u8, base_sequence: u16, reference: Timestamp) {
        self.feedback_count = feedback_count;
        self.base_sequence = base_sequence;
        self.reference = reference.as_nanos().div_euclid(REFERENCE_UNIT);
        self.last_tick = 0;
        self.symbols.clear();
        self.deltas.clear();
        (self.gap_chunks, self.gap_symbols) = (0, 0);
    }
    /// Number of packets reported so far, including those between arrivals.
    pub const fn status_count(&self) -> usize {
        self.symbols.len()
    }
    /// The status symbols so far.
    #[cfg(test)]
    pub(super) fn symbols(&self) -> &[u8] {
        &self.symbols
    }
    /// Adds a packet with its `arrival` to the nearest 250 us, or `None` to report it as not received. Packets skipped
    /// are reported as not received.
    ///
    /// Returns `false`, with nothing added, if the packet must go into another message: its sequence number is not
    /// after the last one's, its arrival is more than 8,191.75 ms from the last one's, or the message is full.
    #[inline]
    pub fn push(&mut self, sequence: u16, arrival: Option<Timestamp>) -> bool {
        let place = usize::from(sequence.wrapping_sub(self.base_sequence));
        let Some(gap) = place.checked_sub(self.symbols.len()) else { return false };
        // More than half the number space ahead is behind; the status count has 16 bits.
        if gap >= 0x8000 || place >= usize::from(u16::MAX) {
            return false;
        }
        let delta = match arrival {
            None => None,
            Some(arrival) => {
                let since = arrival.as_nanos().saturating_sub(self.reference.saturating_mul(REFERENCE_UNIT));
                let tick = since.saturating_add(DELTA_UNIT / 2).div_euclid(DELTA_UNIT);
                let Ok(delta) = i16::try_from(tick - self.last_tick) else { return false };
                Some((tick, delta))
            }
        };
        let (mut gap_chunks, mut gap_symbols) = (self.gap_chunks, self.gap_symbols);
        if gap >= 14 {
            gap_chunks += gap.div_ceil(MAX_RUN) + 2;
            gap_symbols += gap;
        }
        // Outside long runs every chunk except the last holds at least seven statuses.
        let statuses = place + 1 - gap_symbols;
        let size = |chunks| FIXED + 2 * (gap_chunks + chunks) + self.deltas.len() + 2 + 3;
        // Most messages are so short that a chunk for each status would fit.
        if size(statuses) > self.max_size && size(statuses.div_ceil(7)) > self.max_size {
            return false;
        }
        (self.gap_chunks, self.gap_symbols) = (gap_chunks, gap_symbols);
        if gap > 0 {
            self.symbols.resize(place, NOT_RECEIVED);
        }
        let Some((tick, delta)) = delta else {
            self.symbols.push(NOT_RECEIVED);
            return true;
        };
        self.last_tick = tick;
        if let Ok(small) = u8::try_from(delta) {
            self.symbols.push(SMALL_DELTA);
            self.deltas.push(small);
        } else {
            self.symbols.push(LARGE_DELTA);
            self.deltas.extend_from_slice(&delta.to_be_bytes());
        }
        true
    }
    /// Appends the message; `false`, with nothing appended, if there is no packet to report.
    pub fn finish_into(&self, out: &mut Vec<u8>) -> bool {
        let Ok(status_count) = u16::try_from(self.symbols.len()) else { return false };
        if status_count == 0 {
            return false;
        }
        let fixed = Fixed {
            sender_ssrc: self.sender_ssrc,
            media_ssrc: self.media_ssrc,
            base_sequence: self.base_sequence,
            status_count,
            reference: self.reference as i32,
            feedback_count: self.feedback_count,
        };
        frame(out, FMT, RTPFB, |out| {
            fixed.write_into(out);
            let mut rest = &self.symbols[..];
            while let Some((chunk, covered)) = next_chunk(rest) {
                out.extend_from_slice(&chunk.bits().to_be_bytes());
                rest = &rest[covered..];
            }
            out.extend_from_slice(&self.deltas);
        });
        true
    }
}

/// The chunk that covers the most leading symbols, and their number; `None` at the end.
#[inline]
fn next_chunk(symbols: &[u8]) -> Option<(Chunk, usize)> {
    let &first = symbols.first()?;
    let run = symbols.iter().take(MAX_RUN).take_while(|&&s| s == first).count();
    let one_bit = &symbols[..symbols.len().min(14)];
    if run >= one_bit.len() {
        return Some((Chunk::Run { symbol: first, length: run as u16 }, run));
    }
    if one_bit.iter().all(|&s| s != LARGE_DELTA) {
        let list = one_bit.iter().fold(0, |list, &s| list << 1 | u16::from(s)) << (14 - one_bit.len());
        return Some((Chunk::OneBit(list), one_bit.len()));
    }
    let two_bit = &symbols[..symbols.len().min(7)];
    if run >= two_bit.len() {
        return Some((Chunk::Run { symbol: first, length: run as u16 }, run));
    }
    let list = two_bit.iter().fold(0, |list, &s| list << 2 | u16::from(s)) << (14 - 2 * two_bit.len());
    Some((Chunk::TwoBit(list), two_bit.len()))
}
