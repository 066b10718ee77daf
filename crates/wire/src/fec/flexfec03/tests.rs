use super::*;
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;

fn repair(mask: u128, payload: &[u8]) -> Repair<'_> {
    let recovery = Recovery { flags: 0x1234, timestamp: 0x0506_0708, length: 0x090a };
    Repair { recovery, ssrc: 0x1122_3344, base: 100, mask: Mask::from_bits(mask), payload: Octets::new(payload) }
}

fn written(mask: u128) -> Vec<u8> {
    let mut out = vec![];
    assert_eq!(repair(mask, &[0xff]).write_into(&mut out), Some(0));
    out
}

const HEAD: &str = "1234 090a 05060708 01000000 11223344 0064";

#[test]
fn masks_take_the_shortest_form_and_the_last_part_has_a_k_bit_of_1() {
    // Figure 12: flags with R = F = 0, length, timestamp, SSRC count, SSRC, SN base, k and Mask[0-14].
    let with = |mask: &str| hex(&format!("{HEAD} {mask} ff"));
    assert_eq!(written(1), with("c000"));
    assert_eq!(written(1 | 1 << 14), with("c001"));
    // Mask[15-45] after a k of 0, with its own k.
    assert_eq!(written(1 | 1 << 15), with("4000 c0000000"));
    assert_eq!(written(1 << 45), with("0000 80000001"));
    // Mask[46-108], which is the last.
    assert_eq!(written(1 | 1 << 46), with("4000 00000000 c000000000000000"));
    assert_eq!(written(1 | 1 << 15 | 1 << 108), with("4000 40000000 8000000000000001"));
    assert_eq!((written(1).len() - 1, written(1 << 108).len() - 1), (LEAST_HEADER, LONGEST_HEADER));
    for mask in [0, 1 << 109] {
        let mut out = vec![];
        assert_eq!((repair(mask, &[]).write_into(&mut out), out), (None, vec![]));
    }
}

fn fault(payload: &str) -> (&'static str, usize) {
    match Repair::parse(Octets::new(&hex(payload))).expect_err("invalid") {
        Error::Truncated { field, offset, .. } | Error::Value { field, offset, .. } => (field, offset),
        Error::Compound { rule, offset } => (rule, offset),
    }
}

#[test]
fn what_is_no_repair_of_one_stream_is_refused() {
    assert_eq!(fault("12"), ("FlexFEC-03 flags", 0));
    assert_eq!(fault("1234 090a 0506"), ("FlexFEC-03 TS recovery", 4));
    assert_eq!(fault("9234 090a 05060708 01000000 11223344 0064 c000"), ("FlexFEC-03 R and F", 0));
    assert_eq!(fault("5234 090a 05060708 01000000 11223344 0064 0503"), ("FlexFEC-03 R and F", 0));
    assert_eq!(fault("1234 090a 05060708 00000000 11223344 0064 c000"), ("FlexFEC-03 SSRC count", 8));
    assert_eq!(fault("1234 090a 05060708 02000000 11223344 0064 c000"), ("FlexFEC-03 SSRC count", 8));
    assert_eq!(fault(&format!("{HEAD} 8000")), ("FlexFEC-03 mask", 18));
    assert_eq!(fault(&format!("{HEAD} 0000 80000000")), ("FlexFEC-03 mask", 18));
    assert_eq!(fault(&format!("{HEAD} 4000 0000")), ("FlexFEC-03 mask, bits 15 to 45", 20));
    assert_eq!(fault(&format!("{HEAD} 4000 00000000 80")), ("FlexFEC-03 mask, bits 46 to 108", 24));
    assert_eq!(fault(&format!("{HEAD} 4000 00000000 0000000000000001")), ("FlexFEC-03 third k bit", 24));
}

#[test]
fn reserved_bits_are_ignored() {
    let bytes = hex("1234 090a 05060708 01abcdef 11223344 0064 c000 ff");
    assert_eq!(Repair::parse(Octets::new(&bytes)), Ok(repair(1, &[0xff])));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        flags in 0u16..0x4000, length: u16, timestamp: u32, ssrc: u32, base: u16,
        bits in 1u128..1 << 109, payload in vec(any::<u8>(), 0..40), zeros in 0u32..100, shift in 0u32..109,
    ) {
        let recovery = Recovery { flags, timestamp, length };
        let mask = Mask::from_bits((bits >> shift).max(1));
        let repair = Repair { recovery, ssrc, base, mask, payload: Octets { bytes: &payload, zeros } };
        let mut out = vec![];
        let zeros = repair.write_into(&mut out).expect("within the format");
        let got = Repair::parse(Octets { bytes: &out, zeros });
        prop_assert_eq!(got, Ok(repair));
        prop_assert_eq!(repair.coverage().len(), mask.len());
    }

    #[test]
    fn any_bytes_are_a_repair_or_an_error(bytes in vec(any::<u8>(), 0..60), sound: bool) {
        let mut bytes = bytes;
        if let (true, Some(head)) = (sound, bytes.get_mut(..9)) {
            head[0] &= 0x3f;
            head[8] = 1;
        }
        if let Ok(repair) = Repair::parse(Octets::new(&bytes)) {
            let mut out = vec![];
            prop_assert_eq!(repair.write_into(&mut out), Some(0));
            prop_assert_eq!(Repair::parse(Octets::new(&out)), Ok(repair));
        }
    }
}
