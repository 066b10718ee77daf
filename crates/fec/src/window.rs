//! The receiver's half: source and repair packets in, recovered packets out.

mod equations;
mod limits;
mod pending;
mod sliding;
mod sources;

use std::collections::VecDeque;

use weir_units::Timestamp;

use crate::buffers::Buffers;
use crate::reed_solomon::{self, Generators};
use crate::rlc::DENSEST;
use crate::sum;
use crate::{Code, Combination, Coverage, Recovered, Repair, Symbol};
use equations::Equations;
pub use limits::{RepairCounts, WindowLimits};
use pending::{Block, Row, Scratch};
use sources::{Knowledge, Origin, Sources};

/// Recovers lost packets.
///
/// A packet that arrived is never returned as recovered, and none is returned twice. Source packets must belong to a
/// stream that the caller has validated (RFC 3550, appendix A.1): one that jumps far ahead resets the window. Repair
/// packets are untrusted.
#[derive(Debug)]
pub struct RepairWindow {
    limits: WindowLimits,
    now: Timestamp,
    sources: Sources,
    source_pool: Buffers,
    blocks: VecDeque<Block>,
    /// Repair packets in `blocks`.
    rows: usize,
    /// Repair packets of sliding windows.
    equations: Equations,
    /// Whether there have been any.
    slides: bool,
    repair_pool: Buffers,
    spare_rows: Vec<Vec<Row>>,
    recovered: VecDeque<u64>,
    scratch: Scratch,
    /// Rows for comparison with received packets.
    generators: Generators,
    counts: RepairCounts,
}

/// Above all sequence numbers of real streams, and far from overflow.
const MAX_SEQUENCE: u64 = 1 << 62;

impl RepairWindow {
    /// An empty window.
    pub fn new(limits: WindowLimits) -> Self {
        Self {
            limits,
            now: Timestamp::ZERO,
            sources: Sources::new(limits.packets),
            source_pool: Buffers::default(),
            blocks: VecDeque::new(),
            rows: 0,
            equations: Equations::default(),
            slides: false,
            repair_pool: Buffers::default(),
            spare_rows: Vec::new(),
            recovered: VecDeque::new(),
            scratch: Scratch::default(),
            generators: Generators::default(),
            counts: RepairCounts::default(),
        }
    }

    /// Takes a source packet from the network, validated to belong to the stream.
    pub fn on_source(&mut self, now: Timestamp, sequence: u64, symbol: Symbol<'_>) {
        self.expire(now);
        self.counts.sources += 1;
        if sequence >= MAX_SEQUENCE {
            self.counts.unkept_sources += 1;
            return;
        }
        match self.sources.knowledge(sequence) {
            Knowledge::Unseen => {}
            Knowledge::Here(Origin::Recovered) => {
                self.counts.late_sources += 1;
                self.counts.contradicted +=
                    u64::from(self.sources.get(sequence).is_some_and(|known| !begins_with(known, symbol)));
            }
            Knowledge::Here(Origin::Received) | Knowledge::Gone => {
                self.counts.duplicate_sources += 1;
                return;
            }
            Knowledge::Forgotten => {
                self.counts.unkept_sources += 1;
                return;
            }
        }
        self.sources.see(sequence);
        if !self.keep(sequence, symbol, Origin::Received) {
            self.counts.unkept_sources += 1;
        }
        self.solve();
    }

    /// Takes a repair packet.
    pub fn on_repair(&mut self, now: Timestamp, repair: Repair<'_>) {
        self.expire(now);
        self.counts.repairs += 1;
        if !self.is_possible(&repair) {
            self.counts.rejected += 1;
            return;
        }
        self.slides |= matches!(repair.code, Code::Rlc(_));
        let (unknown, missing) = self.sources.gaps(&repair.coverage);
        if missing.is_empty() {
            if self.limits.verify && unknown.is_empty() && !self.is_true(&repair) {
                self.counts.inconsistent += 1;
            } else {
                self.counts.unused += 1;
            }
            return;
        }
        if !matches!(repair.code, Code::ReedSolomon { .. }) && unknown != missing {
            self.counts.late += 1;
            self.give_up(missing);
            return;
        }
        if let Code::Rlc(combination) = repair.code {
            self.on_combination(&repair, combination, missing);
            self.solve();
            return;
        }
        let known = self.blocks.iter_mut().position(|block| block.is_of(&repair));
        if known.is_some_and(|i| self.blocks[i].has(repair.code)) {
            self.counts.duplicate += 1;
            return;
        }
        let Some(bytes) = self.keep_repair(repair.symbol) else {
            self.counts.rejected += 1;
            return;
        };
        let row = Row { code: repair.code, bytes, zeros: repair.symbol.zeros };
        // Making room may have moved or dropped the block.
        match self.blocks.iter_mut().find(|block| block.is_of(&repair)) {
            Some(block) => block.rows.push(row),
            None => {
                let mut rows = self.spare_rows.pop().unwrap_or_default();
                rows.push(row);
                self.blocks.push_back(Block { coverage: repair.coverage, at: now, rows });
            }
        }
        self.rows += 1;
        self.solve();
    }

    /// The next recovered packet, valid until the next call.
    pub fn poll_recovered(&mut self) -> Option<Recovered<'_>> {
        let sequence = loop {
            let sequence = self.recovered.pop_front()?;
            if self.sources.knowledge(sequence) == Knowledge::Here(Origin::Recovered) {
                break sequence;
            }
        };
        self.sources.get(sequence).map(|symbol| Recovered { sequence, symbol })
    }

    /// Drops packets older than the time limit. Every other call does this too.
    pub fn expire(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        let age = if self.slides { self.limits.age * 2 } else { self.limits.age };
        while let Some(bytes) = self.sources.expire(self.now, age) {
            self.source_pool.put(bytes, self.limits.source_bytes);
        }
        while self.oldest_at().is_some_and(|at| self.now.saturating_since(at) >= self.limits.age) {
            self.drop_oldest();
        }
    }
    /// When the first waiting repair packet expires: call [`RepairWindow::expire`] then to keep counters up to date.
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.oldest_at().map(|at| at + self.limits.age)
    }
    /// Arrival of the repair packet that has waited longest.
    fn oldest_at(&self) -> Option<Timestamp> {
        let block = self.blocks.front().map(|block| block.at);
        [block, self.equations.oldest_at()].into_iter().flatten().min()
    }

    /// The counters.
    pub const fn counts(&self) -> RepairCounts {
        self.counts
    }
    /// Source packets kept, including recovered ones.
    pub fn packets(&self) -> usize {
        self.sources.len()
    }
    /// Number of repair packets waiting.
    pub const fn waiting(&self) -> usize {
        self.rows + self.equations.len()
    }
    /// Memory for packets' bytes, in use or free: at most what the limits allow.
    pub const fn held_bytes(&self) -> usize {
        self.source_pool.held() + self.repair_pool.held()
    }

    /// Whether the repair packet is valid and within the window's range.
    fn is_possible(&self, repair: &Repair<'_>) -> bool {
        let code = match repair.code {
            Code::Parity(_) => true,
            Code::ReedSolomon { sources, repairs, row } => {
                usize::from(sources) == repair.coverage.len()
                    && row < repairs
                    && u16::from(sources) + u16::from(repairs) <= 255
            }
            Code::Rlc(Combination { density, .. }) => density <= DENSEST,
        };
        let ahead = match repair.code {
            // Those behind by more than a system's span are dropped for it.
            Code::Rlc(_) => self.limits.packets.min(Coverage::SPAN as usize),
            _ => self.limits.packets,
        };
        let reach = |highest: u64| highest + ahead as u64;
        code && repair.symbol.len() <= self.limits.length
            && repair.coverage.base() < MAX_SEQUENCE
            && self.sources.highest().is_some_and(|h| repair.coverage.last().is_some_and(|last| last <= reach(h)))
    }

    /// Whether a repair packet matches its source packets, all of which are present.
    fn is_true(&mut self, repair: &Repair<'_>) -> bool {
        let Self { sources, repair_pool: pool, generators, .. } = self;
        let total = repair.symbol.len();
        if repair.coverage.iter().any(|sequence| sources.within(sequence, total).is_none()) {
            return false;
        }
        let symbols = || repair.coverage.iter().filter_map(|sequence| sources.within(sequence, total));
        let mut sum = match repair.code {
            Code::Parity(_) => {
                let mut sum = pool.take(repair.symbol.bytes.len());
                symbols().for_each(|bytes| sum::add(&mut sum, bytes, pool));
                sum
            }
            Code::ReedSolomon { sources: k, row, .. } => {
                let (k, row) = (usize::from(k), usize::from(row));
                let mut output = [pool.take_filled(symbols().map(<[u8]>::len).max().unwrap_or(0))];
                let coefficients = &generators.rows(k, row + 1)[k * row..];
                reed_solomon::combine(coefficients, symbols(), &mut output);
                let [sum] = output;
                sum
            }
            Code::Rlc(combination) => {
                let mut coefficients = [0; Coverage::SPAN as usize];
                combination.coefficients(&mut coefficients[..repair.coverage.len()]);
                let mut sum = pool.take_filled(symbols().map(<[u8]>::len).max().unwrap_or(0));
                sum.fill(0);
                let parts = coefficients.into_iter().zip(symbols());
                equations::combine(parts, &mut sum, pool, self.limits.repair_bytes);
                sum
            }
        };
        sum::add(&mut sum, repair.symbol.bytes, pool);
        let is_true = sum.iter().all(|&b| b == 0);
        pool.put(sum, self.limits.repair_bytes);
        is_true
    }

    /// Stores a source packet if it fits.
    fn keep(&mut self, sequence: u64, symbol: Symbol<'_>, origin: Origin) -> bool {
        if symbol.len() > self.limits.length || self.limits.packets == 0 {
            return false;
        }
        while self.sources.is_full() {
            self.evict_source();
        }
        let mut bytes = self.source_pool.take(symbol.bytes.len());
        bytes.extend_from_slice(symbol.bytes);
        self.source_pool.trim(self.limits.source_bytes);
        while self.source_pool.held() > self.limits.source_bytes {
            if self.sources.len() == 0 {
                self.source_pool.put(bytes, self.limits.source_bytes);
                return false;
            }
            self.evict_source();
        }
        let rest = self.sources.store(self.now, sequence, bytes, symbol.zeros, origin);
        if let Some(rest) = rest {
            self.source_pool.put(rest, self.limits.source_bytes);
        }
        let is_kept = self.sources.knowledge(sequence) == Knowledge::Here(origin);
        if is_kept && !self.equations.is_empty() {
            let (equations, mut context) = self.system();
            equations.on_available(sequence, &mut context);
        }
        is_kept
    }
    fn evict_source(&mut self) {
        if let Some(bytes) = self.sources.evict() {
            self.source_pool.put(bytes, self.limits.source_bytes);
        }
    }

    /// A buffer with a repair packet's bytes; makes room by dropping those that have waited longest.
    fn keep_repair(&mut self, symbol: Symbol<'_>) -> Option<Vec<u8>> {
        if self.limits.repairs == 0 {
            return None;
        }
        while self.waiting() >= self.limits.repairs {
            self.drop_oldest();
        }
        let mut bytes = self.repair_pool.take(symbol.bytes.len());
        bytes.extend_from_slice(symbol.bytes);
        self.repair_pool.trim(self.limits.repair_bytes);
        while self.repair_pool.held() > self.limits.repair_bytes {
            if self.waiting() == 0 {
                self.repair_pool.put(bytes, self.limits.repair_bytes);
                return None;
            }
            self.drop_oldest();
        }
        Some(bytes)
    }
    /// Drops the repair packets that have waited longest: a block, or one of a sliding window.
    fn drop_oldest(&mut self) {
        let block = self.blocks.front().map(|block| block.at);
        match self.equations.oldest_at() {
            Some(at) if block.is_none_or(|block| at < block) => {
                let (equations, mut context) = self.system();
                equations.drop_of(at, &mut context);
            }
            _ => self.drop_oldest_block(),
        }
    }
    fn drop_oldest_block(&mut self) {
        if let Some(block) = self.blocks.pop_front() {
            self.counts.expired += block.rows.len() as u64;
            let (_, missing) = self.sources.gaps(&block.coverage);
            self.give_up(missing);
            self.recycle(block);
        }
    }
    fn recycle(&mut self, mut block: Block) {
        self.rows -= block.rows.len();
        for row in block.rows.drain(..) {
            self.repair_pool.put(row.bytes, self.limits.repair_bytes);
        }
        self.spare_rows.push(block.rows);
    }
    fn give_up(&mut self, missing: Coverage) {
        for sequence in missing.iter() {
            self.counts.unrecoverable += u64::from(self.sources.give_up(sequence));
        }
    }

    /// Recovers all packets possible; a recovered packet may make others recoverable.
    fn solve(&mut self) {
        let mut progress = true;
        while progress {
            progress = false;
            let mut i = 0;
            while i < self.blocks.len() {
                let (unknown, missing) = self.sources.gaps(&self.blocks[i].coverage);
                if !missing.is_empty() && !self.blocks[i].can_solve(&unknown) {
                    i += 1;
                    continue;
                }
                let Some(mut block) = self.blocks.remove(i) else { break };
                if missing.is_empty() {
                    self.counts.unused += block.rows.len() as u64;
                } else {
                    progress |= self.recover(&mut block, unknown, missing);
                }
                self.recycle(block);
            }
            progress |= self.take_solved();
        }
    }

    /// Recovers the missing packets of a solvable block; returns whether there were any.
    fn recover(&mut self, block: &mut Block, unknown: Coverage, missing: Coverage) -> bool {
        let rows = block.rows.len() as u64;
        let solved = block.solve(&unknown, &self.sources, &mut self.repair_pool, &mut self.scratch);
        let Some(solved) = solved else {
            self.counts.inconsistent += rows;
            return false;
        };
        let used = unknown.len() as u64;
        self.counts.used += used;
        self.counts.unused += rows.saturating_sub(used);
        let mut progress = false;
        for (sequence, row) in unknown.iter().zip(&block.rows[..solved]) {
            if !missing.contains(sequence) {
                continue;
            }
            let symbol = Symbol { bytes: &row.bytes, zeros: row.zeros };
            progress |= self.keep_recovered(sequence, symbol);
        }
        progress
    }

    /// Stores a recovered packet to be polled; returns whether it was kept.
    fn keep_recovered(&mut self, sequence: u64, symbol: Symbol<'_>) -> bool {
        let is_kept = self.keep(sequence, symbol, Origin::Recovered);
        if is_kept {
            self.counts.recovered += 1;
            if self.recovered.len() >= self.limits.packets {
                self.recovered.pop_front();
            }
            self.recovered.push_back(sequence);
        } else {
            self.counts.unrecoverable += u64::from(self.sources.give_up(sequence));
        }
        is_kept
    }
}

/// Whether `part` is the beginning of `whole`, and the rest is zeros.
fn begins_with(whole: Symbol<'_>, part: Symbol<'_>) -> bool {
    let common = whole.bytes.len().min(part.bytes.len());
    let zero = |bytes: &[u8]| bytes.iter().all(|&b| b == 0);
    part.len() <= whole.len()
        && whole.bytes[..common] == part.bytes[..common]
        && zero(&whole.bytes[common..])
        && zero(&part.bytes[common..])
}

#[cfg(test)]
mod tests;
