//! What a video encoder and a decoder are to the rest: pictures in, coded frames out, and back.

use crate::{FrameKind, LayerInfo, LayerRates, Layering, Picture};
use core::fmt;
use weir_units::{DataRate, DataSize};

/// How video is coded.
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
    /// The codec of this encoding name, in any case.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for VideoCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an encoder does when it is asked for another bit rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RateChange {
    /// Follows from the next frame on, without a key frame.
    #[default]
    Seamless,
    /// Starts again with a key frame, as applications do whose encoder cannot be changed while it runs (dccp-video,
    /// section 4.2).
    Restart,
}

/// What an encoder is made from.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EncoderConfig {
    /// Samples a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Frames a second.
    pub frame_rate: f64,
    /// First target.
    pub bit_rate: DataRate,
    /// Frames from one key frame to the next that nobody asked for; `None` for none.
    pub key_interval: Option<u32>,
    /// Most bytes of a slice; `None` for one slice a frame. Codecs without slices refuse it.
    pub slice_size: Option<DataSize>,
    /// What a new target does.
    pub rate_change: RateChange,
    /// Whether references are kept, so that [`VideoEncoder::select_reference`] can go back to them.
    pub reference_selection: bool,
    /// Whether frames may be left out to keep the bit rate.
    pub may_drop: bool,
    /// Threads; 1 gives the same bytes on every run.
    pub threads: u32,
    /// Spatial and temporal layers; `width` and `height` are those of the top layer. Codecs that have fewer
    /// ([`VideoEncoder::most_layers`]) refuse it, and so does reference selection.
    pub layering: Layering,
}

impl EncoderConfig {
    /// Live video of this size: 30 frames a second at 500 kbit/s, no key frames unasked, one slice a frame, one thread,
    /// and frames may be left out.
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

/// What a codec cannot do, or has failed in.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VideoError {
    /// The codec does not have what the configuration asks for.
    #[error("{codec} ({library}): {field} is {value}: expected {expected}")]
    Config {
        /// The codec.
        codec: VideoCodec,
        /// The library behind it.
        library: &'static str,
        /// The field of the configuration.
        field: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        expected: String,
    },
    /// The program was built without a library for it.
    #[error("{codec} is not built in: {way_out}")]
    NotBuilt {
        /// The codec.
        codec: VideoCodec,
        /// What to build with.
        way_out: &'static str,
    },
    /// The library reports a failure.
    #[error("{codec} ({library}): {what} failed: {message}")]
    Library {
        /// The codec.
        codec: VideoCodec,
        /// The library behind it.
        library: &'static str,
        /// The call that failed.
        what: &'static str,
        /// What the library says, or its number.
        message: String,
    },
}

/// A coded frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CodedFrame {
    /// Its bytes, in the form that [`VideoCodec`] says; empty where the encoder left the frame out.
    pub data: Vec<u8>,
    /// Whether a decoder can begin with it.
    pub key: bool,
    /// Whether no other frame refers to it.
    pub discardable: bool,
    /// Counts coded frames from 0; 15 bits go into the payload descriptors of VP8 and VP9.
    pub picture_id: u64,
    /// Whether it refers to none of the pictures behind the one given to [`VideoEncoder::select_reference`].
    pub from_selected: bool,
    /// Its layer; `None` where the stream has one.
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

/// What an encoder can be asked for while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    /// Slices of a wanted size, also changed while it runs.
    pub slices: bool,
    /// [`VideoEncoder::select_reference`].
    pub reference_selection: bool,
}

/// Makes coded frames of pictures, one call after the other and without look-ahead.
pub trait VideoEncoder: Send {
    /// What it makes.
    fn codec(&self) -> VideoCodec;
    /// The library behind it.
    fn library(&self) -> &'static str;
    /// What it can be asked for.
    fn capabilities(&self) -> Capabilities;
    /// Its configuration, as changed since.
    fn config(&self) -> &EncoderConfig;
    /// A new target, from the next frame on.
    ///
    /// # Errors
    /// Where the library refuses it; the target before it holds then.
    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError>;
    /// A new size of slices, from the next frame on.
    ///
    /// # Errors
    /// Where the codec has no slices or the library refuses it.
    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError>;
    /// Makes the next frame a key frame.
    fn request_key_frame(&mut self);
    /// The receiver has decoded this picture, by its [`CodedFrame::picture_id`].
    fn acknowledge(&mut self, picture_id: u64);
    /// Codes the next frame without reference to anything after this picture, which the receiver has decoded last before
    /// a loss; `false` where no such reference is kept: then a key frame is the way out.
    fn select_reference(&mut self, picture_id: u64) -> bool;
    /// Codes a picture into `out`, which is overwritten; empty data where the frame was left out. `ticks` is the time of
    /// capture in 1/90,000 s, rising.
    ///
    /// # Errors
    /// Where the picture has another size than configured, or the library fails.
    fn encode(&mut self, picture: &Picture, ticks: u64, out: &mut CodedFrame) -> Result<(), VideoError>;
    /// The most layers that it can make.
    fn most_layers(&self) -> Layering {
        Layering::SINGLE
    }
    /// The rate of each layer, from the next picture on, in place of the shares of a target ([`Layering::share_out`]) up to
    /// the next call of [`Self::set_bit_rate`].
    ///
    /// # Errors
    /// Where the library refuses it; the target before it holds then.
    fn set_layer_rates(&mut self, rates: &LayerRates) -> Result<(), VideoError> {
        self.set_bit_rate(rates.total())
    }
    /// The next layer frame of the picture that was encoded last, into `out`, which is overwritten; `false` where there is
    /// none. [`Self::encode`] gives the lowest; those that are not taken are gone with the next picture.
    fn next_layer(&mut self, out: &mut CodedFrame) -> bool {
        let _ = out;
        false
    }
}

/// What became of a coded frame at the decoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A picture came out, as coded as far as the decoder can tell.
    Intact,
    /// A picture came out of which parts were guessed.
    Concealed,
    /// No picture came out.
    Nothing,
}

/// Makes pictures of coded frames.
pub trait VideoDecoder: Send {
    /// What it reads.
    fn codec(&self) -> VideoCodec;
    /// The library behind it.
    fn library(&self) -> &'static str;
    /// Decodes what has arrived of a frame, in order; `whole` where nothing of it is missing. Where a picture comes out,
    /// `picture` becomes it. Any bytes may come: what cannot be decoded gives [`Decoded::Nothing`], never an error that
    /// stops the decoder.
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
