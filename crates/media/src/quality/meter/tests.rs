use super::*;
use crate::quality::PSNR_CAP;

const STEP: u32 = 3_000;

/// A uniform picture of this luma.
fn flat(v: u8) -> Picture {
    let mut p = Picture::new(16, 16).unwrap();
    p.plane_mut(crate::Plane::Y).fill(v);
    p
}

fn meter(pending: usize) -> QualityMeter {
    QualityMeter::new(MeterConfig { pending, scores: 100, ..MeterConfig::default() })
}

fn scores(m: &mut QualityMeter) -> Vec<(u64, Outcome, Option<f64>)> {
    std::iter::from_fn(|| m.poll_score())
        .map(|s| (s.number, s.outcome, s.comparison.map(|c| c.errors.psnr().y)))
        .collect()
}

#[test]
fn missing_pictures_are_scored_as_the_one_that_stayed() {
    // Luma 100, 101, 102, ...; the third is lost, the fourth cannot be decoded. Timestamps wrap meanwhile.
    let mut m = meter(90);
    let start = u32::MAX - STEP;
    let at = |i: u32| start.wrapping_add(i * STEP);
    for i in 0..6 {
        m.on_reference(at(i), &flat(100 + i as u8));
    }
    m.on_received(at(0), Decoded::Intact, &flat(100));
    m.on_received(at(1), Decoded::Concealed, &flat(101));
    m.on_received(at(3), Decoded::Nothing, &flat(7));
    m.on_received(at(4), Decoded::Intact, &flat(104));
    // Luma off by 1 is 48.1308 dB, by 2 is 42.1102 dB, at a peak of 255.
    let got = scores(&mut m);
    let expected = [
        (Outcome::Shown, PSNR_CAP),
        (Outcome::Concealed, PSNR_CAP),
        (Outcome::Missing, 48.1308),
        (Outcome::Undecodable, 42.1102),
        (Outcome::Shown, PSNR_CAP),
    ];
    assert_eq!(got.len(), 5);
    for (i, ((number, outcome, psnr), expected)) in got.into_iter().zip(expected).enumerate() {
        assert_eq!((number, outcome), (i as u64, expected.0));
        assert!((psnr.unwrap() - expected.1).abs() < 1e-3, "{i}: {psnr:?}");
    }
    m.finish();
    let r = m.report();
    assert_eq!((r.references, r.shown, r.concealed, r.undecodable, r.missing), (6, 2, 1, 1, 2));
    assert_eq!((r.frozen(), r.psnr_y.count(), r.ssim_gaussian.count()), (3, 6, 6));
    assert!(r.ssim_tiled.mean().unwrap() > 0.99 && r.ssim_tiled.min().unwrap() < 1.0);
    assert_eq!(r.errors.samples[0], 6 * 256);
    assert_eq!(r.errors.squared[0], (1 + 4 + 1) * 256);
}

#[test]
fn nothing_is_scored_before_anything_is_shown() {
    let mut m = meter(90);
    for i in 0..4 {
        m.on_reference(i * STEP, &flat(50));
    }
    m.on_received(STEP, Decoded::Nothing, &flat(0));
    m.on_received(2 * STEP, Decoded::Intact, &flat(50));
    let r = m.report();
    assert_eq!((r.references, r.before_first, r.psnr_y.count()), (3, 2, 1));
    assert_eq!(r.psnr_y.mean(), Some(PSNR_CAP));
}

#[test]
fn late_duplicate_and_unknown_frames_are_counted() {
    let mut m = meter(90);
    m.on_received(5, Decoded::Intact, &flat(1));
    for i in 0..4 {
        m.on_reference(i * STEP, &flat(50));
    }
    m.on_reference(3 * STEP, &flat(9));
    m.on_reference(STEP, &flat(9));
    m.on_received(2 * STEP, Decoded::Intact, &flat(50));
    m.on_received(2 * STEP, Decoded::Intact, &flat(50));
    m.on_received(STEP, Decoded::Intact, &flat(50));
    m.on_received(3 * STEP + 7, Decoded::Intact, &flat(50));
    m.on_received(2 * STEP + 7, Decoded::Intact, &flat(50));
    m.on_received(3 * STEP, Decoded::Intact, &Picture::new(8, 8).unwrap());
    let r = m.report();
    assert_eq!((r.late, r.unknown, r.disordered, r.other_size), (3, 2, 2, 1));
    assert_eq!((r.references, r.shown, r.missing), (4, 2, 2));
}

#[test]
fn waiting_frames_are_bounded() {
    let mut m = meter(3);
    for i in 0..1_000 {
        m.on_reference(i * STEP, &flat(i as u8));
    }
    assert_eq!((m.pending.len(), m.report().missing, m.spare.len() <= 3), (3, 997, true));
    m.on_received(5 * STEP, Decoded::Intact, &flat(5));
    assert_eq!(m.report().late, 1);
    m.finish();
    assert_eq!((m.report().references, m.report().before_first), (1_000, 1_000));
    assert_eq!(scores(&mut m).len(), 100);
}

#[test]
fn freezes_are_long_gaps_beside_usual_ones() {
    let gap = |lost: std::ops::Range<u32>, count: u32| {
        let mut m = meter(90);
        for i in 0..count {
            m.on_reference(i * STEP, &flat(50));
            if !lost.contains(&i) {
                m.on_received(i * STEP, Decoded::Intact, &flat(50));
            }
        }
        m.finish();
        let r = m.report();
        (r.freezes, r.freeze_time.as_millis(), r.longest_freeze.as_millis())
    };
    // The usual interval is 33.3 ms: a freeze exceeds 183.3 ms. Four lost pictures make 166.7 ms, five 200 ms.
    assert_eq!(gap(40..44, 60), (0, 0, 0));
    assert_eq!(gap(40..45, 60), (1, 200, 200));
    // Also at the end: the last shown is 53, the last captured 59.
    assert_eq!(gap(54..60, 60), (1, 200, 200));
    assert_eq!(gap(55..60, 60), (0, 0, 0));
    // From the second picture on, when only the references give the usual interval.
    assert_eq!(gap(1..31, 60), (1, 1_033, 1_033));
    // Without a first picture, from the first captured one on: for a while, and for good.
    assert_eq!(gap(0..31, 60), (1, 1_033, 1_033));
    assert_eq!(gap(0..60, 60), (1, 1_966, 1_966));
    assert_eq!(gap(0..4, 60), (0, 0, 0));
}
