use super::*;
use crate::fec::parity::{PREFIX, protect_into, rebuild_into};
use crate::rtp::Header;
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;

/// The media packets A to D of section 10: sequence numbers 8 to 11, timestamps 3, 5, 7 and 9, payload types
/// alternating between 11 and 18, the marker on A and C, and payloads of 200, 140, 100 and 340 bytes, whose content is
/// not specified.
fn examples() -> [Vec<u8>; 4] {
    let packets = [(8, 3, 11, true, 200), (9, 5, 18, false, 140), (10, 7, 11, true, 100), (11, 9, 18, false, 340)];
    packets.map(|(sequence, timestamp, payload_type, marker, len)| {
        let mut p = vec![];
        Header { payload_type, marker, sequence, timestamp, ssrc: 2, ..Header::default() }.write_into(&mut p);
        p.extend((0..len).map(|i| (i * 7 + len) as u8));
        p
    })
}

/// The XOR of some strings, extended by zeros.
fn xor<'a>(strings: impl IntoIterator<Item = Octets<'a>>) -> Vec<u8> {
    let mut sum = vec![];
    for s in strings {
        sum.resize(sum.len().max(s.len()), 0);
        sum.iter_mut().zip(s.bytes).for_each(|(a, b)| *a ^= b);
    }
    sum
}

fn strings(packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let string = |p: &Vec<u8>| {
        let mut s = vec![];
        assert_eq!(protect_into(Octets::new(p), &mut s), Ok(0));
        s
    };
    packets.iter().map(string).collect()
}

/// The octets from `start` to `end` after the prefix of each string.
fn cut(strings: &[Vec<u8>], start: usize, len: usize) -> Vec<u8> {
    xor(strings.iter().map(|s| Octets::new(s).slice(start, len)))
}

#[test]
fn the_example_with_one_level() {
    // Section 10.1, figures 8 and 9.
    let strings = strings(&examples());
    let parity = xor(strings.iter().map(|s| Octets::new(s)));
    let (recovery, payload) = Recovery::split(Octets::new(&parity)).unwrap();
    let levels = [Level { mask: Mask::from_bits(0b1111), payload }];
    let repair = Repair { recovery, base: 8, levels: Levels::Own(&levels) };
    let mut out = vec![];
    assert_eq!(repair.write_into(&mut out), Some(0));
    assert_eq!(out[..10], hex("0000 0008 00000008 0174"));
    assert_eq!(out[10..14], hex("0154 f000"));
    // Figure 22 counts 354 bytes.
    assert_eq!(out.len(), 354);
    assert_eq!(out[14..], parity[PREFIX..]);

    let read = Repair::parse(Octets::new(&out)).unwrap();
    assert_eq!(read, repair);
    let level = read.levels.iter().next().unwrap();
    assert_eq!(read.coverage(&level).sequences().collect::<Vec<_>>(), [8, 9, 10, 11]);
    assert_eq!((level.payload.len(), read.recovery.length), (340, 372));

    // C is lost.
    let mut string = vec![];
    let zeros = read.string_into(&mut string);
    let known = [0, 1, 3].map(|i| Octets::new(&strings[i]));
    let lost = xor(known.into_iter().chain([Octets { bytes: &string, zeros }]));
    let mut packet = vec![];
    assert_eq!(rebuild_into(Octets::new(&lost), 10, 2, &mut packet), Ok(0));
    assert_eq!(packet, examples()[2]);
}

#[test]
fn the_example_with_two_levels() {
    // Section 10.2, figures 12, 13 and 15 to 17: L0 = 70, L1 = 90. Figures 12 and 15 have 0 for the marker, the XOR
    // over all four packets, whereas the payload type (25) is the XOR over the two of level 0, as in section 8.1. Here
    // the marker, set in one of those two, is 1, and the octet is 0x99 instead of 0x19.
    let strings = strings(&examples());
    let level0 = cut(&strings[..2], 0, PREFIX + 70);
    let (recovery, payload) = Recovery::split(Octets::new(&level0)).unwrap();
    let levels = [Level { mask: Mask::from_bits(0b11), payload }];
    let mut first = vec![];
    let repair = Repair { recovery, base: 8, levels: Levels::Own(&levels) };
    assert_eq!(repair.write_into(&mut first), Some(0));
    assert_eq!(first[..14], hex("0099 0008 00000006 0044 0046 c000"));
    assert_eq!(first.len(), 14 + 70);

    let level0 = cut(&strings[2..], 0, PREFIX + 70);
    let level1 = cut(&strings, PREFIX + 70, 90);
    let (recovery, payload) = Recovery::split(Octets::new(&level0)).unwrap();
    let levels = [
        Level { mask: Mask::from_bits(0b1100), payload },
        Level { mask: Mask::from_bits(0b1111), payload: Octets::new(&level1) },
    ];
    let repair = Repair { recovery, base: 8, levels: Levels::Own(&levels) };
    let mut second = vec![];
    assert_eq!(repair.write_into(&mut second), Some(0));
    assert_eq!(second[..14], hex("0099 0008 0000000e 0130 0046 3000"));
    assert_eq!(second[84..88], hex("005a f000"));
    assert_eq!(second.len(), 14 + 70 + 4 + 90);
    let read = Repair::parse(Octets::new(&second)).unwrap();
    assert_eq!(read, repair);
    let covered: Vec<Vec<u16>> = read.levels.iter().map(|l| read.coverage(&l).sequences().collect()).collect();
    assert_eq!(covered, [vec![10, 11], vec![8, 9, 10, 11]]);

    // B is lost: the first packet has its level 0, the second its level 1, which extends past its end at 140.
    let mut string = vec![];
    assert_eq!(Repair::parse(Octets::new(&first)).unwrap().string_into(&mut string), 0);
    let mut lost = xor([Octets::new(&strings[0]).slice(0, PREFIX + 70), Octets::new(&string)]);
    let partial = rebuild_into(Octets::new(&lost), 9, 2, &mut vec![]);
    assert!(matches!(partial, Err(Error::Truncated { field: "recovered packet", needed: 140, available: 70, .. })));
    let known = [0, 2, 3].map(|i| Octets::new(&strings[i]).slice(PREFIX + 70, 90));
    let level1 = read.levels.iter().nth(1).unwrap().payload;
    lost.extend(xor(known.into_iter().chain([level1])));
    let mut packet = vec![];
    assert_eq!(rebuild_into(Octets::new(&lost), 9, 2, &mut packet), Ok(0));
    assert_eq!(packet, examples()[1]);
}

#[test]
fn the_long_mask_is_taken_where_needed() {
    let levels = [Level { mask: Mask::EMPTY.with(0).with(47), payload: Octets { bytes: &[1], zeros: 2 } }];
    let repair = Repair { recovery: Recovery::default(), base: 65_535, levels: Levels::Own(&levels) };
    let mut out = vec![];
    assert_eq!(repair.write_into(&mut out), Some(2));
    assert_eq!(out, hex("4000 ffff 00000000 0000 0003 800000000001 01"));
    let read = Repair::parse(Octets { bytes: &out, zeros: 2 }).unwrap();
    assert_eq!(read, repair);
    let level = read.levels.iter().next().unwrap();
    assert_eq!(read.coverage(&level).sequences().collect::<Vec<_>>(), [65_535, 46]);
}

#[test]
fn what_the_format_cannot_express_is_not_written() {
    let level = |bits, zeros| Level { mask: Mask::from_bits(bits), payload: Octets { bytes: &[], zeros } };
    for (levels, fine) in [
        (vec![], false),
        (vec![level(1, 65_535)], true),
        (vec![level(1, 65_536)], false),
        (vec![level(0, 1)], false),
        (vec![level(1, 1), level(0, 1)], false),
        (vec![level(1 << 47, 1)], true),
        (vec![level(1 << 48, 1)], false),
    ] {
        let repair = Repair { recovery: Recovery::default(), base: 0, levels: Levels::Own(&levels) };
        let mut out = vec![];
        assert_eq!(repair.write_into(&mut out).is_some(), fine, "{levels:?}");
        assert_eq!(out.is_empty(), !fine);
    }
}

#[test]
fn malformed_payloads() {
    let fault = |bytes: &str, zeros| match Repair::parse(Octets { bytes: &hex(bytes), zeros }).unwrap_err() {
        Error::Truncated { field, offset, .. } | Error::Value { field, offset, .. } => (field, offset),
        Error::Compound { rule, offset } => (rule, offset),
    };
    assert_eq!(fault("0000 0008 00000008 01", 0), ("ULPFEC length recovery", 8));
    assert_eq!(fault("0000 0008 00000008 0174", 0), ("ULPFEC protection length", 10));
    // Headers are never carried as a length.
    assert_eq!(fault("0000 0008 00000008 0174", 40), ("ULPFEC protection length", 10));
    assert_eq!(fault("0000 0008 00000008 0174 0001 80", 0), ("ULPFEC mask", 12));
    assert_eq!(fault("4000 0008 00000008 0174 0001 80000000", 0), ("ULPFEC mask", 12));
    assert_eq!(fault("0000 0008 00000008 0174 0001 0000 11", 0), ("ULPFEC mask", 12));
    assert_eq!(fault("0000 0008 00000008 0174 0005 8000 11", 3), ("ULPFEC level payload", 14));
    assert_eq!(fault("0000 0008 00000008 0174 0001 8000 11 00", 0), ("ULPFEC protection length", 15));
    assert_eq!(fault("0000 0008 00000008 0174 0001 8000 11 0001 8000", 0), ("ULPFEC level payload", 19));
    // The E bit is ignored.
    assert!(Repair::parse(Octets::new(&hex("8000 0008 00000008 0174 0000 8000"))).is_ok());
}

proptest! {
    #[test]
    fn written_packets_are_read_back(
        flags in 0u16..0x4000, timestamp: u32, length: u16, base: u16,
        parts in vec((1u64..1 << 48, any::<bool>(), vec(any::<u8>(), 0..20), 0u32..30), 1..5),
    ) {
        let levels: Vec<Level<'_>> = parts.iter().map(|(bits, short, bytes, zeros)| {
            let bits = if *short { bits & 0xffff | 1 } else { *bits };
            Level { mask: Mask::from_bits(bits.into()), payload: Octets { bytes, zeros: *zeros } }
        }).collect();
        let repair = Repair { recovery: Recovery { flags, timestamp, length }, base, levels: Levels::Own(&levels) };
        let mut out = vec![];
        let zeros = repair.write_into(&mut out).unwrap();
        prop_assert_eq!(Repair::parse(Octets { bytes: &out, zeros }), Ok(repair));
    }

    #[test]
    fn any_payload_is_read_or_refused(bytes in vec(any::<u8>(), 0..60), small: bool, zeros in 0u32..80) {
        let mut bytes = bytes;
        if let (true, Some(field)) = (small, bytes.get_mut(10..12)) {
            field.copy_from_slice(&[0, field[1] & 31]);
        }
        if let Ok(read) = Repair::parse(Octets { bytes: &bytes, zeros }) {
            let mut out = vec![];
            let zeros = read.write_into(&mut out).unwrap();
            prop_assert_eq!(Repair::parse(Octets { bytes: &out, zeros }), Ok(read));
        }
    }
}
