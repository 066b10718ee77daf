//! A codec for tests whose frames identify their reference by a hash, so that broken chains of references are detected.

use crate::{
    Capabilities, CodedFrame, Decoded, EncoderConfig, MediaError, Picture, PictureSource, Plane, VideoCodec,
    VideoDecoder, VideoEncoder, VideoError,
};
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta};

/// Pictures whose samples are their number, with an end.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) next: u8,
    pub(crate) len: u8,
    pub(crate) size: (u32, u32),
    pub(crate) interval: TimeDelta,
    /// A picture that fails to be read, once.
    pub(crate) broken: Option<u8>,
    pub(crate) rewinds: bool,
}

impl Counting {
    pub(crate) fn new(len: u8) -> Self {
        let interval = TimeDelta::from_secs_f64(1.0 / 30.0);
        Self { next: 0, len, size: (32, 16), interval, broken: None, rewinds: true }
    }
}

impl PictureSource for Counting {
    fn size(&self) -> (u32, u32) {
        self.size
    }
    fn interval(&self) -> TimeDelta {
        self.interval
    }
    fn next_picture(&mut self, picture: &mut Picture) -> Result<bool, MediaError> {
        if self.broken.take_if(|b| *b == self.next).is_some() {
            return Err(MediaError::new("clip", "picture", self.next, "none that is broken"));
        }
        if self.next == self.len {
            return Ok(false);
        }
        picture.plane_mut(Plane::Y).fill(self.next);
        self.next += 1;
        Ok(true)
    }
    fn rewind(&mut self) -> Result<bool, MediaError> {
        self.next = 0;
        Ok(self.rewinds)
    }
}

fn hash(bytes: &[u8], reference: u64) -> u64 {
    bytes.iter().fold(reference ^ 0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100_0000_01b3))
}

/// `key|delta`, then in hexadecimal the reference's hash, its own, and the picture's number; then padding.
const BODY: usize = 16 + 16 + 2;
/// Header of H.264: start code, NAL unit header and a first macroblock of 0.
const H264_HEADER: usize = 6;

#[derive(Debug)]
pub(crate) struct ToyEncoder {
    pub(crate) codec: VideoCodec,
    pub(crate) config: EncoderConfig,
    pub(crate) key: bool,
    pub(crate) selected: Option<u64>,
    /// Picture IDs and hashes.
    pub(crate) kept: VecDeque<(u64, u64)>,
    pub(crate) next_id: u64,
    pub(crate) calls: u64,
    /// Numbers of the calls, from 0, that fail and that drop the picture.
    pub(crate) fails: Vec<u64>,
    pub(crate) drops: Vec<u64>,
    pub(crate) acknowledged: Vec<u64>,
    /// Pictures kept for [`VideoEncoder::select_reference`].
    pub(crate) keeps: usize,
}

impl ToyEncoder {
    pub(crate) fn new(codec: VideoCodec) -> Self {
        let config = EncoderConfig { reference_selection: true, ..EncoderConfig::live(32, 16) };
        Self {
            codec,
            config,
            key: true,
            selected: None,
            kept: VecDeque::new(),
            next_id: 0,
            calls: 0,
            fails: vec![],
            drops: vec![],
            acknowledged: vec![],
            keeps: 8,
        }
    }
}

impl VideoEncoder for ToyEncoder {
    fn codec(&self) -> VideoCodec {
        self.codec
    }
    fn library(&self) -> &'static str {
        "toy"
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { slices: true, reference_selection: true }
    }
    fn config(&self) -> &EncoderConfig {
        &self.config
    }
    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        self.config.bit_rate = rate;
        Ok(())
    }
    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError> {
        if size.is_some_and(|s| s < DataSize::from_bytes(100)) {
            return Err(VideoError::Config {
                codec: self.codec,
                library: "toy",
                field: "slice_size",
                value: "small".into(),
                expected: "100 bytes or more".into(),
            });
        }
        self.config.slice_size = size;
        Ok(())
    }
    fn request_key_frame(&mut self) {
        self.key = true;
    }
    fn acknowledge(&mut self, picture_id: u64) {
        self.acknowledged.push(picture_id);
    }
    fn select_reference(&mut self, picture_id: u64) -> bool {
        self.selected = self.kept.iter().find(|k| k.0 == picture_id).map(|k| k.1);
        self.selected.is_some()
    }
    fn encode(&mut self, picture: &Picture, _: u64, out: &mut CodedFrame) -> Result<(), VideoError> {
        let call = self.calls;
        self.calls += 1;
        out.data.clear();
        if self.fails.contains(&call) {
            let message = "asked to".into();
            return Err(VideoError::Library { codec: self.codec, library: "toy", what: "encode", message });
        }
        if self.drops.contains(&call) {
            return Ok(());
        }
        let key = std::mem::take(&mut self.key);
        let selected = self.selected.take();
        let reference = if key { 0 } else { selected.or(self.kept.back().map(|k| k.1)).unwrap_or(0) };
        let own = hash(picture.as_i420(), reference);
        match self.codec {
            VideoCodec::H264 => out.data.extend_from_slice(&[0, 0, 0, 1, if key { 0x65 } else { 0x41 }, 0x88]),
            _ => out.data.push(u8::from(!key)),
        }
        out.data.extend_from_slice(format!("{reference:016x}{own:016x}{:02x}", picture.plane(Plane::Y)[0]).as_bytes());
        let size = self.config.bit_rate.as_bps_f64() / 8.0 / self.config.frame_rate;
        out.data.resize((size as usize).max(out.data.len()), b'-');
        (out.key, out.picture_id, out.from_selected, out.discardable) = (key, self.next_id, selected.is_some(), false);
        self.kept.push_back((self.next_id, own));
        if self.kept.len() > self.keeps {
            self.kept.pop_front();
        }
        self.next_id += 1;
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct ToyDecoder {
    codec: VideoCodec,
    /// Hashes of the pictures as decoded, the latest last.
    decoded: VecDeque<u64>,
}

impl ToyDecoder {
    pub(crate) fn new(codec: VideoCodec) -> Self {
        Self { codec, decoded: VecDeque::new() }
    }
}

impl VideoDecoder for ToyDecoder {
    fn codec(&self) -> VideoCodec {
        self.codec
    }
    fn library(&self) -> &'static str {
        "toy"
    }
    fn decode(&mut self, data: &[u8], whole: bool, picture: &mut Picture) -> Decoded {
        let header = if self.codec == VideoCodec::H264 { H264_HEADER } else { 1 };
        let body = data.get(header..header + BODY).and_then(|b| std::str::from_utf8(b).ok()).filter(|b| b.is_ascii());
        let read = |b: &str| {
            let number = |range: std::ops::Range<usize>| u64::from_str_radix(&b[range], 16).ok();
            Some((number(0..16)?, number(16..32)?, number(32..34)? as u8))
        };
        let Some((reference, own, sample)) = body.and_then(read) else { return Decoded::Nothing };
        let known = reference == 0 || self.decoded.contains(&reference);
        if picture.width() != 32 || picture.height() != 16 {
            *picture = Picture::new(32, 16).expect("sound");
        }
        picture.plane_mut(Plane::Y).fill(sample);
        let intact = known && whole;
        self.decoded.push_back(if intact { own } else { !own });
        if self.decoded.len() > 8 {
            self.decoded.pop_front();
        }
        if intact { Decoded::Intact } else { Decoded::Concealed }
    }
}
