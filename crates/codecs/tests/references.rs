//! Reference picture selection: after a loss encoding continues from a picture that the receiver has, without a key
//! frame.
#![expect(clippy::unwrap_used, reason = "tests")]

use crate::common;
use common::{Chain, decoder_for, encoders, keys, quality};
use weir_codecs::{encoder_of, list};
use weir_media::{Decoded, EncoderConfig, Picture, VideoCodec};
use weir_units::DataRate;

fn config() -> EncoderConfig {
    let bit_rate = DataRate::from_kbps(500);
    EncoderConfig { reference_selection: true, may_drop: false, bit_rate, ..EncoderConfig::live(320, 240) }
}

fn selecting() -> Vec<(&'static str, VideoCodec)> {
    let able = |l: &str, c| list().iter().any(|x| x.name == l && x.codec == c && x.capabilities.reference_selection);
    encoders().into_iter().filter(|(l, c)| able(l, *c)).collect()
}

/// Delay of feedback in frames.
const ROUND_TRIP: u64 = 5;

/// A call of `frames` frames in which `lost` ones never arrive, with feedback a round trip later. The receiver has two
/// decoders: one gets everything, the other what arrives. Returns for each frame whether it was coded from a selected
/// picture, and whether both decoders show the same afterwards.
fn call(library: &str, codec: VideoCodec, frames: u64, lost: impl Fn(u64) -> bool, select: bool) -> Vec<(bool, bool)> {
    let mut chain = Chain::new(library, codec, &config()).unwrap();
    let (mut receiver, mut shown) = (decoder_for(codec), Picture::new(320, 240).unwrap());
    let (mut feedback, mut last_good, mut next_ask, mut broken) = (Vec::<(u64, bool, u64)>::new(), 0, 0, false);
    let (mut shots, mut same) = (Vec::new(), Vec::new());
    for n in 0..frames {
        for (_, received, good) in feedback.extract_if(.., |(at, ..)| *at == n) {
            match received {
                true => chain.encoder.acknowledge(good),
                false if select => assert!(chain.encoder.select_reference(good), "{codec} by {library}: frame {n}"),
                false => {}
            }
        }
        let shot = chain.shoot();
        assert_eq!((shot.decoded, shot.frame.picture_id), (Decoded::Intact, n), "{codec} by {library}: frame {n}");
        if lost(n) {
            broken = true;
        } else {
            broken &= !shot.frame.from_selected;
            receiver.decode(&shot.frame.data, true, &mut shown);
        }
        // A requested frame may be lost too, and is requested again.
        if broken && n >= next_ask {
            feedback.push((n + ROUND_TRIP, false, last_good));
            next_ask = n + ROUND_TRIP + 1;
        } else if !broken {
            last_good = n;
            next_ask = n;
            feedback.push((n + ROUND_TRIP, true, n));
        }
        same.push((shot.frame.from_selected, shown == chain.shown));
        shots.push(shot);
    }
    assert_eq!(keys(&shots), [0], "{codec} by {library}");
    let (lowest, mean) = quality(&shots[10..]);
    println!("{codec} by {library}: PSNR {lowest:.1} to mean {mean:.1}");
    assert!(lowest > 28.0, "{codec} by {library}: {lowest:.1}");
    same
}

#[test]
fn a_loss_is_over_with_the_first_frame_from_a_selected_picture() {
    for (library, codec) in selecting() {
        let lost = |n| (40..43).contains(&n);
        let steps = call(library, codec, 80, lost, true);
        for (n, (selected, same)) in steps.iter().enumerate() {
            assert_eq!(*selected, n == 45, "{codec} by {library}: frame {n}");
            assert_eq!(*same, !(40..45).contains(&n), "{codec} by {library}: frame {n}");
        }
        // Without it the receiver never again shows what was coded.
        let steps = call(library, codec, 80, lost, false);
        assert!(steps[40..].iter().all(|s| !s.0 && !s.1), "{codec} by {library}");
    }
}

#[test]
fn one_loss_after_the_other_is_survived_without_a_key_frame() {
    for (library, codec) in selecting() {
        // Frames coded from a selected picture, and frames that would be kept, are also lost.
        let lost = |n: u64| n > 8 && (n % 23 < 2 || n % 17 == 5 || n % 31 == 12);
        let steps = call(library, codec, 300, lost, true);
        let same = steps.iter().filter(|s| s.1).count();
        assert!((100..300).contains(&same), "{codec} by {library}: {same}");
        let longest = steps.split(|s| s.1).map(<[_]>::len).max().unwrap();
        assert!(longest as u64 <= 4 * ROUND_TRIP, "{codec} by {library}: {longest}");
    }
}

#[test]
fn a_selected_picture_costs_less_than_a_key_frame_and_looks_like_the_rest() {
    for (library, codec) in selecting() {
        let mut chain = Chain::new(library, codec, &config()).unwrap();
        let mut shots = Vec::new();
        for n in 0..70u64 {
            if n >= 6 {
                chain.encoder.acknowledge(n - 6);
            }
            if n == 50 {
                assert!(chain.encoder.select_reference(46));
            }
            if n == 60 {
                chain.encoder.request_key_frame();
            }
            shots.push(chain.shoot());
        }
        assert_eq!(keys(&shots), [0, 60], "{codec} by {library}");
        let sizes = [50, 60].map(|n: usize| shots[n].frame.data.len());
        println!("{codec} by {library}: {} bytes from a selected picture, {} as a key frame", sizes[0], sizes[1]);
        assert!(shots[50].frame.from_selected && sizes[0] < sizes[1], "{codec} by {library}: {sizes:?}");
        let mean = quality(&shots[40..50]).1;
        assert!((shots[50].psnr - mean).abs() < 5.0, "{codec} by {library}: {:.1} beside {mean:.1}", shots[50].psnr);
    }
}

#[test]
fn without_kept_references_selection_fails() {
    for (library, codec) in encoders() {
        let without = EncoderConfig { reference_selection: false, ..config() };
        let mut chain = Chain::new(library, codec, &without).unwrap();
        (0..10).for_each(|_| drop(chain.shoot()));
        assert!(!chain.encoder.select_reference(8), "{codec} by {library}");
        assert!(!chain.shoot().frame.from_selected);
    }
    for (library, codec) in selecting() {
        let mut chain = Chain::new(library, codec, &config()).unwrap();
        assert!(!chain.encoder.select_reference(0), "{codec} by {library}: before the first frame");
        (0..10).for_each(|_| drop(chain.shoot()));
        chain.encoder.request_key_frame();
        assert!(chain.shoot().frame.key);
        assert!(chain.encoder.select_reference(10));
        assert!(!chain.encoder.select_reference(9), "{codec} by {library}: a key frame has taken all buffers");
    }
    for (library, codec) in encoders() {
        if !selecting().contains(&(library, codec)) {
            let refused = encoder_of(library, codec, &config()).err().unwrap().to_string();
            assert!(refused.contains("reference_selection"), "{refused}");
        }
    }
}
