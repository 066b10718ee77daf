use super::{AckRun, AckState, MAX_RUN, MAX_RUNS};
use crate::option::DccpOption;
use crate::packet::PacketWriter;
use std::collections::VecDeque;
use weir_units::Seq48;

/// Maximum bytes of runs kept: three full options. Together with the rest of an acknowledgement they fit the 1,020
/// bytes of a header.
const MAX_BYTES: usize = 3 * MAX_RUNS;
/// Maximum packets covered by the buffer.
const MAX_PACKETS: u64 = MAX_BYTES as u64 * MAX_RUN;
/// Maximum acknowledgements remembered; see [`Buffer::on_ack_sent`].
const MAX_RECORDS: usize = 1_024;

/// The position of a received packet's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// It is greater than all others.
    New {
        /// Packets missing between the previous newest and this one.
        missing: u64,
    },
    /// It was missing, and is late.
    Late,
    /// It was received before.
    Duplicate,
    /// It is older than the buffer's memory: late or a duplicate.
    Forgotten,
}

/// The fate of the packets of a half-connection, at its receiver (RFC 4340, section 11.4.2 and appendix A).
///
/// A ring of runs, newest first, of 4 bytes each; it is empty at first. It reports at most 759 bytes of runs (three
/// options): from 759 packets, if each differs from its neighbours, to 48,576. When it is full, the oldest runs are
/// dropped; they have been in every acknowledgement since their packets were received, and a sender treats packets that
/// no vector covers as not received. Acknowledgements sent are remembered too, 16 bytes each, at most 1,024 of them.
///
/// The nonce echo is always zero. The ECN nonce experiment has ended, and RFC 8311 removes the nonce from CCIDs 2 to 4;
/// a sender that uses only ECT(0), as all of Weir's do, expects zero.
///
/// ```
/// use weir_dccp::ack_vector::{AckState, Arrival, Buffer};
/// use weir_units::Seq48;
/// let mut buffer = Buffer::default();
/// buffer.on_packet(Seq48::new(10), AckState::Received);
/// assert_eq!(buffer.on_packet(Seq48::new(12), AckState::Marked), Arrival::New { missing: 1 });
/// assert_eq!(buffer.newest(), Some(Seq48::new(12)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    newest: Option<Seq48>,
    /// Newest first.
    cells: VecDeque<Cell>,
    /// Packets in all cells.
    packets: u64,
    /// Bytes of all cells in options.
    bytes: usize,
    /// Oldest first.
    records: VecDeque<Record>,
}

/// Packets in a row that fared alike; more than a byte of an option can express.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cell {
    /// 1 to [`MAX_PACKETS`].
    len: u16,
    state: AckState,
}

impl Cell {
    const fn bytes(self) -> usize {
        (self.len as usize).div_ceil(MAX_RUN as usize)
    }
}

/// An acknowledgement that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Record {
    /// Its sequence number.
    own: Seq48,
    /// Once it is acknowledged, everything up to this number can be removed.
    covers: Seq48,
}

impl Buffer {
    /// The newest packet received: the one to acknowledge.
    pub const fn newest(&self) -> Option<Seq48> {
        self.newest
    }
    /// Bytes that [`Self::write`] needs for its whole state.
    pub const fn option_bytes(&self) -> usize {
        self.bytes + 2 * self.bytes.div_ceil(MAX_RUNS)
    }

    /// A packet of any type was received. `state` is [`AckState::Received`] or [`AckState::Marked`]; a mark is kept
    /// when an unmarked duplicate is received (RFC 4340, section 11.4.1, leaves this open).
    pub fn on_packet(&mut self, seq: Seq48, state: AckState) -> Arrival {
        debug_assert!(state.came(), "a packet that came");
        let ahead = self.newest.map_or(1, |n| seq.since(n));
        if ahead <= 0 {
            return self.on_old_packet(seq, ahead.unsigned_abs(), state);
        }
        let missing = ahead.unsigned_abs() - 1;
        if missing >= MAX_PACKETS {
            self.cells.clear();
            (self.packets, self.bytes) = (0, 0);
        }
        self.push_newest(missing.min(MAX_PACKETS - 1) as u16, AckState::NotReceived);
        self.push_newest(1, state);
        self.newest = Some(seq);
        while self.bytes > MAX_BYTES {
            self.forget_byte();
        }
        Arrival::New { missing }
    }

    fn push_newest(&mut self, len: u16, state: AckState) {
        if len == 0 {
            return;
        }
        let merged = self.cells.front_mut().filter(|c| c.state == state).and_then(|c| {
            let before = c.bytes();
            c.len = c.len.checked_add(len)?;
            Some(c.bytes() - before)
        });
        let cell = Cell { len, state };
        self.bytes += merged.unwrap_or_else(|| {
            self.cells.push_front(cell);
            cell.bytes()
        });
        self.packets += u64::from(len);
    }

    /// Removes the oldest packets, whose runs take one byte.
    fn forget_byte(&mut self) {
        let Some(cell) = self.cells.back_mut() else { return };
        let part = match cell.len % MAX_RUN as u16 {
            0 => MAX_RUN as u16,
            rest => rest,
        };
        cell.len -= part;
        self.packets -= u64::from(part);
        self.bytes -= 1;
        if cell.len == 0 {
            self.cells.pop_back();
        }
    }

    fn on_old_packet(&mut self, seq: Seq48, behind: u64, state: AckState) -> Arrival {
        if behind >= self.packets {
            return Arrival::Forgotten;
        }
        let mut before = 0;
        let (mut index, mut into) = (0, 0);
        for (i, c) in self.cells.iter().enumerate() {
            let len = u64::from(c.len);
            if behind < before + len {
                (index, into) = (i, (behind - before) as u16);
                break;
            }
            before += len;
        }
        let old = self.cells[index].state;
        if !old.came() || (old == AckState::Received && state == AckState::Marked) {
            self.set(index, into, state);
            // Earlier acknowledgements do not report it, so they cover only older packets (RFC 4340, A.3).
            for r in self.records.iter_mut().rev().take_while(|r| !seq.is_after(r.covers)) {
                r.covers = seq.sub(1);
            }
        }
        if old.came() { Arrival::Duplicate } else { Arrival::Late }
    }

    /// Changes the state of the packet at offset `into` of a cell, counted from its newest.
    fn set(&mut self, index: usize, into: u16, state: AckState) {
        let cell = self.cells[index];
        let (newer, older) = (into, cell.len - into - 1);
        self.bytes -= cell.bytes();
        self.cells[index] = Cell { len: 1, state };
        let mut at = index;
        if older > 0 {
            self.insert(index + 1, Cell { len: older, state: cell.state });
        }
        if newer > 0 {
            self.insert(index, Cell { len: newer, state: cell.state });
            at += 1;
        }
        self.bytes += 1;
        if older == 0 {
            self.merge(at);
        }
        if newer == 0 && at > 0 {
            self.merge(at - 1);
        }
        while self.bytes > MAX_BYTES {
            self.forget_byte();
        }
    }

    fn insert(&mut self, index: usize, cell: Cell) {
        self.cells.insert(index, cell);
        self.bytes += cell.bytes();
    }

    /// Merges a cell with the next older one if their states are equal.
    fn merge(&mut self, index: usize) {
        let (Some(&a), Some(&b)) = (self.cells.get(index), self.cells.get(index + 1)) else { return };
        let Some(len) = a.len.checked_add(b.len).filter(|_| a.state == b.state) else { return };
        let whole = Cell { len, state: a.state };
        self.bytes = self.bytes + whole.bytes() - a.bytes() - b.bytes();
        self.cells[index] = whole;
        self.cells.remove(index + 1);
    }

    /// Writes Ack Vector options that begin at `acknowledged`, the acknowledgement number of their packet, and cover
    /// everything known of older packets. Returns `false` if the header had no room for all of it (the newest are
    /// included), or nothing is known of the packet.
    pub fn write(&self, acknowledged: Seq48, out: &mut PacketWriter<'_>) -> bool {
        let Some(mut skip) = self.newest.map(|n| n.since(acknowledged)).filter(|&d| d >= 0).map(i64::unsigned_abs)
        else {
            return false;
        };
        if skip >= self.packets {
            return false;
        }
        let mut runs = [0u8; MAX_RUNS];
        let mut filled = 0;
        let mut capacity = out.room().saturating_sub(2).min(MAX_RUNS);
        for cell in &self.cells {
            let mut left = u64::from(cell.len);
            let skipped = left.min(skip);
            (left, skip) = (left - skipped, skip - skipped);
            while left > 0 {
                if filled == capacity {
                    if filled == 0 || !out.option(&DccpOption::AckVector { nonce: false, runs: &runs[..filled] }) {
                        return false;
                    }
                    filled = 0;
                    capacity = out.room().saturating_sub(2).min(MAX_RUNS);
                    if capacity == 0 {
                        return false;
                    }
                }
                let run = left.min(MAX_RUN);
                runs[filled] = (cell.state as u8) << 6 | (run - 1) as u8;
                filled += 1;
                left -= run;
            }
        }
        filled == 0 || out.option(&DccpOption::AckVector { nonce: false, runs: &runs[..filled] })
    }

    /// This end's packet `own` was sent with the vector of `acknowledged`. At 1,024 entries every second one is
    /// removed; an acknowledgement of a removed one then clears nothing, and that of the next one does.
    pub fn on_ack_sent(&mut self, own: Seq48, acknowledged: Seq48) {
        if self.records.back().is_some_and(|r| !own.is_after(r.own)) {
            return;
        }
        if self.records.len() == MAX_RECORDS {
            let mut keep = false;
            self.records.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.records.push_back(Record { own, covers: acknowledged });
    }

    /// Nothing was received for a while: releases memory used by a burst. Of the acknowledgements sent, only the newest
    /// is kept, the one that can still be acknowledged.
    pub fn shrink(&mut self) {
        self.records.drain(..self.records.len().saturating_sub(1));
        self.records.shrink_to(16);
        self.cells.shrink_to(16);
    }

    /// The other end acknowledged this end's packet `own`. What its vector reported need not be reported again, except
    /// the newest packet: a vector is never empty. A number without a vector changes nothing.
    ///
    /// See also [`Self::on_ack_runs`]: the acknowledged packet may carry no vector although one shortly before it did.
    pub fn on_ack_of_ack(&mut self, own: Seq48) {
        let Ok(at) = self.records.binary_search_by(|r| r.own.since(own).cmp(&0)) else { return };
        let covers = self.records[at].covers;
        self.records.drain(..=at);
        let Some(newest) = self.newest else { return };
        let keep = newest.since(covers).max(1).unsigned_abs();
        while self.packets > keep {
            let Some(cell) = self.cells.back_mut() else { return };
            let before = cell.bytes();
            let part = (self.packets - keep).min(u64::from(cell.len)) as u16;
            cell.len -= part;
            self.bytes -= before - cell.bytes();
            self.packets -= u64::from(part);
            if cell.len == 0 {
                self.cells.pop_back();
            }
        }
    }
}

impl Buffer {
    /// The runs of the other end's own vector, newest first: the newest packet among them that was received and carried
    /// a vector counts as acknowledged too. If both ends send data, the packet named by an acknowledgement may never be
    /// one with a vector.
    pub fn on_ack_runs(&mut self, runs: impl Iterator<Item = AckRun>) {
        let Some(oldest) = self.records.front().map(|r| r.own) else { return };
        for run in runs {
            if oldest.is_after(run.newest) {
                return;
            }
            if !run.state.came() {
                continue;
            }
            // The newest that is not above the run.
            let above = self.records.partition_point(|r| !r.own.is_after(run.newest));
            let newest = above.checked_sub(1).map(|i| self.records[i].own);
            if let Some(own) = newest.filter(|own| !run.oldest().is_after(*own)) {
                self.on_ack_of_ack(own);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
