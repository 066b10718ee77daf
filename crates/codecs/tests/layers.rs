//! Requirements on layered encoders: without upper layers the rest is decodable.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common;
use common::{decoder_for, encoders, picture, psnr};
use weir_codecs::encoder_of;
use weir_media::{
    CodedFrame, Decoded, EncodedSource, EncoderConfig, FrameKind, FrameOutcome, FrameSource, LayerId, LayerInfo,
    Layering, OnDamage, Payloads, Picture, PushedSource, ReceivedFrame, ReceivedPayload, VideoCodec, VideoReceiver,
};
use weir_units::{DataRate, DataSize, Timestamp};

const SIZE: (u32, u32) = (320, 240);

fn config(mode: &str, kbps: u64) -> EncoderConfig {
    EncoderConfig {
        bit_rate: DataRate::from_kbps(kbps),
        layering: mode.parse().unwrap(),
        may_drop: false,
        ..EncoderConfig::live(SIZE.0, SIZE.1)
    }
}

/// The layer frames of pictures, with a key frame requested at `key`.
fn code(library: &str, codec: VideoCodec, config: &EncoderConfig, count: u32, key: u32) -> Vec<Vec<CodedFrame>> {
    let mut encoder = encoder_of(library, codec, config).unwrap();
    (0..count)
        .map(|n| {
            if n == key {
                encoder.request_key_frame();
            }
            let mut frame = CodedFrame::default();
            encoder.encode(&picture(SIZE.0, SIZE.1, n), u64::from(n) * 3_000, &mut frame).unwrap();
            let mut all = vec![frame.clone()];
            while encoder.next_layer(&mut frame) {
                all.push(frame.clone());
            }
            assert!(all.iter().take(all.len() - 1).all(|f| f.more_layers) && !all.last().unwrap().more_layers);
            all
        })
        .collect()
}

/// Every codec with its supported layer modes.
fn modes() -> Vec<(&'static str, VideoCodec, Vec<String>)> {
    let of = |(library, codec)| {
        let most = encoder_of(library, codec, &EncoderConfig::live(320, 240)).unwrap().most_layers();
        let all = (1..=most.spatial()).flat_map(|s| (1..=most.temporal()).map(move |t| Layering::new(s, t).unwrap()));
        (library, codec, all.filter(|l| !l.is_single()).map(|l| l.to_string()).collect())
    };
    encoders().into_iter().map(of).collect()
}

fn layer_of(frame: &CodedFrame) -> LayerInfo {
    frame.layer.unwrap()
}

#[test]
fn every_frame_states_its_layer() {
    for (library, codec, modes) in modes() {
        for mode in modes {
            let layering: Layering = mode.parse().unwrap();
            let pictures = code(library, codec, &config(&mode, 600), 24, 12);
            for (n, frames) in pictures.iter().enumerate() {
                let step = layering.step(n as u64 % 12);
                let found: Vec<_> = frames.iter().map(|f| layer_of(f).id).collect();
                let expected: Vec<_> = (0..layering.spatial()).map(|s| LayerId::new(s, step.temporal)).collect();
                assert_eq!(found, expected, "{codec} by {library} {mode}: {n}");
                assert!(
                    frames.iter().all(|f| f.key == (n % 12 == 0) && f.picture_id == n as u64),
                    "{codec} {mode} {n}"
                );
                let discardable = frames.last().unwrap().discardable;
                assert_eq!(discardable, step.discardable, "{codec} by {library} {mode}: {n}");
            }
        }
    }
}

/// Decodes the layer frames selected by `keep`; returns the PSNR against the original, and how many were not intact.
fn decode(codec: VideoCodec, pictures: &[Vec<CodedFrame>], keep: impl Fn(&CodedFrame) -> bool) -> (Vec<f64>, usize) {
    let (mut decoder, mut shown) = (decoder_for(codec), Picture::new(16, 16).unwrap());
    let (mut all, mut bad) = (vec![], 0);
    for (n, frames) in pictures.iter().enumerate() {
        let kept: Vec<_> = frames.iter().filter(|f| keep(f)).collect();
        if kept.is_empty() {
            continue;
        }
        let mut outcome = Decoded::Nothing;
        for frame in kept {
            outcome = decoder.decode(&frame.data, true, &mut shown);
        }
        bad += usize::from(outcome != Decoded::Intact);
        let original = scaled(&picture(SIZE.0, SIZE.1, n as u32), shown.width(), shown.height());
        all.push(psnr(&original, &shown));
    }
    (all, bad)
}

/// A picture at half or a quarter of its size, by averaging.
fn scaled(from: &Picture, width: u32, height: u32) -> Picture {
    let mut to = Picture::new(width, height).unwrap();
    weir_media::scale(from, &mut to);
    to
}

fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len() as f64
}

#[test]
fn without_upper_temporal_layers_half_the_pictures_decode_undamaged() {
    for (library, codec, modes) in modes() {
        for mode in modes.iter().filter(|m| m.starts_with("L1")) {
            let layering: Layering = mode.parse().unwrap();
            let pictures = code(library, codec, &config(mode, 500), 48, 24);
            let (whole, bad) = decode(codec, &pictures, |_| true);
            assert_eq!((whole.len(), bad), (48, 0));
            for top in 0..layering.temporal() - 1 {
                let (kept, bad) = decode(codec, &pictures, |f| layer_of(f).id.temporal <= top);
                println!(
                    "{codec} by {library} {mode} up to T{top}: {} pictures, PSNR {:.1}, of all {:.1}",
                    kept.len(),
                    mean(&kept),
                    mean(&whole)
                );
                let share = 1 << (layering.temporal() - 1 - top);
                assert_eq!((kept.len(), bad), (48 / share, 0), "{codec} by {library} {mode} T{top}");
                // The pictures equal those decoded with all layers present.
                let same: Vec<_> =
                    pictures.iter().zip(&whole).filter(|(p, _)| layer_of(&p[0]).id.temporal <= top).collect();
                assert!(
                    same.iter().zip(&kept).all(|((_, a), b)| (**a - *b).abs() < 1e-9),
                    "{codec} by {library} {mode}"
                );
            }
        }
    }
}

#[test]
fn without_the_upper_spatial_layer_the_lower_one_decodes() {
    for (library, codec, modes) in modes() {
        for mode in modes.iter().filter(|m| !m.starts_with("L1")) {
            let layering: Layering = mode.parse().unwrap();
            let pictures = code(library, codec, &config(mode, 800), 24, 12);
            for top in layering.layers() {
                let (kept, bad) = decode(codec, &pictures, |f| layer_of(f).id.is_within(top));
                println!("{codec} by {library} {mode} up to {top}: {} pictures, PSNR {:.1}", kept.len(), mean(&kept));
                assert_eq!(bad, 0, "{codec} by {library} {mode} {top}");
                assert!(mean(&kept) > 25.0, "{codec} by {library} {mode} {top}: {}", mean(&kept));
            }
            let (mut decoder, mut shown) = (decoder_for(codec), Picture::new(16, 16).unwrap());
            decoder.decode(&pictures[0][0].data, true, &mut shown);
            assert_eq!(
                (shown.width(), shown.height()),
                layering.size_of(0, SIZE.0, SIZE.1),
                "{codec} by {library} {mode}"
            );
        }
    }
}

#[test]
fn layers_keep_to_their_rates() {
    for (library, codec, modes) in modes() {
        for mode in modes.iter().filter(|m| ["L1T2", "L1T3", "L2T1", "L2T2"].contains(&m.as_str())) {
            let layering: Layering = mode.parse().unwrap();
            let pictures = code(library, codec, &config(mode, 600), 150, 1_000);
            let rates = layering.share_out(DataRate::from_kbps(600));
            for top in layering.layers() {
                let bytes: usize = pictures[30..]
                    .iter()
                    .flatten()
                    .filter(|f| layer_of(f).id.is_within(top))
                    .map(|f| f.data.len())
                    .sum();
                let share = bytes as f64 * 8.0 / 4.0 / rates.up_to(top).as_bps_f64();
                println!("{codec} by {library} {mode} up to {top}: {share:.2} of its rate");
                assert!((0.5..1.6).contains(&share), "{codec} by {library} {mode} {top}: {share}");
            }
        }
    }
}

/// A receiver's view of a source whose packets a middlebox forwards up to `top`; the network loses picture `lost`.
fn forwarded(
    library: &str,
    codec: VideoCodec,
    mode: &str,
    top: LayerId,
    lost: u64,
) -> (Vec<FrameOutcome>, (u32, u32), u64) {
    let encoder = encoder_of(library, codec, &config(mode, 600)).unwrap();
    let clip = common::Panning::new(SIZE.0, SIZE.1);
    let mut source = EncodedSource::new(Box::new(clip), encoder, Timestamp::ZERO).unwrap().into_source();
    source.on_target(DataRate::from_kbps(600), Timestamp::ZERO);
    let mut receiver = VideoReceiver::new(decoder_for(codec), OnDamage::Show);
    let (mut outcomes, mut size, mut sequence) = (vec![], (0, 0), 0);
    let (mut frame, mut number) = (ReceivedFrame { whole: true, ..ReceivedFrame::default() }, 0);
    while outcomes.len() < 100 && number < 60 {
        let at = source.next_frame_at().unwrap();
        let layer_frame = source.poll_frame(at).unwrap();
        assert_eq!(layer_frame.kind == FrameKind::Key, number == 0);
        let mut payloads = Payloads::default();
        source.take_payloads(DataSize::from_bytes(500), &mut payloads);
        for (bytes, _) in payloads.iter() {
            let id = LayerInfo::of_payload(codec, bytes).map_or(layer_frame.layer, |l| l.id);
            assert_eq!(id, layer_frame.layer, "{codec} {mode}");
            if id.is_within(top) && number != lost {
                frame.packets.push(ReceivedPayload { sequence, bytes: bytes.to_vec(), ..ReceivedPayload::default() });
            }
            sequence += 1;
        }
        frame.rtp_timestamp = layer_frame.rtp_timestamp;
        if layer_frame.marker {
            number += 1;
            if let Some(last) = frame.packets.last_mut() {
                // As required of a middlebox that drops the top.
                last.marker = true;
                let shown = receiver.on_frame(&frame);
                outcomes.push(shown.outcome);
                size = shown.picture.map_or((0, 0), |p| (p.width(), p.height()));
            }
            frame.packets.clear();
        }
    }
    (outcomes, size, receiver.stats().breaks)
}

#[test]
fn a_receiver_behind_a_middlebox_sees_no_damage() {
    for (library, codec, modes) in modes() {
        for mode in modes.iter().filter(|m| ["L1T2", "L1T3", "L2T1", "L2T3", "L3T3"].contains(&m.as_str())) {
            let layering: Layering = mode.parse().unwrap();
            for top in layering.layers() {
                let (outcomes, size, breaks) = forwarded(library, codec, mode, top, u64::MAX);
                let share = 1 << (layering.temporal() - 1 - top.temporal);
                assert_eq!(outcomes.len(), 60 / share, "{codec} by {library} {mode} {top}");
                let intact = outcomes.iter().filter(|o| **o == FrameOutcome::Intact).count();
                assert_eq!((intact, breaks), (outcomes.len(), 0), "{codec} by {library} {mode} {top}: {outcomes:?}");
                assert_eq!(size, layering.size_of(top.spatial, SIZE.0, SIZE.1), "{codec} by {library} {mode} {top}");
            }
        }
    }
}

#[test]
fn a_lost_picture_of_the_top_temporal_layer_damages_no_other() {
    for (library, codec, _) in modes().into_iter().filter(|m| m.2.iter().any(|mode| mode == "L1T2")) {
        let top = Layering::new(1, 2).unwrap().top();
        // The 31st picture is of layer 1, the 30th of the base.
        let (outcomes, _, breaks) = forwarded(library, codec, "L1T2", top, 31);
        assert!(outcomes.iter().all(|o| *o == FrameOutcome::Intact), "{codec} by {library}: {outcomes:?}");
        assert_eq!((outcomes.len(), breaks), (59, 0));
        let (outcomes, _, breaks) = forwarded(library, codec, "L1T2", top, 30);
        assert_eq!(breaks, 1, "{codec} by {library}: {outcomes:?}");
        assert!(outcomes[30..].iter().all(|o| *o != FrameOutcome::Intact), "{codec} by {library}: {outcomes:?}");
    }
}

/// Rate of a stream in kbit/s at a picture: two seconds high, two low, and high again.
fn share(n: u32, little: u64) -> DataRate {
    DataRate::from_kbps(if (60..120).contains(&n) { little } else { 500 })
}

/// A receiver's view of a stream whose encoder follows its share: number of the picture, highest layer sent, outcome
/// and size.
fn followed(
    library: &str,
    codec: VideoCodec,
    mode: &str,
    little: u64,
) -> Vec<(u32, LayerId, FrameOutcome, (u32, u32))> {
    let mut encoder = encoder_of(library, codec, &config(mode, 500)).unwrap();
    let (mut source, pusher) = PushedSource::new(codec);
    let mut receiver = VideoReceiver::new(decoder_for(codec), OnDamage::Show);
    let (mut all, mut sequence) = (vec![], 0);
    for n in 0..210 {
        let now = Timestamp::from_millis(i64::from(n) * 1_000 / 30);
        source.on_target(share(n, little), now);
        pusher.apply(&mut *encoder, now).unwrap();
        let mut coded = CodedFrame::default();
        encoder.encode(&picture(SIZE.0, SIZE.1, n), u64::from(n) * 3_000, &mut coded).unwrap();
        loop {
            let more = coded.more_layers;
            pusher.push(now, coded);
            coded = CodedFrame::default();
            if !more || !encoder.next_layer(&mut coded) {
                break;
            }
        }
        let mut frame = ReceivedFrame { whole: true, ..ReceivedFrame::default() };
        let mut sent = Vec::new();
        while let Some(f) = source.poll_frame(now) {
            assert!(
                sent.last()
                    .is_none_or(|last: &weir_media::Frame| !last.marker && last.rtp_timestamp == f.rtp_timestamp)
            );
            let mut payloads = Payloads::default();
            source.take_payloads(DataSize::from_bytes(500), &mut payloads);
            for (bytes, _) in payloads.iter() {
                frame.packets.push(ReceivedPayload { sequence, bytes: bytes.to_vec(), ..ReceivedPayload::default() });
                sequence += 1;
            }
            frame.rtp_timestamp = f.rtp_timestamp;
            sent.push(f);
        }
        let (Some(last), Some(packet)) = (sent.last(), frame.packets.last_mut()) else { continue };
        assert!(last.marker, "the picture ends with its uppermost layer");
        packet.marker = true;
        let shown = receiver.on_frame(&frame);
        all.push((n, last.layer, shown.outcome, shown.picture.map_or((0, 0), |p| (p.width(), p.height()))));
    }
    assert!(pusher.left_out() >= 30, "{codec} by {library} {mode}");
    all
}

#[test]
fn upper_layers_stop_as_the_share_falls_and_come_back() {
    for (library, codec, modes) in modes() {
        // 320x240 requires 30 kbit/s, and half of its pictures 18; with a spatial layer below it requires 30 more.
        for (mode, little) in [("L1T2", 25), ("L1T3", 20), ("L2T1", 50), ("L2T2", 50)] {
            if !modes.iter().any(|m| m == mode) {
                continue;
            }
            let layering: Layering = mode.parse().unwrap();
            let shown = followed(library, codec, mode, little);
            let bad: Vec<_> = shown.iter().filter(|s| s.2 != FrameOutcome::Intact).collect();
            assert!(bad.is_empty(), "{codec} by {library} {mode}: {bad:?}");
            let of = |from, to| shown.iter().filter(move |s| (from..to).contains(&s.0));
            // Each layer must fit for a second before it returns.
            for (from, to, top) in [(0, 60, layering.top()), (186, 210, layering.top())] {
                assert_eq!(of(from, to).count() as u32, to - from, "{codec} by {library} {mode}");
                assert_eq!(of(from, to).map(|s| s.1).max(), Some(top), "{codec} by {library} {mode}");
                assert!(of(from, to).all(|s| s.3 == SIZE), "{codec} by {library} {mode}");
            }
            let is_spatial = layering.spatial() > 1;
            let little = of(60, 120).count();
            assert_eq!(little, if is_spatial { 60 } else { 30 }, "{codec} by {library} {mode}");
            let lower = layering.size_of(0, SIZE.0, SIZE.1);
            assert!(of(60, 120).all(|s| s.1.spatial == 0 && s.3 == if is_spatial { lower } else { SIZE }));
        }
    }
}

#[test]
fn layers_that_cannot_be_are_refused() {
    for (library, codec) in encoders() {
        let most = encoder_of(library, codec, &EncoderConfig::live(320, 240)).unwrap().most_layers();
        let found = |c: &EncoderConfig| encoder_of(library, codec, c).err().map(|e| e.to_string()).unwrap_or_default();
        if most.spatial() == 1 {
            assert!(found(&config("L2T1", 500)).contains("layering is L2T1"), "{codec} by {library}");
        }
        let both = EncoderConfig { reference_selection: true, ..config("L1T2", 500) };
        assert!(found(&both).contains("layering is L1T2"), "{codec} by {library}");
    }
}
