//! The coded rate around an outage: the target falls to its floor, stays there and comes back.

use crate::common;
use common::{decoder_for, encoders, psnr};
use weir_codecs::encoder_of;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::{CodedFrame, EncoderConfig, FrameRate, Layering, Picture, VideoCodec};
use weir_units::DataRate;

/// Pictures a second.
const FPS: usize = 30;
/// Pictures before the fall.
const BEFORE: usize = 2 * FPS;
/// Pictures after the rise.
const AFTER: usize = 8 * FPS;
const HIGH: f64 = 4e6;
const LOW: f64 = 100e3;

/// An outage: pictures at the floor, the factor by which the target grows in each 100 ms from there, whether key frames are
/// requested 0.5 s after its begin and 100 ms after its end, the interval of others, and temporal layers.
#[derive(Clone, Copy, Debug)]
struct Outage {
    pictures: usize,
    growth: f64,
    keys: bool,
    interval: Option<u32>,
    layers: u8,
}

/// A picture: its share of the target and its size, in bits, and its PSNR in dB.
struct Shot {
    share: f64,
    bits: f64,
    psnr: f64,
}

/// Measures of a run.
#[derive(Clone, Copy, Debug)]
struct Measures {
    /// Seconds from the rise to the begin of the first 0.5 s that have 0.8 of their target.
    until: f64,
    /// Bits above the target, in kbit, in the first 0.2 s and the first second after the fall, and after the rise.
    fall: [f64; 2],
    rise: [f64; 2],
    /// Longest time after the rise, in ms, that a queue drained by the target would need for what it holds, had it been empty.
    queue: f64,
    /// Coded in the 5 s after the rise as a share of the target, mean PSNR of them, and of those of the outage; pictures left out in the 5 s.
    share: f64,
    psnr: f64,
    psnr_in: f64,
    out: usize,
}

impl Outage {
    fn target(self, n: usize) -> f64 {
        if n < BEFORE {
            HIGH
        } else if n < BEFORE + self.pictures {
            LOW
        } else {
            let steps = (n - BEFORE - self.pictures) / 3 + 1;
            (LOW * self.growth.powi(steps as i32)).min(HIGH)
        }
    }

    fn shots(self, library: &str, codec: VideoCodec) -> Vec<Shot> {
        let (width, height) = (640, 360);
        let rate = FrameRate::new(FPS as u32, 1).expect("a rate");
        let mut clip = Clip::new(ClipSpec::new(Character::Sports, width, height, rate)).expect("a clip");
        let config = EncoderConfig {
            bit_rate: DataRate::from_bps(HIGH as u64),
            key_interval: self.interval,
            layering: Layering::new(1, self.layers).expect("layers"),
            ..EncoderConfig::live(width, height)
        };
        let mut encoder = encoder_of(library, codec, &config).expect("an encoder");
        let mut decoder = decoder_for(codec);
        let mut picture = Picture::new(width, height).expect("a picture");
        let (mut shown, mut coded) = (picture.clone(), CodedFrame::default());
        let rise = BEFORE + self.pictures;
        let shot = |n| {
            let target = self.target(n);
            encoder.set_bit_rate(DataRate::from_bps(target as u64)).expect("a rate");
            if self.keys && (n == BEFORE + FPS / 2 || n == rise + 3) {
                encoder.request_key_frame();
            }
            clip.draw(n as u64, &mut picture);
            encoder.encode(&picture, n as u64 * 3_000, &mut coded).expect("coded");
            if !coded.data.is_empty() {
                decoder.decode(&coded.data, true, &mut shown);
            }
            Shot { share: target / FPS as f64, bits: coded.data.len() as f64 * 8.0, psnr: psnr(&picture, &shown) }
        };
        (0..rise + AFTER).map(shot).collect()
    }

    fn run(self, library: &str, codec: VideoCodec) -> Measures {
        let shots = self.shots(library, codec);
        let rise = BEFORE + self.pictures;
        let (outage, after) = (&shots[BEFORE..rise], &shots[rise..]);
        let bits = |s: &[Shot]| s.iter().map(|s| s.bits).sum::<f64>();
        let target = |s: &[Shot]| s.iter().map(|s| s.share).sum::<f64>();
        let over = |s: &[Shot]| [FPS / 5, FPS].map(|n| (bits(&s[..n]) - target(&s[..n])) / 1e3);
        let until = after.windows(FPS / 2).position(|w| bits(w) >= 0.8 * target(w)).unwrap_or(AFTER);
        let (mut held, mut queue) = (0.0, 0.0_f64);
        for s in after {
            held += s.bits;
            queue = queue.max((held - s.share) / s.share);
            held = f64::max(held - s.share, 0.0);
        }
        let five = &after[..5 * FPS];
        let mean = |s: &[Shot]| s.iter().map(|s| s.psnr).sum::<f64>() / s.len() as f64;
        Measures {
            until: until as f64 / FPS as f64,
            fall: over(outage),
            rise: over(after),
            queue: queue * 1e3 / FPS as f64,
            share: bits(five) / target(five),
            psnr: mean(five),
            psnr_in: mean(outage),
            out: five.iter().filter(|s| s.bits == 0.0).count(),
        }
    }
}

/// Longer runs: 60 and 90 pictures, growth by 1.05.
const OUTAGES: [Outage; 7] = [
    Outage { pictures: 30, growth: f64::INFINITY, keys: true, interval: None, layers: 1 },
    Outage { pictures: 60, growth: f64::INFINITY, keys: false, interval: None, layers: 1 },
    Outage { pictures: 60, growth: f64::INFINITY, keys: false, interval: Some(60), layers: 1 },
    Outage { pictures: 30, growth: f64::INFINITY, keys: true, interval: None, layers: 2 },
    Outage { pictures: 60, growth: f64::INFINITY, keys: false, interval: Some(60), layers: 3 },
    Outage { pictures: 30, growth: 2.0, keys: false, interval: None, layers: 1 },
    Outage { pictures: 30, growth: 1.3, keys: false, interval: None, layers: 1 },
];

#[test]
fn the_rate_is_back_soon_after_an_outage() {
    for (library, codec) in encoders() {
        // x264 has no layers, and what others do with them is not asserted.
        for outage in OUTAGES.into_iter().filter(|o| o.layers == 1 || library == "openh264") {
            let m = outage.run(library, codec);
            println!("{codec} by {library}, {outage:?}: {m:.2?}");
            if library != "openh264" {
                continue;
            }
            assert!(m.until <= 0.7 && m.share >= 0.85 && m.psnr > 32.0, "{outage:?}: {m:.2?}");
            // No more than two key frames' worth at the floor, and nothing of it is left at the rate of before.
            assert!(m.fall[1] < 300.0 && m.rise[1] < 0.0, "{outage:?}: {m:.2?}");
            // The longest queue is that of the first steps of a slow rise, which overspend at the floor.
            assert!(m.queue < 600.0 && m.psnr_in > 15.0 && m.out <= FPS + FPS / 6, "{outage:?}: {m:.2?}");
        }
    }
}
