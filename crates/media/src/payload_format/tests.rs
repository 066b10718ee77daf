use super::*;
use crate::{EncoderConfig, ReceivedFrame, ReceivedPayload};
use proptest::prelude::*;

const MTU: DataSize = DataSize::from_bytes(1_200);

fn coded(data: Vec<u8>, key: bool) -> CodedFrame {
    CodedFrame { data, key, picture_id: 0x1_8123, ..CodedFrame::default() }
}

/// A byte stream of NAL units with these headers and sizes, whose bytes contain no start code.
fn stream(units: &[(u8, usize)]) -> Vec<u8> {
    let mut data = vec![];
    for (i, &(header, size)) in units.iter().enumerate() {
        data.extend_from_slice(if i % 2 == 0 { &[0, 0, 0, 1] } else { &[0, 0, 1] });
        data.push(header);
        data.extend((1..size).map(|n| (n % 251) as u8 + 3));
    }
    data
}

fn payloads(format: PayloadFormat, frame: &CodedFrame, max: u64) -> Vec<(Vec<u8>, bool)> {
    let mut out = Payloads::default();
    format.packetise(frame, DataSize::from_bytes(max), &mut out);
    out.iter().map(|(b, d)| (b.to_vec(), d)).collect()
}

/// Packets with sequence numbers from `first`, the last with the marker, without those in `lost`.
fn received(payloads: &[(Vec<u8>, bool)], first: u64, lost: &[usize]) -> ReceivedFrame {
    let packets = payloads.iter().enumerate().filter(|(i, _)| !lost.contains(i)).map(|(i, (bytes, _))| {
        let (sequence, marker) = (first + i as u64, i + 1 == payloads.len());
        ReceivedPayload { sequence, marker, repaired: false, bytes: bytes.clone() }
    });
    ReceivedFrame { packets: packets.collect(), whole: lost.is_empty(), ..ReceivedFrame::default() }
}

fn frame_of(codec: VideoCodec, payloads: &[&[u8]]) -> (Unpacked, Vec<u8>, DepacketiserStats) {
    let list: Vec<_> = payloads.iter().map(|p| (p.to_vec(), false)).collect();
    let (mut d, mut out) = (Depacketiser::new(codec), vec![9]);
    let unpacked = d.read(&ReceivedFrame { whole: false, ..received(&list, 7, &[]) }, &mut out);
    (unpacked, out, *d.stats())
}

fn units(stream: &[u8]) -> Vec<Vec<u8>> {
    h264::nal_units(stream).map(<[u8]>::to_vec).collect()
}

#[test]
fn nal_units_are_found_behind_any_start_code() {
    let data = [9, 0, 0, 1, 0x67, 5, 0, 0, 0, 0, 1, 0x68, 0, 0, 2, 0, 0, 1, 0, 0, 1, 0x65, 0, 3, 0, 0];
    assert_eq!(units(&data), [&[0x67, 5][..], &[0x68, 0, 0, 2], &[0x65, 0, 3]]);
    assert!(units(&[0, 0]).is_empty() && units(&[0, 0, 1]).is_empty() && units(&[5, 6, 7]).is_empty());
}

#[test]
fn small_nal_units_share_a_packet_and_large_ones_are_fragmented() {
    // RFC 6184: STAP-A is 24 with the highest NRI of its units; FU-A is 28 with the NRI of its own.
    let frame = coded(stream(&[(0x67, 10), (0x68, 4), (0x65, 2_500), (0x41, 30)]), true);
    let list = payloads(VideoCodec::H264.into(), &frame, 1_200);
    assert_eq!(list.iter().map(|p| p.0.len()).collect::<Vec<_>>(), [1 + 2 + 10 + 2 + 4, 835, 835, 835, 30]);
    assert_eq!(list[0].0[..4], [0x78, 0, 10, 0x67]);
    assert_eq!(list[0].0[13..16], [0, 4, 0x68]);
    assert_eq!([&list[1].0[..2], &list[2].0[..2], &list[3].0[..2]], [[0x7c, 0x85], [0x7c, 0x05], [0x7c, 0x45]]);
    assert_eq!(list[4].0[0], 0x41);
}

#[test]
fn slices_share_packets_unless_they_are_to_stay_apart() {
    let frame = coded(stream(&[(0x67, 10), (0x65, 300), (0x65, 300), (0x65, 300)]), true);
    let count = |apart| payloads(PayloadFormat::new(VideoCodec::H264).with_slices_apart(apart), &frame, 1_200).len();
    // In either case the parameters share a packet with the first slice.
    assert_eq!((count(false), count(true)), (1, 3));
}

#[test]
fn non_reference_frames_are_marked() {
    let frame = |discardable, data| CodedFrame { discardable, ..coded(data, false) };
    let marks =
        |codec: VideoCodec, f: &CodedFrame| payloads(codec.into(), f, 400).iter().map(|p| p.1).collect::<Vec<_>>();
    assert_eq!(marks(VideoCodec::H264, &frame(false, stream(&[(0x41, 300), (0x01, 500)]))), [false, true, true]);
    assert_eq!(marks(VideoCodec::H264, &frame(true, stream(&[(0x41, 300)]))), [true]);
    for (discardable, bit) in [(false, 0), (true, 0x20)] {
        let f = frame(discardable, vec![1; 500]);
        assert_eq!(marks(VideoCodec::Vp8, &f), [discardable; 2]);
        let list = payloads(VideoCodec::Vp8.into(), &f, 400);
        assert!(list.iter().all(|p| p.0[0] & 0x20 == bit));
        let (unpacked, ..) = frame_of(VideoCodec::Vp8, &[&list[0].0, &list[1].0]);
        assert_eq!((unpacked.discardable, unpacked.whole), (discardable, true));
    }
    let (unpacked, ..) = frame_of(VideoCodec::H264, &[&[0x01, 0x88]]);
    assert!(unpacked.discardable && unpacked.whole);
}

#[test]
fn descriptors_of_vp8_and_vp9_are_as_written_down() {
    // RFC 7741, section 4.2: X and S, then I, then the picture ID with M. 0x18123 has the 15 bits 0x0123.
    let list = payloads(VideoCodec::Vp8.into(), &coded(vec![0x10, 2, 3], true), 1_200);
    assert_eq!(list[0].0, [0x90, 0x80, 0x81, 0x23, 0x10, 2, 3]);
    // RFC 9628, section 4.2: I, P except for a key frame, B and E.
    let list = payloads(VideoCodec::Vp9.into(), &coded(vec![0x86; 30], false), 20);
    assert_eq!(list.iter().map(|p| p.0[..3].to_vec()).collect::<Vec<_>>(), [[0xc8, 0x81, 0x23], [0xc4, 0x81, 0x23]]);
    let list = payloads(VideoCodec::Vp9.into(), &coded(vec![0x82; 3], true), 20);
    assert_eq!(list[0].0, [0x8c, 0x81, 0x23, 0x82, 0x82, 0x82]);
}

#[test]
fn a_nal_unit_with_a_missing_fragment_is_left_out_and_the_rest_is_used() {
    let frame = coded(stream(&[(0x67, 10), (0x65, 3_000), (0x65, 900), (0x65, 3_000)]), true);
    let list = payloads(VideoCodec::H264.into(), &frame, 1_000);
    // Parameters, four fragments, a slice, four fragments.
    assert_eq!(list.len(), 10);
    let all = units(&frame.data);
    for lost in [1, 2, 3, 4] {
        let (mut d, mut out) = (Depacketiser::new(VideoCodec::H264), vec![]);
        let unpacked = d.read(&received(&list, 1, &[lost]), &mut out);
        assert_eq!(units(&out), [all[0].clone(), all[2].clone(), all[3].clone()], "{lost}");
        assert_eq!((unpacked.whole, unpacked.key, d.stats().fragmented), (false, true, 1));
    }
    for lost in [0, 5, 9] {
        let (mut d, mut out) = (Depacketiser::new(VideoCodec::H264), vec![]);
        assert!(!d.read(&received(&list, 1, &[lost]), &mut out).whole);
        assert_eq!(units(&out).len(), 3, "{lost}");
    }
}

#[test]
fn of_vp8_and_vp9_what_lies_in_front_of_the_gap_is_used() {
    for codec in [VideoCodec::Vp8, VideoCodec::Vp9] {
        let frame = coded((0..100).collect(), true);
        let list = payloads(codec.into(), &frame, 30);
        for lost in 0..list.len() {
            let (mut d, mut out) = (Depacketiser::new(codec), vec![]);
            let unpacked = d.read(&received(&list, 1, &[lost]), &mut out);
            let header = if codec == VideoCodec::Vp8 { 4 } else { 3 };
            let expected: usize = list[..lost].iter().map(|p| p.0.len() - header).sum();
            assert_eq!((out.len(), unpacked.whole), (expected, false));
            assert_eq!(out, frame.data[..expected]);
            assert_eq!(unpacked.picture_id, Some(PictureId { value: 0x123, long: true }));
            assert_eq!(d.stats().behind_gap, (list.len() - lost - 1) as u64);
        }
    }
}

#[test]
fn every_optional_field_of_vp8_is_read_past() {
    let key = [0x10, 0, 0];
    for (descriptor, picture_id) in [
        (&[0x10][..], None),
        (&[0x90, 0x00], None),
        (&[0x90, 0x80, 0x12], Some((0x12, false))),
        (&[0x90, 0x80, 0xff, 0xfe], Some((0x7ffe, true))),
        (&[0x90, 0xe0, 0x12, 7, 0x40], Some((0x12, false))),
        (&[0x90, 0x20, 0x40], None),
        (&[0x90, 0x10, 0x05], None),
        (&[0x90, 0xf0, 0x92, 0x12, 7, 0x45], Some((0x1212, true))),
        // Reserved bits are ignored.
        (&[0xd8, 0x8f, 0x12], Some((0x12, false))),
    ] {
        let payload = [descriptor, &key[..]].concat();
        let (unpacked, out, stats) = frame_of(VideoCodec::Vp8, &[&payload]);
        assert_eq!((out, unpacked.whole, unpacked.key), (key.to_vec(), true, true), "{descriptor:x?}");
        assert_eq!(unpacked.picture_id, picture_id.map(|(value, long)| PictureId { value, long }));
        assert_eq!(stats.malformed, 0);
        for cut in 0..descriptor.len() {
            assert_eq!(frame_of(VideoCodec::Vp8, &[&descriptor[..cut]]).2.malformed, 1, "{descriptor:x?}");
        }
    }
    // Partitions with their own indices, as numbered by some senders.
    let (unpacked, out, _) = frame_of(VideoCodec::Vp8, &[&[0x10, 1, 2], &[0x11, 3], &[0x01, 4], &[0x12, 5]]);
    assert_eq!((out, unpacked.whole, unpacked.key), (vec![1, 2, 3, 4, 5], true, false));
    // Without the first packet nothing is used, and nothing of another picture.
    assert_eq!(frame_of(VideoCodec::Vp8, &[&[0x00, 1, 2], &[0x10, 3]]).1, []);
    let (unpacked, out, stats) = frame_of(VideoCodec::Vp8, &[&[0x90, 0x80, 5, 1], &[0x80, 0x80, 6, 2]]);
    assert_eq!((out, unpacked.whole, stats.malformed), (vec![1], false, 1));
}

#[test]
fn every_optional_field_of_vp9_is_read_past() {
    let key = [0x82, 0x49, 0x83];
    for descriptor in [
        &[0x0c][..],
        &[0x8c, 0x12],
        &[0x8c, 0x81, 0x23],
        // Layer indices and TL0PICIDX.
        &[0xac, 0x12, 0x20, 9],
        // Flexible mode: layer indices only, three reference indices.
        &[0xfc, 0x12, 0x20, 0x03, 0x05, 0x06],
        // A scalability structure: two layers with sizes, two pictures in a group, the second with two references.
        &[0x8e, 0x12, 0x38, 1, 64, 0, 180, 2, 128, 1, 104, 2, 0x00, 0x28, 1, 2],
    ] {
        let payload = [descriptor, &key[..]].concat();
        let (unpacked, out, stats) = frame_of(VideoCodec::Vp9, &[&payload]);
        assert_eq!(
            (out, unpacked.whole, unpacked.key, stats.malformed),
            (key.to_vec(), true, true, 0),
            "{descriptor:x?}"
        );
        for cut in 0..descriptor.len() {
            assert_eq!(frame_of(VideoCodec::Vp9, &[&descriptor[..cut]]).2.malformed, 1, "{descriptor:x?}");
        }
    }
    // Four reference indices are one too many.
    assert_eq!(frame_of(VideoCodec::Vp9, &[&[0x5c, 3, 5, 7, 8, 0x82]]).2.malformed, 1);
    // Inter frame of profile 0, key frame of profile 3, a frame shown again.
    let key_of = |byte| frame_of(VideoCodec::Vp9, &[&[0x0c, byte]]).0.key;
    assert_eq!([0x86, 0xb0, 0xb2, 0x88].map(key_of), [false, true, false, false]);
}

#[test]
fn the_interleaved_mode_is_refused_and_reserved_types_are_ignored() {
    for kind in [25, 26, 27, 29] {
        let (unpacked, out, stats) = frame_of(VideoCodec::H264, &[&[0x60 | kind, 0, 0, 3, 0x41, 1, 2], &[0x09, 0xf0]]);
        assert_eq!((unpacked.whole, stats.interleaved, units(&out).len()), (false, 1, 1));
    }
    for kind in [0, 30, 31] {
        let (unpacked, out, stats) = frame_of(VideoCodec::H264, &[&[0x09, 0xf0], &[kind, 1], &[0x41, 0x88]]);
        assert_eq!((unpacked.whole, stats.reserved, units(&out).len()), (true, 1, 2));
    }
    // They are ignored inside other packets too.
    let (_, out, stats) = frame_of(VideoCodec::H264, &[&[24, 0, 2, 24, 1, 0, 2, 0x41, 0x88], &[28, 0xdc, 1]]);
    assert_eq!((out, stats.reserved), (vec![0, 0, 0, 1, 0x41, 0x88], 2));
}

#[test]
fn broken_payloads_are_counted_and_readable_parts_kept() {
    for broken in [&[24, 0][..], &[24, 0, 9, 0x41], &[24, 0, 0, 0x41], &[28], &[], &[0xc1, 1]] {
        let (unpacked, out, stats) = frame_of(VideoCodec::H264, &[&[0x09, 0xf0], broken, &[0x41, 0x88]]);
        assert_eq!((unpacked.whole, stats.malformed), (false, 1), "{broken:x?}");
        assert_eq!(units(&out), [[0x09, 0xf0], [0x41, 0x88]]);
    }
    // A fragment followed by another unit, or by the beginning of another, is incomplete.
    for behind in [&[0x41, 0x88][..], &[0x7c, 0xc1, 0x88], &[0x7c, 0x41, 0x88]] {
        let (unpacked, _, stats) = frame_of(VideoCodec::H264, &[&[0x7c, 0x85, 7], behind]);
        assert!(!unpacked.whole && !unpacked.key && stats.fragmented >= 1, "{behind:x?}");
    }
}

#[test]
fn the_start_of_a_frame_is_known_from_its_packets_or_the_frame_before() {
    let one = |sequence, bytes: &[u8], marker| ReceivedFrame {
        packets: vec![ReceivedPayload { sequence, marker, repaired: false, bytes: bytes.to_vec() }],
        ..ReceivedFrame::default()
    };
    let (mut d, mut out) = (Depacketiser::new(VideoCodec::H264), vec![]);
    // A slice that is not the first of its picture: first_mb_in_slice is not 0.
    assert!(!d.read(&one(5, &[0x41, 0x40], true), &mut out).whole);
    assert!(d.read(&one(6, &[0x41, 0x40], true), &mut out).whole, "follows the packet before");
    assert!(!d.read(&one(8, &[0x41, 0x40], true), &mut out).whole);
    assert!(d.read(&one(10, &[0x41, 0x80], true), &mut out).whole, "first_mb_in_slice is 0");
    assert!(!d.read(&one(12, &[0x41, 0x80], false), &mut out).whole, "no end");
    assert!(!d.read(&one(14, &[0x65, 0x80], true), &mut out).whole, "parameters may be missing");
    assert!(d.read(&ReceivedFrame { whole: true, ..one(16, &[0x65, 0x80], true) }, &mut out).whole);
    assert_eq!((d.stats().frames, d.stats().whole), (7, 3));
    // Duplicates and reordered packets change nothing.
    let mut twice = one(17, &[0x41, 0x80], false);
    twice.packets.push(twice.packets[0].clone());
    twice.packets.push(ReceivedPayload { sequence: 3, marker: true, ..twice.packets[0].clone() });
    d.read(&twice, &mut out);
    assert_eq!(units(&out).len(), 1);
    assert!(!d.read(&ReceivedFrame::default(), &mut out).whole);
    assert!(out.is_empty());
}

#[test]
fn picture_ids_are_counted_by_the_bits_they_share() {
    let id = |value, long| PictureId { value, long };
    assert_eq!(id(1, true).since(id(0x7fff, true)), 2);
    assert_eq!(id(1, false).since(id(0x7f, false)), 2);
    assert_eq!(id(0x81, true).since(id(0, false)), 1);
}

#[test]
fn sdp_names_size_and_level() {
    let config = |w, h, frame_rate| EncoderConfig { frame_rate, ..EncoderConfig::live(w, h) };
    let h264 = PayloadFormat::new(VideoCodec::H264);
    // ITU-T H.264, table A-4: VGA at 30 frames per second needs level 3, 720p 3.1, 1080p 4, QCIF at 15 level 1.
    for (w, h, rate, level) in
        [(640, 480, 30.0, "1e"), (1_280, 720, 30.0, "1f"), (1_920, 1_080, 30.0, "28"), (176, 144, 15.0, "0a")]
    {
        let expected = format!("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e0{level}");
        assert_eq!(h264.fmtp(&config(w, h, rate)), expected);
    }
    let id = h264_profile_level_id(&config(16_384, 16_384, 240.0));
    assert_eq!(id[2], 62);
    assert_eq!(PayloadFormat::new(VideoCodec::Vp8).fmtp(&config(640, 480, 29.97)), "max-fr=30;max-fs=1200");
    assert_eq!(PayloadFormat::new(VideoCodec::Vp9).fmtp(&config(640, 480, 30.0)), "profile-id=0");
    assert_eq!(
        (h264.rtpmap().as_str(), PayloadFormat::from(VideoCodec::Vp8).rtpmap().as_str()),
        ("H264/90000", "VP8/90000")
    );
    assert_eq!(profile_level_id_of(&[0, 0, 1, 0x67, 0x64, 0, 0x28, 9]), Some([0x64, 0, 0x28]));
    assert_eq!(profile_level_id_of(&[0, 0, 1, 0x67, 0x64]), None);
}

fn any_codec() -> impl Strategy<Value = VideoCodec> {
    proptest::sample::select(VideoCodec::ALL.to_vec())
}

proptest! {
    /// Frames survive packetisation at any packet size; no packet exceeds the limit.
    #[test]
    fn frames_come_back_as_they_were(
        list in proptest::collection::vec((1u8..24, 0u8..4, 1usize..5_000), 1..40),
        bytes in proptest::collection::vec(any::<u8>(), 1..6_000),
        max in prop_oneof![20u64..100, 100u64..70_000],
        apart: bool,
        discardable: bool,
    ) {
        for codec in VideoCodec::ALL {
            let sizes: Vec<_> = list.iter().map(|&(kind, nri, size)| (nri << 5 | kind, size)).collect();
            let data = if codec == VideoCodec::H264 { stream(&sizes) } else { bytes.clone() };
            let frame = CodedFrame { discardable, ..coded(data, false) };
            let packets = payloads(PayloadFormat::new(codec).with_slices_apart(apart), &frame, max);
            prop_assert!(packets.iter().all(|p| p.0.len() as u64 <= max && (p.1 || !discardable)));
            let (mut d, mut out) = (Depacketiser::new(codec), vec![]);
            let unpacked = d.read(&received(&packets, 1, &[]), &mut out);
            prop_assert!(unpacked.whole && unpacked.dropped == 0);
            match codec {
                VideoCodec::H264 => {
                    prop_assert_eq!(units(&out), units(&frame.data));
                    prop_assert_eq!(unpacked.key, list.iter().any(|u| u.0 == 5));
                }
                _ => prop_assert_eq!(&out, &frame.data),
            }
        }
    }

    /// For any losses, the output consists of units of the input, and is not reported complete.
    #[test]
    fn losses_leave_nothing_broken(
        list in proptest::collection::vec((1u8..24, 1u8..4, 1usize..300), 1..20),
        max in 20u64..200,
        lost in proptest::collection::vec(0usize..100, 1..10),
    ) {
        let sizes: Vec<_> = list.iter().map(|&(kind, nri, size)| (nri << 5 | kind, size)).collect();
        let frame = coded(stream(&sizes), false);
        let packets = payloads(VideoCodec::H264.into(), &frame, max);
        let lost: Vec<_> = lost.iter().map(|l| l % packets.len()).collect();
        let (mut d, mut out) = (Depacketiser::new(VideoCodec::H264), vec![]);
        let unpacked = d.read(&received(&packets, 1, &lost), &mut out);
        let (sent, got) = (units(&frame.data), units(&out));
        let mut rest = sent.iter();
        prop_assert!(got.iter().all(|unit| rest.any(|s| s == unit)), "a subsequence of what was sent");
        // The loss of the first packets alone is not always detectable, any other is.
        let front_lost = (0..packets.len()).take_while(|i| lost.contains(i)).count();
        if lost.iter().any(|&l| l >= front_lost) {
            prop_assert!(!unpacked.whole);
        }
    }

    /// Any input is used or counted, and does not grow.
    #[test]
    fn anything_may_arrive(
        codec in any_codec(),
        packets in proptest::collection::vec((0u64..40, any::<bool>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..30),
        kinds in proptest::collection::vec(0u8..32, 30),
        whole: bool,
    ) {
        let mut d = Depacketiser::new(codec);
        let mut out = vec![];
        for pass in 0..2 {
            let packets = packets.iter().zip(&kinds).map(|((sequence, marker, bytes), kind)| {
                let mut bytes = bytes.clone();
                // Types of H.264 with a meaning, in one of two passes.
                if let Some(first) = bytes.first_mut().filter(|_| pass == 1) {
                    *first = *first & 0xe0 | [kind % 24, 24, 28, 28][usize::from(kind % 4)];
                }
                ReceivedPayload { sequence: *sequence, marker: *marker, repaired: false, bytes }
            });
            let frame = ReceivedFrame { packets: packets.collect(), whole, ..ReceivedFrame::default() };
            let came: usize = frame.packets.iter().map(|p| p.bytes.len()).sum();
            let unpacked = d.read(&frame, &mut out);
            prop_assert!(out.len() <= 4 * came + frame.packets.len());
            prop_assert!(!unpacked.whole || !out.is_empty());
        }
        prop_assert_eq!(d.stats().frames, 2);
    }
}

#[test]
fn a_frame_without_data_has_no_payloads() {
    for codec in VideoCodec::ALL {
        assert!(payloads(codec.into(), &coded(vec![], true), MTU.as_bytes()).is_empty());
    }
}
