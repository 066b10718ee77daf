use crate::{Direction, Format, RtcpKind, read};
use proptest::prelude::*;

/// An IPv4 packet of UDP.
fn ipv4(from: [u8; 4], to: [u8; 4], hops: u8, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let (udp, ip) = (8 + payload.len() as u16, 28 + payload.len() as u16);
    let mut out = vec![0x45, 0];
    out.extend(ip.to_be_bytes());
    out.extend([0, 0, 0, 0, hops, 17, 0, 0]);
    out.extend(from.into_iter().chain(to));
    for word in [ports.0, ports.1, udp, 0] {
        out.extend(word.to_be_bytes());
    }
    out.extend(payload);
    out
}

/// A header with the extension 5, of two bytes.
fn rtp(sequence: u16, ssrc: u32, transport: u16, payload: usize) -> Vec<u8> {
    let mut out = vec![0x90, 96];
    out.extend(sequence.to_be_bytes());
    out.extend((u32::from(sequence) * 3000).to_be_bytes());
    out.extend(ssrc.to_be_bytes());
    out.extend([0xbe, 0xde, 0, 1, 0x51]);
    out.extend(transport.to_be_bytes());
    out.push(0);
    out.resize(20 + payload, 0xaa);
    out
}

const LEFT: [u8; 4] = [10, 0, 0, 1];
const RIGHT: [u8; 4] = [10, 1, 0, 1];

/// Raw IP packets of a call: 30 of RTP less one, one compound in the clear, one encrypted, DNS.
fn packets() -> Vec<(u64, Vec<u8>)> {
    let mut out: Vec<(u64, Vec<u8>)> = (0..30u16)
        .filter(|i| *i != 12)
        .map(|i| {
            (1_000 * u64::from(i), ipv4(LEFT, RIGHT, 64, (5000, 6000), &rtp(65_530u16.wrapping_add(i), 7, i, 900)))
        })
        .collect();
    let pli = [0x81, 206, 0, 2, 0, 0, 0, 9, 0, 0, 0, 7];
    out.push((30_500, ipv4(RIGHT, LEFT, 62, (6000, 5000), &pli)));
    let srtcp = [&[0x81, 201, 0, 7, 0, 0, 0, 9][..], &[0x5a; 37]].concat();
    out.push((31_000, ipv4(RIGHT, LEFT, 62, (6000, 5000), &srtcp)));
    out.push((32_000, ipv4(LEFT, [10, 0, 0, 53], 64, (4000, 53), &[0x12, 0x34, 1, 0, 0, 1])));
    out
}

fn pcap(packets: &[(u64, Vec<u8>)], snap: usize) -> Vec<u8> {
    let mut out = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    out.extend((snap as u32).to_le_bytes());
    out.extend(101u32.to_le_bytes());
    for (us, bytes) in packets {
        let captured = bytes.len().min(snap);
        for word in [1_700_000_000, *us as u32, captured as u32, bytes.len() as u32] {
            out.extend(word.to_le_bytes());
        }
        out.extend(&bytes[..captured]);
    }
    out
}

fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let padded = body.len().div_ceil(4) * 4;
        let length = padded as u32 + 12;
        out.extend(kind.to_be_bytes());
        out.extend(length.to_be_bytes());
        out.extend(body);
        out.resize(out.len() + padded - body.len(), 0);
        out.extend(length.to_be_bytes());
    };
    block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    // Raw IP, times in ns.
    block(1, &[0, 101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]);
    for (us, bytes) in packets {
        let ns = 1_700_000_000_000_000_000u64 + us * 1000;
        let mut body = vec![0; 4];
        body.extend(((ns >> 32) as u32).to_be_bytes());
        body.extend((ns as u32).to_be_bytes());
        body.extend([bytes.len() as u32, bytes.len() as u32].into_iter().flat_map(u32::to_be_bytes));
        body.extend(bytes);
        block(6, &body);
    }
    out
}

#[test]
fn both_formats_give_the_same_timeline() {
    let (old, new) = (pcap(&packets(), 65_535), pcapng(&packets()));
    let old = read("old", old.as_slice()).expect("a capture");
    let new = read("new", new.as_slice()).expect("a capture");
    assert_eq!((old.format, new.format), (Format::Pcap, Format::Pcapng));
    assert_eq!((&old.packets, &old.rtcp, &old.other), (&new.packets, &new.rtcp, &new.other));
    assert_eq!((&old.stop, old.packets.len(), old.counts().sent), (&None, 29, 29));
    let first = old.packets[0];
    assert_eq!((first.at.as_micros(), first.size, first.ssrc), (1_700_000_000_000_000, 920, 7));
    assert_eq!((first.direction, first.transport_sequence), (Direction::Sent, Some(0)));
    let kinds: Vec<(RtcpKind, Direction)> = old.rtcp.iter().map(|r| (r.kind, r.direction)).collect();
    assert_eq!(kinds, [(RtcpKind::Pli, Direction::Received), (RtcpKind::Unread(201), Direction::Received)]);
    assert_eq!(old.other.iter().map(|o| o.bytes).collect::<Vec<_>>(), [34]);
    assert_eq!(old.guessed, ["header extension 5 is the transport-wide number"]);
}

#[test]
fn cut_packets_count_with_their_whole_length() {
    let cut = read("cut", pcap(&packets(), 50).as_slice()).expect("a capture");
    assert_eq!((cut.packets.len(), cut.packets[3].size), (29, 920));
    // The end that receives: its packets have passed two routers.
    let mut there = packets();
    there.iter_mut().for_each(|(_, ip)| ip[8] = if ip[8] == 64 { 62 } else { 64 });
    let there = read("there", pcap(&there, 50).as_slice()).expect("a capture");
    assert_eq!((there.counts().received, there.counts().lost), (29, 1));
}

#[test]
fn a_cut_file_says_where_it_stopped() {
    let whole = pcap(&packets(), 65_535);
    let cut = read("cut", &whole[..whole.len() - 3]).expect("a capture");
    let stop = cut.stop.expect("cut");
    assert!(stop.offset < whole.len() as u64 && stop.why.contains("ends"), "{stop:?}");
    assert_eq!(cut.packets.len(), 29);
    let huge = [&whole[..24], &[0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0][..]].concat();
    let stop = read("huge", huge.as_slice()).expect("a capture").stop.expect("refused");
    assert!(stop.offset == 24 && stop.why.contains("4294967295"), "{stop:?}");
}

/// The same IPv4 packet in fragments of so many bytes, of a number of its own.
fn fragments(ip: &[u8], each: usize, id: u16) -> Vec<Vec<u8>> {
    let parts: Vec<&[u8]> = ip[20..].chunks(each).collect();
    let part = |(i, bytes): (usize, &&[u8])| {
        let offset = (i * each / 8) as u16 | if i + 1 < parts.len() { 0x2000 } else { 0 };
        let mut out = ip[..20].to_vec();
        out[2..4].copy_from_slice(&(20 + bytes.len() as u16).to_be_bytes());
        out[4..6].copy_from_slice(&id.to_be_bytes());
        out[6..8].copy_from_slice(&offset.to_be_bytes());
        out.extend(*bytes);
        out
    };
    parts.iter().enumerate().map(part).collect()
}

#[test]
fn fragments_count_with_their_packet_and_those_of_others_as_theirs() {
    let mut of = Vec::new();
    for (i, (at, ip)) in packets().into_iter().enumerate() {
        let each = if ip.len() > 400 { 400 } else { 1_400 };
        of.extend(fragments(&ip, each, i as u16).into_iter().map(|part| (at, part)));
    }
    let whole = read("whole", pcap(&packets(), 65_535).as_slice()).expect("a capture");
    let parts = read("parts", pcap(&of, 65_535).as_slice()).expect("a capture");
    let sizes = |r: &crate::Recording| r.packets.iter().map(|p| p.size).collect::<Vec<_>>();
    assert_eq!((sizes(&parts), &parts.other), (sizes(&whole), &whole.other));
    // Without the first fragment nobody knows whose the rest is.
    let rest: Vec<_> = of.iter().filter(|(_, ip)| ip[6] & 0x20 == 0).cloned().collect();
    let rest = read("rest", pcap(&rest, 65_535).as_slice()).expect("a capture");
    assert_eq!((rest.packets.len(), rest.other.is_empty()), (0, false));
}

#[test]
fn fragments_of_ipv6_are_those_of_one_packet() {
    let whole = ipv4(LEFT, RIGHT, 64, (5000, 6000), &rtp(1, 7, 1, 900));
    let part = |first: bool, bytes: &[u8]| {
        let mut out = vec![0x60, 0, 0, 0];
        out.extend((8 + bytes.len() as u16).to_be_bytes());
        out.extend([44, 64]);
        out.extend([[1u8; 16], [2; 16]].concat());
        let place = if first { 1u16 } else { 400 };
        out.extend([17, 0]);
        out.extend(place.to_be_bytes());
        out.extend([0, 0, 0, 9]);
        out.extend(bytes);
        out
    };
    let of: Vec<_> = (0..8u16)
        .flat_map(|i| {
            let mut udp = whole[20..].to_vec();
            udp[10..12].copy_from_slice(&i.to_be_bytes());
            [(u64::from(i), part(true, &udp[..400])), (u64::from(i), part(false, &udp[400..]))]
        })
        .collect();
    let capture = read("six", pcap(&of, 65_535).as_slice()).expect("a capture");
    assert_eq!((capture.packets.len(), capture.other.len()), (8, 0));
    assert!(capture.packets.iter().all(|p| p.size == 920));
}

#[test]
fn padding_is_read_where_rtcp_is_in_the_clear() {
    let mut of = packets();
    for (_, ip) in of.iter_mut().filter(|(_, ip)| ip.len() > 400) {
        ip[28] |= 0x20;
        *ip.last_mut().expect("bytes") = 200;
    }
    let encrypted = read("encrypted", pcap(&of, 65_535).as_slice()).expect("a capture");
    assert!(encrypted.packets.iter().all(|p| p.padding.is_none()));
    of.retain(|(_, ip)| ip.len() != 28 + 45);
    let clear = read("clear", pcap(&of, 65_535).as_slice()).expect("a capture");
    assert!(clear.rtcp.len() == 1 && clear.packets.iter().all(|p| p.padding == Some(200)));
    let cut = read("cut", pcap(&of, 60).as_slice()).expect("a capture");
    assert!(cut.packets.iter().all(|p| p.padding.is_none()));
}

#[test]
fn media_that_moves_to_other_addresses_has_another_pair() {
    let mut of = packets();
    for (_, ip) in of.iter_mut().skip(15).filter(|(_, ip)| ip.len() > 400) {
        ip[15] = 9;
    }
    let capture = read("moved", pcap(&of, 65_535).as_slice()).expect("a capture");
    let times: Vec<i64> = capture.pairs.iter().map(|p| p.at.as_micros() - 1_700_000_000_000_000).collect();
    assert_eq!(times, [0, 16_000]);
    assert!(read("still", pcap(&packets(), 65_535).as_slice()).expect("a capture").pairs.is_empty());
}

#[test]
fn a_few_bytes_that_look_like_rtp_are_no_stream() {
    let dns: Vec<(u64, Vec<u8>)> = (0..3)
        .map(|i| (i * 500, ipv4(LEFT, [10, 0, 0, 53], 64, (4000, 53), &[0x90, 0x12, 7, 1, 0, 1, 0, 0, 0, 0, 0, 0, 1])))
        .collect();
    let capture = read("dns", pcap(&dns, 65_535).as_slice()).expect("a capture");
    assert_eq!((capture.packets.len(), capture.faults.values().sum::<u64>()), (0, 3), "{:?}", capture.faults);
}

proptest! {
    #[test]
    fn damage_is_an_error_and_no_panic(at in 0usize..40_000, byte: u8, cut in 0usize..40_000, new: bool) {
        let mut file = if new { pcapng(&packets()) } else { pcap(&packets(), 65_535) };
        let length = file.len();
        file[at % length] = byte;
        file.truncate(length - cut % length);
        if let Ok(capture) = read("capture", file.as_slice()) {
            prop_assert!(capture.packets.len() <= 40);
            let _ = (capture.counts(), capture.span());
        }
    }
}

/// A call in the clear with repair packets of each kind: FlexFEC-03, FlexFEC, and ULPFEC of its own and in RED.
#[test]
fn repair_packets_are_known_by_what_they_say() {
    use weir_wire::fec::parity::Recovery;
    use weir_wire::fec::{Mask, Octets, flexfec, flexfec03, ulpfec};
    let (media, fec, red) = (7u32, 8u32, 9u32);
    let header = |kind: u8, sequence: u16, ssrc: u32, csrc: Option<u32>| {
        let mut out = vec![0x80 | u8::from(csrc.is_some()), kind];
        out.extend(sequence.to_be_bytes());
        out.extend(90_000u32.to_be_bytes());
        out.extend(ssrc.to_be_bytes());
        out.extend(csrc.into_iter().flat_map(u32::to_be_bytes));
        out
    };
    let recovery = Recovery { flags: 0, timestamp: 1, length: 900 };
    let body = [0x55; 400];
    let payload = Octets::new(&body);
    let own = |base: u16| {
        let level = ulpfec::Level { mask: Mask::from_bits(0b111), payload };
        let mut out = Vec::new();
        let repair = ulpfec::Repair { recovery, base, levels: ulpfec::Levels::Own(&[level]) };
        assert_eq!(repair.write_into(&mut out), Some(0));
        out
    };
    let mut all = Vec::new();
    for i in 0..40u16 {
        all.push(header(96, i, media, None));
        all.last_mut().expect("one").resize(1_000, 0xaa);
        let mut packet = header(110, i, fec, (i % 2 == 1).then_some(media));
        let zeros = if i % 2 == 0 {
            flexfec03::Repair { recovery, ssrc: media, base: i, mask: Mask::from_bits(1), payload }
                .write_into(&mut packet)
        } else {
            let blocks = [flexfec::Block::masked(media, i, [i]).expect("one packet")];
            flexfec::Repair { recovery, blocks: flexfec::Blocks::Own(&blocks), payload }.write_into(&mut packet)
        };
        assert_eq!(zeros, Some(0));
        all.push(packet);
        // A stream in RED, each fourth packet of which is one of repair of the three before, half of them without RED.
        let mut packet = header(97, i, red, None);
        match i % 8 {
            3 => packet.extend([&[98][..], &own(i - 3)].concat()),
            7 => packet.extend(own(i - 3)),
            _ => packet.extend([&[96][..], &[0x21; 700]].concat()),
        }
        all.push(packet);
    }
    let mut packets: Vec<(u64, Vec<u8>)> =
        all.iter().zip(0..).map(|(p, i)| (1_000 * i, ipv4(LEFT, RIGHT, 64, (5000, 6000), p))).collect();
    let pli = [0x81, 206, 0, 2, 0, 0, 0, 9, 0, 0, 0, 7];
    packets.push((300_000, ipv4(RIGHT, LEFT, 62, (6000, 5000), &pli)));
    let clear = read("capture", pcap(&packets, 65_535).as_slice()).expect("a capture");
    let of = |ssrc: u32| {
        clear.repairs.iter().filter(move |r| r.ssrc == ssrc).map(|r| r.coverage.sequences().collect::<Vec<_>>())
    };
    assert_eq!((of(media).count(), of(red).count()), (40, 10));
    assert!(of(media).zip(0..).all(|(covered, i)| covered == [i]));
    assert!(of(red).zip(0..).all(|(covered, i)| covered == [4 * i, 4 * i + 1, 4 * i + 2]));
    assert!(clear.repairs.iter().all(|r| r.direction == Direction::Sent));
    // Snapped behind the headers they are known too; beside RTCP that is encrypted nothing is taken for one.
    let snapped = read("capture", pcap(&packets, 100).as_slice()).expect("a capture");
    assert_eq!(snapped.repairs, clear.repairs);
    packets.push((
        301_000,
        ipv4(RIGHT, LEFT, 62, (6000, 5000), &[&[0x81, 201, 0, 7, 0, 0, 0, 9][..], &[0x5a; 37]].concat()),
    ));
    assert!(read("capture", pcap(&packets, 65_535).as_slice()).expect("a capture").repairs.is_empty());
}

#[test]
fn a_stream_with_a_few_packets_between_each_of_two_pairs_of_addresses_is_one() {
    let mut all = packets();
    let other = [10, 0, 0, 2];
    for i in 0..5u16 {
        let from = if i < 2 { LEFT } else { other };
        all.push((40_000 + 1_000 * u64::from(i), ipv4(from, RIGHT, 64, (5000, 6000), &rtp(700 + i, 99, 40 + i, 900))));
        // Those that do not follow each other are none.
        all.push((40_500 + 1_000 * u64::from(i), ipv4(from, RIGHT, 64, (5000, 6000), &rtp(9_000 * i, 98, 0, 900))));
    }
    let found = read("capture", pcap(&all, 65_535).as_slice()).expect("a capture");
    let of = |ssrc: u32| found.packets.iter().filter(|p| p.ssrc == ssrc).count();
    assert_eq!((of(7), of(99), of(98)), (29, 5, 0));
}
