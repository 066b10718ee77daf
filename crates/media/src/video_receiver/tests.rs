use super::*;
use crate::toy::{Counting, ToyDecoder, ToyEncoder};
use crate::{EncodedSource, FrameSource, Payloads, Plane, ReceivedPayload, SourceFeedback};
use FrameOutcome::{Concealed, Frozen, Intact, Undecodable};
use proptest::prelude::*;
use weir_units::{DataRate, DataSize, TimeDelta};

const OFFSET: u32 = 0xffff_f000;

/// A sender whose packets can be lost.
struct Sender {
    source: EncodedSource,
    sequence: u64,
}

impl Sender {
    fn new(codec: VideoCodec) -> Self {
        let (clip, encoder) = (Box::new(Counting::new(250)), Box::new(ToyEncoder::new(codec)));
        let mut source = EncodedSource::new(clip, encoder, Timestamp::ZERO).expect("sound");
        // 4,000 bytes per frame: five packets or four.
        source.on_target(DataRate::from_kbps(960), Timestamp::ZERO);
        Self { source, sequence: 100 }
    }

    /// The next frame without its packets `lost`; the session's random offset is added to its timestamp.
    fn next(&mut self, lost: &[usize]) -> ReceivedFrame {
        let at = self.source.next_frame_at().expect("running");
        let frame = self.source.poll_frame(at).expect("due");
        let mut payloads = Payloads::default();
        assert!(self.source.take_payloads(DataSize::from_bytes(1_000), &mut payloads));
        let count = payloads.len();
        assert!(count >= 4);
        let mut packets = vec![];
        for (i, (bytes, _)) in payloads.iter().enumerate() {
            self.sequence += 1;
            if !lost.contains(&i) {
                let (sequence, marker) = (self.sequence, i + 1 == count);
                packets.push(ReceivedPayload { sequence, marker, repaired: false, bytes: bytes.to_vec() });
            }
        }
        let rtp_timestamp = frame.rtp_timestamp.wrapping_add(OFFSET);
        ReceivedFrame { rtp_timestamp, at: at + TimeDelta::from_millis(100), whole: packets.len() == count, packets }
    }

    fn feed_back(&mut self, feedback: SourceFeedback) -> bool {
        self.source.on_feedback(feedback, Timestamp::ZERO)
    }
}

fn receiver(codec: VideoCodec, on_damage: OnDamage) -> VideoReceiver {
    VideoReceiver::new(Box::new(ToyDecoder::new(codec)), on_damage)
}

const BOTH: [VideoCodec; 2] = [VideoCodec::H264, VideoCodec::Vp8];

#[test]
fn a_stream_without_loss_is_shown_as_coded() {
    for codec in BOTH {
        let (mut s, mut r) = (Sender::new(codec), receiver(codec, OnDamage::Show));
        assert!(!r.wants_key_frame() && r.picture().is_none());
        for n in 0..100 {
            let frame = s.next(&[]);
            let shown = r.on_frame(&frame);
            assert_eq!((shown.outcome, shown.rtp_timestamp, shown.at), (Intact, frame.rtp_timestamp, frame.at));
            assert_eq!(shown.picture.map(|p| p.plane(Plane::Y)[0]), Some(n));
            assert_eq!((r.last_decoded(), r.wants_key_frame()), (Some(frame.rtp_timestamp), false));
        }
        let expected = VideoReceiverStats { frames: 100, intact: 100, key_frames: 1, ..VideoReceiverStats::default() };
        assert_eq!(*r.stats(), expected);
        assert_eq!(r.depacketiser_stats().whole, 100);
    }
}

#[test]
fn damage_lasts_until_a_key_frame() {
    for (codec, on_damage) in BOTH.into_iter().flat_map(|c| [(c, OnDamage::Show), (c, OnDamage::Freeze)]) {
        let (mut s, mut r) = (Sender::new(codec), receiver(codec, on_damage));
        // Frame 3 lacks its second packet: in H.264 its only NAL unit is lost, in VP8 its beginning remains.
        let (mut outcomes, mut shown) = (vec![], vec![]);
        for n in 0..10 {
            let frame = s.next(if n == 3 { &[1] } else { &[] });
            let this = r.on_frame(&frame);
            outcomes.push(this.outcome);
            shown.push(this.picture.map_or(0, |p| p.plane(Plane::Y)[0]));
            assert_eq!(r.wants_key_frame(), (3..7).contains(&n), "{n}");
            assert_eq!(r.damaged_since().is_some(), (3..7).contains(&n));
            if n == 6 {
                assert!(r.damaged_since().is_some_and(|at| at < frame.at - TimeDelta::from_millis(99)));
                s.source.request_key_frame(Timestamp::ZERO);
            }
        }
        let damaged = if on_damage == OnDamage::Show { Concealed } else { Frozen };
        let first = if codec == VideoCodec::H264 { Undecodable } else { damaged };
        assert_eq!(outcomes[..3], [Intact; 3]);
        assert_eq!(outcomes[3..7], [first, damaged, damaged, damaged], "{codec} {on_damage:?}");
        assert_eq!(outcomes[7..], [Intact; 3]);
        if on_damage == OnDamage::Freeze {
            assert_eq!(shown, [0, 1, 2, 2, 2, 2, 2, 7, 8, 9]);
        }
        let stats = r.stats();
        assert_eq!((stats.intact, stats.breaks, stats.key_frames, stats.missing), (6, 1, 2, 0));
        assert_eq!(stats.intact + stats.concealed + stats.frozen + stats.undecodable, stats.frames);
    }
}

#[test]
fn a_missing_frame_breaks_the_chain() {
    for codec in BOTH {
        let (mut s, mut r) = (Sender::new(codec), receiver(codec, OnDamage::Show));
        let mut outcomes = vec![];
        for n in 0..8 {
            let frame = s.next(&[]);
            // Two frames are lost.
            if n != 3 && n != 4 {
                outcomes.push(r.on_frame(&frame).outcome);
            }
        }
        assert_eq!(outcomes, [Intact, Intact, Intact, Concealed, Concealed, Concealed]);
        assert!(r.wants_key_frame());
        // Picture IDs count them; in H.264 the decoder detects the missing reference.
        assert_eq!(r.stats().missing, if codec == VideoCodec::Vp8 { 2 } else { 0 });
    }
}

#[test]
fn numbers_taken_by_padding_are_no_loss() {
    for codec in BOTH {
        let (mut s, mut r) = (Sender::new(codec), receiver(codec, OnDamage::Show));
        for _ in 0..10 {
            s.sequence += 3;
            assert_eq!(r.on_frame(&s.next(&[])).outcome, Intact);
        }
        assert_eq!(r.stats().breaks, 0);
    }
}

#[test]
fn a_selected_reference_mends_the_chain_without_a_key_frame() {
    for codec in BOTH {
        let (mut s, mut r) = (Sender::new(codec), receiver(codec, OnDamage::Freeze));
        for _ in 0..4 {
            let frame = s.next(&[]);
            r.on_frame(&frame);
        }
        assert_eq!(r.on_frame(&s.next(&[0])).outcome, Undecodable);
        assert_eq!(r.on_frame(&s.next(&[])).outcome, Frozen);
        let good = r.last_decoded().expect("frames were decoded").wrapping_sub(OFFSET);
        assert!(s.feed_back(SourceFeedback::ReferenceWanted { rtp_timestamp: good }));
        let frame = s.next(&[]);
        if codec == VideoCodec::Vp8 {
            r.on_reference_restored(frame.rtp_timestamp);
        }
        assert_eq!((r.on_frame(&frame).outcome, r.wants_key_frame()), (Intact, false));
        assert_eq!(r.on_frame(&s.next(&[])).outcome, Intact);
        assert_eq!((r.stats().key_frames, s.source.stats().key_frames), (1, 1));
    }
    // If the repairing frame is itself lost, nothing is repaired.
    let (mut s, mut r) = (Sender::new(VideoCodec::Vp8), receiver(VideoCodec::Vp8, OnDamage::Freeze));
    r.on_frame(&s.next(&[]));
    r.on_frame(&s.next(&[0]));
    let mending = s.next(&[]);
    r.on_reference_restored(mending.rtp_timestamp);
    assert_eq!((r.on_frame(&s.next(&[])).outcome, r.wants_key_frame()), (Frozen, true));
}

#[test]
fn nothing_can_be_shown_before_a_key_frame() {
    for codec in BOTH {
        let (mut s, mut r) = (Sender::new(codec), receiver(codec, OnDamage::Freeze));
        s.next(&[]);
        let outcome = r.on_frame(&s.next(&[])).outcome;
        assert_eq!((outcome, r.picture().is_none(), r.wants_key_frame()), (Frozen, true, true));
        assert_eq!((r.damaged_since(), r.last_decoded()), (None, None));
        s.source.request_key_frame(Timestamp::ZERO);
        assert_eq!(r.on_frame(&s.next(&[])).outcome, Intact);
        // Another sender begins.
        r.restart();
        assert!(r.wants_key_frame() && r.picture().is_some() && r.last_decoded().is_none());
    }
}

#[test]
fn a_lost_non_reference_frame_breaks_nothing() {
    let mut r = receiver(VideoCodec::Vp8, OnDamage::Show);
    let mut s = Sender::new(VideoCodec::Vp8);
    r.on_frame(&s.next(&[]));
    // The N bit in every packet (RFC 7741, section 4.2), and one lost.
    let mut frame = s.next(&[2]);
    frame.packets.iter_mut().for_each(|p| p.bytes[0] |= 0x20);
    let shown = r.on_frame(&frame);
    assert_eq!((shown.outcome, shown.unpacked.discardable), (Concealed, true));
    assert!(!r.wants_key_frame());
    // A frame lost entirely: it may have been a reference.
    let empty = ReceivedFrame { at: frame.at, ..ReceivedFrame::default() };
    assert_eq!((r.on_frame(&empty).outcome, r.wants_key_frame()), (Undecodable, true));
}

#[test]
fn a_frame_without_packets_is_not_counted_missing_twice() {
    let (mut s, mut r) = (Sender::new(VideoCodec::Vp8), receiver(VideoCodec::Vp8, OnDamage::Show));
    for n in 0..6 {
        let mut frame = s.next(&[]);
        if n == 2 {
            frame.packets.clear();
        }
        r.on_frame(&frame);
    }
    assert_eq!((r.stats().missing, r.stats().undecodable), (0, 1));
}

proptest! {
    /// For any losses, frames reported intact are as coded, and each is counted once.
    #[test]
    fn frames_called_intact_are_as_coded(
        losses in proptest::collection::vec((0u8..10, 0usize..8), 1..120),
        h264: bool,
        freeze: bool,
    ) {
        let codec = if h264 { VideoCodec::H264 } else { VideoCodec::Vp8 };
        let mut r = receiver(codec, if freeze { OnDamage::Freeze } else { OnDamage::Show });
        let (mut s, mut fed, mut broken) = (Sender::new(codec), 0, true);
        for (n, &(kind, packet)) in losses.iter().enumerate() {
            let frame = s.next(if kind < 2 { std::slice::from_ref(&packet) } else { &[] });
            if kind == 2 {
                broken = true;
                continue;
            }
            fed += 1;
            let shown = r.on_frame(&frame);
            // Expected: a chain from a key frame on in which all frames were complete.
            broken = (broken && !shown.unpacked.key) || !frame.whole;
            prop_assert_eq!(shown.outcome == Intact, !broken, "{} {:?}", n, shown.outcome);
            if shown.outcome == Intact {
                prop_assert_eq!(shown.picture.map(|p| p.plane(Plane::Y)[0]), Some((n % 250) as u8));
            }
            if kind > 7 && r.wants_key_frame() {
                s.source.request_key_frame(Timestamp::ZERO);
            }
        }
        let c = r.stats();
        prop_assert_eq!((c.frames, c.intact + c.concealed + c.frozen + c.undecodable), (fed, fed));
    }

    /// No input causes a panic.
    #[test]
    fn anything_may_arrive(
        frames in proptest::collection::vec(
            (any::<u32>(), proptest::collection::vec((0u64..50, proptest::collection::vec(any::<u8>(), 0..50)), 0..6)), 1..40),
        codec in proptest::sample::select(VideoCodec::ALL.to_vec()),
        whole: bool,
    ) {
        let mut r = receiver(codec, OnDamage::Show);
        for (rtp_timestamp, packets) in frames {
            let packets = packets.into_iter().map(|(sequence, bytes)| {
                ReceivedPayload { sequence, marker: sequence % 3 == 0, repaired: false, bytes }
            });
            r.on_reference_restored(rtp_timestamp ^ 1);
            let outcome = r.on_frame(&ReceivedFrame { rtp_timestamp, whole, packets: packets.collect(), ..ReceivedFrame::default() }).outcome;
            prop_assert!(outcome == Undecodable || r.picture().is_some());
        }
        prop_assert_eq!(r.stats().undecodable + r.stats().intact + r.stats().concealed, r.stats().frames);
    }
}
