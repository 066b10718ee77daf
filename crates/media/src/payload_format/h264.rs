//! H.264 (RFC 6184, sections 5.6 to 5.8).

use super::{Assembled, DepacketiserStats, pieces, rising};
use crate::{CodedFrame, Payloads, ReceivedPayload};

/// Fields of the NAL unit header (section 1.3).
const F: u8 = 0x80;
const NRI: u8 = 0x60;
const TYPE: u8 = 0x1f;
/// Types of NAL units (table 1) and of payloads (table 3).
const IDR: u8 = 5;
const SPS: u8 = 7;
const AUD: u8 = 9;
const STAP_A: u8 = 24;
const STAP_B: u8 = 25;
const MTAP16: u8 = 26;
const MTAP24: u8 = 27;
const FU_A: u8 = 28;
const FU_B: u8 = 29;
/// Bits of the FU header (section 5.8).
const START: u8 = 0x80;
const END: u8 = 0x40;
const START_CODE: [u8; 4] = [0, 0, 0, 1];
/// Most NAL units in a STAP-A sent.
const MOST_AGGREGATED: usize = 16;

const fn is_plain(header: u8) -> bool {
    matches!(header & TYPE, 1..=23)
}

const fn is_slice(header: u8) -> bool {
    matches!(header & TYPE, 1..=5)
}

/// The NAL units of a byte stream, without start codes and trailing zeros; bytes before the first start code and empty
/// units are skipped.
pub(crate) fn nal_units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut begin = start_code(stream, 0).map(|at| at + 3);
    std::iter::from_fn(move || {
        let from = begin?;
        let next = start_code(stream, from);
        begin = next.map(|at| at + 3);
        let unit = &stream[from..next.unwrap_or(stream.len())];
        let zeros = unit.iter().rev().take_while(|&&b| b == 0).count();
        Some(&unit[..unit.len() - zeros])
    })
    .filter(|unit| !unit.is_empty())
}

/// Position of the next start code of three bytes.
fn start_code(stream: &[u8], mut at: usize) -> Option<usize> {
    while let Some(&[a, b, c]) = stream.get(at..at + 3) {
        at += match (a, b, c) {
            (0, 0, 1) => return Some(at),
            (_, _, 0) => 1,
            _ => 3,
        };
    }
    None
}

/// Adjacent units that may share a packet.
struct Group<'a> {
    units: [&'a [u8]; MOST_AGGREGATED],
    len: usize,
    /// Size as a STAP-A in bytes.
    size: usize,
    has_slice: bool,
}

impl<'a> Group<'a> {
    const EMPTY: Self = Self { units: [&[]; MOST_AGGREGATED], len: 0, size: 1, has_slice: false };

    fn takes(&self, unit: &[u8], max: usize, slices_apart: bool) -> bool {
        let apart = slices_apart && self.has_slice && is_slice(unit[0]);
        let fits = self.size + 2 + unit.len() <= max && unit.len() <= usize::from(u16::MAX);
        self.len == 0 || (fits && !apart && self.len < MOST_AGGREGATED)
    }

    fn add(&mut self, unit: &'a [u8]) {
        self.units[self.len] = unit;
        self.len += 1;
        self.size += 2 + unit.len();
        self.has_slice |= is_slice(unit[0]);
    }

    fn write(&mut self, discardable: bool, out: &mut Payloads) {
        let units = &self.units[..self.len];
        let discardable = discardable || units.iter().all(|u| u[0] & NRI == 0);
        match units {
            [] => return,
            [unit] => out.push(&[unit], discardable),
            _ => {
                // F is set if any is set; NRI is the highest of all (section 5.7).
                let f = units.iter().fold(0, |f, u| f | u[0] & F);
                let nri = units.iter().map(|u| u[0] & NRI).max().unwrap_or(0);
                let header = [f | nri | STAP_A];
                let sizes = self.units.map(|u| (u.len() as u16).to_be_bytes());
                let mut parts: [&[u8]; 1 + 2 * MOST_AGGREGATED] = [&[]; 1 + 2 * MOST_AGGREGATED];
                parts[0] = &header;
                for (i, unit) in units.iter().enumerate() {
                    parts[1 + 2 * i] = &sizes[i];
                    parts[2 + 2 * i] = unit;
                }
                out.push(&parts[..1 + 2 * units.len()], discardable);
            }
        }
        *self = Self::EMPTY;
    }
}

pub(super) fn packetise(frame: &CodedFrame, max: usize, slices_apart: bool, out: &mut Payloads) {
    let mut group = Group::EMPTY;
    for unit in nal_units(&frame.data).filter(|u| is_plain(u[0])) {
        if unit.len() > max {
            group.write(frame.discardable, out);
            let header = unit[0];
            let discardable = frame.discardable || header & NRI == 0;
            for (piece, start, end) in pieces(&unit[1..], max - 2) {
                let fu = header & TYPE | if start { START } else { 0 } | if end { END } else { 0 };
                out.push(&[&[header & !TYPE | FU_A, fu], piece], discardable);
            }
            continue;
        }
        if !group.takes(unit, max, slices_apart) {
            group.write(frame.discardable, out);
        }
        group.add(unit);
    }
    group.write(frame.discardable, out);
}

/// Accepts NAL units and fragments.
struct Stream<'a> {
    out: &'a mut Vec<u8>,
    stats: &'a mut DepacketiserStats,
    made: Assembled,
    /// Start of the fragmented unit in `out`, and its type.
    open: Option<(usize, u8)>,
    /// Whether to skip fragments of a unit that has been counted as lost.
    skipping: bool,
    units: usize,
    slices: usize,
    references: usize,
}

impl Stream<'_> {
    fn malformed(&mut self) {
        self.stats.malformed += 1;
        self.made.broken = true;
    }

    /// Drops an incomplete fragmented unit.
    fn abandon(&mut self) {
        if let Some((at, _)) = self.open.take() {
            self.out.truncate(at);
            self.lose_fragment();
        }
    }

    fn lose_fragment(&mut self) {
        self.stats.fragmented += 1;
        self.made.unpacked.dropped += 1;
        self.made.broken = true;
    }

    /// Appends the beginning of a unit; returns whether its header is accepted.
    fn begin(&mut self, header: u8, bytes: &[u8]) -> bool {
        if !is_plain(header) {
            self.stats.reserved += 1;
            return false;
        }
        // The unit may have bit errors (section 5.3).
        if header & F != 0 {
            self.malformed();
            self.made.unpacked.dropped += 1;
            return false;
        }
        self.out.extend_from_slice(&START_CODE);
        self.out.push(header);
        self.out.extend_from_slice(bytes);
        true
    }

    /// Records a complete unit that begins at `at`.
    fn note(&mut self, at: usize) {
        let unit = &self.out[at + START_CODE.len()..];
        let header = unit[0];
        // A picture begins with a delimiter, parameters, or a slice whose first macroblock is 0: the first bit after
        // the header is that number in Exp-Golomb code. IDR pictures follow their parameters.
        let first_slice = header & TYPE == 1 && unit.get(1).is_some_and(|b| b & 0x80 != 0);
        if self.units == 0 {
            self.made.front |= matches!(header & TYPE, AUD | SPS) || first_slice;
        }
        self.units += 1;
        self.made.unpacked.key |= header & TYPE == IDR;
        self.slices += usize::from(is_slice(header));
        self.references += usize::from(is_slice(header) && header & NRI != 0);
    }

    fn unit(&mut self, unit: &[u8]) {
        let at = self.out.len();
        if let Some((&header, bytes)) = unit.split_first()
            && self.begin(header, bytes)
        {
            self.note(at);
        }
    }

    fn aggregate(&mut self, mut rest: &[u8]) {
        while !rest.is_empty() {
            let unit = rest.split_first_chunk::<2>().and_then(|(size, behind)| {
                let size = usize::from(u16::from_be_bytes(*size));
                behind.split_at_checked(size).filter(|_| size > 0)
            });
            let Some((unit, behind)) = unit else { return self.malformed() };
            self.unit(unit);
            rest = behind;
        }
    }

    fn fragment(&mut self, indicator: u8, rest: &[u8], gap: bool) {
        let Some((&fu, bytes)) = rest.split_first() else {
            self.abandon();
            return self.malformed();
        };
        let header = indicator & !TYPE | fu & TYPE;
        if gap || fu & START != 0 || self.open.is_some_and(|(_, kind)| kind != fu & TYPE) {
            self.skipping = self.open.is_some();
            self.abandon();
        }
        self.skipping &= fu & START == 0;
        match self.open {
            _ if fu & START != 0 => {
                let at = self.out.len();
                if self.begin(header, bytes) {
                    self.open = Some((at, fu & TYPE));
                }
            }
            Some(_) => self.out.extend_from_slice(bytes),
            None if self.skipping => {}
            None => {
                self.lose_fragment();
                self.skipping = true;
            }
        }
        // Both bits in one packet are forbidden (section 5.8), but accepted.
        if fu & END != 0
            && let Some((at, _)) = self.open.take()
        {
            self.note(at);
        }
        self.skipping &= fu & END == 0;
    }

    fn payload(&mut self, bytes: &[u8], gap: bool) {
        let Some((&header, rest)) = bytes.split_first() else { return self.malformed() };
        if header & TYPE != FU_A {
            self.abandon();
            self.skipping = false;
        }
        match header & TYPE {
            1..=23 => self.unit(bytes),
            STAP_A => self.aggregate(rest),
            FU_A => self.fragment(header, rest, gap),
            STAP_B | MTAP16 | MTAP24 | FU_B => {
                self.stats.interleaved += 1;
                self.made.unpacked.dropped += 1;
                self.made.broken = true;
            }
            _ => self.stats.reserved += 1,
        }
    }
}

pub(super) fn assemble(packets: &[ReceivedPayload], stats: &mut DepacketiserStats, out: &mut Vec<u8>) -> Assembled {
    let made = Assembled::default();
    let mut stream = Stream { out, stats, made, open: None, skipping: false, units: 0, slices: 0, references: 0 };
    for (gap, packet) in rising(packets) {
        stream.payload(&packet.bytes, gap);
    }
    stream.abandon();
    stream.made.unpacked.discardable = stream.slices > 0 && stream.references == 0;
    stream.made
}
