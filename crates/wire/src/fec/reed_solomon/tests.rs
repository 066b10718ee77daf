use super::*;
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;

fn field(m: u8) -> Field {
    Field::new(m).unwrap()
}

fn id(block: u32, symbol: u16, source_symbols: u16) -> PayloadId {
    PayloadId { block, symbol, source_symbols }
}

#[test]
fn the_two_formats_of_the_figures() {
    // Figures 5 and 8: 24 bits of block, 8 of symbol. Figures 6 and 9: 16 of each. k has 16 in both.
    assert_eq!(id(0x01_0203, 4, 5).to_bytes(field(8)), Some([1, 2, 3, 4, 0, 5]));
    assert_eq!(id(0x0102, 0x0304, 0x0506).to_bytes(field(16)), Some([1, 2, 3, 4, 5, 6]));
    // m = 4: 28 bits of block.
    assert_eq!(id(0x0fff_ffff, 14, 15).to_bytes(field(4)).unwrap().to_vec(), hex("fffffffe 000f"));
}

#[test]
fn ranges_of_fields() {
    assert_eq!([1, 17].map(Field::new), [None, None]);
    assert_eq!([2, 4, 8, 16].map(|m| field(m).max_symbols()), [3, 15, 255, 65_535]);
    assert_eq!(Field::default(), field(8));
    assert_eq!((field(8).next_block(0xff_ffff), field(16).next_block(9)), (0, 10));
    for (wrong, m) in [
        (id(0x100_0000, 0, 1), 8),
        (id(0x1_0000, 0, 1), 16),
        (id(0, 255, 1), 8),
        (id(0, 0, 0), 8),
        (id(0, 0, 256), 8),
        (id(0, 16, 3), 4),
    ] {
        assert_eq!(wrong.to_bytes(field(m)), None, "{wrong:?}");
    }
    assert!(id(0xff_ffff, 254, 255).to_bytes(field(8)).is_some());
}

#[test]
fn source_packets_end_with_their_id() {
    let packet = hex("8060 0001 00000002 00000003 aa");
    let mut out = vec![];
    let source = id(7, 1, 4);
    assert_eq!(write_source_into(Octets::new(&packet), &source, field(8), &mut out), Some(0));
    assert_eq!(out, hex("8060 0001 00000002 00000003 aa 000007 01 0004"));
    assert_eq!(parse_source(Octets::new(&out), field(8)), Ok((Octets::new(&packet), source)));
    // The omitted zeros precede the ID.
    let long = Octets { bytes: &packet, zeros: 900 };
    assert_eq!(parse_source(Octets { bytes: &out, zeros: 900 }, field(8)), Ok((long, source)));
    assert_eq!(write_source_into(long, &source, field(8), &mut vec![]), Some(900));
    // A repair symbol's ID is invalid in a source packet.
    assert_eq!(write_source_into(long, &id(7, 4, 4), field(8), &mut out), None);
    assert_eq!(write_repair_into(&source, long, field(8), &mut out), None);
}

#[test]
fn repair_packets_start_with_their_id() {
    let mut out = vec![];
    let repair = id(7, 4, 4);
    let symbol = Octets { bytes: &[0xaa, 0xbb], zeros: 3 };
    assert_eq!(write_repair_into(&repair, symbol, field(8), &mut out), Some(3));
    assert_eq!(out, hex("000007 04 0004 aabb"));
    assert_eq!(parse_repair(Octets { bytes: &out, zeros: 3 }, field(8)), Ok((repair, symbol)));
}

#[test]
fn adu_information() {
    // Section 4.3: flow, length, ADU, padding.
    let mut out = vec![];
    assert_eq!(protect_into(9, Octets { bytes: &[1, 2], zeros: 0x0102 }, &mut out), Some(0x0102));
    assert_eq!(out, hex("09 0104 0102"));
    assert_eq!(rebuild(Octets::new(&hex("09 0002 0102 000000"))), Ok((9, Octets::new(&[1, 2]))));
    assert_eq!(rebuild(Octets { bytes: &out, zeros: 9_999 }), Ok((9, Octets { bytes: &[1, 2], zeros: 0x0102 })));
    assert_eq!(protect_into(9, Octets { bytes: &[], zeros: 65_536 }, &mut out), None);
    // Empty ADUs: flow 0, length 0.
    assert_eq!(rebuild(Octets { bytes: &[], zeros: 3 }), Ok((0, Octets::default())));
}

#[test]
fn malformed() {
    let place = |e: Error| match e {
        Error::Truncated { field, offset, .. } | Error::Value { field, offset, .. } => (field, offset),
        Error::Compound { rule, offset } => (rule, offset),
    };
    let source = |s: &str, zeros| place(parse_source(Octets { bytes: &hex(s), zeros }, field(8)).unwrap_err());
    assert_eq!(source("000007 01 00", 9), ("source FEC payload ID", 0));
    assert_eq!(source("aa 000007 04 0004", 2), ("encoding symbol ID", 3));
    assert_eq!(source("aa 000007 00 0000", 0), ("source block length", 5));
    assert_eq!(source("aa 000007 00 0100", 0), ("source block length", 5));
    let repair = |s: &str| place(parse_repair(Octets::new(&hex(s)), field(8)).unwrap_err());
    assert_eq!(repair("000007 04 00"), ("repair FEC payload ID", 0));
    assert_eq!(repair("000007 03 0004 ff"), ("encoding symbol ID", 0));
    // 255 symbols are numbered 0 to 254.
    assert_eq!(repair("000007 ff 0004 ff"), ("encoding symbol ID", 0));
    let adu = |s: &str| place(rebuild(Octets::new(&hex(s))).unwrap_err());
    assert_eq!(adu("0900"), ("ADU information", 0));
    assert_eq!(adu("09 0003 0102"), ("ADU", 3));
    assert_eq!(adu("09 0001 01 00 02"), ("padding of ADU information", 5));
}

#[test]
fn scheme_information() {
    let info = SchemeInfo { symbol_length: 1_400, strict: false, field: field(8) };
    // The example of section 5.1.1.2.
    assert_eq!(info.to_sdp(), "E:1400,S:0,m:8");
    assert_eq!(info.to_bytes(), [0x05, 0x78, 0x08]);
    let strict = SchemeInfo { strict: true, field: field(16), ..info };
    assert_eq!(strict.to_bytes(), [0x05, 0x78, 0x90]);
    assert_eq!(SchemeInfo::from_bytes(strict.to_bytes()), Ok(strict));
    assert!(matches!(SchemeInfo::from_bytes([0, 0, 0x91]), Err(Error::Value { value: 17, offset: 2, .. })));
}

proptest! {
    #[test]
    fn ids_come_back(m in 2u8..=16, block: u32, symbol: u16, k: u16, adu in vec(any::<u8>(), 0..20), zeros in 0u32..900) {
        let field = field(m);
        let most = field.max_symbols();
        let id = id(block >> m, symbol % most, k % most + 1);
        let adu = Octets { bytes: &adu, zeros };
        let mut out = vec![];
        if id.is_source() {
            let zeros = write_source_into(adu, &id, field, &mut out).unwrap();
            prop_assert_eq!(parse_source(Octets { bytes: &out, zeros }, field), Ok((adu, id)));
            prop_assert!(parse_repair(Octets::new(&id.to_bytes(field).unwrap()), field).is_err());
        } else {
            let zeros = write_repair_into(&id, adu, field, &mut out).unwrap();
            prop_assert_eq!(parse_repair(Octets { bytes: &out, zeros }, field), Ok((id, adu)));
            prop_assert!(parse_source(Octets::new(&id.to_bytes(field).unwrap()), field).is_err());
        }
    }

    #[test]
    fn adus_come_back(flow: u8, adu in vec(any::<u8>(), 0..40), zeros in 0u32..900, padding in 0u32..90) {
        let adu = Octets { bytes: &adu, zeros };
        let mut out = vec![];
        let behind = protect_into(flow, adu, &mut out).unwrap();
        prop_assert_eq!(rebuild(Octets { bytes: &out, zeros: behind + padding }), Ok((flow, adu)));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..20), zeros in 0u32..400, m in 2u8..=16) {
        let (octets, field) = (Octets { bytes: &bytes, zeros }, field(m));
        if let Ok((adu, id)) = parse_source(octets, field) {
            let mut out = vec![];
            prop_assert_eq!(write_source_into(adu, &id, field, &mut out), Some(zeros));
            prop_assert_eq!(&out, &bytes);
        }
        if let Ok((id, symbol)) = parse_repair(octets, field) {
            let mut out = vec![];
            prop_assert_eq!(write_repair_into(&id, symbol, field, &mut out), Some(zeros));
            prop_assert_eq!(&out, &bytes);
        }
        if let Ok((_, adu)) = rebuild(octets) {
            prop_assert!(adu.len() + ADU_HEADER <= octets.len());
        }
    }
}
