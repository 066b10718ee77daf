use super::*;
use crate::ntp::NtpTime;
use crate::rtcp::{Nack, ReceiverReport, ReportBlock, SenderInfo, SenderReport, Xr, ccfb, raw_packets, twcc, xr};
use crate::testing::hex;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_units::{Ecn, Timestamp};

fn parse(bytes: &[u8]) -> Mprtcp<'_> {
    match parse_compound(bytes).next() {
        Some(Ok(Packet::Mprtcp(m))) => m,
        other => panic!("{other:?}"),
    }
}

fn written(blocks: &[Block<'_>]) -> Vec<u8> {
    let mut out = vec![];
    Mprtcp { sender_ssrc: 1, media_ssrc: 2, blocks: Blocks::Own(blocks) }.write_into(&mut out);
    out
}

/// Figure 12: a sender report on one subflow and a receiver report on another.
#[test]
fn reports_on_two_subflows_are_as_in_figure_12_of_the_draft() {
    let info = SenderInfo { ntp: NtpTime::from_bits(0x11_2233_4455_6677), rtp_timestamp: 8, packets: 9, octets: 10 };
    let sr = SenderReport { ssrc: 1, info, ..SenderReport::default() };
    let block = ReportBlock { ssrc: 2, fraction_lost: 0x40, highest_sequence: 0x1_0005, ..ReportBlock::default() };
    let blocks = [block];
    let rr = ReceiverReport { ssrc: 1, blocks: (&blocks).into(), extension: &[] };
    let mut out = vec![];
    let mut writer = Writer::new(&mut out, 1, 2);
    assert!(writer.reports(1, |out| sr.write_into(out)));
    assert!(writer.reports(2, |out| rr.write_into(out)));
    assert_eq!(writer.size(), 12 + 4 + 28 + 4 + 32);
    writer.finish();
    let sr_hex = "80c80006 00000001 00112233 44556677 00000008 00000009 0000000a";
    let rr_hex = "81c90007 00000001 00000002 40000000 00010005 00000000 00000000 00000000";
    // 19 words after the first of the packet; 7 and 8 words of reports.
    assert_eq!(out, hex(&format!("80d30013 00000001 00000002 00070001 {sr_hex} 00080002 {rr_hex}")));

    let read = parse(&out);
    assert_eq!((read.sender_ssrc, read.media_ssrc), (1, 2));
    let blocks: Vec<_> = read.blocks.iter().collect();
    let [Block::Reports(first), Block::Reports(second)] = blocks[..] else { panic!("{blocks:?}") };
    assert_eq!((first.subflow, second.subflow), (1, 2));
    assert_eq!(first.packets().collect::<Vec<_>>(), [Ok(Packet::SenderReport(sr))]);
    assert_eq!(second.packets().collect::<Vec<_>>(), [Ok(Packet::ReceiverReport(rr))]);
}

/// Figure 13, with the lengths of section 9.3: 2 for IPv4, 5 for IPv6, the words of the name plus 1.
#[test]
fn addresses_are_as_in_figure_13_of_the_draft() {
    let v4 = Interface::new(5_000, InterfaceAddress::V4(Ipv4Addr::new(192, 0, 2, 1))).unwrap();
    let v6 = Interface::new(5_001, InterfaceAddress::V6("2001:db8::1".parse().unwrap())).unwrap();
    let name = Interface::new(5_002, InterfaceAddress::Name("a.example")).unwrap();
    let blocks = [v4, v6, name].map(Block::Interface);
    let out = written(&blocks);
    let expected = "80d3000d 00000001 00000002 01021388 c0000201 02051389 20010db8 00000000 00000000 00000001 \
                    0304138a 612e6578 616d706c 65000000";
    assert_eq!(out, hex(expected));
    assert!(parse(&out).blocks.iter().eq(blocks));
}

#[test]
fn invalid_addresses_are_not_made_and_not_taken_for_addresses() {
    let address = InterfaceAddress::V4(Ipv4Addr::LOCALHOST);
    assert_eq!(Interface::new(0, address), None);
    let long = "a".repeat(MAX_NAME + 1);
    for name in ["", "a\0b", &long] {
        assert_eq!(Interface::new(1, InterfaceAddress::Name(name)), None, "{name:?}");
    }
    assert!(Interface::new(1, InterfaceAddress::Name(&long[1..])).is_some());
    for block in [
        "01020000 c0000201",          // port 0
        "01031388 c0000201 00000000", // IPv4 of two words
        "02021388 c0000201",          // IPv6 of one word
        "03011388",                   // no name
        "03021388 fffefdfc",          // not UTF-8
        "03021388 61006200",          // a null octet inside
        "03031388 61626364 00000000", // a word of padding
        "09021388 c0000201",          // an unknown type
    ] {
        let body = hex(block);
        let mut out = vec![0x80, MPRTCP, 0, (2 + body.len() / 4) as u8, 0, 0, 0, 1, 0, 0, 0, 2];
        out.extend_from_slice(&body);
        let read = parse(&out);
        let blocks: Vec<_> = read.blocks.iter().collect();
        assert_eq!(blocks, [Block::Other(RawBlock { block_type: body[0], body: &body[2..] })], "{block}");
        assert_eq!(written(&blocks), out, "{block}");
    }
}

#[test]
fn a_block_of_length_zero_is_a_word_and_ignored() {
    let out = hex("80d30006 00000001 00000002 00000001 01001388 01021388 c0000201");
    let address = Interface::new(5_000, InterfaceAddress::V4(Ipv4Addr::new(192, 0, 2, 1))).unwrap();
    assert!(parse(&out).blocks.iter().eq([Block::Interface(address)]));
}

#[test]
fn a_cut_block_is_an_error_at_its_place() {
    let out = hex("80d30003 00000001 00000002 00020001");
    let expected = Error::Truncated { field: "MPRTCP block", offset: 14, needed: 10, available: 2 };
    assert_eq!(parse_compound(&out).next(), Some(Err(expected)));
    let short = hex("80d30001 00000001");
    let expected = Error::Truncated { field: "MPRTCP media SSRC", offset: 8, needed: 4, available: 0 };
    assert_eq!(parse_compound(&short).next(), Some(Err(expected)));
}

#[test]
fn reports_inside_reports_are_refused() {
    let inner = written(&[]);
    let out = written(&[Block::Reports(SubflowReports { subflow: 1, reports: &inner })]);
    let Some(Block::Reports(r)) = parse(&out).blocks.iter().next() else { panic!() };
    let refused = r.packets().next();
    assert!(matches!(refused, Some(Err(Error::Value { value: 211, .. }))), "{refused:?}");
}

#[test]
fn reports_beyond_the_length_field_and_empty_ones_are_left_out() {
    let mut out = vec![];
    let mut writer = Writer::new(&mut out, 1, 2);
    assert!(!writer.reports(1, |_| {}));
    assert!(!writer.reports(1, |out| out.resize(out.len() + MAX_REPORTS + 1, 0)));
    assert_eq!(writer.size(), 12);
    assert!(writer.reports(1, |out| out.resize(out.len() + MAX_REPORTS, 0)));
    writer.finish();
    assert_eq!(out.len(), 16 + MAX_REPORTS);
    assert_eq!(parse(&out).blocks.iter().count(), 1);
}

/// The feedback of a subflow has its numbers: TWCC, RFC 8888 and extended reports go through unchanged.
#[test]
fn feedback_and_extended_reports_are_encapsulated() {
    let mut feedback = vec![];
    let mut builder = twcc::Builder::new(1, 2, 0, 10, Timestamp::from_millis(64));
    for s in 10..30 {
        assert!(builder.push(s, (s % 3 != 0).then(|| Timestamp::from_millis(64 + i64::from(s)))));
    }
    assert!(builder.finish_into(&mut feedback));
    let mut w = ccfb::Writer::new(&mut feedback, 1, Timestamp::from_millis(500), 7);
    w.stream(2, 65_535);
    w.push(Some((Ecn::Ce, Timestamp::from_millis(490))));
    w.push(None);
    w.finish();
    Xr { ssrc: 1, blocks: xr::Blocks::Own(&[xr::Block::Rrtr(NtpTime::from_bits(5))]) }.write_into(&mut feedback);
    let mut out = vec![];
    let mut writer = Writer::new(&mut out, 1, 2);
    assert!(writer.reports(3, |out| out.extend_from_slice(&feedback)));
    writer.finish();
    let Some(Block::Reports(r)) = parse(&out).blocks.iter().next() else { panic!() };
    let packets: Vec<_> = r.packets().map(|p| p.unwrap()).collect();
    let [Packet::Twcc(t), Packet::Ccfb(c), Packet::Xr(_)] = packets[..] else { panic!("{packets:?}") };
    assert_eq!(t.statuses().count(), 20);
    assert_eq!(c.streams().map(|s| (s.begin_sequence, s.metrics.len())).collect::<Vec<_>>(), [(65_535, 2)]);
}

fn interface() -> impl Strategy<Value = (u16, Vec<u8>, u8)> {
    (1u16.., vec(b'a'..=b'z', 1..=MAX_NAME), 0u8..3)
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<[u8; 4]>(), 1..40).prop_map(|w| w.concat())
}

proptest! {
    #[test]
    fn packets_survive(
        ids: [u32; 2], reports in vec((any::<u16>(), words()), 0..6), interfaces in vec(interface(), 0..6),
        other in (4u8..=255, words()), lost: u16,
    ) {
        let mut nack = vec![];
        Nack { sender_ssrc: 1, media_ssrc: 2, entries: (&[crate::rtcp::NackEntry { first: lost, following: 1 }]).into() }
            .write_into(&mut nack);
        let names: Vec<(u16, String, u8)> =
            interfaces.iter().map(|(port, name, kind)| (*port, String::from_utf8(name.clone()).unwrap(), *kind)).collect();
        let mut blocks: Vec<Block<'_>> =
            reports.iter().map(|(subflow, reports)| Block::Reports(SubflowReports { subflow: *subflow, reports })).collect();
        blocks.push(Block::Reports(SubflowReports { subflow: 9, reports: &nack }));
        blocks.extend(names.iter().map(|(port, name, kind)| {
            let address = match kind {
                0 => InterfaceAddress::V4(Ipv4Addr::from(u32::from(*port))),
                1 => InterfaceAddress::V6(Ipv6Addr::from(u128::from(*port) << 64 | 1)),
                _ => InterfaceAddress::Name(name),
            };
            Block::Interface(Interface::new(*port, address).unwrap())
        }));
        // A block has two bytes and whole words.
        blocks.push(Block::Other(RawBlock { block_type: other.0, body: &other.1[2..] }));
        let packet = Mprtcp { sender_ssrc: ids[0], media_ssrc: ids[1], blocks: Blocks::Own(&blocks) };
        let mut out = vec![];
        packet.write_into(&mut out);
        prop_assert_eq!(parse(&out), packet);
        let mut padded = vec![];
        Packet::Mprtcp(packet).write_padded_into(8, &mut padded);
        prop_assert_eq!(padded.len(), out.len() + 8);
        prop_assert_eq!(parse(&padded), packet);
    }

    #[test]
    fn any_bytes_parse_without_panic_and_settle(flags in 0u8..64, body in vec(any::<u8>(), 0..200), small in vec((0u8..5, 0u8..8, any::<u16>()), 0..8)) {
        let mut bytes = vec![0x80 | flags, MPRTCP, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2];
        // Plausible block headers, then anything.
        for (kind, length, id) in small {
            bytes.extend_from_slice(&[kind, length]);
            bytes.extend_from_slice(&id.to_be_bytes());
        }
        bytes.extend_from_slice(&body);
        bytes.resize(bytes.len().next_multiple_of(4), 3);
        crate::rtcp::set_length(&mut bytes, 0);
        for raw in raw_packets(&bytes).flatten() {
            let Ok(packet) = Packet::parse(&raw) else { continue };
            let mut out = vec![];
            packet.write_into(&mut out);
            prop_assert!(out.len() <= bytes.len());
            let again = parse_compound(&out).next().unwrap().unwrap();
            if raw.padding().is_multiple_of(4) {
                prop_assert_eq!(again, packet);
            }
            if let Packet::Mprtcp(m) = packet {
                prop_assert!(m.blocks.iter().count() <= bytes.len() / 4);
                for block in m.blocks.iter() {
                    if let Block::Reports(r) = block {
                        prop_assert!(r.reports.len() <= MAX_REPORTS && r.packets().count() <= MAX_REPORTS / 4);
                    }
                }
            }
        }
    }
}
