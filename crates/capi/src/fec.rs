//! Reed-Solomon repair as RFC 6865 has it: source packets with a payload ID at their end, repair packets beside them.
//!
//! Blocks have a fixed number of source packets, since every source packet states it. One flow (number 0) is protected.

use crate::controller::time;
use crate::failure::{Failure, Status};
use weir_fec::{Code, Coverage, Importance, Recovered, Repair, RepairWindow, Scheme, Symbol, WindowLimits};
use weir_units::TimeDelta;
use weir_wire::fec::Octets;
use weir_wire::fec::reed_solomon::{
    ADU_HEADER, Field, PAYLOAD_ID, PayloadId, parse_repair, parse_source, protect_into, rebuild, write_repair_into,
    write_source_into,
};

/// Longest packet that is protected, in bytes: with its payload ID it fits into a UDP datagram over IPv4.
const MAX_PACKET: usize = 65_507 - PAYLOAD_ID;
/// Span of block numbers: 24 bits (RFC 6865, section 5.1.2).
const BLOCKS: u64 = 1 << 24;

fn scheme(sources: u32, repairs: u32) -> Result<Scheme, Failure> {
    let n = sources.saturating_add(repairs);
    match (u8::try_from(n), u8::try_from(repairs)) {
        (Ok(n), Ok(repair)) if sources > 0 && repairs > 0 => Ok(Scheme::ReedSolomon { n, repair }),
        _ => {
            let value = format_args!("{sources} and {repairs}").to_string();
            Err(Failure::value("sources and repairs", value, "at least 1 each, 255 together"))
        }
    }
}

/// A block's number in packets.
const fn on_wire(block: u64) -> u32 {
    (block % BLOCKS) as u32
}

/// The object behind an encoder handle.
pub(crate) struct Encoder {
    inner: weir_fec::Encoder,
    /// Source packets of the open block, and those of the next.
    sources: u32,
    next: u32,
    /// Number of the open block, of which packets have the lower 24 bits, and of its next source symbol.
    block: u64,
    symbol: u32,
    /// The repair packet that the caller takes next.
    waiting: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Encoder {
    pub(crate) fn new(sources: u32, repairs: u32) -> Result<Self, Failure> {
        let scheme = scheme(sources, repairs)?;
        let inner = weir_fec::Encoder::new(scheme).map_err(|e| Failure::new(Status::BadValue, e.to_string()))?;
        Ok(Self { inner, sources, next: sources, block: 0, symbol: 0, waiting: None, scratch: Vec::new() })
    }

    /// Sets the sizes of blocks from the next on.
    pub(crate) fn set(&mut self, sources: u32, repairs: u32) -> Result<(), Failure> {
        let scheme = scheme(sources, repairs)?;
        self.inner.set_scheme(Some(scheme)).map_err(|e| Failure::new(Status::BadValue, e.to_string()))?;
        self.next = sources;
        if self.symbol == 0 {
            self.sources = sources;
        }
        Ok(())
    }

    /// Bytes of the source packet for a packet of this length. Failure: it is too long.
    pub(crate) fn source_len(len: usize) -> Result<usize, Failure> {
        if len > MAX_PACKET {
            return Err(Failure::value("length of the packet", len, &format!("at most {MAX_PACKET}")));
        }
        Ok(len + PAYLOAD_ID)
    }

    /// Protects a packet; returns the source packet to be sent in its place.
    pub(crate) fn source(&mut self, packet: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::with_capacity(Self::source_len(packet.len())?);
        let (symbol, source_symbols) = (self.symbol as u16, self.sources as u16);
        let id = PayloadId { block: on_wire(self.block), symbol, source_symbols };
        let adu = Octets::new(packet);
        let field = Field::default();
        self.scratch.clear();
        let written = write_source_into(adu, &id, field, &mut out).and(protect_into(0, adu, &mut self.scratch));
        written.ok_or_else(|| Failure::new(Status::Internal, format!("payload ID {id:?} is out of range")))?;
        let sequence = self.block << 8 | u64::from(self.symbol);
        self.inner.push(sequence, Symbol::new(&self.scratch), Importance::Other);
        self.symbol += 1;
        if self.symbol == self.sources {
            (self.symbol, self.sources) = (0, self.next);
            self.block += 1;
        }
        Ok(out)
    }

    /// The next repair packet, kept until [`Self::taken`].
    pub(crate) fn repair(&mut self) -> Option<&[u8]> {
        if self.waiting.is_none() {
            let repair = self.inner.poll_repair()?;
            let Code::ReedSolomon { sources, row, .. } = repair.code else { return None };
            let block = on_wire(repair.coverage.base() >> 8);
            let id = PayloadId { block, symbol: u16::from(sources) + u16::from(row), source_symbols: sources.into() };
            let mut out = Vec::with_capacity(PAYLOAD_ID + repair.symbol.bytes.len());
            let octets = Octets::new(repair.symbol.bytes);
            write_repair_into(&id, octets, Field::default(), &mut out)?;
            self.waiting = Some(out);
        }
        self.waiting.as_deref()
    }
    pub(crate) fn taken(&mut self) {
        self.waiting = None;
    }
}

/// The object behind a decoder handle.
pub(crate) struct Decoder {
    window: RepairWindow,
    /// Most source packets of a block, and log2 of how far the blocks' numbers in the window are apart.
    most: u8,
    shift: u32,
    /// Highest block number so far, unwrapped.
    highest: Option<u64>,
    /// The recovered packet that the caller takes next.
    waiting: Option<Vec<u8>>,
    scratch: Vec<u8>,
}

impl Decoder {
    /// A decoder of blocks of up to `given` source packets that keeps packets for `age`.
    pub(crate) fn new(given: u32, age_ns: i64) -> Result<Self, Failure> {
        let most = u8::try_from(given).ok().filter(|m| (1..u8::MAX).contains(m));
        let most = most.ok_or_else(|| Failure::value("sources", given, "1 to 254"))?;
        if !(1..=60_000_000_000).contains(&age_ns) {
            return Err(Failure::value("age_ns", age_ns, "1 to 60000000000, a minute"));
        }
        let limits = WindowLimits { age: TimeDelta::from_nanos(age_ns), ..WindowLimits::default() };
        let shift = u32::from(most).next_power_of_two().ilog2();
        Ok(Self { window: RepairWindow::new(limits), most, shift, highest: None, waiting: None, scratch: Vec::new() })
    }

    /// The 64-bit number of a block: the nearest to the highest.
    fn unwrap(&self, block: u32) -> u64 {
        let Some(highest) = self.highest else { return u64::from(block) + BLOCKS };
        let ahead = u64::from(block).wrapping_sub(highest) & (BLOCKS - 1);
        if ahead < BLOCKS / 2 { highest + ahead } else { (highest + ahead).saturating_sub(BLOCKS) }
    }

    /// Failure: a block larger than the decoder's.
    fn check(&self, id: &PayloadId) -> Result<(), Failure> {
        if id.source_symbols <= self.most.into() {
            return Ok(());
        }
        let (given, most) = (id.source_symbols, self.most);
        let text = format!("source block length is {given}: expected at most {most}, as the decoder was made");
        Err(Failure::new(Status::Malformed, text))
    }

    /// A source packet has arrived; returns the packet in it.
    pub(crate) fn source<'p>(&mut self, now_ns: i64, packet: &'p [u8]) -> Result<&'p [u8], Failure> {
        let now = time("now_ns", now_ns)?;
        let (adu, id) = parse_source(Octets::new(packet), Field::default())?;
        self.check(&id)?;
        let block = self.unwrap(id.block);
        self.scratch.clear();
        if protect_into(0, adu, &mut self.scratch).is_some() {
            self.highest = self.highest.max(Some(block));
            self.window.on_source(now, block << self.shift | u64::from(id.symbol), Symbol::new(&self.scratch));
        }
        Ok(adu.bytes)
    }

    /// A repair packet has arrived.
    pub(crate) fn repair(&mut self, now_ns: i64, packet: &[u8]) -> Result<(), Failure> {
        let now = time("now_ns", now_ns)?;
        let (id, symbol) = parse_repair(Octets::new(packet), Field::default())?;
        self.check(&id)?;
        if symbol.bytes.len() < ADU_HEADER {
            return Err(Failure::new(
                Status::Malformed,
                format!("repair symbol has {} bytes: expected at least {ADU_HEADER}", symbol.bytes.len()),
            ));
        }
        // Both fit, since the field has 8 bits. The number of repair packets is not in the packet.
        let (sources, row) = (id.source_symbols as u8, (id.symbol - id.source_symbols) as u8);
        let coverage = Coverage::every(self.unwrap(id.block) << self.shift, 1, sources.into());
        let code = Code::ReedSolomon { sources, repairs: u8::MAX - sources, row };
        self.window.on_repair(now, Repair { coverage, code, symbol: Symbol::new(symbol.bytes) });
        Ok(())
    }

    /// The next recovered packet, kept until [`Self::taken`].
    pub(crate) fn recovered(&mut self) -> Option<&[u8]> {
        while self.waiting.is_none() {
            let Recovered { symbol, .. } = self.window.poll_recovered()?;
            // A forged repair packet recovers what is no packet: passed over, since nobody sent it.
            let information = Octets { bytes: symbol.bytes, zeros: symbol.zeros };
            if let Ok((_, adu)) = rebuild(information) {
                let mut packet = Vec::with_capacity(adu.len());
                adu.write_out(&mut packet);
                self.waiting = Some(packet);
            }
        }
        self.waiting.as_deref()
    }
    pub(crate) fn taken(&mut self) {
        self.waiting = None;
    }
}
