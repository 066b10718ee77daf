use super::*;
use crate::toy::{Counting, ToyDecoder, ToyEncoder};
use crate::{
    Codec, Decoded, Depacketiser, FrameKind, ParamValue, Plane, ReceivedFrame, ReceivedPayload, VideoCodec,
    VideoDecoder,
};
use std::sync::{Arc, Mutex};

const START: Timestamp = Timestamp::from_secs(5);

fn at(frame: i64) -> Timestamp {
    START + TimeDelta::from_nanos((frame as f64 / 30.0 * 1e9).round() as i64)
}

fn source(encoder: ToyEncoder, clip: Counting) -> EncodedSource {
    EncodedSource::new(Box::new(clip), Box::new(encoder), START).expect("sound")
}

fn h264() -> ToyEncoder {
    ToyEncoder::new(VideoCodec::H264)
}

fn run(s: &mut EncodedSource, frames: usize) -> Vec<Frame> {
    (0..frames).map_while(|_| s.poll_frame(s.next_frame_at()?)).collect()
}

#[test]
fn frames_are_on_the_grid_at_the_target_and_the_clip_repeats() {
    let mut s = source(h264(), Counting::new(4));
    assert_eq!(s.next_frame_at(), None);
    s.on_target(DataRate::from_kbps(480), START);
    let frames = run(&mut s, 301);
    for (i, f) in frames.iter().enumerate() {
        assert_eq!((f.id, f.captured), (i as u64, at(i as i64)));
        // 480 kbit/s at 30 frames per second make 2,000 bytes each; 5 s are 450,000 ticks, a frame 3,000.
        assert_eq!((f.size.as_bytes(), f.kind == FrameKind::Key), (2_000, i == 0));
        assert!((450_000 + 3_000 * i as u32).abs_diff(f.rtp_timestamp) <= 1);
    }
    assert_eq!((s.stats().loops, s.stats().frames, s.stats().key_frames), (75, 301, 1));
    let rate = s.bit_rate(at(300)).as_bps_f64() / 480e3;
    assert!((0.98..1.05).contains(&rate), "{rate}");
    assert_eq!((s.name(), s.requested_bit_rate()), ("H264", DataRate::from_kbps(480)));
}

#[test]
fn payloads_of_a_frame_decode_to_its_picture() {
    for codec in VideoCodec::ALL {
        let mut s = source(ToyEncoder::new(codec), Counting::new(200));
        s.on_target(DataRate::from_kbps(960), START);
        let (mut d, mut decoder, mut data) = (Depacketiser::new(codec), ToyDecoder::new(codec), vec![]);
        let mut picture = Picture::new(16, 16).expect("sound");
        let mut sequence = 0;
        for n in 0..50 {
            run(&mut s, 1);
            let mut payloads = Payloads::default();
            assert!(s.take_payloads(DataSize::from_bytes(1_000), &mut payloads));
            assert!((4..=6).contains(&payloads.len()));
            let packets = payloads.iter().enumerate().map(|(i, (bytes, _))| {
                sequence += 1;
                let marker = i + 1 == payloads.len();
                ReceivedPayload { sequence, marker, repaired: false, bytes: bytes.to_vec() }
            });
            let frame = ReceivedFrame { packets: packets.collect(), whole: true, ..ReceivedFrame::default() };
            assert!(d.read(&frame, &mut data).whole);
            assert_eq!(decoder.decode(&data, true, &mut picture), Decoded::Intact);
            assert_eq!(picture.plane(Plane::Y)[0], n);
        }
    }
}

#[test]
fn a_dropped_picture_and_a_failure_give_no_frame_and_time_continues() {
    let encoder = ToyEncoder { drops: vec![2, 3], fails: vec![6], ..h264() };
    let mut s = source(encoder, Counting { broken: Some(8), ..Counting::new(100) });
    s.on_target(DataRate::from_kbps(480), START);
    let frames: Vec<_> = (0..12).filter_map(|n| s.poll_frame(at(n))).collect();
    let captured: Vec<_> = frames.iter().map(|f| f.captured).collect();
    assert_eq!(captured, [0, 1, 4, 5, 7, 9, 10, 11].map(at));
    assert!(frames.iter().map(|f| f.id).eq(0..8));
    let keys: Vec<_> = frames.iter().map(|f| f.kind == FrameKind::Key).collect();
    assert_eq!(keys, [true, false, false, false, true, false, false, false], "a key frame behind the failure");
    let stats = s.stats();
    assert_eq!((stats.pictures, stats.frames, stats.dropped), (11, 8, 2));
    assert_eq!((stats.encoder_errors, stats.clip_errors, stats.skipped), (1, 1, 0));
}

#[test]
fn a_pause_and_a_lag_skip_pictures_and_stay_on_the_grid() {
    let mut s = source(h264(), Counting::new(100));
    s.on_target(DataRate::from_kbps(480), START);
    run(&mut s, 3);
    s.on_target(DataRate::ZERO, at(3));
    assert_eq!((s.next_frame_at(), s.generated_rate()), (None, DataRate::ZERO));
    s.on_target(DataRate::from_kbps(480), at(10) + TimeDelta::from_millis(1));
    assert_eq!((s.next_frame_at(), s.stats().skipped), (Some(at(11)), 8));
    // Half a second is caught up, two seconds are skipped.
    let late = at(11) + TimeDelta::from_millis(510);
    assert_eq!(std::iter::from_fn(|| s.poll_frame(late)).count(), 16);
    let late = s.next_frame_at().expect("running") + TimeDelta::from_millis(2_010);
    let frames: Vec<_> = std::iter::from_fn(|| s.poll_frame(late)).collect();
    assert!((1..=2).contains(&frames.len()) && late - frames[0].captured < TimeDelta::from_millis(67));
    assert!(s.next_frame_at().is_some_and(|next| next > late && next < late + TimeDelta::from_millis(34)));
    // A clip that cannot rewind ends the stream.
    let mut s = source(h264(), Counting { rewinds: false, ..Counting::new(5) });
    s.on_target(DataRate::from_kbps(480), START);
    assert_eq!(run(&mut s, 20).len(), 5);
    assert_eq!(s.next_frame_at(), None);
}

#[test]
fn targets_are_kept_between_bounds_and_parameters_have_names() {
    let mut s = source(h264(), Counting::new(100));
    let number = |s: &EncodedSource, name| match s.param(name) {
        Ok(ParamValue::Number(n)) => n,
        other => panic!("{name}: {other:?}"),
    };
    let now = START;
    s.set_param("max_bit_rate", 960e3.into(), now).expect("sound");
    s.set_param("min_bit_rate", 240e3.into(), now).expect("sound");
    for (asked, size) in [(100, 1_000), (480, 2_000), (5_000, 4_000)] {
        s.on_target(DataRate::from_kbps(asked), now);
        assert_eq!(run(&mut s, 1)[0].size.as_bytes(), size);
        assert_eq!(s.encoder().config().bit_rate, s.generated_rate());
    }
    assert_eq!((number(&s, "min_bit_rate"), number(&s, "frame_rate"), number(&s, "key_interval")), (240e3, 30.0, 0.0));
    assert_eq!(s.param("rate_change"), Ok("seamless".into()));
    assert_eq!((s.param("size"), s.param("library")), (Ok("32x16".into()), Ok("toy".into())));
    s.set_param("slice_size", 500.0.into(), now).expect("sound");
    assert_eq!(number(&s, "slice_size"), 500.0);
    s.set_param("slice_size", 0.0.into(), now).expect("sound");
    assert_eq!(s.encoder().config().slice_size, None);
    for (name, value) in [
        ("frame_rate", 15.0.into()),
        ("library", "x".into()),
        ("slice_size", 50.0.into()),
        ("slice_size", f64::NAN.into()),
        ("min_bit_rate", 2e6.into()),
        ("max_bit_rate", 1e3.into()),
        ("max_bit_rate", "much".into()),
        ("colour", 1.0.into()),
    ] {
        let error = s.set_param(name, value, now).expect_err(name).to_string();
        assert!(error.starts_with(&format!("codec parameter {name} ")) && error.contains("expected"), "{error}");
    }
    assert!(s.param_names().iter().all(|name| s.param(name).is_ok()));
}

#[test]
fn feedback_reaches_the_encoder_by_picture() {
    let mut s = source(ToyEncoder { keeps: 4, ..h264() }, Counting::new(100));
    s.on_target(DataRate::from_kbps(480), START);
    let frames = run(&mut s, 6);
    let of = |n: usize| frames[n].rtp_timestamp;
    assert!(s.on_feedback(SourceFeedback::Decoded { rtp_timestamp: of(3) }, START));
    assert!(!s.on_feedback(SourceFeedback::Decoded { rtp_timestamp: of(3) + 7 }, START));
    // Picture 3 is available as a reference: no key frame. Picture 0 is not.
    assert!(s.on_feedback(SourceFeedback::ReferenceWanted { rtp_timestamp: of(3) }, START));
    assert_eq!((run(&mut s, 1)[0].kind, s.coded.from_selected), (FrameKind::Delta, true));
    assert!(s.on_feedback(SourceFeedback::ReferenceWanted { rtp_timestamp: of(0) }, START));
    assert_eq!((run(&mut s, 1)[0].kind, s.stats().references_selected), (FrameKind::Key, 1));
    assert!(s.on_feedback(SourceFeedback::SliceSize(Some(DataSize::from_bytes(300))), START));
    assert!(!s.on_feedback(SourceFeedback::SliceSize(Some(DataSize::from_bytes(3))), START));
    assert_eq!(s.encoder().config().slice_size, Some(DataSize::from_bytes(300)));
    s.request_key_frame(START);
    assert_eq!(run(&mut s, 2).iter().map(|f| f.kind).collect::<Vec<_>>(), [FrameKind::Key, FrameKind::Delta]);
}

#[test]
fn originals_are_found_by_timestamp_and_the_oldest_give_way() {
    let mut s = source(ToyEncoder { drops: vec![2], ..h264() }, Counting::new(100));
    let originals = Originals::new(4);
    s.set_tap(originals.tap());
    s.on_target(DataRate::from_kbps(480), START);
    let frames: Vec<_> = (0..5).filter_map(|n| s.poll_frame(at(n))).collect();
    assert_eq!((frames.len(), originals.len(), originals.lost()), (4, 4, 1));
    let mut seen = vec![];
    // Pictures 1, 2, 3: the encoder dropped number 2, which is still compared.
    originals.take_to(frames[2].rtp_timestamp, |t, p| seen.push((t, p.plane(Plane::Y)[0])));
    assert_eq!(seen.iter().map(|s| s.1).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!((seen[0].0, seen[2].0), (frames[1].rtp_timestamp, frames[2].rtp_timestamp));
    assert_eq!(seen[1].0, 456_000);
    originals.take_to(frames[3].rtp_timestamp, |_, p| assert_eq!(p.plane(Plane::Y)[0], 4));
    assert!(originals.is_empty());
}

#[test]
fn a_clip_of_a_multiple_of_the_rate_gives_every_second_picture_and_others_are_refused() {
    let twice = Counting { interval: TimeDelta::from_secs_f64(1.0 / 59.94), ..Counting::new(100) };
    let mut s = source(h264(), twice);
    let originals = Originals::new(9);
    s.set_tap(originals.tap());
    s.on_target(DataRate::from_kbps(480), START);
    run(&mut s, 3);
    let mut seen = vec![];
    originals.take_to(u32::MAX / 4, |_, p| seen.push(p.plane(Plane::Y)[0]));
    assert_eq!(seen, [1, 3, 5]);
    let refused = |clip| {
        let made = EncodedSource::new(Box::new(clip), Box::new(h264()), START);
        made.expect_err("refused").to_string()
    };
    let slow = Counting { interval: TimeDelta::from_millis(40), ..Counting::new(3) };
    assert!(refused(slow).starts_with("encoder: frame_rate is 30: expected 25 frames a second"));
    let large = Counting { size: (64, 16), ..Counting::new(3) };
    assert_eq!(refused(large), "encoder: size is 32x16: expected 64x16, the size of the clip");
    let timeless = Counting { interval: TimeDelta::ZERO, ..Counting::new(3) };
    assert!(refused(timeless).starts_with("encoder: frame_rate"));
}

#[test]
fn pushed_frames_are_sent_and_orders_reach_the_encoder() {
    let (mut s, pusher) = PushedSource::new(VideoCodec::H264);
    let mut encoder = ToyEncoder::new(VideoCodec::H264);
    let mut picture = Picture::new(32, 16).expect("sound");
    picture.plane_mut(Plane::Y).fill(7);
    s.on_target(DataRate::from_kbps(480), START);
    assert_eq!((s.next_frame_at(), pusher.target(), s.generated_rate()), (None, pusher.target(), pusher.target()));
    let mut coded = CodedFrame::default();
    let mut push = |n: i64| {
        pusher.apply(&mut encoder, Timestamp::ZERO).expect("sound");
        encoder.encode(&picture, 0, &mut coded).expect("sound");
        pusher.push(at(n), coded.clone())
    };
    let first = push(0).expect("room");
    let second = push(1).expect("room");
    assert_eq!((first.size.as_bytes(), first.kind, second.kind), (2_000, FrameKind::Key, FrameKind::Delta));
    assert_eq!((s.next_frame_at(), s.poll_frame(at(0)), s.poll_frame(at(0))), (Some(at(0)), Some(first), None));
    let mut payloads = Payloads::default();
    assert!(s.take_payloads(DataSize::from_bytes(1_000), &mut payloads));
    // 1,995 bytes after start code and header, at most 998 of them per fragment.
    assert_eq!(payloads.len(), 2);
    assert_eq!(s.poll_frame(at(5)), Some(second));
    s.on_feedback(SourceFeedback::Decoded { rtp_timestamp: second.rtp_timestamp }, at(5));
    s.request_key_frame(at(5));
    assert_eq!(push(6).expect("room").kind, FrameKind::Key);
    assert_eq!(pusher.push(at(7), CodedFrame::default()), None);
    // Frames beyond the limit are refused, and the broken chain of references is repaired.
    let pushed: Vec<_> = (7..107).filter_map(&mut push).collect();
    assert_eq!((pushed.len(), pusher.refused()), (63, 37));
    while s.poll_frame(at(200)).is_some() {}
    assert_eq!(push(201).expect("room").kind, FrameKind::Key);
    assert_eq!(encoder.acknowledged, [1]);
}

#[test]
fn it_can_be_moved_to_a_thread() {
    fn is_send<T: Send>(_: &T) {}
    let s = source(h264(), Counting::new(3));
    is_send(&s);
    let counter = Arc::new(Mutex::new(0));
    let (mut s, seen) = (s, counter.clone());
    s.set_tap(Box::new(move |c| *seen.lock().expect("sound") += usize::from(!c.coded.data.is_empty())));
    let mut s = s.into_source();
    is_send(&s);
    s.on_target(DataRate::from_kbps(480), START);
    s.poll_frame(START);
    assert_eq!((*counter.lock().expect("sound"), s.codec().map(Codec::name)), (1, Some("H264")));
}

#[test]
fn a_picture_left_out_is_counted_and_the_next_is_on_the_grid() {
    let mut s = source(h264(), Counting::new(100));
    s.on_target(DataRate::from_kbps(480), START);
    run(&mut s, 2);
    assert!(!s.skip_picture(at(1)), "not due yet");
    assert!(s.skip_picture(at(2)));
    let frames = run(&mut s, 2);
    assert_eq!((frames[0].captured, frames[0].kind == FrameKind::Key), (at(3), false));
    assert_eq!((s.stats().pictures, s.stats().frames, s.stats().dropped), (5, 4, 1));
    assert!(!s.skip_picture(at(5) + LONGEST_LAG + TimeDelta::from_millis(1)), "skipped with the lag");
}

#[test]
fn a_key_frame_that_no_coarser_one_undercuts_is_sent_once() {
    let mut s = source(h264(), Counting::new(100));
    s.on_target(DataRate::from_kbps(480), START);
    assert!(s.limit_key_frames(DataSize::from_bytes(500)));
    let mut kinds =
        |n| run(&mut s, n).iter().map(|f| (f.kind == FrameKind::Key, f.size.as_bytes())).collect::<Vec<_>>();
    assert_eq!(kinds(3), [(true, 2_000), (false, 2_000), (false, 2_000)]);
    s.request_key_frame(at(3));
    assert_eq!(run(&mut s, 2).iter().map(|f| f.kind == FrameKind::Key).collect::<Vec<_>>(), [true, false]);
    assert_eq!(s.stats().key_frames, 2);
}

#[test]
fn references_are_selected_among_what_was_sent_of_limited_key_frames_too() {
    let mut s = source(h264(), Counting::new(100));
    s.on_target(DataRate::from_kbps(480), START);
    assert!(s.limit_key_frames(DataSize::from_bytes(500)));
    let (mut decoder, mut picture) = (ToyDecoder::new(VideoCodec::H264), Picture::new(32, 16).expect("sound"));
    let mut last = None;
    for n in 0..16 {
        match (n, last) {
            (5, _) => s.request_key_frame(at(5)),
            (9, Some(rtp_timestamp)) => {
                assert!(s.on_feedback(SourceFeedback::ReferenceWanted { rtp_timestamp }, START));
            }
            _ => {}
        }
        let frame = run(&mut s, 1)[0];
        let data = s.coded.data.clone();
        assert_eq!(decoder.decode(&data, true, &mut picture), Decoded::Intact, "{n}");
        last = Some(frame.rtp_timestamp);
    }
    // The key frames were coded several times, and each was sent once.
    let stats = s.stats();
    assert_eq!((stats.key_frames, stats.references_selected, stats.pictures), (2, 1, 16));
}
