use super::*;
use crate::ntp::NtpTime;
use crate::testing::hex;
use weir_units::{DataRate, DataSize, TimeDelta};

mod properties;

/// Writes a packet, and checks the bytes and that they parse to the same packet.
fn same(packet: Packet<'_>, bytes: &str) {
    let mut out = vec![];
    packet.write_into(&mut out);
    assert_eq!(out, hex(bytes), "{packet:?}");
    reads_as(&out, packet);
}

fn reads_as(bytes: &[u8], packet: Packet<'_>) {
    let mut read = parse_compound(bytes);
    assert_eq!(read.next(), Some(Ok(packet)));
    assert_eq!(read.next(), None);
}

const BLOCK: ReportBlock = ReportBlock {
    ssrc: 0x0102_0304,
    fraction_lost: 0x40,
    cumulative_lost: -2,
    highest_sequence: 0x0001_fffe,
    jitter: 0x55,
    last_sr: 0xb705_2000,
    delay_since_last_sr: 0x0005_4000,
};

#[test]
fn reports_by_hand() {
    let block = "01020304 40fffffe 0001fffe 00000055 b7052000 00054000";
    let info = SenderInfo {
        ntp: NtpTime::from_bits(0xb44d_b705_2000_0000),
        rtp_timestamp: 0x0011_2233,
        packets: 7,
        octets: 0x1234,
    };
    let sr = SenderReport { ssrc: 0xaabb_ccdd, info, blocks: (&[BLOCK]).into(), extension: &[] };
    same(Packet::SenderReport(sr), &format!("81c8000c aabbccdd b44db705 20000000 00112233 00000007 00001234 {block}"));
    let rr = ReceiverReport { ssrc: 0xaabb_ccdd, blocks: (&[BLOCK]).into(), extension: &[1, 2, 3, 4] };
    same(Packet::ReceiverReport(rr), &format!("81c90008 aabbccdd {block} 01020304"));
    same(Packet::ReceiverReport(ReceiverReport { ssrc: 1, ..Default::default() }), "80c90001 00000001");
}

#[test]
fn cumulative_loss_is_clamped_to_24_bits() {
    for (lost, bits) in [(i32::MAX, 0x7f_ffffu32), (i32::MIN, 0x80_0000), (-1, 0xff_ffff)] {
        let mut out = vec![];
        crate::Entry::write_into(&ReportBlock { cumulative_lost: lost, ..BLOCK }, &mut out);
        assert_eq!(crate::read::be32(&out, 4), 0x4000_0000 | bits);
    }
}

#[test]
fn descriptions_by_hand() {
    // "ab" ends on a word, so a whole word of null octets follows; the second SSRC begins with a null octet.
    let first = [SdesItem { kind: SdesType::CNAME, value: b"ab" }];
    let second = [SdesItem { kind: SdesType::TOOL, value: b"" }, SdesItem { kind: SdesType::NOTE, value: b"xyz" }];
    let chunks = [
        SdesChunk { ssrc: 1, items: SdesItems::Own(&first) },
        SdesChunk { ssrc: 0x22, items: SdesItems::Own(&second) },
        SdesChunk { ssrc: 3, items: SdesItems::default() },
    ];
    same(
        Packet::Sdes(Sdes { chunks: SdesChunks::Own(&chunks) }),
        "83ca0008 00000001 01026162 00000000 00000022 06000703 78797a00 00000003 00000000",
    );
    let mut out = vec![];
    Sdes { chunks: SdesChunks::Own(&chunks) }.write_into(&mut out);
    let Some(Ok(Packet::Sdes(sdes))) = parse_compound(&out).next() else { panic!() };
    let found: Vec<_> = sdes.chunks.iter().map(|c| c.items.find(SdesType::NOTE)).collect();
    assert_eq!(found, [None, Some(&b"xyz"[..]), None]);
}

#[test]
fn goodbyes_and_applications_by_hand() {
    same(Packet::Bye(Bye { sources: (&[1, 2]).into(), reason: None }), "82cb0002 00000001 00000002");
    same(Packet::Bye(Bye { sources: (&[1]).into(), reason: Some(b"bye") }), "81cb0002 00000001 03627965");
    same(Packet::Bye(Bye { sources: (&[]).into(), reason: Some(b"") }), "80cb0001 00000000");
    same(
        Packet::App(App { subtype: 5, ssrc: 1, name: *b"Weir", data: &[1, 2, 3, 4] }),
        "85cc0003 00000001 57656972 01020304",
    );
}

#[test]
fn nada_report_by_hand() {
    let report = NadaReport {
        sender_ssrc: 1,
        media_ssrc: 2,
        gradual: true,
        x_curr: TimeDelta::from_micros(10_250),
        r_recv: DataRate::from_bps(1_000_000),
    };
    same(Packet::Nada(report), "80cc0005 00000001 4e414441 00000002 8000280a 000f4240");
    let mut out = vec![];
    let far = NadaReport {
        gradual: false,
        x_curr: TimeDelta::from_secs(1 << 20),
        r_recv: DataRate::from_mbps(10_000),
        ..report
    };
    far.write_into(&mut out);
    assert_eq!(out[16..], hex("7fffffff ffffffff"), "values saturate");
    // With another length under the same name it is a different format.
    let other = App { subtype: 0, ssrc: 1, name: NADA_NAME, data: &[0; 8] };
    same(Packet::App(other), "80cc0004 00000001 4e414441 00000000 00000000");
}

#[test]
fn one_way_delay_by_hand() {
    // 0x8000 and 0x4000 are a half and a quarter of a second, 0x28000 two and a half.
    let report = OneWayDelayReport {
        sender_ssrc: 1,
        media_ssrc: 2,
        begin: 0xfff0,
        end: 0x0010,
        min: TimeDelta::from_millis(250),
        mean: TimeDelta::from_millis(500),
        latest: TimeDelta::from_millis(2_500),
    };
    same(Packet::OneWayDelay(report), "80cc0007 00000001 4f574420 00000002 fff00010 00004000 00008000 00028000");
    let mut out = vec![];
    let far = TimeDelta::from_secs(100_000);
    OneWayDelayReport { min: TimeDelta::from_millis(-5), latest: far, ..report }.write_into(&mut out);
    assert_eq!(out[20..], hex("00000000 00008000 ffffffff"), "values saturate");
    let other = App { subtype: 1, ssrc: 1, name: OWD_NAME, data: &[0; 20] };
    let mut out = vec![];
    other.write_into(&mut out);
    reads_as(&out, Packet::App(other));
}

#[test]
fn capacity_vectors_by_hand() {
    let rate = |kbps| ShortRate::new(DataRate::from_kbps(kbps));
    let second = |s| Tenths::new(TimeDelta::from_secs(s));
    // 1 Mbit/s is 1,953 * 2^9 after rounding down, 600 kbit/s 1,171 * 2^9.
    let entries = [
        CapacityEntry { duration: second(5), confidence: 204, low: rate(600), median: rate(1_000) },
        CapacityEntry { duration: second(2), ..CapacityEntry::default() },
    ];
    let vector = CapacityVector {
        sender_ssrc: 1,
        media_ssrc: 2,
        serial: 0xfffe,
        validity: second(30),
        age: Tenths::new(TimeDelta::from_millis(249)),
        entries: (&entries).into(),
    };
    let head = "80cc0009 00000001 43415056 00000002";
    same(Packet::Capacity(vector), &format!("{head} fffe012c 00020000 0032cc00 4c934fa1 00140000 00000000"));
    assert_eq!((vector.check(), entries[0].median.rate()), (Ok(()), DataRate::from_bps(999_936)));
    // Reserved fields are not read.
    let reserved = format!("{head} fffe012c 0002ffff 0032ccff 4c934fa1 001400ff 00000000");
    reads_as(&hex(&reserved), Packet::Capacity(vector));
    let withdrawal = CapacityVector { entries: List::EMPTY, ..vector };
    same(Packet::Capacity(withdrawal), "80cc0005 00000001 43415056 00000002 fffe012c 00020000");
    // With another subtype or a part of an entry it is a different format.
    for (subtype, data) in [(1, [0; 12].as_slice()), (0, &[0; 16]), (0, &[0; 8])] {
        let other = App { subtype, ssrc: 1, name: CAPACITY_NAME, data };
        let mut out = vec![];
        other.write_into(&mut out);
        reads_as(&out, Packet::App(other));
    }
    assert!(
        [(1, 0), (0, 0xffff), (0x8000, 1)]
            .iter()
            .all(|&(a, b)| CapacityVector { serial: a, ..vector }.is_newer_than(b))
    );
    assert!(
        [(0, 0), (0xffff, 0), (0, 1)].iter().all(|&(a, b)| !CapacityVector { serial: a, ..vector }.is_newer_than(b))
    );
}

#[test]
fn absurd_capacity_vectors_break_a_rule() {
    let rate = |mbps| ShortRate::new(DataRate::from_mbps(mbps));
    let entry = CapacityEntry { duration: Tenths::from_units(1), confidence: 1, low: rate(1), median: rate(1) };
    let fault = |entries: &[CapacityEntry], age, validity| {
        let (validity, age) = (Tenths::from_units(validity), Tenths::from_units(age));
        let head = CapacityVector { sender_ssrc: 1, media_ssrc: 2, ..CapacityVector::default() };
        let mut out = vec![];
        CapacityVector { validity, age, entries: entries.into(), ..head }.write_into(&mut out);
        let Some(Ok(Packet::Capacity(read))) = parse_compound(&out).next() else { panic!("it can be read") };
        read.check()
    };
    assert_eq!(fault(&[entry; 64], 0, 1), Ok(()));
    assert_eq!(fault(&[entry; 65], 0, 1), Err(CapacityFault::TooLong));
    assert_eq!(fault(&[entry; 8_000], 0, 1), Err(CapacityFault::TooLong));
    assert_eq!(
        fault(&[entry, CapacityEntry { duration: Tenths::default(), ..entry }], 0, 1),
        Err(CapacityFault::Empty)
    );
    assert_eq!(fault(&[CapacityEntry { low: rate(2), ..entry }], 0, 1), Err(CapacityFault::OutOfOrder));
    let million_mbps = CapacityEntry { median: rate(1_000_000), ..entry };
    assert_eq!(fault(&[million_mbps], 0, 1), Err(CapacityFault::TooHigh));
    assert_eq!(fault(&[CapacityEntry { confidence: 0, ..million_mbps }], 0, 1), Ok(()), "not known");
    assert_eq!(fault(&[entry], 5, 5), Err(CapacityFault::Expired));
    assert_eq!(
        (ShortRate::new(DataRate::from_bps(u64::MAX)), ShortRate::MAX.rate().as_bps()),
        (ShortRate::MAX, 2_047 << 31)
    );
    let units = [(-1, 0), (49, 0), (50, 1), (6_553_500, 65_535), (i64::MAX / 1_000_000, 65_535)];
    assert!(units.iter().all(|&(ms, units)| Tenths::new(TimeDelta::from_millis(ms)) == Tenths::from_units(units)));
}

#[test]
fn next_application_data_unit_by_hand() {
    let entries = [
        NaduEntry {
            ssrc: 2,
            playout_delay: Some(TimeDelta::from_millis(300)),
            next_sequence: 0x1234,
            next_unit: 17,
            free_buffer: DataSize::from_bytes(640),
        },
        NaduEntry {
            ssrc: 3,
            playout_delay: None,
            next_sequence: 1,
            next_unit: 0,
            free_buffer: DataSize::from_bytes(65_535 * 64),
        },
    ];
    same(
        Packet::Nadu(Nadu { sender_ssrc: 1, entries: (&entries).into() }),
        "80cc0008 00000001 50535330 00000002 012c1234 0011000a 00000003 ffff0001 0000ffff",
    );
    let written = |entry: NaduEntry| {
        let mut out = vec![];
        crate::Entry::write_into(&entry, &mut out);
        out.split_off(4)
    };
    let far = NaduEntry {
        playout_delay: Some(TimeDelta::from_secs(3_600)),
        next_unit: 200,
        free_buffer: DataSize::from_bytes(u64::MAX),
        ..entries[0]
    };
    assert_eq!(written(far), hex("fffe1234 001fffff"), "values saturate, and none reads as unknown");
    let near = NaduEntry {
        playout_delay: Some(TimeDelta::from_millis(-9)),
        free_buffer: DataSize::from_bytes(127),
        ..entries[0]
    };
    assert_eq!(written(near), hex("00001234 00110001"), "space is rounded down");
    let read = <NaduEntry as crate::Entry>::read(&hex("00000002 012c1234 fff1000a"));
    assert_eq!(read, entries[0], "reserved bits are passed over");
    for length in [0, 8, 16] {
        let other = App { subtype: 0, ssrc: 1, name: NADU_NAME, data: &[0; 16][..length] };
        let mut out = vec![];
        other.write_into(&mut out);
        reads_as(&out, Packet::App(other));
    }
}

#[test]
fn feedback_by_hand() {
    let (sender_ssrc, media_ssrc) = (1, 2);
    let entries = [NackEntry { first: 0xffff, following: 0b101 }];
    let nack = Nack { sender_ssrc, media_ssrc, entries: (&entries).into() };
    same(Packet::Nack(nack), "81cd0003 00000001 00000002 ffff0005");
    assert!(nack.sequences().eq([0xffff, 0, 2]));
    same(Packet::Pli(Pli { sender_ssrc, media_ssrc }), "81ce0002 00000001 00000002");
    same(Packet::SrRequest(SrRequest { sender_ssrc, media_ssrc }), "85cd0002 00000001 00000002");
    // 13 bits of 5, 13 bits of 9, 6 bits of 33.
    let entries = [SliEntry { first: 5, number: 9, picture_id: 33 }];
    same(
        Packet::Sli(Sli { sender_ssrc, media_ssrc, entries: (&entries).into() }),
        "82ce0003 00000001 00000002 00280261",
    );
    let entries = [FirEntry { ssrc: 2, sequence: 9 }, FirEntry { ssrc: 1, sequence: 8 }];
    same(
        Packet::Fir(Fir { sender_ssrc, media_ssrc: 0, entries: (&entries).into() }),
        "84ce0006 00000001 00000000 00000002 09000000 00000001 08000000",
    );
    // Three bytes of bit string, with 4 bits unused: 3 bytes more fill the word, 28 bits in all.
    same(
        Packet::Rpsi(Rpsi {
            sender_ssrc,
            media_ssrc,
            payload_type: 96,
            bit_string: &[0xab, 0xcd, 0xe0],
            unused_bits: 4,
        }),
        "83ce0004 00000001 00000002 1c60abcd e0000000",
    );
}

#[test]
fn bit_rates_by_hand() {
    // 131,071 is the largest mantissa of 17 bits; one more shifts by one.
    let limit = |bps, overhead| RateLimit { ssrc: 2, max_rate: ScaledRate::new(DataRate::from_bps(bps)), overhead };
    let entries = [limit(131_071, 40), limit(131_073, 0x1ff)];
    same(
        Packet::Tmmbr(Tmmbr { sender_ssrc: 1, media_ssrc: 0, entries: (&entries).into() }),
        "83cd0006 00000001 00000000 00000002 03fffe28 00000002 060001ff",
    );
    assert_eq!(entries[1].max_rate.rate(), DataRate::from_bps(131_072), "rounded down");
    same(Packet::Tmmbn(Tmmbn { sender_ssrc: 1, ..Default::default() }), "84cd0002 00000001 00000000");
    // 1,000,000 = 250,000 * 2^2, in 18 bits of mantissa.
    let remb = Remb {
        sender_ssrc: 1,
        media_ssrc: 0,
        rate: ScaledRate::new(DataRate::from_mbps(1)),
        sources: (&[0x11, 0x22]).into(),
    };
    same(Packet::Remb(remb), "8fce0006 00000001 00000000 52454d42 020bd090 00000011 00000022");
    assert_eq!(ScaledRate::<18>::from_bits(0xff_ffff).rate(), DataRate::from_bps(u64::MAX), "2^81 saturates");
}

#[test]
fn extended_reports_by_hand() {
    let entries = [xr::DlrrEntry { ssrc: 5, last_rr: 6, delay_since_last_rr: 7 }];
    let blocks = [
        xr::Block::Rrtr(NtpTime::from_bits(0x0102_0304_0506_0708)),
        xr::Block::Dlrr((&entries).into()),
        xr::Block::Other(xr::RawBlock { block_type: 200, type_specific: 3, body: &[0, 0, 0, 9, 0, 1, 0, 2] }),
    ];
    same(
        Packet::Xr(Xr { ssrc: 4, blocks: xr::Blocks::Own(&blocks) }),
        "80cf000b 00000004 04000002 01020304 05060708 05000003 00000005 00000006 00000007 c8030002 00000009 00010002",
    );
    same(Packet::Xr(Xr { ssrc: 4, ..Default::default() }), "80cf0001 00000004");
    // An RRTR of another length keeps its bytes.
    let odd = [xr::Block::Other(xr::RawBlock { block_type: 4, type_specific: 0, body: &[1, 2, 3, 4] })];
    same(Packet::Xr(Xr { ssrc: 4, blocks: xr::Blocks::Own(&odd) }), "80cf0003 00000004 04000001 01020304");
}

#[test]
fn unknown_packets_keep_their_bytes() {
    let request_with_content = "85cd0003 00000001 00000002 12345678";
    for bytes in
        ["88cd0003 00000001 00000002 12345678", request_with_content, "8fce0003 00000001 00000002 41424344", "85d00000"]
    {
        let bytes = hex(bytes);
        let Some(Ok(packet @ Packet::Other(_))) = parse_compound(&bytes).next() else { panic!("{bytes:x?}") };
        let mut out = vec![];
        packet.write_into(&mut out);
        assert_eq!(out, bytes);
    }
}

#[test]
fn errors_name_field_and_offset_in_the_datagram() {
    let error = |bytes: &str| parse_compound(&hex(bytes)).find_map(Result::err).unwrap();
    let truncated = |field, offset, needed, available| Error::Truncated { field, offset, needed, available };
    assert_eq!(error("80c900"), truncated("RTCP common header", 0, 4, 3));
    assert_eq!(error("80c90001 00000001 81c90001 00000001"), truncated("RR report blocks", 16, 24, 0));
    assert_eq!(error("80c90002 00000001"), truncated("RTCP packet", 4, 8, 4));
    assert_eq!(error("81ca0002 00000001 01056162"), truncated("SDES item value", 10, 5, 2));
    assert_eq!(error("81ca0002 00000001 01026162"), truncated("SDES item type", 12, 1, 0));
    assert_eq!(error("81cd0003 00000001 00000002").to_string(), "RTCP packet at byte 4 needs 12 bytes, 8 are there");
    assert_eq!(error("85cd0001 00000001"), truncated("RTCP-SR-REQ media SSRC", 8, 4, 0));
    assert_eq!(error("84ce0003 00000001 00000002 00000003"), truncated("FIR entry", 12, 8, 4));
    assert_eq!(error("80cf0002 00000001 04000002"), truncated("XR block", 12, 8, 0));
    assert_eq!(error("8fce0004 00000001 00000000 52454d42 01000000"), truncated("REMB SSRCs", 20, 4, 0));
    assert_eq!(error("81cb0002 00000001 09616263"), truncated("BYE reason", 9, 9, 3));
    assert!(matches!(error("40c90001 00000001"), Error::Value { field: "RTCP version", offset: 0, value: 1, .. }));
    assert!(matches!(
        error("83ce0003 00000001 00000002 11600000"),
        Error::Value { field: "RPSI padding bits", offset: 12, value: 17, .. }
    ));
    for count in ["00000000", "00000005"] {
        assert!(matches!(
            error(&format!("a0c90001 {count}")),
            Error::Value { field: "RTCP padding count", offset: 7, .. }
        ));
    }
}

#[test]
fn faulty_content_does_not_hide_the_next_packet() {
    let bytes = hex("81c90001 00000001 81ce0002 00000001 00000002");
    let mut packets = parse_compound(&bytes);
    assert!(packets.next().unwrap().is_err());
    assert_eq!(packets.next(), Some(Ok(Packet::Pli(Pli { sender_ssrc: 1, media_ssrc: 2 }))));
    assert_eq!(packets.next(), None);
}

#[test]
fn padding_is_not_content() {
    let bytes = hex("a1cd0004 00000001 00000002 00050000 00000004");
    let entries = [NackEntry { first: 5, following: 0 }];
    let nack = Packet::Nack(Nack { sender_ssrc: 1, media_ssrc: 2, entries: (&entries).into() });
    reads_as(&bytes, nack);
    let mut out = vec![];
    nack.write_padded_into(4, &mut out);
    assert_eq!(out, bytes);
    out.clear();
    nack.write_padded_into(255, &mut out);
    assert_eq!((out.len(), out.last()), (16 + 252, Some(&252)), "in whole words");
    reads_as(&out, nack);
}

#[test]
fn compound_rules() {
    let (rr, sdes, pli) = ("80c90001 00000001", "81ca0003 00000001 01026162 00000000", "81ce0002 00000001 00000002");
    let check = |bytes: String| check_compound(&hex(&bytes));
    assert_eq!(check(format!("{rr}{sdes}{pli}")), Ok(()));
    let broken = |bytes: String| match check(bytes) {
        Err(Error::Compound { rule, offset }) => (rule, offset),
        other => panic!("{other:?}"),
    };
    assert_eq!(broken(format!("{pli}{rr}{sdes}")).0, "the first packet is an SR or RR");
    assert_eq!(broken(format!("{rr}{pli}")).0, "there is an SDES with a CNAME");
    assert_eq!(broken(format!("{rr}81ca0003 00000001 02026162 00000000")).0, "there is an SDES with a CNAME");
    let padded = "a0c90002 00000001 00000004";
    assert_eq!(broken(format!("{padded}{sdes}")), ("only the last packet is padded", 0));
    assert!(check(String::new()).is_err());
    assert!(matches!(check(format!("{rr}{sdes}81")), Err(Error::Truncated { .. })));
}

#[test]
fn nack_packer_spans_the_wrap() {
    let packed: Vec<_> = NackPacker::new([65_530, 65_530, 65_535, 10, 11, 28]).collect();
    let entry = |first, following| NackEntry { first, following };
    assert_eq!(packed, [entry(65_530, 1 << 4 | 1 << 15), entry(11, 0), entry(28, 0)]);
}
