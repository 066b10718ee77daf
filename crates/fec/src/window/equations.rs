//! The linear system of sliding-window codes (RFC 8681, section 6.2): repair packets as equations over lost packets.
//!
//! Equations are kept in reduced row echelon form: each has a pivot, its oldest packet, with factor 1, which is in no other
//! equation. A packet is recovered once it is alone in an equation, which is as soon as the repair packets received determine
//! it; and when old packets are given up, only the equations that have them as pivots go.
//!
//! Packets in equations have sequence numbers within [`SPAN`] of the newest, so that the factors of an equation are an array
//! by sequence number. With the limits on equations and bytes this bounds the memory and the work of a repair packet, whatever
//! window it claims.

use weir_units::Timestamp;

use super::limits::RepairCounts;
use super::sources::Sources;
use crate::buffers::Buffers;
use crate::field::{EXP, LOG, NIBBLES, ORDER, mul};
use crate::{Combination, Coverage, Symbol, kernel};

/// Consecutive sequence numbers of packets in equations (`ls_max_size`): twice the largest window of a [`Coverage`], as RFC
/// 8681, appendix D, proposes.
const SPAN: usize = 2 * Coverage::SPAN as usize;
/// Most symbols combined at once.
const AT_ONCE: usize = ORDER;

/// The place of a packet's factor.
const fn place(sequence: u64) -> usize {
    sequence as usize % SPAN
}

/// A combination of missing packets, and its value.
#[derive(Debug)]
pub(super) struct Equation {
    /// When its repair packet arrived.
    at: Timestamp,
    /// Its oldest packet.
    pivot: u64,
    /// By sequence number modulo [`SPAN`].
    factors: Vec<u8>,
    /// Number of its packets.
    count: usize,
    bytes: Vec<u8>,
    /// Length of the value, including zeros that follow the bytes.
    total: usize,
    /// Whether there was no room for its value, and it is to be dropped.
    is_void: bool,
}

impl Equation {
    fn factor(&self, sequence: u64) -> u8 {
        let inside = sequence >= self.pivot && sequence - self.pivot < SPAN as u64;
        if inside { self.factors[place(sequence)] } else { 0 }
    }
    /// Its packets, oldest first.
    fn packets(&self) -> impl Iterator<Item = u64> + '_ {
        (0..SPAN as u64).map(|i| self.pivot.saturating_add(i)).filter(|&s| self.factors[place(s)] != 0)
    }
    /// Its factors become the sum of them and `factor` times others.
    fn add_factors(&mut self, others: &[u8], factor: u8) {
        add_factors(&mut self.factors, others, factor);
        self.count = count(&self.factors);
    }
    /// Leaves a packet out.
    fn remove(&mut self, sequence: u64) {
        self.factors[place(sequence)] = 0;
        self.count = count(&self.factors);
    }
    /// Its value becomes `own` times itself and `factor` times `bytes`.
    fn combine(&mut self, (own, factor): (u8, u8), bytes: &[u8], pool: &mut Buffers, limit: usize) {
        let Some(mut sum) = room(self.bytes.len().max(bytes.len()), pool, limit) else {
            self.is_void = true;
            return;
        };
        combine([(own, self.bytes.as_slice()), (factor, bytes)].into_iter(), &mut sum, pool, limit);
        pool.put(core::mem::replace(&mut self.bytes, sum), limit);
    }
    /// The packet of an equation with one: its number and its contents.
    pub(super) fn solution(&self) -> (u64, Symbol<'_>) {
        let zeros = self.total.saturating_sub(self.bytes.len()) as u32;
        (self.pivot, Symbol { bytes: &self.bytes, zeros })
    }
}

/// A repair packet as an equation.
#[derive(Clone, Copy)]
pub(super) struct NewEquation<'a> {
    pub(super) at: Timestamp,
    pub(super) coverage: Coverage,
    /// The covered packets that are not available.
    pub(super) missing: Coverage,
    pub(super) combination: Combination,
    pub(super) symbol: Symbol<'a>,
}

/// Parts of a repair window that equations use.
pub(super) struct Context<'a> {
    pub(super) sources: &'a mut Sources,
    pub(super) pool: &'a mut Buffers,
    /// Most bytes of the pool.
    pub(super) limit: usize,
    /// Whether equations without a missing packet are compared with the packets in them.
    pub(super) verify: bool,
    pub(super) counts: &'a mut RepairCounts,
}

/// The equations.
#[derive(Debug, Default)]
pub(super) struct Equations {
    all: Vec<Equation>,
    /// The newest packet ever covered.
    newest: u64,
    spare: Vec<Vec<u8>>,
}

impl Equations {
    pub(super) const fn len(&self) -> usize {
        self.all.len()
    }
    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// When the oldest equation arrived.
    pub(super) fn oldest_at(&self) -> Option<Timestamp> {
        self.all.iter().map(|e| e.at).min()
    }
    /// Drops an equation that arrived at this time.
    pub(super) fn drop_of(&mut self, at: Timestamp, c: &mut Context<'_>) {
        if let Some(i) = self.all.iter().position(|e| e.at == at) {
            self.drop_at(i, c);
        }
    }
    fn drop_where(&mut self, is_meant: impl Fn(&Equation) -> bool, c: &mut Context<'_>) {
        while let Some(i) = self.all.iter().position(&is_meant) {
            self.drop_at(i, c);
        }
    }
    /// Drops an equation, and gives up its packets that are in no other.
    fn drop_at(&mut self, i: usize, c: &mut Context<'_>) {
        let equation = self.all.remove(i);
        c.counts.expired += 1;
        for sequence in equation.packets() {
            if self.all.iter().all(|e| e.factor(sequence) == 0) {
                c.counts.unrecoverable += u64::from(c.sources.give_up(sequence));
            }
        }
        self.recycle(equation, c);
    }
    pub(super) fn recycle(&mut self, equation: Equation, c: &mut Context<'_>) {
        c.pool.put(equation.bytes, c.limit);
        self.spare.push(equation.factors);
    }

    /// A repair packet covers packets up to `newest`: drops equations with packets too far behind.
    pub(super) fn advance(&mut self, newest: u64, c: &mut Context<'_>) {
        self.newest = self.newest.max(newest);
        let low = self.low();
        self.drop_where(|e| e.pivot < low, c);
    }
    /// The lowest number of a packet in an equation.
    pub(super) const fn low(&self) -> u64 {
        (self.newest + 1).saturating_sub(SPAN as u64)
    }
    /// Bytes of a new equation's value: as many as the longest symbol that goes into it has. `None` if a covered packet is
    /// longer than the repair symbol, which contradicts it.
    pub(super) fn len_of(&self, new: &NewEquation<'_>, sources: &Sources) -> Option<usize> {
        let mut len = new.symbol.bytes.len();
        for sequence in new.coverage.without(new.missing.mask()).iter() {
            len = len.max(sources.within(sequence, new.symbol.len())?.len());
        }
        let others = self.all.iter().filter(|e| new.missing.contains(e.pivot));
        Some(others.map(|e| e.bytes.len()).fold(len, usize::max))
    }

    /// Adds a repair packet whose missing packets are not below [`Self::low`]; `buffer` is as long as [`Self::len_of`] says,
    /// or longer.
    pub(super) fn add(&mut self, new: &NewEquation<'_>, mut buffer: Vec<u8>, c: &mut Context<'_>) {
        let mut coefficients = [0; Coverage::SPAN as usize];
        new.combination.coefficients(&mut coefficients[..new.coverage.len()]);
        let sources: &Sources = c.sources;
        let covered = || new.coverage.iter().zip(coefficients);
        let missing = || covered().filter(|(s, factor)| *factor != 0 && new.missing.contains(*s));
        let by_pivot = |s: u64| self.all.iter().find(|e| e.pivot == s);
        let mut factors = self.spare.pop().unwrap_or_default();
        factors.clear();
        factors.resize(SPAN, 0);
        let mut total = new.symbol.len();
        for (sequence, factor) in missing() {
            factors[place(sequence)] ^= factor;
            // A pivot is in one equation only, so that this brings back none.
            if let Some(e) = by_pivot(sequence) {
                add_factors(&mut factors, &e.factors, factor);
                total = total.max(e.total);
            }
        }
        let pivot = (self.low()..=self.newest).find(|&s| factors[place(s)] != 0);
        let scale = pivot.map_or(1, |s| inverse(factors[place(s)]));
        if pivot.is_some() || c.verify {
            let known = covered().filter(|(s, _)| !new.missing.contains(*s));
            let known = known.map(|(s, f)| (f, sources.within(s, new.symbol.len()).unwrap_or_default()));
            let others = missing().filter_map(|(s, f)| Some((f, by_pivot(s)?.bytes.as_slice())));
            let parts = [(1, new.symbol.bytes)].into_iter().chain(known).chain(others);
            combine(parts.map(|(f, bytes)| (product(f, scale), bytes)), &mut buffer, c.pool, c.limit);
        }
        let Some(pivot) = pivot else {
            let contradicts = c.verify && buffer.iter().any(|&b| b != 0);
            *if contradicts { &mut c.counts.inconsistent } else { &mut c.counts.unused } += 1;
            c.pool.put(buffer, c.limit);
            self.spare.push(factors);
            return;
        };
        scale_factors(&mut factors, scale);
        let count = count(&factors);
        self.insert(Equation { at: new.at, pivot, factors, count, bytes: buffer, total, is_void: false }, c);
        self.drop_where(|e| e.is_void, c);
    }

    /// Adds an equation and takes its pivot out of the others.
    fn insert(&mut self, equation: Equation, c: &mut Context<'_>) {
        for other in &mut self.all {
            let factor = other.factor(equation.pivot);
            if factor != 0 {
                other.combine((1, factor), &equation.bytes, c.pool, c.limit);
                other.total = other.total.max(equation.total);
                other.add_factors(&equation.factors, factor);
            }
        }
        self.all.push(equation);
    }

    /// A packet is available now: takes it out of the equations.
    pub(super) fn on_available(&mut self, sequence: u64, c: &mut Context<'_>) {
        let mut i = 0;
        while i < self.all.len() {
            if self.all[i].is_void {
                self.drop_at(i, c);
                continue;
            }
            let factor = self.all[i].factor(sequence);
            if factor == 0 {
                i += 1;
                continue;
            }
            let e = &mut self.all[i];
            let Some(bytes) = c.sources.within(sequence, e.total) else {
                c.counts.inconsistent += 1;
                let equation = self.all.remove(i);
                self.recycle(equation, c);
                continue;
            };
            if e.pivot != sequence {
                e.remove(sequence);
                e.combine((1, factor), bytes, c.pool, c.limit);
                i += 1;
                continue;
            }
            e.remove(sequence);
            let next = e.packets().next();
            let scale = next.map_or(1, |s| inverse(e.factors[place(s)]));
            if next.is_some() || c.verify {
                e.combine((scale, scale), bytes, c.pool, c.limit);
                if e.is_void {
                    continue;
                }
            }
            let mut equation = self.all.remove(i);
            if let Some(pivot) = next {
                equation.pivot = pivot;
                scale_factors(&mut equation.factors, scale);
                self.insert(equation, c);
                continue;
            }
            let contradicts = c.verify && equation.bytes.iter().any(|&b| b != 0);
            *if contradicts { &mut c.counts.inconsistent } else { &mut c.counts.unused } += 1;
            self.recycle(equation, c);
        }
        self.drop_where(|e| e.is_void, c);
    }

    /// Takes an equation with one packet.
    pub(super) fn take_solved(&mut self) -> Option<Equation> {
        let i = self.all.iter().position(|e| e.count == 1)?;
        Some(self.all.remove(i))
    }
}

/// A buffer of `len` bytes if the pool stays within its limit.
pub(super) fn room(len: usize, pool: &mut Buffers, limit: usize) -> Option<Vec<u8>> {
    let buffer = pool.take_filled(len);
    pool.trim(limit);
    if pool.held() <= limit {
        return Some(buffer);
    }
    pool.put(buffer, limit);
    None
}

/// Writes the sum of the products of factors and symbols, none of which is longer. One of the factors at least is nonzero.
pub(super) fn combine<'a>(
    parts: impl Iterator<Item = (u8, &'a [u8])>,
    into: &mut Vec<u8>,
    pool: &mut Buffers,
    limit: usize,
) {
    let (mut factors, mut symbols) = ([0; AT_ONCE], [&[][..]; AT_ONCE]);
    let mut parts = parts.filter(|part| part.0 != 0);
    let mut is_first = true;
    loop {
        let mut count = 0;
        for (place, part) in factors.iter_mut().zip(&mut symbols).zip(parts.by_ref()) {
            (*place.0, *place.1) = part;
            count += 1;
        }
        if is_first {
            kernel::combine(&factors[..count], &symbols[..count], core::slice::from_mut(into));
        } else if count > 0 {
            let mut piece = pool.take_filled(into.len());
            kernel::combine(&factors[..count], &symbols[..count], core::slice::from_mut(&mut piece));
            kernel::xor_into(into, &piece);
            pool.put(piece, limit);
        }
        if count < AT_ONCE {
            return;
        }
        is_first = false;
    }
}

fn count(factors: &[u8]) -> usize {
    factors.iter().filter(|f| **f != 0).count()
}

fn add_factors(into: &mut [u8], from: &[u8], factor: u8) {
    let table = &NIBBLES[usize::from(factor)];
    for (a, &b) in into.iter_mut().zip(from) {
        *a ^= mul(table, b);
    }
}

fn scale_factors(factors: &mut [u8], scale: u8) {
    let table = &NIBBLES[usize::from(scale)];
    for f in factors {
        *f = mul(table, *f);
    }
}

const fn product(a: u8, b: u8) -> u8 {
    mul(&NIBBLES[a as usize], b)
}

/// The inverse of an element other than zero.
const fn inverse(a: u8) -> u8 {
    EXP[ORDER - LOG[a as usize] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_are_those_of_the_field() {
        assert!((1..=255).all(|a| product(a, inverse(a)) == 1));
    }

    #[test]
    fn sums_of_many_symbols_are_those_of_single_ones() {
        let symbols: Vec<Vec<u8>> =
            (0..600_usize).map(|i| (0..i * 7 % 90).map(|x| (x * 5 + i) as u8).collect()).collect();
        let factor = |i: usize| (i * 3 % 256) as u8;
        let mut pool = Buffers::default();
        for count in [1, 2, 254, 255, 256, 510, 511, 600] {
            let mut sum = vec![0xee; 90];
            let parts = symbols[..count].iter().enumerate().map(|(i, s)| (factor(i + 1), s.as_slice()));
            combine(parts, &mut sum, &mut pool, usize::MAX);
            let mut expected = vec![0; 90];
            for (i, symbol) in symbols[..count].iter().enumerate() {
                for (a, &b) in expected.iter_mut().zip(symbol) {
                    *a ^= product(factor(i + 1), b);
                }
            }
            assert_eq!(sum, expected, "{count}");
        }
    }
}
