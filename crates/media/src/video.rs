//! Interfaces of video encoders and decoders: pictures in, coded frames out, and back.

use crate::shape::Shape;
use crate::{FrameKind, LayerInfo, LayerRates, Layering, Picture};
use core::fmt;
use weir_units::{DataRate, DataSize};

/// Video codecs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum VideoCodec {
    /// H.264 (RTP payload format: RFC 6184). Coded frames are access units as byte streams, with start codes (Annex B).
    H264,
    /// VP8 (RFC 6386; RTP payload format: RFC 7741).
    Vp8,
    /// VP9 (RTP payload format: RFC 9628).
    Vp9,
}

impl VideoCodec {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::H264, Self::Vp8, Self::Vp9];
    /// The encoding name in SDP.
    pub const fn name(self) -> &'static str {
        match self {
            Self::H264 => "H264",
            Self::Vp8 => "VP8",
            Self::Vp9 => "VP9",
        }
    }
    /// The codec with this encoding name, case-insensitively.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for VideoCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Effect of a new bit rate on an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RateChange {
    /// Applies from the next frame on, without a key frame.
    #[default]
    Seamless,
    /// Restarts with a key frame, as in applications whose encoder cannot be changed while it runs (dccp-video,
    /// section 4.2).
    Restart,
}

/// Configuration of an encoder.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EncoderConfig {
    /// Samples a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Frames a second.
    pub frame_rate: f64,
    /// Initial target.
    pub bit_rate: DataRate,
    /// Interval of periodic key frames in frames; `None` for none.
    pub key_interval: Option<u32>,
    /// Greatest slice size in bytes; `None` for one slice per frame. Codecs without slices reject it.
    pub slice_size: Option<DataSize>,
    /// Effect of a new target.
    pub rate_change: RateChange,
    /// Whether references are kept for [`VideoEncoder::select_reference`].
    pub reference_selection: bool,
    /// Whether frames may be dropped to keep the bit rate.
    pub may_drop: bool,
    /// Threads; 1 gives the same bytes on every run.
    pub threads: u32,
    /// Spatial and temporal layers; `width` and `height` are those of the top layer. Codecs with fewer
    /// ([`VideoEncoder::most_layers`]) reject it, and so does reference selection.
    pub layering: Layering,
}

impl EncoderConfig {
    /// Live video of this size: 30 frames per second at 500 kbit/s, no periodic key frames, one slice per frame, one
    /// thread, and frames may be dropped.
    pub const fn live(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            frame_rate: 30.0,
            bit_rate: DataRate::from_kbps(500),
            key_interval: None,
            slice_size: None,
            rate_change: RateChange::Seamless,
            reference_selection: false,
            may_drop: true,
            threads: 1,
            layering: Layering::SINGLE,
        }
    }
}

/// Error of a video codec.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VideoError {
    /// The codec does not support the configuration.
    #[error("{codec} ({library}): {field} is {value}: expected {expected}")]
    Config {
        /// The codec.
        codec: VideoCodec,
        /// Its library.
        library: &'static str,
        /// The field of the configuration.
        field: &'static str,
        /// The value of the field.
        value: String,
        /// The supported values.
        expected: String,
    },
    /// The program was built without a library for it.
    #[error("{codec} is not built in: {way_out}")]
    NotBuilt {
        /// The codec.
        codec: VideoCodec,
        /// How to build with it.
        way_out: &'static str,
    },
    /// The library reported a failure.
    #[error("{codec} ({library}): {what} failed: {message}")]
    Library {
        /// The codec.
        codec: VideoCodec,
        /// Its library.
        library: &'static str,
        /// The call that failed.
        what: &'static str,
        /// The library's message or error number.
        message: String,
    },
}

/// A coded frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodedFrame {
    /// Its bytes, in the form of its [`VideoCodec`]; empty if the encoder dropped the frame.
    pub data: Vec<u8>,
    /// Whether decoding can start with it.
    pub key: bool,
    /// Whether no other frame refers to it.
    pub discardable: bool,
    /// Number of the coded frame from 0; 15 bits of it are in the payload descriptors of VP8 and VP9.
    pub picture_id: u64,
    /// Whether it does not refer to any picture after the one passed to [`VideoEncoder::select_reference`].
    pub from_selected: bool,
    /// Its layer; `None` if the stream has one.
    pub layer: Option<LayerInfo>,
    /// Whether further layer frames of the same picture follow ([`VideoEncoder::next_layer`]).
    pub more_layers: bool,
}

impl CodedFrame {
    /// How it is coded.
    pub const fn kind(&self) -> FrameKind {
        if self.key { FrameKind::Key } else { FrameKind::Delta }
    }
}

/// Optional features of an encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Slices of limited size, also changed while it runs.
    pub slices: bool,
    /// [`VideoEncoder::select_reference`].
    pub reference_selection: bool,
}

/// Encodes pictures, one per call and without look-ahead.
pub trait VideoEncoder: Send {
    /// The codec.
    fn codec(&self) -> VideoCodec;
    /// Its library.
    fn library(&self) -> &'static str;
    /// Its optional features.
    fn capabilities(&self) -> Capabilities;
    /// The current configuration.
    fn config(&self) -> &EncoderConfig;
    /// Sets the target from the next frame on.
    ///
    /// # Errors
    /// The library rejects it; the previous target stays.
    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError>;
    /// Sets the size of slices from the next frame on.
    ///
    /// # Errors
    /// The codec has no slices, or the library rejects it.
    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError>;
    /// Makes the next frame a key frame.
    fn request_key_frame(&mut self);
    /// The receiver has decoded the picture with this [`CodedFrame::picture_id`].
    fn acknowledge(&mut self, picture_id: u64);
    /// Codes the next frame without reference to anything after this picture, the last that the receiver decoded before
    /// a loss; `false` if no such reference is kept, so that a key frame is needed.
    fn select_reference(&mut self, picture_id: u64) -> bool;
    /// Codes a picture into `out`, which is overwritten; the data is empty if the frame was dropped. `ticks` is the
    /// capture time in 1/90,000 s, increasing.
    ///
    /// # Errors
    /// The picture does not have the configured size, or the library fails.
    fn encode(&mut self, picture: &Picture, ticks: u64, out: &mut CodedFrame) -> Result<(), VideoError>;
    /// Codes pictures in this shape from the next one on: smaller, and not all of them. Pictures are still passed as they are.
    /// Returns whether it does so.
    ///
    /// # Errors
    /// The library rejects it; the previous shape stays.
    fn set_shape(&mut self, shape: Shape) -> Result<bool, VideoError> {
        let _ = shape;
        Ok(false)
    }
    /// The shape in which it codes pictures; `None` if that does not change.
    fn shape(&self) -> Option<Shape> {
        None
    }
    /// The greatest number of layers supported.
    fn most_layers(&self) -> Layering {
        Layering::SINGLE
    }
    /// Sets the rate of each layer from the next picture on, instead of a split of the target
    /// ([`Layering::share_out`]), until the next call of [`Self::set_bit_rate`].
    ///
    /// # Errors
    /// The library rejects it; the previous target stays.
    fn set_layer_rates(&mut self, rates: &LayerRates) -> Result<(), VideoError> {
        self.set_bit_rate(rates.total())
    }
    /// Writes the next layer frame of the last encoded picture into `out`, which is overwritten; `false` if there is
    /// none. [`Self::encode`] returns the lowest; frames not taken are dropped with the next picture.
    fn next_layer(&mut self, out: &mut CodedFrame) -> bool {
        let _ = out;
        false
    }
}

/// Result of decoding a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A picture, as coded as far as the decoder can detect.
    Intact,
    /// A picture with concealed parts.
    Concealed,
    /// No picture.
    Nothing,
}

/// Decodes frames to pictures.
pub trait VideoDecoder: Send {
    /// The codec.
    fn codec(&self) -> VideoCodec;
    /// Its library.
    fn library(&self) -> &'static str;
    /// Decodes the received part of a frame, in order; `whole` if it is complete. If there is a picture, it is written
    /// to `picture`. Input is untrusted: undecodable bytes return [`Decoded::Nothing`], and the decoder continues.
    fn decode(&mut self, data: &[u8], whole: bool, picture: &mut Picture) -> Decoded;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_found_by_their_sdp_names() {
        for codec in VideoCodec::ALL {
            assert_eq!(VideoCodec::by_name(&codec.to_string().to_lowercase()), Some(codec));
        }
        assert_eq!(VideoCodec::by_name("AV1"), None);
    }
}
