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
