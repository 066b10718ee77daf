use super::*;
use crate::List;
use crate::fec::parity::{protect_into, rebuild_into};
use crate::rtp::Header;
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;

fn repair<'a>(blocks: &'a [Block], payload: Octets<'a>) -> Repair<'a> {
    let recovery = Recovery { flags: 0x1234, timestamp: 0x0506_0708, length: 0x090a };
    Repair { recovery, blocks: Blocks::Own(blocks), payload }
}

fn written(blocks: &[Block], payload: &[u8]) -> Vec<u8> {
    let mut out = vec![];
    assert_eq!(repair(blocks, Octets::new(payload)).write_into(&mut out), Some(0));
    out
}

fn read<'a>(ssrcs: &'a [u32], payload: &'a [u8]) -> Result<Packet<'a>, Error> {
    Packet::parse(List::from(ssrcs).iter(), Octets::new(payload))
}

fn masked(base: u16, bits: u128) -> Block {
    Block { ssrc: 1, base, shape: Shape::Mask(Mask::from_bits(bits)) }
}

#[test]
fn masks_take_the_shortest_form() {
    // Figure 12: flags with R = F = 0, length, timestamp, SN base, k and Mask[0-14].
    assert_eq!(written(&[masked(100, 1 | 1 << 14)], &[0xff]), hex("1234 090a 05060708 0064 4001 ff"));
    // Mask[15-45] after a k of 1, with its own k.
    assert_eq!(written(&[masked(100, 1 | 1 << 15)], &[]), hex("1234 090a 05060708 0064 c000 40000000"));
    assert_eq!(written(&[masked(100, 1 << 45)], &[]), hex("1234 090a 05060708 0064 8000 00000001"));
    assert_eq!(
        written(&[masked(100, 1 | 1 << 46 | 1 << 109)], &[]),
        hex("1234 090a 05060708 0064 c000 80000000 8000000000000001")
    );
    assert_eq!(Block::masked(1, 65_530, [65_530, 103]).map(|b| b.coverage().len()), Some(2));
    assert_eq!(Block::masked(1, 65_530, [65_530, 104]), None);
    assert_eq!(Block::masked(1, 65_530, []), None);
}

#[test]
fn grids() {
    // Figures 13 and 14: F = 1, SN base, L, D.
    let grid = |columns, rows| Block { ssrc: 7, base: 65_534, shape: Shape::Grid { columns, rows } };
    assert_eq!(written(&[grid(5, 0)], &[0xff]), hex("5234 090a 05060708 fffe 05 00 ff"));
    let covered = |b: Block| b.coverage().sequences().collect::<Vec<_>>();
    assert_eq!(covered(grid(5, 0)), [65_534, 65_535, 0, 1, 2]);
    assert_eq!(covered(grid(5, 1)), covered(grid(5, 0)));
    assert_eq!(covered(grid(5, 3)), [65_534, 3, 8]);
    assert_eq!(covered(grid(1, 0)), [65_534]);
    assert_eq!(covered(grid(255, 255)).len(), 255);
    // Two streams, their blocks in the order of the CSRC list.
    let blocks = [grid(2, 2), Block { ssrc: 9, base: 3, shape: Shape::Grid { columns: 4, rows: 1 } }];
    let bytes = written(&blocks, &[0xee]);
    assert_eq!(bytes, hex("5234 090a 05060708 fffe 02 02 0003 04 01 ee"));
    let Ok(Packet::Repair(got)) = read(&[7, 9], &bytes) else { panic!("not read") };
    assert_eq!((got.blocks.iter().collect::<Vec<_>>(), got.payload), (blocks.to_vec(), Octets::new(&[0xee])));
    // The list in the RTP header determines the number of blocks.
    let Ok(Packet::Repair(got)) = read(&[7], &bytes) else { panic!("not read") };
    assert_eq!(got.payload, Octets::new(&hex("0003 04 01 ee")));
}

#[test]
fn grids_of_steps() {
    for (step, count) in (0..=255).flat_map(|step| (0..=255).map(move |count| (step, count))) {
        let Some(shape) = Shape::every(step, count) else {
            assert!(count == 0 || step == 0 && count > 1, "{step} {count}");
            continue;
        };
        let coverage = Block { ssrc: 1, base: 65_000, shape }.coverage();
        let want = (0..u16::from(count)).map(|i| 65_000u16.wrapping_add(i.wrapping_mul(step.into())));
        assert!(coverage.sequences().eq(want), "{step} {count}");
    }
}

#[test]
fn a_retransmission_is_the_packet_itself() {
    let mut packet = vec![];
    let csrcs = [3, 4];
    Header { payload_type: 96, sequence: 9, ssrc: 5, csrcs: &csrcs, ..Header::default() }.write_into(&mut packet);
    let source = Octets { bytes: &packet, zeros: 1_000 };
    assert_eq!(Packet::parse(List::EMPTY.iter(), source), Ok(Packet::Retransmission(source)));
    assert!(matches!(read(&[], &packet[..15]), Err(Error::Truncated { field: "RTP CSRC list", .. })));
}

#[test]
fn a_lost_packet_comes_back_through_a_whole_rtp_packet() {
    let packets: Vec<Vec<u8>> = (0..3u16)
        .map(|i| {
            let mut p = vec![];
            let header = Header { payload_type: 96, marker: i == 1, sequence: 500 + i, ssrc: 77, ..Header::default() };
            Header { timestamp: 3_000 * u32::from(i), ..header }.write_into(&mut p);
            p.resize(p.len() + 10 + usize::from(i) * 5, i as u8 + 1);
            p
        })
        .collect();
    let string = |p: &[u8]| {
        let mut s = vec![];
        assert_eq!(protect_into(Octets::new(p), &mut s), Ok(0));
        s.resize(40, 0);
        s
    };
    let xor = |a: Vec<u8>, b: Vec<u8>| -> Vec<u8> { a.iter().zip(&b).map(|(x, y)| x ^ y).collect() };
    let parity = packets.iter().map(|p| string(p)).reduce(xor).unwrap();
    let (recovery, payload) = Recovery::split(Octets::new(&parity)).unwrap();
    let blocks = [Block { ssrc: 77, base: 500, shape: Shape::Grid { columns: 3, rows: 0 } }];
    let mut repair_packet = vec![];
    let csrcs = [77];
    Header { payload_type: 110, sequence: 1, ssrc: 78, csrcs: &csrcs, ..Header::default() }
        .write_into(&mut repair_packet);
    assert_eq!(Repair { recovery, blocks: Blocks::Own(&blocks), payload }.write_into(&mut repair_packet), Some(0));

    let view = PacketView::parse(&repair_packet).unwrap();
    let Ok(Packet::Repair(got)) = Packet::of(&view, 0) else { panic!("not read") };
    let block = got.blocks.iter().next().unwrap();
    let mut got_string = vec![];
    assert_eq!(got.string_into(&mut got_string), 0);
    for (lost, sequence) in block.coverage().sequences().enumerate() {
        let rest = (0..3).filter(|i| *i != lost).map(|i| string(&packets[i]));
        let recovered = rest.fold(got_string.clone(), xor);
        let mut packet = vec![];
        assert_eq!(rebuild_into(Octets::new(&recovered), sequence, block.ssrc, &mut packet), Ok(0));
        assert_eq!(packet, packets[lost]);
    }
}

#[test]
fn malformed_payloads() {
    let fault = |ssrcs: &[u32], bytes: &str| match read(ssrcs, &hex(bytes)).unwrap_err() {
        Error::Truncated { field, offset, .. } | Error::Value { field, offset, .. } => (field, offset),
        Error::Compound { rule, offset } => (rule, offset),
    };
    assert_eq!(fault(&[1], "12"), ("FlexFEC flags", 0));
    assert_eq!(fault(&[1], "1234 090a 050607"), ("FlexFEC TS recovery", 4));
    assert_eq!(fault(&[1], "d234 090a 05060708 0064 4001"), ("FlexFEC R and F", 0));
    assert_eq!(fault(&[], "1234 090a 05060708 0064 4001"), ("FlexFEC CSRC count", 0));
    assert_eq!(fault(&[1], "1234 090a 05060708 0064 0000"), ("FlexFEC mask", 10));
    assert_eq!(fault(&[1], "1234 090a 05060708 0064 c000 8000"), ("FlexFEC mask, bits 15 to 45", 12));
    assert_eq!(fault(&[1], "1234 090a 05060708 0064 c000 80000000 00"), ("FlexFEC mask, bits 46 to 109", 16));
    assert_eq!(fault(&[1], "5234 090a 05060708 0064 00 00"), ("FlexFEC L", 10));
    assert_eq!(fault(&[1, 2], "5234 090a 05060708 0064 01 00 00"), ("FlexFEC SN base", 12));
}

#[test]
fn what_the_format_cannot_express_is_not_written() {
    let grid = Block { ssrc: 1, base: 0, shape: Shape::Grid { columns: 1, rows: 0 } };
    let empty = Block { shape: Shape::Grid { columns: 0, rows: 2 }, ..grid };
    for (blocks, fine) in [
        (vec![], false),
        (vec![grid; 15], true),
        (vec![grid; 16], false),
        (vec![grid, masked(0, 1)], false),
        (vec![empty], false),
        (vec![masked(0, 0)], false),
        (vec![masked(0, 1 << 109)], true),
        (vec![masked(0, 1 << 110)], false),
    ] {
        let mut out = vec![];
        assert_eq!(repair(&blocks, Octets::default()).write_into(&mut out).is_some(), fine, "{blocks:?}");
        assert_eq!(out.is_empty(), !fine);
    }
}

fn any_blocks() -> impl Strategy<Value = Vec<Block>> {
    let mask = (any::<u32>(), any::<u16>(), 1u128..1 << 110, 0u32..109).prop_map(|(ssrc, base, bits, shift)| {
        let bits = (bits >> shift).max(1);
        Block { ssrc, base, shape: Shape::Mask(Mask::from_bits(bits)) }
    });
    let grid = (any::<u32>(), any::<u16>(), 1u8.., any::<u8>()).prop_map(|(ssrc, base, columns, rows)| Block {
        ssrc,
        base,
        shape: Shape::Grid { columns, rows },
    });
    prop_oneof![vec(mask, 1..16), vec(grid, 1..16)]
}

proptest! {
    #[test]
    fn written_packets_are_read_back(blocks in any_blocks(), flags in 0u16..0x4000, timestamp: u32, length: u16, bytes in vec(any::<u8>(), 0..20), zeros in 0u32..1_000) {
        let repair = Repair { recovery: Recovery { flags, timestamp, length }, blocks: Blocks::Own(&blocks), payload: Octets { bytes: &bytes, zeros } };
        let ssrcs: Vec<u32> = blocks.iter().map(|b| b.ssrc).collect();
        let mut out = vec![];
        let zeros = repair.write_into(&mut out).unwrap();
        let read = Packet::parse(List::from(&ssrcs).iter(), Octets { bytes: &out, zeros });
        prop_assert_eq!(read, Ok(Packet::Repair(repair)));
    }

    #[test]
    fn any_payload_is_read_or_refused(ssrcs in vec(any::<u32>(), 0..4), bytes in vec(any::<u8>(), 0..60), zeros in 0u32..80) {
        match Packet::parse(List::from(&ssrcs).iter(), Octets { bytes: &bytes, zeros }) {
            Ok(Packet::Repair(read)) => {
                let mut out = vec![];
                let zeros = read.write_into(&mut out).unwrap();
                let again = Packet::parse(List::from(&ssrcs).iter(), Octets { bytes: &out, zeros });
                prop_assert_eq!(again, Ok(Packet::Repair(read)));
            }
            Ok(Packet::Retransmission(packet)) => prop_assert_eq!(packet, Octets { bytes: &bytes, zeros }),
            Err(_) => {}
        }
    }
}
