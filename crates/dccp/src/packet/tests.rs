use super::*;
use crate::option::DccpOption;
use weir_units::Seq48;

const PORTS: [u8; 4] = [0x13, 0x8c, 0x17, 0x70];

/// A hand-made packet: its type, X, the bytes after the first twelve, and the header length in words.
fn bytes(number: u8, x: u8, words: u8, rest: &[u8]) -> Vec<u8> {
    let mut b = PORTS.to_vec();
    b.extend_from_slice(&[words, 0x50, 0xbe, 0xef, number << 1 | x, 0, 0, 0]);
    b.extend_from_slice(rest);
    b
}

const LONG: Seq48 = Seq48::new(0x0102_0304_0506);
const OTHER: Seq48 = Seq48::new(0xfffe_fdfc_fbfa);

/// Every type with the layout of its figure in RFC 4340, section 5.
fn layouts() -> Vec<(PacketType, bool, Vec<u8>)> {
    let mut all = vec![];
    for t in PacketType::ALL {
        let mut b = PORTS.to_vec();
        b.extend_from_slice(&[0, 0x50, 0, 0, t.number() << 1 | 1, 0]);
        b.extend_from_slice(&[1, 2, 3, 4, 5, 6]);
        if !matches!(t, PacketType::Request | PacketType::Data) {
            b.extend_from_slice(&[0, 0, 0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa]);
        }
        if matches!(t, PacketType::Request | PacketType::Response) {
            b.extend_from_slice(b"RTPV");
        }
        if t == PacketType::Reset {
            b.extend_from_slice(&[5, 37, 1, 2]);
        }
        b[4] = b.len() as u8 / 4;
        all.push((t, false, b));
        if matches!(t, PacketType::Data | PacketType::Ack | PacketType::DataAck) {
            let mut b = PORTS.to_vec();
            b.extend_from_slice(&[0, 0x50, 0, 0, t.number() << 1, 4, 5, 6]);
            if t != PacketType::Data {
                b.extend_from_slice(&[0, 0xfc, 0xfb, 0xfa]);
            }
            b[4] = b.len() as u8 / 4;
            all.push((t, true, b));
        }
    }
    all
}

#[test]
fn every_type_both_ways() {
    // Header lengths of the figures, long and short.
    let lengths = [20, 28, 16, 12, 24, 16, 24, 16, 24, 24, 28, 24, 24];
    let layouts = layouts();
    assert_eq!(layouts.iter().map(|(.., b)| b.len()).collect::<Vec<_>>(), lengths);
    for (t, short, b) in layouts {
        let p = parse(&b, 0).expect("a packet");
        let form = |n| if short { WireSequence::short(n) } else { WireSequence::Long(n) };
        let header = Header {
            source_port: 5_004,
            destination_port: 6_000,
            ccval: 5,
            checksum_coverage: 0,
            packet_type: t,
            sequence: form(LONG),
            acknowledgement: t.has_acknowledgement().then(|| form(OTHER)),
        };
        assert_eq!(p.header, header);
        assert!(p.options.is_empty() && p.data.is_empty());
        let opens = matches!(t, PacketType::Request | PacketType::Response);
        assert_eq!(p.service_code, opens.then_some(ServiceCode::RTP_VIDEO));
        assert_eq!(p.reset, (t == PacketType::Reset).then_some((ResetCode::OPTION_ERROR, [37, 1, 2])));
        let mut out = vec![7];
        let mut w = PacketWriter::new(&mut out, &header);
        if let Some(code) = p.service_code {
            w.service_code(code);
        }
        if let Some((code, data)) = p.reset {
            w.reset(code, data);
        }
        assert_eq!(w.finish(), b.len());
        assert_eq!(out[1..], b);
        // A packet one byte shorter is invalid, and so is an inconsistent Data Offset.
        for cut in 0..b.len() {
            assert!(parse(&b[..cut], 0).is_err(), "{t} of {cut} bytes");
        }
        for offset in [0, b[4] - 1, b[4] + 1, 255] {
            let mut b = b.clone();
            b[4] = offset;
            let least = header_len(t, short);
            let e = PacketError::DataOffset { offset: usize::from(offset) * 4, header: least, packet: least };
            // Bytes carried as a length only are data, never header.
            assert_eq!((parse(&b, 0).err(), parse(&b, 1_000).err()), (Some(e), Some(e)));
        }
    }
}

fn header_len(t: PacketType, short: bool) -> usize {
    let all = layouts();
    all.iter().find(|(u, s, _)| (*u, *s) == (t, short)).map_or(0, |(.., b)| b.len())
}

#[test]
fn invalid_packets_are_refused_with_a_reason() {
    for number in 10..16 {
        assert_eq!(parse(&bytes(number, 1, 4, &[0; 16]), 0).err(), Some(PacketError::ReservedType(number)));
    }
    for t in PacketType::ALL.into_iter().filter(|t| !t.may_be_short()) {
        assert_eq!(parse(&bytes(t.number(), 0, 7, &[0; 16]), 0).err(), Some(PacketError::ShortSequence(t)));
    }
    assert_eq!(parse(&[0; 11], 0).err(), Some(PacketError::Truncated { need: 12, have: 11 }));
    assert_eq!(parse(&bytes(2, 1, 3, &[]), 0).err(), Some(PacketError::Truncated { need: 16, have: 12 }));
}

#[test]
fn reserved_bits_are_ignored() {
    let mut b = bytes(3, 1, 6, &[0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 8]);
    let plain = parse(&b, 0).expect("an Ack").header;
    // Res, the byte after the type, and the two bytes before the acknowledgement number.
    b[8] |= 0xe0;
    b[9] = 0xff;
    b[16] = 0xff;
    b[17] = 0xff;
    assert_eq!(parse(&b, 0).expect("an Ack").header, plain);
    let mut b = bytes(3, 0, 4, &[0, 0, 0, 8]);
    b[12] = 0xff;
    assert_eq!(parse(&b, 0).expect("an Ack").header.acknowledgement, Some(WireSequence::Short(8)));
}

#[test]
fn coverage_past_the_data_is_no_packet() {
    // RFC 4340, section 9.2: (CsCov - 1) * 4 is at most the length of the data.
    let mut b = bytes(2, 0, 3, &[1, 2, 3, 4, 5]);
    let mut with = |coverage: u8, beyond| {
        b[5] = coverage;
        parse(&b, beyond).map(|p| (p.header.checksum_coverage, p.data.len()))
    };
    assert_eq!((with(0, 0), with(2, 0), with(3, 3)), (Ok((0, 5)), Ok((2, 5)), Ok((3, 5))));
    assert_eq!(with(3, 2), Err(PacketError::ChecksumCoverage { coverage: 3, data: 7 }));
    assert_eq!(with(15, 50), Err(PacketError::ChecksumCoverage { coverage: 15, data: 55 }));
}

#[test]
fn headers_end_at_the_maximum_of_data_offset() {
    let header = Header {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 0,
        packet_type: PacketType::Ack,
        sequence: WireSequence::Long(LONG),
        acknowledgement: Some(WireSequence::Long(OTHER)),
    };
    let mut out = vec![];
    let mut w = PacketWriter::new(&mut out, &header);
    assert_eq!(w.room(), MAX_HEADER - 24);
    // 996 bytes of room: 3 options of 255 and one of 231, the vector of the first three in one call.
    assert!(w.ack_vector(true, &[0x3f; 3 * 253]));
    assert_eq!(w.room(), 231);
    assert!(!w.option(&DccpOption::InitCookie(&[0; 230])) && w.room() == 231);
    assert!(!w.data_dropped(&[0; 253 + 1]) && w.room() == 231);
    assert!(w.option(&DccpOption::InitCookie(&[1; 229])) && w.room() == 0);
    assert!(!w.option(&DccpOption::SlowReceiver) && !w.option(&DccpOption::Mandatory));
    assert_eq!(w.finish(), MAX_HEADER);
    out.push(9);
    let p = parse(&out, 0).expect("the longest header");
    assert_eq!((p.data, p.options.iter().count()), (&[9][..], 4));
    let runs: usize = p
        .options
        .iter()
        .filter_map(|o| if let Ok(DccpOption::AckVector { nonce: true, runs }) = o { Some(runs.len()) } else { None })
        .sum();
    assert_eq!(runs, 3 * 253);
}

#[test]
fn kinds_of_types() {
    // RFC 4340, section 7.7.
    let non_data: Vec<_> = PacketType::ALL.into_iter().filter(|t| t.is_non_data()).map(PacketType::number).collect();
    assert_eq!(non_data, [3, 5, 6, 7, 8, 9]);
    assert!(PacketType::ALL.iter().all(|t| !t.is_data() || t.may_carry_data()));
    for (i, t) in (0u8..).zip(PacketType::ALL) {
        assert_eq!((t.number(), PacketType::from_number(i)), (i, Some(t)));
    }
    assert_eq!(PacketType::SyncAck.to_string(), "DCCP-SyncAck");
    assert_eq!(
        (ResetCode::TOO_BUSY.to_string(), ResetCode(130).to_string()),
        ("Too Busy".into(), "reset code 130".into())
    );
}
