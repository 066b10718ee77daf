//! Repair packets captured from GStreamer and Chromium equal those that Weir makes of the protected packets, and
//! recover each of them.

use weir_wire::fec::flexfec03::Repair as FlexRepair;
use weir_wire::fec::parity::{Recovery, protect_into, rebuild_into};
use weir_wire::fec::red::{Red, virtual_packet_into};
use weir_wire::fec::ulpfec::{Level, Levels, Repair};
use weir_wire::fec::{Mask, Octets};
use weir_wire::rtp::PacketView;

/// Payload types of ULPFEC: in a separate stream by GStreamer, inside RED (118) by Chromium.
const GSTREAMER_ULPFEC: u8 = 97;
const CHROMIUM_RED: u8 = 118;
const CHROMIUM_ULPFEC: u8 = 120;

/// Some protected packets as sent, followed by their repair packet.
struct Group {
    call: &'static str,
    packets: Vec<Vec<u8>>,
}

fn groups(text: &'static str) -> Vec<Group> {
    let bytes = |line: &str| -> Vec<u8> {
        let digits = line.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
        digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
    };
    let groups = text.split("# ").skip(1).map(|group| {
        let (call, lines) = group.split_once('\n').expect("a name, then packets");
        Group { call, packets: lines.lines().map(bytes).collect() }
    });
    groups.collect()
}

/// The protected packet: without RED, and with the header extension's elements that are filled in on sending set to
/// zero (Chromium computes FEC over zeros there).
fn protected(call: &str, packet: &[u8]) -> Vec<u8> {
    if !call.starts_with("chromium") {
        return packet.to_vec();
    }
    let view = PacketView::parse(packet).expect("an RTP packet");
    let mut bare = vec![];
    match view.payload_type() {
        CHROMIUM_RED => assert_eq!(virtual_packet_into(Octets::new(packet), &mut bare), Ok(0)),
        _ => bare.extend_from_slice(packet),
    }
    let start = packet.as_ptr() as usize;
    for element in view.extensions() {
        let at = element.data().as_ptr() as usize - start;
        bare[at..at + element.data().len()].fill(0);
    }
    bare
}

fn string(packet: &[u8]) -> Vec<u8> {
    let mut string = vec![];
    assert_eq!(protect_into(Octets::new(packet), &mut string), Ok(0));
    string
}

fn xor<'a>(strings: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<u8> {
    let mut sum = vec![];
    for s in strings {
        sum.resize(sum.len().max(s.len()), 0);
        sum.iter_mut().zip(s).for_each(|(a, b)| *a ^= b);
    }
    sum
}

#[test]
fn repair_packets_are_made_to_the_byte_and_recover() {
    let groups = groups(include_str!("data/captured_ulpfec.txt"));
    assert_eq!(groups.len(), 5);
    for Group { call, packets } in groups {
        let (repair_packet, media) = packets.split_last().expect("a repair packet");
        let view = PacketView::parse(repair_packet).expect("an RTP packet");
        let payload = if view.payload_type() == CHROMIUM_RED {
            let red = Red::parse(view.payload().into()).expect("RED");
            assert_eq!((red.payload_type, red.redundant.iter().count()), (CHROMIUM_ULPFEC, 0));
            red.primary
        } else {
            assert_eq!(view.payload_type(), GSTREAMER_ULPFEC);
            view.payload().into()
        };
        let repair = Repair::parse(payload).expect("ULPFEC");
        let media: Vec<Vec<u8>> = media.iter().map(|p| protected(call, p)).collect();
        let sequences: Vec<u16> = media.iter().map(|p| PacketView::parse(p).unwrap().sequence()).collect();
        let level = repair.levels.iter().next().expect("a level");
        assert!(repair.coverage(&level).sequences().eq(sequences.iter().copied()), "{call}");

        let strings: Vec<Vec<u8>> = media.iter().map(|p| string(p)).collect();
        let parity = xor(&strings);
        let (recovery, level0) = Recovery::split(Octets::new(&parity)).unwrap();
        let mask = Mask::covering(repair.base, sequences.iter().copied()).unwrap();
        let levels = [Level { mask, payload: level0 }];
        // GStreamer's base is the first protected packet, Chromium's may precede it.
        assert!(sequences[0].wrapping_sub(repair.base) < if call == "gst_ulpfec" { 1 } else { 16 });
        let ours = Repair { recovery, base: repair.base, levels: Levels::Own(&levels) };
        let mut bytes = vec![];
        assert_eq!(ours.write_into(&mut bytes), Some(0));
        assert!(Octets::new(&bytes) == payload, "{call}");

        let mut theirs = vec![];
        assert_eq!(repair.string_into(&mut theirs), 0);
        recover_each(&media, &strings, &theirs, view.ssrc());
    }
}

/// Each packet in turn is lost and recovered from the others' strings and the repair packet's.
fn recover_each(media: &[Vec<u8>], strings: &[Vec<u8>], repair: &Vec<u8>, ssrc: u32) {
    for (lost, packet) in media.iter().enumerate() {
        let known = strings.iter().enumerate().filter(|(i, _)| *i != lost).map(|(_, s)| s);
        let string = xor(known.chain([repair]));
        let sequence = PacketView::parse(packet).expect("an RTP packet").sequence();
        let mut again = vec![];
        assert_eq!(rebuild_into(Octets::new(&string), sequence, ssrc, &mut again), Ok(0));
        assert!(again == *packet, "{sequence}");
    }
}

#[test]
fn repair_packets_of_flexfec_03_are_made_to_the_byte_and_recover() {
    let groups = groups(include_str!("data/captured_flexfec03.txt"));
    assert_eq!(groups.len(), 1);
    for Group { call, packets } in groups {
        let (repair_packet, media) = packets.split_last().expect("a repair packet");
        let payload = Octets::new(PacketView::parse(repair_packet).expect("an RTP packet").payload());
        let repair = FlexRepair::parse(payload).expect("FlexFEC-03");
        let media: Vec<Vec<u8>> = media.iter().map(|p| protected(call, p)).collect();
        let views: Vec<_> = media.iter().map(|p| PacketView::parse(p).expect("an RTP packet")).collect();
        let sequences: Vec<u16> = views.iter().map(PacketView::sequence).collect();
        assert_eq!(repair.ssrc, views[0].ssrc());
        assert!(repair.coverage().sequences().eq(sequences.iter().copied()));

        let strings: Vec<Vec<u8>> = media.iter().map(|p| string(p)).collect();
        let parity = xor(&strings);
        let (recovery, parity) = Recovery::split(Octets::new(&parity)).unwrap();
        let mask = Mask::covering(repair.base, sequences).expect("near each other");
        let ours = FlexRepair { recovery, ssrc: repair.ssrc, base: repair.base, mask, payload: parity };
        let mut bytes = vec![];
        assert_eq!(ours.write_into(&mut bytes), Some(0));
        assert!(Octets::new(&bytes) == payload);

        let mut theirs = vec![];
        assert_eq!(repair.string_into(&mut theirs), 0);
        recover_each(&media, &strings, &theirs, repair.ssrc);
    }
}
