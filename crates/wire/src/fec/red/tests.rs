use super::*;
use crate::fec::ulpfec::{Level, Levels, Repair};
use crate::fec::{Mask, parity::Recovery};
use crate::rtp::Header;
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn the_example_of_rfc_2198() {
    // Section 7: LPC (7) of 14 bytes before DVI4 (5), both of 20 ms at 8 kHz, which makes an offset of 160.
    let (lpc, dvi) = ([7; 14], [5; 84]);
    let redundant = [Block { payload_type: 7, timestamp_offset: 160, data: Octets::new(&lpc) }];
    let red = Red { redundant: Blocks::Own(&redundant), payload_type: 5, primary: Octets::new(&dvi) };
    let mut out = vec![];
    assert_eq!(red.write_into(&mut out), Some(0));
    // 1 | 7, 160 in 14 bits, 14 in 10 bits; 0 | 5.
    assert_eq!(out[..5], hex("87 02800e 05"));
    assert_eq!((&out[5..19], &out[19..]), (&lpc[..], &dvi[..]));
    assert_eq!(Red::parse(Octets::new(&out)), Ok(red));
}

#[test]
fn ulpfec_as_a_redundant_block() {
    // RFC 5109, section 10.3: 354 bytes of FEC (payload type 127) before packet E of 160 bytes (payload type 11).
    let payload = Octets { bytes: &[], zeros: 340 };
    let levels = [Level { mask: Mask::from_bits(0b1111), payload }];
    let repair = Repair { recovery: Recovery::default(), base: 8, levels: Levels::Own(&levels) };
    let mut fec = vec![];
    let zeros = repair.write_into(&mut fec).unwrap();
    let data = Octets { bytes: &fec, zeros };
    let redundant = [Block { payload_type: 127, timestamp_offset: 0, data }];
    let primary = Octets { bytes: &[], zeros: 160 };
    let red = Red { redundant: Blocks::Own(&redundant), payload_type: 11, primary };
    let mut packet = vec![];
    Header { payload_type: 100, marker: true, sequence: 5, timestamp: 11, ssrc: 2, ..Header::default() }
        .write_into(&mut packet);
    assert_eq!(red.write_into(&mut packet), Some(340 + 160));
    // Figures 22 and 20.
    assert_eq!(packet[12..17], hex("ff000162 0b"));
    let packet = Octets { bytes: &packet, zeros: 500 };
    let read = Red::parse(packet.slice(12, usize::MAX)).unwrap();
    assert_eq!(read, red);
    assert_eq!(Repair::parse(read.redundant.iter().next().unwrap().data), Ok(repair));

    let mut bare = vec![];
    assert_eq!(virtual_packet_into(packet, &mut bare), Ok(160));
    let mut want = vec![];
    Header { payload_type: 11, marker: true, sequence: 5, timestamp: 11, ssrc: 2, ..Header::default() }
        .write_into(&mut want);
    assert_eq!(bare, want);
}

#[test]
fn the_limits_of_a_block() {
    let block =
        |zeros, timestamp_offset| Block { payload_type: 1, timestamp_offset, data: Octets { bytes: &[], zeros } };
    for (block, fine) in [(block(1_023, 16_383), true), (block(1_024, 0), false), (block(0, 16_384), false)] {
        let blocks = [block];
        let red = Red { redundant: Blocks::Own(&blocks), payload_type: 0, primary: Octets::new(&[1]) };
        let mut out = vec![];
        assert_eq!(red.write_into(&mut out).is_some(), fine);
        assert_eq!(out.is_empty(), !fine);
        if fine {
            assert_eq!(out[..5], hex("81 ffffff 00"));
            assert_eq!(Red::parse(Octets::new(&out)), Ok(red));
        }
    }
}

#[test]
fn malformed_payloads() {
    let cut = |bytes: &str, zeros| match Red::parse(Octets { bytes: &hex(bytes), zeros }) {
        Err(Error::Truncated { field, offset, needed, available }) => (field, offset, needed, available),
        other => panic!("{other:?}"),
    };
    assert_eq!(cut("", 9), ("RED block header", 0, 1, 0));
    assert_eq!(cut("870280", 9), ("RED block header", 0, 4, 3));
    assert_eq!(cut("87028003", 9), ("RED block header", 4, 1, 0));
    assert_eq!(cut("87028003 05 0102", 0), ("RED redundant blocks", 5, 3, 2));
    // An empty primary block is valid.
    let bytes = hex("87028003 05 0102");
    let red = Red::parse(Octets { bytes: &bytes, zeros: 1 }).unwrap();
    assert_eq!((red.primary.len(), red.redundant.iter().next().unwrap().data), (0, Octets::new(&[1, 2, 0])));
    let mut out = vec![];
    assert!(virtual_packet_into(Octets::new(&hex("8064 0001 00000002 00000003")), &mut out).is_err());
    assert!(virtual_packet_into(Octets::new(&hex("8064 0001 00000002 000000")), &mut out).is_err());
    assert!(out.is_empty());
}

proptest! {
    #[test]
    fn written_packets_are_read_back(
        blocks in vec((0u8..128, 0u16..0x4000, vec(any::<u8>(), 0..20), 0u32..1_000), 0..5),
        payload_type in 0u8..128, bytes in vec(any::<u8>(), 0..20), zeros in 0u32..2_000,
    ) {
        let redundant: Vec<Block<'_>> = blocks.iter().map(|(payload_type, timestamp_offset, bytes, zeros)| {
            Block { payload_type: *payload_type, timestamp_offset: *timestamp_offset, data: Octets { bytes, zeros: *zeros } }
        }).collect();
        let red = Red { redundant: Blocks::Own(&redundant), payload_type, primary: Octets { bytes: &bytes, zeros } };
        let mut out = vec![];
        let zeros = red.write_into(&mut out).unwrap();
        prop_assert_eq!(Red::parse(Octets { bytes: &out, zeros }), Ok(red));
    }

    #[test]
    fn any_payload_is_read_or_refused(bytes in vec(any::<u8>(), 0..40), zeros in 0u32..3_000) {
        if let Ok(red) = Red::parse(Octets { bytes: &bytes, zeros }) {
            let mut out = vec![];
            let written = red.write_into(&mut out).unwrap();
            prop_assert_eq!(Octets { bytes: &out, zeros: written }, Octets { bytes: &bytes, zeros });
        }
    }
}
