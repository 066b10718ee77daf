//! Packets captured from Chromium, GStreamer and linphone are parsed and written to the same bytes.

use std::collections::BTreeMap;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::{self, Packet, ccfb, twcc};
use weir_wire::rtp::{Header, PacketView};
use weir_wire::{DatagramKind, kind_of};

fn datagrams(text: &str) -> Vec<(&str, Vec<u8>)> {
    let mut call = "";
    let mut all = vec![];
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# ") {
            call = name;
        } else {
            let digits = line.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
            all.push((call, digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()));
        }
    }
    all
}

fn rtcp_datagrams() -> Vec<(&'static str, Vec<u8>)> {
    datagrams(include_str!("data/captured_rtcp.txt"))
}

fn name(packet: &Packet<'_>) -> &'static str {
    match packet {
        Packet::SenderReport(_) => "SR",
        Packet::ReceiverReport(_) => "RR",
        Packet::Sdes(_) => "SDES",
        Packet::Nack(_) => "NACK",
        Packet::Tmmbr(_) => "TMMBR",
        Packet::Tmmbn(_) => "TMMBN",
        Packet::Twcc(_) => "TWCC",
        Packet::Ccfb(_) => "CCFB",
        Packet::Pli(_) => "PLI",
        Packet::Sli(_) => "SLI",
        Packet::Rpsi(_) => "RPSI",
        Packet::Remb(_) => "REMB",
        Packet::Xr(_) => "XR",
        _ => "other",
    }
}

#[test]
fn every_rtcp_packet_is_written_as_it_was_read() {
    let mut counts = BTreeMap::new();
    for (call, bytes) in rtcp_datagrams() {
        assert_eq!(kind_of(&bytes), Some(DatagramKind::Rtcp));
        let mut again = vec![];
        for raw in rtcp::raw_packets(&bytes) {
            let raw = raw.unwrap();
            let packet = Packet::parse(&raw).unwrap_or_else(|e| panic!("{call}: {e} in {raw:02x?}"));
            *counts.entry((call, name(&packet))).or_insert(0) += 1;
            packet.write_padded_into(raw.padding(), &mut again);
        }
        assert_eq!(again, bytes, "{call}: {bytes:02x?}");
    }
    let total = |kind| counts.iter().filter(|((_, k), _)| *k == kind).map(|(_, n)| n).sum::<usize>();
    assert_eq!(total("other"), 0, "{counts:?}");
    for kind in ["SR", "RR", "SDES", "XR", "NACK", "TWCC", "CCFB", "REMB", "TMMBR", "TMMBN", "PLI", "SLI", "RPSI"] {
        assert!(total(kind) > 0, "no {kind} in the data");
    }
}

#[test]
fn xr_blocks_are_typed() {
    let (mut rrtr, mut dlrr, mut other) = (0, 0, 0);
    for (_, bytes) in rtcp_datagrams() {
        for packet in rtcp::parse_compound(&bytes) {
            let Packet::Xr(xr) = packet.unwrap() else { continue };
            for block in xr.blocks.iter() {
                match block {
                    rtcp::xr::Block::Rrtr(_) => rrtr += 1,
                    rtcp::xr::Block::Dlrr(list) => dlrr += usize::from(!list.is_empty()),
                    _ => other += 1,
                }
            }
        }
    }
    assert!(rrtr > 0 && dlrr > 0, "{rrtr} RRTR, {dlrr} DLRR");
    assert_eq!(other, 0);
}

#[test]
fn compound_rule_detects_reduced_size() {
    let (mut compound, mut reduced) = (0, 0);
    for (call, bytes) in rtcp_datagrams() {
        let types: Vec<u8> = rtcp::raw_packets(&bytes).map(|p| p.unwrap().packet_type()).collect();
        let whole = matches!(types[0], rtcp::SR | rtcp::RR) && types.contains(&rtcp::SDES);
        assert_eq!(rtcp::check_compound(&bytes).is_ok(), whole, "{call}: {types:?}");
        *(if whole { &mut compound } else { &mut reduced }) += 1;
    }
    assert!(compound > 200 && reduced > 200, "{compound} compound, {reduced} reduced-size");
}

/// Statuses of real TWCC messages, built again: the same content in no more bytes.
#[test]
fn builder_is_no_larger_than_theirs() {
    let (mut ours, mut theirs, mut messages) = (0, 0, 0);
    for (call, bytes) in rtcp_datagrams() {
        for raw in rtcp::raw_packets(&bytes).map(Result::unwrap) {
            let Ok(Packet::Twcc(f)) = Packet::parse(&raw) else { continue };
            let at = |d: TimeDelta| Timestamp::from_nanos(f.reference_time().as_nanos()) + d;
            let reference = at(TimeDelta::ZERO);
            let mut b = twcc::Builder::new(f.sender_ssrc, f.media_ssrc, f.feedback_count, f.base_sequence, reference);
            for (sequence, arrival) in f.statuses() {
                assert!(b.push(sequence, arrival.map(at)));
            }
            let mut out = vec![];
            assert!(b.finish_into(&mut out));
            let Some(Ok(Packet::Twcc(g))) = rtcp::parse_compound(&out).next() else { panic!("{call}") };
            assert!(g.statuses().eq(f.statuses()), "{call}");
            assert_eq!(
                (g.reference, g.status_count, g.feedback_count),
                (f.reference, f.status_count, f.feedback_count)
            );
            assert!(out.len() <= raw.as_bytes().len(), "{call}: {} bytes, theirs {}", out.len(), raw.as_bytes().len());
            ours += out.len();
            theirs += raw.as_bytes().len();
            messages += 1;
        }
    }
    assert!(messages > 450);
    println!("{messages} TWCC messages: {ours} bytes, theirs {theirs}");
}

#[test]
fn ccfb_offsets_are_plausible() {
    let mut received = 0;
    for (_, bytes) in rtcp_datagrams() {
        for packet in rtcp::parse_compound(&bytes) {
            let Packet::Ccfb(f) = packet.unwrap() else { continue };
            for (_, metric) in f.streams().flat_map(|s| s.packets()) {
                let ccfb::Metric::Received { offset, .. } = metric else { continue };
                let offset = offset.as_time_delta().expect("arrivals of a live call are in range");
                assert!(offset < TimeDelta::from_secs(2), "{offset}");
                received += 1;
            }
        }
    }
    assert!(received > 800, "{received}");
}

#[test]
fn every_rtp_header_is_written_as_it_was_read() {
    let mut extended = 0;
    for (call, bytes) in datagrams(include_str!("data/captured_rtp.txt")) {
        assert_eq!(kind_of(&bytes), Some(DatagramKind::Rtp));
        let p = PacketView::parse_header(&bytes).unwrap();
        assert_eq!(p.header_len(), bytes.len());
        let (csrcs, elements): (Vec<_>, Vec<_>) = (p.csrcs().collect(), p.extensions().collect());
        extended += usize::from(!elements.is_empty());
        let header = Header {
            payload_type: p.payload_type(),
            marker: p.marker(),
            sequence: p.sequence(),
            timestamp: p.timestamp(),
            ssrc: p.ssrc(),
            csrcs: &csrcs,
            elements: &elements,
            padding: u8::from(p.padding_bit()),
            ..Header::default()
        };
        let mut again = vec![];
        header.write_into(&mut again);
        assert_eq!(again, bytes, "{call}: {bytes:02x?}");
    }
    assert!(extended > 50, "{extended}");
}
