use super::*;
use crate::testing::hex;
use proptest::prelude::*;
use weir_units::{TimeDelta, Timestamp};

fn written(h: &Header<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    h.write_into(&mut out);
    out
}

const PLAIN: Header<'static> = Header {
    payload_type: 96,
    marker: true,
    sequence: 0x1234,
    timestamp: 0x0506_0708,
    ssrc: 0x090a_0b0c,
    csrcs: &[],
    transport_sequence: None,
    abs_send_time: None,
    subflow: None,
    elements: &[],
    padding: 0,
};

#[test]
fn fixed_header_by_hand() {
    assert_eq!(written(&PLAIN), hex("80e01234 05060708 090a0b0c"));
    let csrcs = [1, 0xff];
    assert_eq!(written(&Header { csrcs: &csrcs, ..PLAIN }), hex("82e01234 05060708 090a0b0c 00000001 000000ff"));
}

#[test]
fn extensions_by_hand() {
    let h = Header { transport_sequence: Some((5, 0xabcd)), ..PLAIN };
    // draft-holmer, section 2.2: id 5, L = 1, one octet of padding.
    assert_eq!(written(&h), hex("90e01234 05060708 090a0b0c bede0001 51abcd00"));
    let h = Header { abs_send_time: Some((3, 0x01_0203)), ..h };
    assert_eq!(written(&h), hex("90e01234 05060708 090a0b0c bede0002 51abcd32 01020300"));
    let level = [0x85];
    let elements = [Element::new(1, &level).unwrap()];
    let h = Header { elements: &elements, ..h };
    assert_eq!(written(&h), hex("90e01234 05060708 090a0b0c bede0003 51abcd32 01020310 85000000"));
    // An identifier over 14 needs the two-byte form for all.
    let h = Header { transport_sequence: Some((20, 0xabcd)), ..h };
    assert_eq!(written(&h), hex("90e01234 05060708 090a0b0c 10000003 1402abcd 03030102 03010185"));
    let h = Header { abs_send_time: None, elements: &[], ..h };
    assert_eq!(written(&h), hex("90e01234 05060708 090a0b0c 10000001 1402abcd"));
    // Identifier 0 is not valid.
    assert_eq!(written(&Header { transport_sequence: Some((0, 1)), ..PLAIN }), written(&PLAIN));
}

#[test]
fn example_of_rfc_8285() {
    // Section 4.2's sample: elements of 1, 2 and 4 octets, padding between the second and the third.
    let bytes = hex("9060 0000 00000000 00000000 bede0003 10aa 21bbcc 0000 33 01020304");
    let p = PacketView::parse(&bytes).unwrap();
    let got: Vec<_> = p.extensions().map(|e| (e.id(), e.data().to_vec())).collect();
    assert_eq!(got, [(1, vec![0xaa]), (2, vec![0xbb, 0xcc]), (3, vec![1, 2, 3, 4])]);
    assert_eq!([2, 3, 9].map(|id| p.extension_range(id)), [Some(19..21), Some(24..28), None]);
    // Section 4.3's sample: a zero-length element, padding, and application bits in the profile.
    let bytes = hex("9060 0000 00000000 00000000 1005 0003 0100 0201bb 00 0304 01020304");
    let p = PacketView::parse(&bytes).unwrap();
    let got: Vec<_> = p.extensions().map(|e| (e.id(), e.data().to_vec())).collect();
    assert_eq!(got, [(1, vec![]), (2, vec![0xbb]), (3, vec![1, 2, 3, 4])]);
}

#[test]
fn element_parsing_stops_where_it_must() {
    let elements = |ext: &str| {
        let bytes = hex(&format!("9060 0000 00000000 00000000 {ext}"));
        PacketView::parse(&bytes).unwrap().extensions().count()
    };
    assert_eq!(elements("bede0001 10aa 10bb"), 2);
    assert_eq!(elements("bede0001 f0aa 10bb"), 0, "identifier 15 ends it");
    assert_eq!(elements("bede0001 10aa 01bb"), 1, "identifier 0 with a length ends it");
    assert_eq!(elements("bede0001 10aa 13bb"), 1, "an element over the end ends it");
    assert_eq!(elements("10000001 01ff aabb"), 0, "an element over the end ends it");
    assert_eq!(elements("abcd0001 10aa10bb"), 0, "not of RFC 8285");
}

#[test]
fn named_elements_want_their_length() {
    let read = |data: &[u8]| (extension::read_transport_sequence(data), extension::read_abs_send_time(data));
    assert_eq!(read(&[1, 2]), (Some(0x0102), None));
    assert_eq!(read(&[1, 2, 3]), (None, Some(0x01_0203)));
    assert_eq!(read(&[1, 2, 0x80, 1]), (Some(0x0102), None), "version 2 asks for feedback behind the number");
    assert_eq!(read(&[]), (None, None));
}

#[test]
fn payload_may_be_missing() {
    let p = written(&PLAIN);
    assert_eq!(PacketView::parse(&p).unwrap().payload(), b"");
    let padded = written(&Header { padding: 200, ..PLAIN });
    let view = PacketView::parse_header(&padded).unwrap();
    assert!(view.padding_bit() && view.padding() == 0 && view.payload().is_empty());
    assert!(PacketView::parse(&padded).is_err(), "the padding is announced and not there");
}

#[test]
fn padding_is_not_payload() {
    let mut bytes = written(&Header { padding: 4, ..PLAIN });
    bytes.extend_from_slice(b"abc");
    write_padding(&mut bytes, 4);
    let view = PacketView::parse(&bytes).unwrap();
    assert_eq!((view.payload(), view.padding()), (&b"abc"[..], 4));
    assert!(bytes.ends_with(&[b'c', 0, 0, 0, 4]));
    *bytes.last_mut().unwrap() = 8;
    assert_eq!(
        PacketView::parse(&bytes).unwrap_err().to_string(),
        "RTP padding count at byte 18 is 8, expected 1 to the bytes after the header"
    );
    *bytes.last_mut().unwrap() = 0;
    assert!(PacketView::parse(&bytes).is_err());
}

#[test]
fn errors_name_the_field() {
    assert!(matches!(
        PacketView::parse(&[0x80; 11]),
        Err(Error::Truncated { field: "RTP fixed header", offset: 0, needed: 12, available: 11 })
    ));
    assert!(matches!(
        PacketView::parse(&[0x40; 12]),
        Err(Error::Value { field: "RTP version", offset: 0, value: 1, .. })
    ));
    assert!(matches!(
        PacketView::parse(&[0x8f; 40]),
        Err(Error::Truncated { field: "RTP CSRC list", offset: 12, needed: 60, available: 28 })
    ));
    let bytes = hex("9060 0000 00000000 00000000 bede0002 00000000");
    assert!(matches!(
        PacketView::parse(&bytes),
        Err(Error::Truncated { field: "RTP extension", offset: 16, needed: 8, available: 4 })
    ));
}

#[test]
fn send_time_is_6_18_fixed_point() {
    assert_eq!(extension::abs_send_time(Timestamp::from_millis(1_500)), 0x06_0000);
    assert_eq!(extension::abs_send_time(Timestamp::from_secs(64)), 0);
    assert_eq!(extension::abs_send_time(Timestamp::from_nanos(64_000_000_000 - 1)), 0, "rounds up and wraps");
    let d = extension::abs_send_time_since(0x00_0001, 0xff_ffff);
    assert_eq!(d.as_nanos(), 7_629, "two units of 3,814.7 ns");
    assert_eq!(extension::abs_send_time_since(0, 0x06_0000), TimeDelta::from_millis(-1_500));
}

fn element() -> impl Strategy<Value = (u8, Vec<u8>)> {
    prop_oneof![
        (1u8..15, proptest::collection::vec(any::<u8>(), 1..17)),
        (1u8..=255, proptest::collection::vec(any::<u8>(), 0..256)),
    ]
}

proptest! {
    #[test]
    fn written_packets_are_read_back(
        fixed: (u8, bool, u16, u32, u32),
        csrcs in proptest::collection::vec(any::<u32>(), 0..16),
        transport: Option<(u8, u16)>,
        send_time in proptest::option::of((any::<u8>(), 0u32..1 << 24)),
        subflow: Option<(u8, u16, u16)>,
        elements in proptest::collection::vec(element(), 0..6),
        payload in proptest::collection::vec(any::<u8>(), 0..50),
        padding: u8,
    ) {
        let elements: Vec<_> = elements.iter().map(|(id, data)| Element::new(*id, data).unwrap()).collect();
        let (payload_type, marker, sequence, timestamp, ssrc) = fixed;
        let subflow = subflow.map(|(id, subflow, sequence)| (id, mprtp::SubflowNumber { subflow, sequence }));
        let h = Header {
            payload_type: payload_type & 0x7f, marker, sequence, timestamp, ssrc,
            csrcs: &csrcs, transport_sequence: transport, abs_send_time: send_time, subflow, elements: &elements, padding,
        };
        let mut bytes = vec![];
        h.write_into(&mut bytes);
        prop_assert_eq!(bytes.len() % 4, 0);
        bytes.extend_from_slice(&payload);
        write_padding(&mut bytes, padding);
        let v = PacketView::parse(&bytes).unwrap();
        prop_assert_eq!((v.payload_type(), v.marker(), v.sequence()), (payload_type & 0x7f, marker, sequence));
        prop_assert_eq!((v.timestamp(), v.ssrc()), (timestamp, ssrc));
        prop_assert!(v.csrcs().eq(csrcs.iter().copied()));
        prop_assert_eq!((v.payload(), v.padding()), (&payload[..], padding));
        let seq_bytes = transport.map(|(id, s)| (id, s.to_be_bytes()));
        let time_bytes = send_time.map(|(id, t)| (id, t.to_be_bytes()));
        let subflow_bytes = subflow.map(|(id, n)| (id, n.to_data()));
        let mut want = vec![];
        want.extend(seq_bytes.iter().filter_map(|(id, b)| Element::new(*id, b)));
        want.extend(time_bytes.iter().filter_map(|(id, b)| Element::new(*id, &b[1..])));
        want.extend(subflow_bytes.iter().filter_map(|(id, b)| Element::new(*id, b)));
        want.extend(&elements);
        prop_assert_eq!(v.extensions().collect::<Vec<_>>(), want);
        if let Some((id, s)) = transport && id != 0 {
            prop_assert_eq!(v.transport_sequence(id), Some(s));
        }
        // The oracle library parses it equally.
        let other = rtp_types::RtpPacket::parse(&bytes).unwrap();
        prop_assert_eq!((other.payload(), other.payload_offset()), (v.payload(), v.header_len()));
        prop_assert_eq!(other.extension(), v.raw_extension());
        prop_assert_eq!((other.ssrc(), other.sequence_number(), other.marker_bit()), (ssrc, sequence, marker));
    }

    #[test]
    fn any_bytes_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80), fix: bool) {
        let mut bytes = bytes;
        if let (true, Some(first)) = (fix, bytes.first_mut()) {
            *first = *first & 0x3f | 0x80;
        }
        let ours = PacketView::parse(&bytes);
        prop_assert_eq!(ours.is_ok(), rtp_types::RtpPacket::parse(&bytes).is_ok());
        for v in [ours, PacketView::parse_header(&bytes)].into_iter().flatten() {
            prop_assert!(v.header_len() + v.payload().len() + usize::from(v.padding()) == bytes.len());
            prop_assert!(v.extensions().map(|e| e.data().len() + 1).sum::<usize>() <= v.header_len());
            prop_assert!(v.csrcs().count() <= MAX_CSRCS);
        }
    }

    #[test]
    fn transport_numbers_are_those_of_the_extension(
        csrcs in 0u8..2, two_byte: bool, words in 0u8..3, element: [u8; 8], first in 0u8..32, id in 0u8..20,
    ) {
        let mut bytes = vec![0x90 | csrcs; 12 + 4 * usize::from(csrcs)];
        bytes.extend(if two_byte { [0x10, 0, 0, words] } else { [0xbe, 0xde, 0, words] });
        bytes.extend(&element[..4 * usize::from(words)]);
        if words > 0 {
            // Often the identifier and length that are looked for.
            bytes[16 + 4 * usize::from(csrcs)] = first << 4 | 1;
        }
        let v = PacketView::parse_header(&bytes).expect("complete");
        let read = v.extension(id).and_then(extension::read_transport_sequence);
        prop_assert_eq!(v.transport_sequence(id), read);
    }

    #[test]
    fn send_times_differ_by_the_time_between(a in 0i64..1 << 60, d in -31_900_000_000i64..31_900_000_000) {
        let t = Timestamp::from_nanos(a);
        let (x, y) = (extension::abs_send_time(t), extension::abs_send_time(t + TimeDelta::from_nanos(d)));
        prop_assert!((extension::abs_send_time_since(y, x).as_nanos() - d).abs() <= 3_816);
    }
}

#[test]
fn ntp_timestamps_by_hand() {
    use crate::ntp::NtpTime;
    use extension::{ntp_56, ntp_64, read_ntp_56, read_ntp_64};
    // RFC 6051, figures 5 and 6, with local identifiers 4 and 5: length fields of 7 and 6.
    let t = NtpTime::from_bits(0x0102_0304_0506_0708);
    let (long, short) = (ntp_64(t), ntp_56(t));
    let elements = [Element::new(4, &long).unwrap()];
    let mut out = vec![];
    Header { elements: &elements, ..Header::default() }.write_into(&mut out);
    assert_eq!(out[12..], crate::testing::hex("bede0003 47010203 04050607 08000000"));
    let view = PacketView::parse(&out).unwrap();
    assert_eq!(view.extension(4).and_then(read_ntp_64), Some(t));
    let elements = [Element::new(5, &short).unwrap()];
    out.clear();
    Header { elements: &elements, ..Header::default() }.write_into(&mut out);
    assert_eq!(out[12..], crate::testing::hex("bede0002 56020304 05060708"));
    let view = PacketView::parse(&out).unwrap();
    let near = |seconds: i64| NtpTime::from_bits(t.bits().wrapping_add_signed(seconds << 32));
    for seconds in [0, 1, -1, 1 << 22, -(1 << 22)] {
        let read = view.extension(5).and_then(|d| read_ntp_56(d, near(seconds)));
        assert_eq!(read, Some(t), "{seconds} s away");
    }
    // 2^23 s, which is 97 days, is half the range of the 24 bits of seconds.
    assert_ne!(read_ntp_56(&short, near((1 << 23) + 1)), Some(t));
    // Across the wrap of the whole timestamp.
    let early = NtpTime::from_bits(5 << 32);
    assert_eq!(read_ntp_56(&ntp_56(early), NtpTime::from_bits(u64::MAX)), Some(early));
    for length in [0, 6, 9] {
        assert_eq!((read_ntp_64(&[0; 9][..length]), read_ntp_56(&[0; 9][..length], t)), (None, None));
    }
    assert_eq!((read_ntp_64(&short), read_ntp_56(&long, t)), (None, None));
}
