//! Encoders of pictures whose size and number change during a call.

use crate::shape::Shape;
use crate::{
    Capabilities, CodedFrame, EncoderConfig, LayerRates, Layering, Picture, VideoCodec, VideoEncoder, VideoError, scale,
};
use core::fmt;
use weir_units::{DataRate, DataSize};

/// Makes an encoder of a configuration.
pub type MakeEncoder = Box<dyn FnMut(&EncoderConfig) -> Result<Box<dyn VideoEncoder>, VideoError> + Send>;

/// An encoder that can code smaller pictures than it is passed, and fewer ([`VideoEncoder::set_shape`]).
///
/// Another size is another encoder, which begins with a key frame; decoders follow. Another number is no more than that: the encoder
/// in use sees the pictures at its own frame rate, in a time that runs slower, with a target that is greater by as much, so that no
/// library has to know. A picture that is left out has no data, as if dropped.
pub struct ShapedEncoder {
    make: MakeEncoder,
    inner: Box<dyn VideoEncoder>,
    config: EncoderConfig,
    shape: Shape,
    scaled: Picture,
    /// Pictures to leave out before the next one that is coded.
    left: u32,
    wants_key: bool,
    /// Of the last picture coded, as passed and as the encoder sees it.
    ticks: Option<(u64, u64)>,
    /// The picture ID of the encoder's first frame, and one more than that of its last.
    ids: (u64, u64),
}

impl fmt::Debug for ShapedEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("ShapedEncoder");
        f.field("codec", &self.inner.codec()).field("config", &self.config).field("shape", &self.shape);
        f.finish_non_exhaustive()
    }
}

impl ShapedEncoder {
    /// An encoder of all pictures at their size.
    ///
    /// # Errors
    /// `make` fails.
    pub fn new(mut make: MakeEncoder, config: EncoderConfig) -> Result<Self, VideoError> {
        let inner = make(&config)?;
        let shape = Shape { width: config.width, height: config.height, stride: 1 };
        let scaled = Picture::new(1, 1).map_err(|e| failure(&*inner, e))?;
        let (ticks, ids) = (None, (0, 0));
        Ok(Self { make, inner, config, shape, scaled, left: 0, wants_key: false, ticks, ids })
    }

    fn rate_of(&self, rate: DataRate, stride: u32) -> DataRate {
        DataRate::from_bps(rate.as_bps().saturating_mul(stride.into()))
    }

    /// The time of a picture as the encoder sees it.
    fn inner_ticks(&self, ticks: u64) -> u64 {
        match self.ticks {
            Some((last, inner)) => inner + ticks.saturating_sub(last) / u64::from(self.shape.stride),
            None => ticks,
        }
    }
}

fn failure(encoder: &dyn VideoEncoder, e: impl fmt::Display) -> VideoError {
    let (codec, library) = (encoder.codec(), encoder.library());
    VideoError::Library { codec, library, what: "scaling", message: e.to_string() }
}

impl VideoEncoder for ShapedEncoder {
    fn codec(&self) -> VideoCodec {
        self.inner.codec()
    }
    fn library(&self) -> &'static str {
        self.inner.library()
    }
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    /// The configuration for pictures as they are passed, not that of the encoder in use.
    fn config(&self) -> &EncoderConfig {
        &self.config
    }
    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        self.inner.set_bit_rate(self.rate_of(rate, self.shape.stride))?;
        self.config.bit_rate = rate;
        Ok(())
    }
    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError> {
        self.inner.set_slice_size(size)?;
        self.config.slice_size = size;
        Ok(())
    }
    fn request_key_frame(&mut self) {
        self.wants_key = true;
        self.inner.request_key_frame();
    }
    fn acknowledge(&mut self, picture_id: u64) {
        if let Some(id) = picture_id.checked_sub(self.ids.0) {
            self.inner.acknowledge(id);
        }
    }
    fn select_reference(&mut self, picture_id: u64) -> bool {
        picture_id.checked_sub(self.ids.0).is_some_and(|id| self.inner.select_reference(id))
    }
    fn set_shape(&mut self, shape: Shape) -> Result<bool, VideoError> {
        let shape = Shape { stride: shape.stride.max(1), ..shape };
        let bit_rate = self.rate_of(self.config.bit_rate, shape.stride);
        if (shape.width, shape.height) == (self.shape.width, self.shape.height) {
            if shape.stride != self.shape.stride {
                self.inner.set_bit_rate(bit_rate)?;
            }
        } else {
            let config = EncoderConfig { width: shape.width, height: shape.height, bit_rate, ..self.config };
            self.inner = (self.make)(&config)?;
            self.ids.0 = self.ids.1;
            self.wants_key = true;
        }
        self.shape = shape;
        self.left = self.left.min(shape.stride - 1);
        Ok(true)
    }

    fn shape(&self) -> Option<Shape> {
        Some(self.shape)
    }

    fn encode(&mut self, picture: &Picture, ticks: u64, out: &mut CodedFrame) -> Result<(), VideoError> {
        if self.left > 0 && !self.wants_key {
            self.left -= 1;
            *out = CodedFrame { data: core::mem::take(&mut out.data), ..CodedFrame::default() };
            out.data.clear();
            return Ok(());
        }
        self.left = self.shape.stride - 1;
        let inner = self.inner_ticks(ticks);
        let (width, height) = (self.shape.width, self.shape.height);
        if (picture.width(), picture.height()) == (width, height) {
            self.inner.encode(picture, inner, out)?;
        } else {
            if (self.scaled.width(), self.scaled.height()) != (width, height) {
                self.scaled = Picture::new(width, height).map_err(|e| failure(&*self.inner, e))?;
            }
            scale(picture, &mut self.scaled);
            self.inner.encode(&self.scaled, inner, out)?;
        }
        self.ticks = Some((ticks, inner));
        self.wants_key = false;
        out.picture_id += self.ids.0;
        self.ids.1 = self.ids.1.max(out.picture_id + 1);
        Ok(())
    }

    fn most_layers(&self) -> Layering {
        self.inner.most_layers()
    }
    fn set_layer_rates(&mut self, rates: &LayerRates) -> Result<(), VideoError> {
        // Layers are an encoder's own way of being smaller: their rates count for all pictures.
        self.inner.set_layer_rates(rates)
    }
    fn next_layer(&mut self, out: &mut CodedFrame) -> bool {
        let has_more = self.inner.next_layer(out);
        out.picture_id += self.ids.0;
        has_more
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::ToyEncoder;
    use std::sync::{Arc, Mutex};

    type Made = Arc<Mutex<Vec<EncoderConfig>>>;

    fn shaped() -> (ShapedEncoder, Made) {
        let made = Made::default();
        let list = made.clone();
        let make: MakeEncoder = Box::new(move |config| {
            list.lock().expect("alone").push(*config);
            Ok(Box::new(ToyEncoder { config: *config, ..ToyEncoder::new(VideoCodec::H264) }))
        });
        let config = EncoderConfig { bit_rate: DataRate::from_kbps(480), ..EncoderConfig::live(32, 16) };
        (ShapedEncoder::new(make, config).expect("sound"), made)
    }

    fn encode(e: &mut ShapedEncoder, frames: std::ops::Range<u64>) -> Vec<(u64, bool, usize)> {
        let picture = Picture::new(32, 16).expect("sound");
        let mut out = CodedFrame::default();
        let mut all = Vec::new();
        for n in frames {
            e.encode(&picture, n * 3_000, &mut out).expect("sound");
            if !out.data.is_empty() {
                all.push((n, out.key, out.data.len()));
            }
        }
        all
    }

    #[test]
    fn fewer_pictures_have_the_same_rate_and_no_key_frame() {
        let (mut e, made) = shaped();
        assert_eq!(encode(&mut e, 0..3), [(0, true, 2_000), (1, false, 2_000), (2, false, 2_000)]);
        assert_eq!(e.set_shape(Shape { width: 32, height: 16, stride: 3 }), Ok(true));
        assert_eq!(encode(&mut e, 3..10), [(3, false, 6_000), (6, false, 6_000), (9, false, 6_000)]);
        // A key frame does not wait, and the target is that of all pictures.
        e.request_key_frame();
        e.set_bit_rate(DataRate::from_kbps(240)).expect("sound");
        assert_eq!(encode(&mut e, 10..15), [(10, true, 3_000), (13, false, 3_000)]);
        assert_eq!((e.config().bit_rate, e.config().frame_rate), (DataRate::from_kbps(240), 30.0));
        assert_eq!(made.lock().expect("alone").len(), 1);
    }

    #[test]
    fn another_size_is_another_encoder_with_pictures_numbered_on() {
        let (mut e, made) = shaped();
        encode(&mut e, 0..5);
        assert_eq!(e.set_shape(Shape { width: 16, height: 8, stride: 2 }), Ok(true));
        let picture = Picture::new(32, 16).expect("sound");
        let mut out = CodedFrame::default();
        e.encode(&picture, 15_000, &mut out).expect("sound");
        assert_eq!((out.key, out.picture_id), (true, 5));
        let made = made.lock().expect("alone");
        assert_eq!((made[1].width, made[1].height, made[1].bit_rate), (16, 8, DataRate::from_kbps(960)));
        // Those of the encoder before are no references.
        assert!(!e.select_reference(3));
        assert_eq!((e.config().width, e.config().height), (32, 16));
    }
}
