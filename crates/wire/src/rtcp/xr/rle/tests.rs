use super::*;
use crate::rtcp::xr::{Block, Blocks, Xr};
use crate::rtcp::{Packet, parse_compound};
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;

fn bits(s: &str) -> impl Iterator<Item = bool> {
    s.bytes().filter(|b| *b != b' ').map(|b| b == b'1')
}

/// The block as written in a report, without the report's header.
fn written(block: Block<'_>) -> Vec<u8> {
    let mut out = vec![];
    Xr { ssrc: 9, blocks: Blocks::Own(&[block]) }.write_into(&mut out);
    let Some(Ok(Packet::Xr(read))) = parse_compound(&out).next() else { panic!("not read") };
    assert!(read.blocks.iter().eq([block]));
    out.split_off(8)
}

const TRACE: &str = "1111 1111 1111 1111 1111 1010 1111 1111 1111 1111 1111 1";
const TRACE_44: &str = "1111 1111 1111 1111 1111 1010 1111 1111 1111 1111 1110 1";

#[test]
fn examples_of_rfc_3611() {
    // Section 4.1: a run of 21 receipts, the vector 0101 1111 1111 111, a run of 9 receipts, and a null chunk.
    let mut chunks = vec![];
    let trace = RleBlock::encode(0x0102_0304, 13_821, 0, bits(TRACE), 1_000, &mut chunks);
    assert_eq!((trace.end, trace.reported()), (13_866, 45));
    assert!(trace.packets().map(|(_, bit)| bit).eq(bits(TRACE)));
    let lost: Vec<u16> = trace.packets().filter(|p| !p.1).map(|p| p.0).collect();
    assert_eq!(lost, [13_842, 13_844], "the 22nd and 24th");
    assert_eq!(written(Block::LossRle(trace)), hex("01000004 01020304 35fd362a 4015 afff 4009 0000"));
    // The 44th lost as well: the last vector is 1111 1110 1 and zeros.
    let trace = RleBlock::encode(0x0102_0304, 13_821, 0, bits(TRACE_44), 1_000, &mut chunks);
    assert!(trace.packets().map(|(_, bit)| bit).eq(bits(TRACE_44)), "bits beyond the range are passed over");
    assert_eq!(written(Block::LossRle(trace)), hex("01000004 01020304 35fd362a 4015 afff ff40 0000"));
    // Thinned by four: the vector 1111 1011 1100 000, which leaves 13,824 to 13,864.
    let thinned = RleBlock::encode(0x0102_0304, 13_821, 2, bits(TRACE_44), 1_000, &mut chunks);
    assert_eq!(thinned.reported(), 11);
    assert!(thinned.packets().map(|p| p.0).eq((13_824..=13_864).step_by(4)));
    assert!(thinned.packets().map(|p| p.1).eq(bits("1111 1011 110")));
    assert_eq!(written(Block::LossRle(thinned)), hex("01020003 01020304 35fd362a fde0 0000"));
}

#[test]
fn the_other_encoding_of_the_example_reads_the_same() {
    let chunks = hex("ffff febf ffff 0000");
    let body = [hex("01020304 35fd362a"), chunks].concat();
    let trace = RleBlock::from_body(0, &body).unwrap();
    assert_eq!(trace.chunks.len(), 3, "the null chunk only fills the word");
    assert!(trace.packets().map(|(_, bit)| bit).eq(bits(TRACE)));
}

#[test]
fn each_block_has_its_type_and_flags() {
    let chunks = [Chunk::vector(0x4000), Chunk::run(false, 3).unwrap()];
    let trace = RleBlock { ssrc: 1, begin: 0xffff, end: 2, thinning: 0, chunks: (&chunks).into() };
    let body = "00000001 ffff0002 c000 0003";
    assert_eq!(written(Block::LossRle(trace)), hex(&format!("01000003{body}")));
    assert_eq!(written(Block::DuplicateRle(trace)), hex(&format!("02000003{body}")));
    assert_eq!(written(Block::PostRepairLossRle(trace)), hex(&format!("0a000003{body}")));
    assert_eq!(written(Block::DiscardRle { early: false, trace }), hex(&format!("19000003{body}")));
    let thinned = RleBlock { thinning: 15, ..trace };
    assert_eq!(written(Block::DiscardRle { early: true, trace: thinned }), hex(&format!("191f0003{body}")));
    assert!(trace.packets().eq([(0xffff, true), (0, false), (1, false)]));
    assert!(thinned.packets().eq([(0, true)]));
}

#[test]
fn chunks_say_what_they_hold() {
    assert_eq!(Chunk::run(true, MAX_RUN).map(Chunk::bits), Some(0x7fff));
    assert_eq!((Chunk::run(true, 0), Chunk::run(false, 0x4000)), (None, None));
    assert_eq!(Chunk::from_bits(0x4005).kind(), ChunkKind::Run { bit: true, length: 5 });
    assert_eq!(Chunk::from_bits(0x4000).kind(), ChunkKind::Run { bit: true, length: 0 });
    assert_eq!(Chunk::from_bits(0xc001).kind(), ChunkKind::Vector(0x4001));
    assert_eq!(Chunk::NULL.kind(), ChunkKind::Null);
}

#[test]
fn odd_traces_end_early() {
    let packets = |begin: u16, end: u16, chunks: &[u16]| {
        let chunks: Vec<Chunk> = chunks.iter().map(|b| Chunk::from_bits(*b)).collect();
        let trace = RleBlock { ssrc: 1, begin, end, thinning: 0, chunks: (&chunks).into() };
        let all: Vec<_> = trace.packets().collect();
        assert!(all.len() <= usize::from(trace.reported()));
        all
    };
    assert_eq!(packets(5, 5, &[0x4001]), [], "an empty range");
    assert_eq!(packets(5, 9, &[0x4002]), [(5, true), (6, true)], "chunks missing");
    assert_eq!(packets(5, 9, &[0x4001, 0, 0x4001]), [(5, true)], "a null chunk before the end");
    assert_eq!(packets(5, 7, &[0x4000, 0x0001, 0x4000, 0x4001]), [(5, false), (6, true)], "runs of none");
    assert_eq!(packets(6, 5, &[0x7fff; 5]).len(), 65_535, "a range longer than allowed is still bounded");
}

#[test]
fn size_and_range_are_limited() {
    let mut chunks = vec![];
    let alternating = || (0..).map(|i| i % 2 == 0);
    for (size, packets) in [(0, 0), (12, 0), (15, 0), (16, 30), (19, 30), (20, 60)] {
        let trace = RleBlock::encode(1, 65_530, 0, alternating(), size, &mut chunks);
        assert_eq!((trace.end, trace.reported()), (65_530u16.wrapping_add(packets), packets), "{size}");
        assert!(written(Block::LossRle(trace)).len() <= size.max(RLE_HEADER));
    }
    let trace = RleBlock::encode(1, 7, 0, core::iter::repeat(true), 1_000, &mut chunks);
    assert_eq!(trace.reported(), MAX_RANGE);
    assert_eq!(trace.chunks.len(), 5, "four runs of 16,383 and one packet");
    // If thinning leaves out packets at the limit, the range ends before the first that has no room.
    let trace = RleBlock::encode(1, 1, 1, alternating(), 16, &mut chunks);
    assert_eq!((trace.reported(), trace.end), (32_766, 65_534), "all even ones are alike, so the range is the limit");
    let trace = RleBlock::encode(1, 1, 1, (0..).map(|i| i % 4 == 0), 16, &mut chunks);
    assert_eq!((trace.reported(), trace.end), (32_766, 65_534), "likewise");
    let trace = RleBlock::encode(1, 1, 1, (0..).map(|i| i % 4 == 1), 16, &mut chunks);
    assert_eq!((trace.reported(), trace.end), (30, 62));
}

/// The fewest chunks for `bits`, by trying a run and a vector of every length at each position.
fn fewest(bits: &[bool]) -> usize {
    let mut best = vec![0; bits.len() + 1];
    for i in (0..bits.len()).rev() {
        let run = bits[i..].iter().take_while(|b| **b == bits[i]).count().min(MAX_RUN.into());
        let reach = run.max(15).min(bits.len() - i);
        best[i] = 1 + (1..=reach).filter(|n| *n <= run || *n == reach.min(15)).map(|n| best[i + n]).min().unwrap();
    }
    best[0]
}

proptest! {
    #[test]
    fn traces_survive(
        begin: u16, thinning in prop_oneof![3 => Just(0u8), 1 => 0u8..16], early: bool,
        runs in vec((any::<bool>(), prop_oneof![4 => 1usize..6, 2 => 10usize..20, 1 => 1usize..200]), 0..40), long in 0usize..40_000,
    ) {
        let mut bits: Vec<bool> = runs.iter().flat_map(|(bit, n)| core::iter::repeat_n(*bit, *n)).collect();
        if long > 30_000 {
            bits.extend(core::iter::repeat_n(early, long));
            bits.extend_from_within(..);
        }
        let mut chunks = vec![];
        let trace = RleBlock::encode(3, begin, thinning, bits.iter().copied(), 100_000, &mut chunks);
        let covered = bits.len().min(MAX_RANGE.into());
        prop_assert_eq!(usize::from(trace.end.wrapping_sub(begin)), covered);
        let want: Vec<_> = bits[..covered].iter().enumerate().map(|(i, bit)| (begin.wrapping_add(i as u16), *bit))
            .filter(|(s, _)| s % (1 << thinning) == 0).collect();
        prop_assert_eq!(usize::from(trace.reported()), want.len());
        prop_assert!(trace.packets().eq(want.iter().copied()));
        let reported: Vec<bool> = want.iter().map(|w| w.1).collect();
        if reported.len() <= 400 {
            prop_assert_eq!(trace.chunks.len(), fewest(&reported));
        }
        written(Block::DiscardRle { early, trace });
    }

    #[test]
    fn size_limit_holds(begin: u16, size in 0usize..60, pattern in vec(any::<bool>(), 0..600)) {
        let mut chunks = vec![];
        let trace = RleBlock::encode(3, begin, 0, pattern.iter().copied(), size, &mut chunks);
        prop_assert!(written(Block::LossRle(trace)).len() <= size.max(RLE_HEADER));
        let covered = usize::from(trace.reported());
        prop_assert!(trace.packets().map(|p| p.1).eq(pattern[..covered].iter().copied()));
        // It stopped for lack of room only: one more bit would have needed one more chunk than fits.
        let most = size.saturating_sub(RLE_HEADER) / 4 * 2;
        prop_assert!(covered == pattern.len() || fewest(&pattern[..=covered]) > most);
    }

    #[test]
    fn any_chunks_are_bounded(begin: u16, end: u16, thinning in 0u8..16, bits in vec(any::<u16>(), 0..40)) {
        let chunks: Vec<Chunk> = bits.into_iter().map(Chunk::from_bits).collect();
        let trace = RleBlock { ssrc: 1, begin, end, thinning, chunks: (&chunks).into() };
        let range = end.wrapping_sub(begin);
        prop_assert!(trace.packets().count() <= usize::from(trace.reported()));
        prop_assert_eq!(usize::from(trace.reported()), (0..range).filter(|i| begin.wrapping_add(*i) % (1 << thinning) == 0).count());
        prop_assert!(trace.packets().all(|(s, _)| s % (1 << thinning) == 0 && s.wrapping_sub(begin) < range));
    }
}
