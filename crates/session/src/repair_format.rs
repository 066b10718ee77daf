//! Repair packets as RTP payloads.
//!
//! Parity uses FlexFEC (RFC 8627), with a flexible mask if the packets fit into one, and otherwise as columns and rows; or
//! FlexFEC-03, with a flexible mask; or ULPFEC in RED, with one level.
//! Reed-Solomon uses the payload ID of RFC 6865, which defines no RTP payload: here the payload is the ID, the sequence
//! number of the block's first packet as in the repair payload ID of RFC 6681, section 8.1.3 (a single sequenced flow),
//! and the repair symbol. Source packets are unchanged, so that receivers without repair can use them; blocks therefore
//! consist of consecutive packets. Both codes operate on the strings of RFC 8627, section 6.2, where RFC 6865 would use
//! whole packets: sequence number and SSRC are known from the repair packet, and one window serves both codes.
//! Sliding-window codes over GF(2^8) do the same with the repair payload ID of RFC 8681, whose FSS_ESI is the sequence number of
//! the window's first packet (`docs/wire/rlc.md`). If a window has gaps, a mask follows the ID, and the marker bit of the RTP header says so.

use crate::identity::ParityFormat;
use crate::sent::nearest;
use weir_fec::{Code, Combination, Coverage, Repair, RlcField, Shape, Symbol};
use weir_wire::Error;
use weir_wire::fec::parity::{self, PREFIX, Recovery};
use weir_wire::fec::reed_solomon::{Field, PayloadId, parse_repair};
use weir_wire::fec::{Mask, Octets, flexfec, flexfec03, red, rlc, ulpfec};
use weir_wire::rtp::{FIXED_HEADER, PacketView};

/// The payload format of a repair packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    FlexFec,
    FlexFec03,
    /// With the header of RED.
    UlpFec,
    ReedSolomon,
    Rlc,
    /// With a mask of the window's packets, and the marker bit.
    MaskedRlc,
}

impl From<ParityFormat> for Format {
    fn from(format: ParityFormat) -> Self {
        match format {
            ParityFormat::FlexFec => Self::FlexFec,
            ParityFormat::FlexFec03 { .. } => Self::FlexFec03,
            ParityFormat::UlpFec(_) => Self::UlpFec,
        }
    }
}

/// The source and block that repair packets protect, and the format of those of parity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepairOf {
    /// The source.
    pub media_ssrc: u32,
    /// Number of the block.
    pub block: u32,
    pub parity: ParityFormat,
    /// Whether windows without gaps have a mask too, which says that packets may be those of a request.
    pub masks: bool,
}

/// Appends the payload of a repair packet. Returns its format and the number of zeros that follow, or `None` if the format
/// cannot express what is protected.
pub(crate) fn write(repair: &Repair<'_>, of: RepairOf, out: &mut Vec<u8>) -> Option<(Format, u32)> {
    let RepairOf { media_ssrc, block, parity, masks } = of;
    let string = Octets { bytes: repair.symbol.bytes, zeros: repair.symbol.zeros };
    let base = repair.coverage.first()?;
    match repair.code {
        Code::Parity(shape) => {
            let (recovery, payload) = Recovery::split(string)?;
            if let ParityFormat::FlexFec03 { .. } = parity {
                let mask = Mask::covering(base as u16, repair.coverage.iter().map(|s| s as u16))?;
                let packet = flexfec03::Repair { recovery, ssrc: media_ssrc, base: base as u16, mask, payload };
                return Some((Format::FlexFec03, packet.write_into(out)?));
            }
            if let ParityFormat::UlpFec(numbers) = parity {
                let mask = Mask::covering(base as u16, repair.coverage.iter().map(|s| s as u16))?;
                let levels = [ulpfec::Level { mask, payload }];
                let packet = ulpfec::Repair { recovery, base: base as u16, levels: ulpfec::Levels::Own(&levels) };
                let alone = red::Red {
                    redundant: red::Blocks::Own(&[]),
                    payload_type: numbers.ulpfec,
                    primary: Octets::default(),
                };
                let start = out.len();
                alone.write_into(out)?;
                let zeros = packet.write_into(out);
                if zeros.is_none() {
                    out.truncate(start);
                }
                return Some((Format::UlpFec, zeros?));
            }
            let blocks = [block_of(media_ssrc, base, &repair.coverage, shape)?];
            let packet = flexfec::Repair { recovery, blocks: flexfec::Blocks::Own(&blocks), payload };
            Some((Format::FlexFec, packet.write_into(out)?))
        }
        Code::ReedSolomon { sources, row, .. } => {
            let in_sequence = repair.coverage.last()? - base + 1 == u64::from(sources);
            let symbol = u16::from(sources) + u16::from(row);
            let id = PayloadId { block, symbol, source_symbols: sources.into() };
            let id = id.to_bytes(Field::default()).filter(|_| in_sequence)?;
            out.extend_from_slice(&id);
            out.extend_from_slice(&(base as u16).to_be_bytes());
            out.extend_from_slice(string.bytes);
            Some((Format::ReedSolomon, string.zeros))
        }
        Code::Rlc(Combination { key, density, field }) => {
            let symbols = u16::try_from(repair.coverage.last()? - base + 1).ok()?;
            // The payload type says GF(2^8).
            if field != RlcField::Gf256 {
                return None;
            }
            let id = rlc::RepairId { key, density, symbols, first: u32::from(base as u16) };
            if !masks && repair.coverage.len() == usize::from(symbols) {
                return Some((Format::Rlc, rlc::write_repair_into(&id, string, out)?));
            }
            let positions = repair.coverage.iter().map(|s| (s - base) as u16);
            Some((Format::MaskedRlc, rlc::write_masked_into(&id, positions, string, out)?))
        }
    }
}

fn block_of(ssrc: u32, base: u64, coverage: &Coverage, shape: Shape) -> Option<flexfec::Block> {
    let mask = flexfec::Block::masked(ssrc, base as u16, coverage.iter().map(|s| s as u16));
    if mask.is_some() {
        return mask;
    }
    let step = match shape {
        Shape::Column { columns } => columns,
        Shape::Group | Shape::Row => 1,
    };
    let shape = flexfec::Shape::every(step, u8::try_from(coverage.len()).ok()?)?;
    let regular = coverage.iter().zip(0..).all(|(s, i): (u64, u64)| s == base + i * u64::from(step));
    regular.then_some(flexfec::Block { ssrc, base: base as u16, shape })
}

/// A received repair packet.
#[derive(Clone, Copy)]
pub(crate) struct ReceivedRepair<'a> {
    pub format: Format,
    pub rtp: &'a PacketView<'a>,
    /// The repair packet's payload: that of the RTP packet, or of a block in RED.
    pub payload: Octets<'a>,
}

/// The media stream protected by repair packets.
#[derive(Clone, Copy)]
pub(crate) struct ProtectedStream {
    pub ssrc: u32,
    /// Its highest sequence number so far; those in repair packets are close to it.
    pub highest: u64,
}

/// Parses a repair packet and passes the repair to `take`, with its string in `scratch`.
///
/// # Errors
/// The payload does not have the format, or protects another source.
pub(crate) fn read(
    packet: ReceivedRepair<'_>,
    media: ProtectedStream,
    scratch: &mut Vec<u8>,
    take: impl FnOnce(Repair<'_>),
) -> Result<(), Error> {
    let ReceivedRepair { format, rtp, payload } = packet;
    let unwrap = |sequence| nearest(media.highest, sequence);
    scratch.clear();
    let wrong = |field, value: u32, expected| Err(Error::Value { field, offset: 0, value: value.into(), expected });
    match format {
        Format::FlexFec => {
            let flexfec::Packet::Repair(repair) = flexfec::Packet::of(rtp, payload.zeros)? else {
                return wrong("FlexFEC R", 1, "0: no retransmission was agreed upon");
            };
            let mut blocks = repair.blocks.iter();
            let (Some(block), None) = (blocks.next(), blocks.next()) else {
                return wrong("FlexFEC CSRC count", repair.blocks.iter().count() as u32, "1");
            };
            if block.ssrc != media.ssrc {
                return wrong("FlexFEC CSRC", block.ssrc, "the media's source");
            }
            let mut coverage = Coverage::new(unwrap(block.base));
            let base = coverage.base();
            for s in block.coverage().sequences() {
                if !coverage.insert(base + u64::from(s.wrapping_sub(block.base))) {
                    return wrong("FlexFEC span", s.wrapping_sub(block.base).into(), "below 256");
                }
            }
            let zeros = repair.string_into(scratch);
            take(Repair { coverage, code: Code::PARITY, symbol: Symbol { bytes: scratch, zeros } });
        }
        Format::FlexFec03 => {
            let repair = flexfec03::Repair::parse(payload)?;
            if repair.ssrc != media.ssrc {
                return wrong("FlexFEC-03 SSRC", repair.ssrc, "the media's source");
            }
            let mut coverage = Coverage::new(unwrap(repair.base));
            let base = coverage.base();
            for s in repair.coverage().sequences() {
                // A mask is shorter than a coverage.
                coverage.insert(base + u64::from(s.wrapping_sub(repair.base)));
            }
            let zeros = repair.string_into(scratch);
            take(Repair { coverage, code: Code::PARITY, symbol: Symbol { bytes: scratch, zeros } });
        }
        Format::UlpFec => {
            let repair = ulpfec::Repair::parse(payload)?;
            // Level 0 alone, which is all that libwebrtc sends; what it does not protect to the end is not recovered.
            let Some(level) = repair.levels.iter().next() else { return Ok(()) };
            let mut coverage = Coverage::new(unwrap(repair.base));
            let base = coverage.base();
            for s in repair.coverage(&level).sequences() {
                coverage.insert(base + u64::from(s.wrapping_sub(repair.base)));
            }
            let zeros = repair.string_into(scratch);
            take(Repair { coverage, code: Code::PARITY, symbol: Symbol { bytes: scratch, zeros } });
        }
        Format::ReedSolomon => {
            let (id, rest) = parse_repair(payload, Field::default())?;
            let Some((&[a, b], bytes)) = rest.bytes.split_first_chunk() else {
                return wrong("initial sequence number", rest.bytes.len() as u32, "2 bytes");
            };
            // Both fit, since the field has 8 bits.
            let (sources, row) = (id.source_symbols as u8, (id.symbol - id.source_symbols) as u8);
            let coverage = Coverage::every(unwrap(u16::from_be_bytes([a, b])), 1, sources.into());
            let code = Code::ReedSolomon { sources, repairs: 255 - sources, row };
            take(Repair { coverage, code, symbol: Symbol { bytes, zeros: rest.zeros } });
        }
        Format::Rlc => {
            let (id, rest) = rlc::parse_repair(payload)?;
            if u64::from(id.symbols) > Coverage::SPAN {
                return wrong("NSS", id.symbols.into(), "256 at most");
            }
            // Its upper half is not read: the media's sequence numbers have 16 bits.
            let coverage = Coverage::every(unwrap(id.first as u16), 1, id.symbols.into());
            let code = Code::Rlc(Combination { key: id.key, density: id.density, field: RlcField::Gf256 });
            take(Repair { coverage, code, symbol: Symbol { bytes: rest.bytes, zeros: rest.zeros } });
        }
        Format::MaskedRlc => {
            let (id, mask, rest) = rlc::parse_masked(payload)?;
            if u64::from(id.symbols) > Coverage::SPAN {
                return wrong("NSS", id.symbols.into(), "256 at most");
            }
            let mut coverage = Coverage::new(unwrap(id.first as u16));
            let base = coverage.base();
            for position in mask.positions() {
                coverage.insert(base + u64::from(position));
            }
            let code = Code::Rlc(Combination { key: id.key, density: id.density, field: RlcField::Gf256 });
            take(Repair { coverage, code, symbol: Symbol { bytes: rest.bytes, zeros: rest.zeros } });
        }
    }
    Ok(())
}

/// The string protected by codes for a packet whose header is present and `zeros` of whose payload bytes are not. Of a packet in RED,
/// as this end sends it, it is that of the packet without RED (RFC 5109, section 14.2).
pub(crate) fn protected<'a>(
    packet: &[u8],
    zeros: u32,
    format: ParityFormat,
    scratch: &'a mut Vec<u8>,
) -> Result<Symbol<'a>, Error> {
    scratch.clear();
    let zeros = parity::protect_into(Octets { bytes: packet, zeros }, scratch)?;
    let (zeroed, red) = match format {
        ParityFormat::FlexFec => ([0; 2], None),
        ParityFormat::FlexFec03 { zeroed } => (zeroed, None),
        ParityFormat::UlpFec(red) => (red.zeroed, Some(red.payload_type)),
    };
    if format != ParityFormat::FlexFec {
        let view = PacketView::parse_header(packet)?;
        for range in zeroed.into_iter().filter(|id| *id != 0).filter_map(|id| view.extension_range(id)) {
            // The string has a prefix instead of the fixed header.
            scratch[range.start - FIXED_HEADER + PREFIX..range.end - FIXED_HEADER + PREFIX].fill(0);
        }
        let behind = view.header_len() - FIXED_HEADER + PREFIX;
        if red == Some(view.payload_type()) && scratch.len() > behind {
            // One octet of RED, the payload type of the media.
            let media = scratch.remove(behind);
            let [_, marker_and_type, high, low, ..] = &mut scratch[..] else {
                return Ok(Symbol { bytes: scratch, zeros });
            };
            *marker_and_type = *marker_and_type & 0x80 | media & 0x7f;
            let length = u16::from_be_bytes([*high, *low]).saturating_sub(1);
            [*high, *low] = length.to_be_bytes();
        }
    }
    Ok(Symbol { bytes: scratch, zeros })
}
