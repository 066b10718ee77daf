//! Decoders tolerate any bytes, and recover.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common;
use common::{Chain, decoder_for, encoders, picture, psnr};
use proptest::prelude::*;
use weir_media::{CodedFrame, Decoded, EncoderConfig, Picture, VideoCodec};
use weir_units::{DataRate, DataSize};

/// Frames of a codec with their pictures; the first and `key` are key frames.
fn stream(library: &str, codec: VideoCodec, size: (u32, u32), frames: usize, key: usize) -> Vec<(Picture, CodedFrame)> {
    let config =
        EncoderConfig { may_drop: false, bit_rate: DataRate::from_kbps(400), ..EncoderConfig::live(size.0, size.1) };
    let mut chain = Chain::new(library, codec, &config).unwrap();
    (0..frames)
        .map(|n| {
            if n == key {
                chain.encoder.request_key_frame();
            }
            chain.code()
        })
        .collect()
}

#[test]
fn after_damage_and_loss_the_next_key_frame_brings_the_picture_back() {
    for (library, codec) in encoders() {
        let frames = stream(library, codec, (320, 240), 40, 30);
        let mut decoder = decoder_for(codec);
        let mut shown = Picture::new(320, 240).unwrap();
        for (n, (source, frame)) in frames.iter().enumerate() {
            let mut data = frame.data.clone();
            let whole = match n {
                8..10 => continue,
                12 => {
                    data.truncate(data.len() / 2);
                    false
                }
                15 => {
                    data.iter_mut().skip(20).step_by(7).for_each(|b| *b ^= 0x55);
                    true
                }
                20 => {
                    data = (0..5000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
                    true
                }
                _ => true,
            };
            let decoded = decoder.decode(&data, whole, &mut shown);
            if !(8..30).contains(&n) {
                assert_eq!(decoded, Decoded::Intact, "{codec} by {library}: frame {n}");
                assert!(psnr(source, &shown) > 26.0, "{codec} by {library}: frame {n}: {:.1}", psnr(source, &shown));
            }
            assert!(whole || decoded != Decoded::Intact, "{codec} by {library}: frame {n}");
        }
    }
}

#[test]
fn partial_frames_are_shown_if_the_codec_allows_it() {
    for (library, codec) in encoders() {
        let mut config =
            EncoderConfig { may_drop: false, bit_rate: DataRate::from_kbps(800), ..EncoderConfig::live(640, 480) };
        if codec == VideoCodec::H264 {
            config.slice_size = Some(DataSize::from_bytes(500));
        }
        let mut chain = Chain::new(library, codec, &config).unwrap();
        let frames: Vec<_> = (0..20).map(|_| chain.code()).collect();
        // The mean quality of the damaged frame and later ones, with some of its bytes lost, and with all lost.
        let [some, none] = [true, false].map(|some| {
            let (mut decoder, mut shown) = (decoder_for(codec), Picture::new(640, 480).unwrap());
            let mut sum = 0.0;
            for (n, (source, frame)) in frames.iter().enumerate() {
                let mut data = frame.data.clone();
                if n == 10 {
                    let len = data.len();
                    // Between start codes, if there are any.
                    let starts: Vec<_> =
                        data.windows(4).enumerate().filter(|(_, w)| *w == [0, 0, 0, 1]).map(|(at, _)| at).collect();
                    let hole = match starts[..] {
                        [.., from, to] if codec == VideoCodec::H264 => from..to,
                        _ => len / 2..len * 3 / 4,
                    };
                    data.drain(hole);
                    let decoded = if some { decoder.decode(&data, false, &mut shown) } else { Decoded::Nothing };
                    let expected = if some && codec != VideoCodec::Vp9 { Decoded::Concealed } else { Decoded::Nothing };
                    assert_eq!(decoded, expected, "{codec} by {library}");
                } else {
                    // VP9 adapts from frame to frame, and fails after a loss.
                    let decoded = decoder.decode(&data, true, &mut shown);
                    assert!(
                        n > 10 && codec == VideoCodec::Vp9 || decoded != Decoded::Nothing,
                        "{codec} by {library}: {n}"
                    );
                }
                sum += if n >= 10 { psnr(source, &shown) / 10.0 } else { 0.0 };
            }
            sum
        });
        println!("{codec} by {library}: {some:.1} dB with some of a frame, {none:.1} dB without it");
        let gain = if codec == VideoCodec::Vp9 { -0.1..0.1 } else { 3.0..40.0 };
        assert!(gain.contains(&(some - none)), "{codec} by {library}: {some:.1} beside {none:.1}");
    }
}

#[test]
fn a_stream_may_change_its_size() {
    for (library, codec) in encoders() {
        let mut decoder = decoder_for(codec);
        let mut shown = Picture::new(16, 16).unwrap();
        for size in [(320, 240), (176, 144), (640, 360), (64, 64)] {
            for (source, frame) in stream(library, codec, size, 4, 99) {
                assert_eq!(
                    decoder.decode(&frame.data, true, &mut shown),
                    Decoded::Intact,
                    "{codec} by {library} {size:?}"
                );
                assert!(psnr(&source, &shown) > 24.0, "{codec} by {library} {size:?}: {:.1}", psnr(&source, &shown));
            }
        }
    }
}

#[test]
fn a_stream_may_begin_in_the_middle() {
    for (library, codec) in encoders() {
        let frames = stream(library, codec, (320, 240), 12, 8);
        let mut decoder = decoder_for(codec);
        let mut shown = Picture::new(320, 240).unwrap();
        for (n, (source, frame)) in frames.iter().enumerate().skip(3) {
            let decoded = decoder.decode(&frame.data, true, &mut shown);
            assert_eq!(decoded == Decoded::Intact, n >= 8, "{codec} by {library}: frame {n}: {decoded:?}");
            assert!(n < 8 || psnr(source, &shown) > 26.0, "{codec} by {library}: frame {n}");
        }
    }
}

#[test]
fn nothing_and_noise_give_nothing() {
    for (library, codec) in encoders() {
        let mut decoder = decoder_for(codec);
        let mut shown = picture(32, 32, 0);
        for data in [&[][..], &[0], &[0; 100], &[0xff; 1000], &[0, 0, 1], &[0, 0, 0, 1, 0x67], &[0x9d, 1, 0x2a]] {
            assert_eq!(decoder.decode(data, true, &mut shown), Decoded::Nothing, "{codec} by {library}: {data:x?}");
        }
        assert_eq!(shown, picture(32, 32, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_lost_and_shuffled_frames_do_no_harm(
        flips in prop::collection::vec((0usize..12, any::<prop::sample::Index>(), any::<u8>()), 0..40),
        order in prop::collection::vec(0usize..12, 1..30),
        cut in any::<prop::sample::Index>(),
    ) {
        for (library, codec) in encoders() {
            let clean = stream(library, codec, (96, 80), 12, 6);
            let mut frames: Vec<_> = clean.iter().map(|(_, f)| f.data.clone()).collect();
            for (frame, at, value) in &flips {
                let data = &mut frames[*frame];
                let at = at.index(data.len());
                data[at] ^= value;
            }
            let last = frames.last_mut().unwrap();
            last.truncate(cut.index(last.len()));
            let mut decoder = decoder_for(codec);
            let mut shown = Picture::new(96, 80).unwrap();
            for n in order.iter().chain(&(0..12).collect::<Vec<_>>()) {
                let decoded = decoder.decode(&frames[*n], n % 3 != 0, &mut shown);
                prop_assert!(n % 3 != 0 || decoded != Decoded::Intact);
            }
            // An intact key frame recovers every decoder.
            for (n, (source, frame)) in clean.iter().enumerate().take(11).skip(6) {
                let decoded = decoder.decode(&frame.data, true, &mut shown);
                prop_assert_eq!(decoded, Decoded::Intact, "{} by {}: frame {}", codec, library, n);
                prop_assert!(psnr(source, &shown) > 24.0);
            }
        }
    }

    #[test]
    fn garbage_does_no_harm(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 1..12)) {
        for (_, codec) in encoders() {
            let mut decoder = decoder_for(codec);
            let mut shown = Picture::new(16, 16).unwrap();
            for data in &frames {
                // Unmodified, and after the start of a picture of each codec.
                decoder.decode(data, true, &mut shown);
                let begin: &[u8] = match codec {
                    VideoCodec::H264 => &[0, 0, 0, 1, 0x65],
                    VideoCodec::Vp8 => &[0x10, 0x02, 0, 0x9d, 0x01, 0x2a, 0x40, 0, 0x40, 0],
                    _ => &[0x82, 0x49, 0x83, 0x42],
                };
                decoder.decode(&[begin, data].concat(), true, &mut shown);
            }
            prop_assert!(shown.width() >= 1);
        }
    }
}
