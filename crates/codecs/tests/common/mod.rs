//! A moving picture to encode, and a measure of the difference between pictures.
#![allow(dead_code, clippy::allow_attributes, clippy::unwrap_used, reason = "each test takes what it needs")]

use weir_codecs::{decoder_of, encoder_of};
use weir_media::{
    CodedFrame, Decoded, EncoderConfig, MediaError, Picture, PictureSource, Plane, VideoCodec, VideoDecoder,
    VideoEncoder, VideoError,
};
use weir_units::TimeDelta;

/// [`picture`]s as a source.
pub(crate) struct Panning {
    size: (u32, u32),
    n: u32,
}

impl Panning {
    pub(crate) fn new(width: u32, height: u32) -> Self {
        Self { size: (width, height), n: 0 }
    }
}

impl PictureSource for Panning {
    fn size(&self) -> (u32, u32) {
        self.size
    }
    fn interval(&self) -> TimeDelta {
        TimeDelta::from_secs_f64(1.0 / 30.0)
    }
    fn next_picture(&mut self, to: &mut Picture) -> Result<bool, MediaError> {
        *to = picture(self.size.0, self.size.1, self.n);
        self.n += 1;
        Ok(true)
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.n = 0;
        Ok(true)
    }
}

/// A hash of three numbers.
fn hash(x: u32, y: u32, z: u32) -> u32 {
    let mut h = x.wrapping_mul(0x9e37_79b1) ^ y.wrapping_mul(0x85eb_ca77) ^ z.wrapping_mul(0xc2b2_ae3d);
    h = (h ^ (h >> 15)).wrapping_mul(0x2c1b_3c6d);
    h = (h ^ (h >> 12)).wrapping_mul(0x297a_2d39);
    h ^ (h >> 15)
}

/// Smooth noise, 0 to 255, with grains `grain` samples wide.
fn texture(x: u32, y: u32, grain: u32, seed: u32) -> u32 {
    let (cx, cy, fx, fy) = (x / grain, y / grain, x % grain, y % grain);
    let at = |i, j| hash(cx + i, cy + j, seed) & 255;
    let top = at(0, 0) * (grain - fx) + at(1, 0) * fx;
    let bottom = at(0, 1) * (grain - fx) + at(1, 1) * fx;
    (top * (grain - fy) + bottom * fy) / (grain * grain)
}

/// Picture `n` of a swaying head in front of a textured wall, with a little camera noise.
pub(crate) fn picture(width: u32, height: u32, n: u32) -> Picture {
    let mut p = Picture::new(width, height).unwrap();
    let swing = |period: u32, reach: u32| {
        let t = n % period;
        reach * t.min(period - t) * 2 / period
    };
    let (sx, sy) = (swing(64, width / 4), swing(44, height / 8));
    let (cx, cy) = ((width * 3 / 8 + sx) as i64, (height * 3 / 8 + sy) as i64);
    let (rx, ry) = ((width / 6).max(1) as i64, (height / 3).max(1) as i64);
    let inside = |x: i64, y: i64| {
        let (dx, dy) = ((x - cx) * 1000 / rx, (y - cy) * 1000 / ry);
        dx * dx + dy * dy < 1_000_000
    };
    for plane in Plane::ALL {
        let (w, h) = p.size_of(plane);
        let scale = if plane == Plane::Y { 1 } else { 2 };
        let samples = p.plane_mut(plane);
        for y in 0..h as u32 {
            for x in 0..w as u32 {
                let (px, py) = (x * scale, y * scale);
                let (px64, py64) = (i64::from(px), i64::from(py));
                let value = match (plane, inside(px64, py64)) {
                    (Plane::Y, true) => {
                        90 + texture(px + 1000 - sx, py + 1000 - sy, 7, 5) / 3
                            + texture(px + 1000 - sx, py + 1000 - sy, 3, 6) / 5
                    }
                    (Plane::Y, false) => 40 + texture(px, py, 23, 1) / 4 + texture(px, py, 5, 2) / 8,
                    (Plane::U, head) => {
                        if head {
                            110
                        } else {
                            128 + texture(px, py, 40, 3) / 16
                        }
                    }
                    (Plane::V, head) => {
                        if head {
                            150
                        } else {
                            120
                        }
                    }
                };
                let noise = if plane == Plane::Y { hash(x, y, n + 77) % 5 } else { 0 };
                samples[y as usize * w + x as usize] = (value + noise).min(255) as u8;
            }
        }
    }
    p
}

/// Peak signal-to-noise ratio of luma in dB; 99 for equal pictures. Samples in only one of them are ignored.
pub(crate) fn psnr(a: &Picture, b: &Picture) -> f64 {
    let ((aw, ah), (bw, bh)) = (a.size_of(Plane::Y), b.size_of(Plane::Y));
    assert!(aw.abs_diff(bw) <= 1 && ah.abs_diff(bh) <= 1, "{a:?} and {b:?} differ in size");
    let (w, h) = (aw.min(bw), ah.min(bh));
    let mut sum = 0u64;
    for y in 0..h {
        let (ra, rb) = (&a.plane(Plane::Y)[y * aw..][..w], &b.plane(Plane::Y)[y * bw..][..w]);
        sum += ra.iter().zip(rb).map(|(&x, &y)| u64::from(x.abs_diff(y)).pow(2)).sum::<u64>();
    }
    if sum == 0 { 99.0 } else { 10.0 * (255.0 * 255.0 * (w * h) as f64 / sum as f64).log10() }
}

/// The result for one picture.
#[derive(Clone, Debug)]
pub(crate) struct Shot {
    pub(crate) frame: CodedFrame,
    pub(crate) decoded: Decoded,
    pub(crate) psnr: f64,
}

/// An encoder and its decoder.
pub(crate) struct Chain {
    pub(crate) encoder: Box<dyn VideoEncoder>,
    pub(crate) decoder: Box<dyn VideoDecoder>,
    pub(crate) shown: Picture,
    pub(crate) n: u32,
}

impl Chain {
    pub(crate) fn new(library: &str, codec: VideoCodec, config: &EncoderConfig) -> Result<Self, VideoError> {
        Ok(Self {
            encoder: encoder_of(library, codec, config)?,
            decoder: decoder_for(codec),
            shown: Picture::new(config.width, config.height).unwrap(),
            n: 0,
        })
    }

    /// Encodes the next picture.
    pub(crate) fn code(&mut self) -> (Picture, CodedFrame) {
        let (width, height) = (self.encoder.config().width, self.encoder.config().height);
        let source = picture(width, height, self.n);
        let mut frame = CodedFrame::default();
        let ticks = (f64::from(self.n) * 90_000.0 / self.encoder.config().frame_rate).round() as u64;
        self.encoder.encode(&source, ticks, &mut frame).unwrap();
        self.n += 1;
        (source, frame)
    }

    /// Encodes and decodes the next picture; a dropped frame repeats the last picture.
    pub(crate) fn shoot(&mut self) -> Shot {
        let (source, frame) = self.code();
        let decoded = if frame.data.is_empty() {
            Decoded::Nothing
        } else {
            self.decoder.decode(&frame.data, true, &mut self.shown)
        };
        let psnr = psnr(&source, &self.shown);
        Shot { frame, decoded, psnr }
    }
}

/// The decoder for an encoder's output.
pub(crate) fn decoder_for(codec: VideoCodec) -> Box<dyn VideoDecoder> {
    let library = if codec == VideoCodec::H264 { "openh264" } else { "libvpx" };
    decoder_of(library, codec).unwrap()
}

/// kbit/s of some frames.
pub(crate) fn kbps(shots: &[Shot], frame_rate: f64) -> f64 {
    let bytes: usize = shots.iter().map(|s| s.frame.data.len()).sum();
    bytes as f64 * 8.0 / 1000.0 * frame_rate / shots.len() as f64
}

/// Numbers of key frames.
pub(crate) fn keys(shots: &[Shot]) -> Vec<usize> {
    shots.iter().enumerate().filter(|(_, s)| s.frame.key).map(|(n, _)| n).collect()
}

/// The lowest and the mean PSNR.
pub(crate) fn quality(shots: &[Shot]) -> (f64, f64) {
    let lowest = shots.iter().map(|s| s.psnr).fold(f64::INFINITY, f64::min);
    (lowest, shots.iter().map(|s| s.psnr).sum::<f64>() / shots.len() as f64)
}

/// Every built-in encoder whose output can be decoded here.
pub(crate) fn encoders() -> Vec<(&'static str, VideoCodec)> {
    let list = weir_codecs::list();
    let decodes = |c| list.iter().any(|l| l.codec == c && l.built_in && l.decodes);
    list.iter().filter(|l| l.built_in && l.encodes && decodes(l.codec)).map(|l| (l.name, l.codec)).collect()
}
