//! Repair packets of forward error correction, recognised without a description: those of FlexFEC name the stream that they protect, of ULPFEC the
//! lengths of all parts fill the packet. Payloads have to be in the clear, which only the caller knows.

use weir_wire::Error;
use weir_wire::fec::{Coverage, Mask, Octets, Pattern, flexfec, flexfec03, red, ulpfec};
use weir_wire::rtp::PacketView;

/// Most packets between one of ULPFEC and the first that it protects: they have the numbers of one stream.
const MOST_BACK: u16 = 128;
/// E bit of a header of ULPFEC, which is 0 (RFC 5109, section 7.3).
const EXTENDED: u8 = 0x80;
/// First byte of a FlexFEC-03 header's SSRC, and of its SN base.
const SSRC_03: usize = 12;
const BASE_03: usize = 16;

/// The streams that a packet protects if it is one of repair. `length` is that of the whole packet, of which bytes may be missing.
pub(super) fn protected(bytes: &[u8], length: u32) -> Vec<(u32, Coverage)> {
    let whole = length as usize == bytes.len();
    let view = if whole { PacketView::parse(bytes) } else { PacketView::parse_header(bytes) };
    let Ok(view) = view else { return Vec::new() };
    let payload = Octets { bytes: view.payload(), zeros: length.saturating_sub(bytes.len() as u32) };
    if let Some(one) = browsers(payload) {
        return vec![one];
    }
    if view.csrcs().len() > 0
        && let Ok(flexfec::Packet::Repair(repair)) = flexfec::Packet::parse(view.csrcs(), payload)
    {
        return repair.blocks.iter().map(|b| (b.ssrc, b.coverage())).collect();
    }
    let of_stream = |coverage| (view.ssrc(), coverage);
    if let Some(coverage) = uneven(payload, view.sequence()) {
        return vec![of_stream(coverage)];
    }
    // A block of its own, or behind media.
    let Ok(red) = red::Red::parse(payload) else { return Vec::new() };
    let blocks = red.redundant.iter().map(|b| b.data).chain([red.primary]);
    blocks.filter_map(|b| uneven(b, view.sequence())).map(of_stream).take(1).collect()
}

/// FlexFEC-03.
fn browsers(payload: Octets<'_>) -> Option<(u32, Coverage)> {
    match flexfec03::Repair::parse(payload) {
        Ok(repair) => Some((repair.ssrc, repair.coverage())),
        // A header without a packet, which names its stream all the same.
        Err(Error::Value { field: "FlexFEC-03 mask", value: 0, .. }) => {
            let ssrc = payload.bytes.get(SSRC_03..)?.first_chunk()?;
            let base = payload.bytes.get(BASE_03..)?.first_chunk()?;
            let pattern = Pattern::Mask(Mask::from_bits(0));
            Some((u32::from_be_bytes(*ssrc), Coverage { base: u16::from_be_bytes(*base), pattern }))
        }
        Err(_) => None,
    }
}

/// ULPFEC of a stream with these numbers: whole packets, at one or two levels.
fn uneven(payload: Octets<'_>, sequence: u16) -> Option<Coverage> {
    if payload.bytes.first().is_none_or(|b| b & EXTENDED != 0) {
        return None;
    }
    let repair = ulpfec::Repair::parse(payload).ok()?;
    let first = repair.levels.iter().next().filter(|l| !l.payload.is_empty())?;
    let coverage = repair.coverage(&first);
    let before = |n: u16| (1..=MOST_BACK).contains(&sequence.wrapping_sub(n));
    (repair.levels.iter().count() <= 2 && before(repair.base) && coverage.sequences().all(before)).then_some(coverage)
}
