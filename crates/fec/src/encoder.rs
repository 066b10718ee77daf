//! The sender's half: source packets in, repair packets out.

mod sliding;

use std::collections::VecDeque;

use crate::buffers::Buffers;
use crate::reed_solomon::{self, Generators};
use crate::sum::Sum;
use crate::{Code, Coverage, Importance, Protection, Repair, Scheme, SchemeError, Shape, Symbol};

/// Most repair packets waiting to be polled; beyond that the oldest are dropped.
const MAX_WAITING: usize = 1_024;

/// Counters of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncoderCounts {
    /// Source packets added to a block.
    pub protected: u64,
    /// Source packets without a scheme.
    pub unprotected: u64,
    /// Source packets whose sequence number did not increase.
    pub out_of_order: u64,
    /// Blocks completed, full or not.
    pub blocks: u64,
    /// Repair packets made.
    pub repairs: u64,
    /// Repair packets dropped because they were not polled.
    pub dropped: u64,
}

/// Makes repair packets for sent packets.
///
/// A change of scheme takes effect with the next block. Parity is an exception, since an interval has no block to
/// complete: a new interval applies at once, and a group that already has as many packets is completed. So do the numbers
/// of a sliding-window code, whose window stays.
#[derive(Debug, Default)]
pub struct Encoder {
    protection: Protection,
    /// One for each importance; only the first if all packets have the same protection.
    lanes: [Lane; 3],
    out: Output,
}

impl Encoder {
    /// An encoder with one scheme for all packets, a plan by importance, or switched off.
    ///
    /// # Errors
    /// As [`Scheme::checked`].
    pub fn new(protection: impl Into<Protection>) -> Result<Self, SchemeError> {
        let mut encoder = Self::default();
        encoder.set_protection(protection)?;
        Ok(encoder)
    }
    /// Protects all packets by one scheme, or none. Open blocks are completed with their original scheme.
    ///
    /// # Errors
    /// As [`Scheme::checked`]; then nothing changes.
    pub fn set_scheme(&mut self, scheme: Option<Scheme>) -> Result<(), SchemeError> {
        self.set_protection(scheme)
    }
    /// Sets the plan. A change between one scheme and a plan by importance completes the open blocks.
    ///
    /// # Errors
    /// As [`Scheme::checked`]; then nothing changes.
    pub fn set_protection(&mut self, protection: impl Into<Protection>) -> Result<(), SchemeError> {
        let protection = protection.into().checked()?;
        let apart = |p| matches!(p, Protection::ByImportance { .. });
        if apart(protection) != apart(self.protection) {
            self.flush();
        }
        self.protection = protection;
        for (lane, importance) in self.lanes.iter_mut().zip(Importance::ALL) {
            lane.set(protection.scheme(importance), &mut self.out);
        }
        Ok(())
    }
    /// The plan in force, or from the next block on.
    pub const fn protection(&self) -> Protection {
        self.protection
    }

    /// Takes a source packet. Sequence numbers must increase; those skipped are unprotected packets.
    ///
    /// A packet too far from the first of its block for a [`Coverage`] completes the block before it.
    pub fn push(&mut self, sequence: u64, symbol: Symbol<'_>, importance: Importance) {
        let lane = match self.protection {
            Protection::ByImportance { .. } => importance as usize,
            _ => 0,
        };
        self.lanes[lane].push(sequence, symbol, &mut self.out);
    }
    /// The next repair packet, in the order of creation. It is valid until the next call.
    pub fn poll_repair(&mut self) -> Option<Repair<'_>> {
        if std::mem::take(&mut self.out.is_polled)
            && let Some(polled) = self.out.waiting.pop_front()
        {
            self.out.pool.put(polled.buffer, usize::MAX);
        }
        let next = self.out.waiting.front()?;
        self.out.is_polled = true;
        let symbol = Symbol { bytes: &next.buffer[next.start..], zeros: next.zeros };
        Some(Repair { coverage: next.coverage, code: next.code, symbol })
    }
    /// Keeps groups of parity in reserve: while on standby, their packets count as unprotected, and a full group is
    /// dropped instead of sent. Ending it makes the repair packet of the open group, over the packets just pushed. Groups
    /// that are open when it begins are dropped. The same for sliding-window codes, whose window begins with it; block codes
    /// are unaffected.
    pub fn set_standby(&mut self, standby: bool) {
        if std::mem::replace(&mut self.out.is_standby, standby) == standby {
            return;
        }
        for lane in &mut self.lanes {
            if !lane.scheme.is_some_and(|scheme| waits_on_standby(&scheme)) {
                continue;
            }
            if standby {
                lane.forget(&mut self.out.pool);
            } else {
                self.out.counts.unprotected -= lane.count as u64;
                self.out.counts.protected += lane.count as u64;
                lane.close(&mut self.out);
            }
        }
    }
    /// Completes open blocks as they are: their repair packets cover fewer source packets. Reed-Solomon then makes
    /// proportionally fewer, rounded up, and a sliding-window code those that this leaves to be made of its group.
    pub fn flush(&mut self) {
        for lane in &mut self.lanes {
            lane.close(&mut self.out);
        }
    }
    /// Completes the blocks that began below a sequence number, as [`Encoder::flush`] does, to bound repair delay.
    pub fn flush_before(&mut self, sequence: u64) {
        for lane in &mut self.lanes {
            if lane.base().is_some_and(|base| base < sequence) {
                lane.close(&mut self.out);
            }
        }
    }
    /// Drops open blocks and waiting repair packets.
    pub fn abandon(&mut self) {
        for lane in &mut self.lanes {
            lane.forget(&mut self.out.pool);
        }
        self.out.is_polled = false;
        while let Some(waiting) = self.out.waiting.pop_front() {
            self.out.pool.put(waiting.buffer, usize::MAX);
        }
    }
    /// Source packets in open blocks.
    pub fn open(&self) -> usize {
        self.lanes.iter().map(|lane| lane.count).sum()
    }
    /// The counters.
    pub const fn counts(&self) -> EncoderCounts {
        self.out.counts
    }
}

/// A repair packet waiting to be polled.
#[derive(Debug)]
struct Waiting {
    coverage: Coverage,
    code: Code,
    buffer: Vec<u8>,
    /// Offset of the symbol in the buffer.
    start: usize,
    zeros: u32,
}

#[derive(Debug, Default)]
struct Output {
    waiting: VecDeque<Waiting>,
    /// Whether the first of them was polled and can be removed.
    is_polled: bool,
    /// Whether groups of parity are kept but not sent.
    is_standby: bool,
    pool: Buffers,
    counts: EncoderCounts,
    generators: Generators,
    /// Empty between calls.
    rows: Vec<Vec<u8>>,
}

/// Whether standby keeps a scheme's repair packets back.
const fn waits_on_standby(scheme: &Scheme) -> bool {
    matches!(scheme, Scheme::Parity { .. } | Scheme::Rlc { .. })
}

/// A source packet kept until its block is complete.
#[derive(Debug)]
struct Packet {
    bytes: Vec<u8>,
    zeros: u32,
}

impl Output {
    #[inline]
    fn emit(&mut self, waiting: Waiting) {
        self.counts.repairs += 1;
        if self.waiting.len() >= MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.counts.dropped += u64::from(!std::mem::take(&mut self.is_polled));
            self.pool.put(oldest.buffer, usize::MAX);
        }
        self.waiting.push_back(waiting);
    }
    fn emit_sum(&mut self, sum: &mut Sum, shape: Shape) {
        let (coverage, buffer, start, zeros) = sum.finish();
        self.emit(Waiting { coverage, code: Code::Parity(shape), buffer, start, zeros });
    }
    /// Makes `count` repair symbols of a Reed-Solomon block, and frees its packets.
    fn emit_rows(&mut self, coverage: Coverage, packets: &mut Vec<Packet>, count: usize) {
        let total = packets.iter().map(|p| p.bytes.len() + p.zeros as usize).max().unwrap_or(0);
        let len = packets.iter().map(|p| p.bytes.len()).max().unwrap_or(0);
        if count > 0 {
            let mut rows = std::mem::take(&mut self.rows);
            rows.extend(std::iter::repeat_with(|| self.pool.take_filled(len)).take(count));
            let coefficients = self.generators.rows(packets.len(), count);
            reed_solomon::combine(coefficients, packets.iter().map(|p| p.bytes.as_slice()), &mut rows);
            for (buffer, row) in rows.drain(..).zip(0..) {
                // A block has at most 255 packets.
                let code = Code::ReedSolomon { sources: packets.len() as u8, repairs: count as u8, row };
                self.emit(Waiting { coverage, code, buffer, start: 0, zeros: (total - len) as u32 });
            }
            self.rows = rows;
        }
        for packet in packets.drain(..) {
            self.pool.put(packet.bytes, usize::MAX);
        }
    }
}

/// Consecutive blocks of one scheme.
#[derive(Debug, Default)]
struct Lane {
    /// The open block's scheme.
    scheme: Option<Scheme>,
    /// Number of source packets in a full block.
    full: usize,
    /// The next block's scheme.
    next: Option<Scheme>,
    /// Coverage of the open block; only its base is valid if sums have their own.
    coverage: Coverage,
    /// Source packets in the open block.
    count: usize,
    last: Option<u64>,
    row: Sum,
    columns: Vec<Sum>,
    packets: Vec<Packet>,
    window: sliding::Window,
}

impl Lane {
    fn base(&self) -> Option<u64> {
        (self.count > 0).then(|| self.coverage.base())
    }

    fn set(&mut self, scheme: Option<Scheme>, out: &mut Output) {
        self.next = scheme;
        if let (Some(Scheme::Parity { .. }), Some(Scheme::Parity { interval })) = (self.scheme, scheme) {
            self.scheme = scheme;
            self.full = usize::from(interval);
            if self.count >= self.full {
                self.close(out);
            }
        }
        if let (Some(Scheme::Rlc { .. }), Some(Scheme::Rlc { sources, .. })) = (self.scheme, scheme) {
            self.scheme = scheme;
            self.full = usize::from(sources);
            if self.count >= self.full {
                self.close(out);
            }
        }
    }

    fn push(&mut self, sequence: u64, symbol: Symbol<'_>, out: &mut Output) {
        if self.last.is_some_and(|last| sequence <= last) {
            out.counts.out_of_order += 1;
            return;
        }
        self.last = Some(sequence);
        if self.count > 0 && sequence - self.coverage.base() >= Coverage::SPAN {
            self.close(out);
        }
        if self.count == 0 {
            self.scheme = self.next;
            self.full = self.scheme.map_or(0, |scheme| scheme.sources());
            self.coverage = Coverage::new(sequence);
            if !matches!(self.scheme, Some(Scheme::Rlc { .. })) {
                self.window.forget(&mut out.pool);
            }
        }
        let Some(scheme) = self.scheme else {
            out.counts.unprotected += 1;
            return;
        };
        let is_parity = matches!(scheme, Scheme::Parity { .. });
        if out.is_standby && waits_on_standby(&scheme) {
            out.counts.unprotected += 1;
        } else {
            out.counts.protected += 1;
        }
        if is_parity {
            self.row.add(sequence, symbol, &mut out.pool);
        } else {
            self.push_to_block(scheme, sequence, symbol, out);
        }
        self.count += 1;
        if let Scheme::Rlc { repairs, .. } = scheme {
            self.combine(scheme, usize::from(repairs) * self.count / self.full, out);
        }
        if self.count >= self.full {
            self.close(out);
        }
    }

    /// Makes repair packets of the window until there are `count` of the open group.
    fn combine(&mut self, scheme: Scheme, count: usize, out: &mut Output) {
        let Scheme::Rlc { density, field, .. } = scheme else { return };
        while self.window.made < count && !out.is_standby {
            let Some(made) = self.window.combine(density, field, &mut out.pool) else { return };
            self.window.made += 1;
            let code = Code::Rlc(made.combination);
            out.emit(Waiting { coverage: made.coverage, code, buffer: made.buffer, start: 0, zeros: made.zeros });
        }
    }

    fn push_to_block(&mut self, scheme: Scheme, sequence: u64, symbol: Symbol<'_>, out: &mut Output) {
        match scheme {
            Scheme::Interleaved { columns, .. } => self.column(columns).add(sequence, symbol, &mut out.pool),
            Scheme::TwoDimensional { columns, .. } => {
                self.row.add(sequence, symbol, &mut out.pool);
                self.column(columns).add(sequence, symbol, &mut out.pool);
                if self.row.count == usize::from(columns) {
                    out.emit_sum(&mut self.row, Shape::Row);
                }
            }
            Scheme::Parity { .. } | Scheme::ReedSolomon { repair: 0, .. } => {}
            Scheme::Rlc { window, .. } => self.window.push(sequence, symbol, window.into(), &mut out.pool),
            Scheme::ReedSolomon { .. } => {
                self.coverage.insert(sequence);
                let mut bytes = out.pool.take(symbol.bytes.len());
                bytes.extend_from_slice(symbol.bytes);
                self.packets.push(Packet { bytes, zeros: symbol.zeros });
            }
        }
    }

    /// The sum over the next packet's column.
    fn column(&mut self, columns: u8) -> &mut Sum {
        let columns = usize::from(columns);
        if self.columns.len() < columns {
            self.columns.resize_with(columns, Sum::default);
        }
        &mut self.columns[self.count % columns]
    }

    fn close(&mut self, out: &mut Output) {
        let Some(scheme) = self.scheme.filter(|_| self.count > 0) else { return };
        if out.is_standby && matches!(scheme, Scheme::Parity { .. }) {
            self.forget(&mut out.pool);
            return;
        }
        if out.is_standby && matches!(scheme, Scheme::Rlc { .. }) {
            self.count = 0;
            return;
        }
        out.counts.blocks += 1;
        match scheme {
            Scheme::Rlc { repairs, .. } => {
                self.combine(scheme, (usize::from(repairs) * self.count).div_ceil(self.full), out);
                self.window.made = 0;
            }
            Scheme::Parity { .. } => out.emit_sum(&mut self.row, Shape::Group),
            Scheme::Interleaved { columns, .. } => {
                for sum in self.columns.iter_mut().filter(|sum| sum.count > 0) {
                    out.emit_sum(sum, Shape::Column { columns });
                }
            }
            Scheme::TwoDimensional { columns, .. } => {
                if self.row.count > 0 {
                    out.emit_sum(&mut self.row, Shape::Row);
                }
                for sum in self.columns.iter_mut().filter(|sum| sum.count > 0) {
                    // In an incomplete block, a column of one would repeat a packet that its row protects.
                    if sum.count > 1 {
                        out.emit_sum(sum, Shape::Column { columns });
                    } else {
                        sum.forget(&mut out.pool);
                    }
                }
            }
            Scheme::ReedSolomon { repair, .. } => {
                let count = (usize::from(repair) * self.count).div_ceil(scheme.sources());
                out.emit_rows(self.coverage, &mut self.packets, count);
            }
        }
        self.count = 0;
    }

    fn forget(&mut self, pool: &mut Buffers) {
        for sum in self.columns.iter_mut().chain([&mut self.row]) {
            sum.forget(pool);
        }
        for packet in self.packets.drain(..) {
            pool.put(packet.bytes, usize::MAX);
        }
        self.window.forget(pool);
        self.count = 0;
    }
}

#[cfg(test)]
mod tests;
