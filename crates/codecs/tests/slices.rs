//! Slices of limited size.

use crate::common;
use common::{Chain, encoders, keys, quality};
use weir_codecs::{encoder_of, list};
use weir_media::{Decoded, EncoderConfig, VideoCodec};
use weir_units::{DataRate, DataSize};

/// Sizes of the slices in a byte stream, including NAL unit headers, without start codes (H.264, Annex B).
fn slice_sizes(stream: &[u8]) -> Vec<usize> {
    let starts: Vec<usize> =
        stream.windows(3).enumerate().filter(|(_, w)| *w == [0, 0, 1]).map(|(at, _)| at + 3).collect();
    let ends = starts.iter().skip(1).map(|s| s - 3).chain([stream.len()]);
    starts.iter().zip(ends).filter(|(s, _)| matches!(stream[**s] & 31, 1 | 5)).map(|(s, e)| e - s).collect()
}

fn config(size: u64) -> EncoderConfig {
    let slice_size = Some(DataSize::from_bytes(size));
    EncoderConfig { slice_size, bit_rate: DataRate::from_kbps(1500), ..EncoderConfig::live(640, 480) }
}

#[test]
fn slices_are_bounded_and_follow_a_new_size() {
    let mut seen = 0;
    for (library, codec) in encoders().into_iter().filter(|e| e.1 == VideoCodec::H264) {
        seen += 1;
        let mut chain = Chain::new(library, codec, &config(1200)).unwrap();
        let mut shots = Vec::new();
        for n in 0..60 {
            match n {
                20 => chain.encoder.set_slice_size(Some(DataSize::from_bytes(600))).unwrap(),
                40 => chain.encoder.set_slice_size(None).unwrap(),
                _ => {}
            }
            shots.push(chain.shoot());
        }
        for (n, shot) in shots.iter().enumerate().filter(|(_, s)| !s.frame.data.is_empty()) {
            let sizes = slice_sizes(&shot.frame.data);
            match n {
                0..20 => assert!(sizes.iter().all(|&s| s <= 1200), "{library}: frame {n}: {sizes:?}"),
                20..40 => assert!(sizes.iter().all(|&s| s <= 600), "{library}: frame {n}: {sizes:?}"),
                _ => assert_eq!(sizes.len(), 1, "{library}: frame {n}"),
            }
            assert_eq!(shot.decoded, Decoded::Intact, "{library}: frame {n}");
        }
        // Slices are split for their size only, and not smaller than necessary.
        let mean = |from: usize, to: usize| {
            let all: Vec<_> = shots[from..to].iter().flat_map(|s| slice_sizes(&s.frame.data)).collect();
            all.iter().sum::<usize>() / all.len()
        };
        println!("{library}: mean slices {} and {} bytes, key frames {:?}", mean(0, 20), mean(20, 40), keys(&shots));
        assert!((600..=1200).contains(&mean(0, 20)), "{library}: {}", mean(0, 20));
        assert!((250..=600).contains(&mean(20, 40)), "{library}: {}", mean(20, 40));
        let expected: &[usize] = if library == "openh264" { &[0, 20, 40] } else { &[0] };
        assert_eq!(keys(&shots), expected, "{library}");
        assert!(quality(&shots).0 > 28.0, "{library}: {:?}", quality(&shots));
    }
    assert_eq!(seen, list().iter().filter(|l| l.codec == VideoCodec::H264 && l.built_in).count());
}

#[test]
fn codecs_without_slices_refuse_them() {
    for (library, codec) in encoders().into_iter().filter(|e| e.1 != VideoCodec::H264) {
        let refused = encoder_of(library, codec, &config(1200)).err().unwrap().to_string();
        assert!(refused.contains("slice_size"), "{refused}");
        let mut encoder = encoder_of(library, codec, &EncoderConfig::live(320, 240)).unwrap();
        assert!(encoder.set_slice_size(Some(DataSize::from_bytes(1200))).is_err());
        assert!(encoder.set_slice_size(None).is_ok());
    }
}
