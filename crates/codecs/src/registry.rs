//! The codecs and their libraries.

use weir_media::audio::{AudioCodec, AudioDecoder, AudioEncoder, AudioEncoderConfig, AudioError, Channels};
use weir_media::{Capabilities, EncoderConfig, VideoCodec, VideoDecoder, VideoEncoder, VideoError};

/// A library's support for a codec.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Library {
    /// The codec.
    pub codec: VideoCodec,
    /// The library's name, as used by [`encoder_of`].
    pub name: &'static str,
    /// Whether it is built in.
    pub built_in: bool,
    /// Its version; empty if it is not built in.
    pub version: String,
    /// Whether it has an encoder.
    pub encodes: bool,
    /// Whether it has a decoder.
    pub decodes: bool,
    /// Optional features of its encoder.
    pub capabilities: Capabilities,
    /// How to build with it.
    pub way_out: &'static str,
}

const OPENH264: &str = "openh264";
const X264: &str = "x264";
const LIBVPX: &str = "libvpx";

const BUILD_OPENH264: &str = "build with --features openh264 (a C++ compiler; nasm makes it faster)";
const BUILD_X264: &str = "build with --features x264 (Debian: libx264-dev libclang-dev; GPL)";
const BUILD_LIBVPX: &str = "build with --features vpx (Debian: libvpx-dev)";

/// Every codec of every supported library, the preferred one of a codec first.
pub fn list() -> Vec<Library> {
    let h264 = |name, built_in, version, way_out| Library {
        codec: VideoCodec::H264,
        name,
        built_in,
        version,
        encodes: true,
        decodes: name == OPENH264,
        capabilities: Capabilities { slices: true, reference_selection: true },
        way_out,
    };
    let libvpx = |codec| Library {
        codec,
        name: LIBVPX,
        built_in: cfg!(feature = "vpx"),
        version: libvpx_version(),
        encodes: true,
        decodes: true,
        capabilities: Capabilities { slices: false, reference_selection: true },
        way_out: BUILD_LIBVPX,
    };
    vec![
        h264(OPENH264, cfg!(feature = "openh264"), openh264_version(), BUILD_OPENH264),
        h264(X264, cfg!(feature = "x264"), x264_version(), BUILD_X264),
        libvpx(VideoCodec::Vp8),
        libvpx(VideoCodec::Vp9),
    ]
}

fn openh264_version() -> String {
    #[cfg(feature = "openh264")]
    return crate::openh264::version();
    #[cfg(not(feature = "openh264"))]
    String::new()
}

fn x264_version() -> String {
    #[cfg(feature = "x264")]
    return crate::x264::version();
    #[cfg(not(feature = "x264"))]
    String::new()
}

fn libvpx_version() -> String {
    #[cfg(feature = "vpx")]
    return crate::vpx::version();
    #[cfg(not(feature = "vpx"))]
    String::new()
}

/// An encoder by the first built-in library.
///
/// # Errors
/// If there is none, or the codec does not support the configuration.
pub fn encoder(codec: VideoCodec, config: &EncoderConfig) -> Result<Box<dyn VideoEncoder>, VideoError> {
    match list().iter().find(|l| l.codec == codec && l.encodes && l.built_in) {
        Some(l) => encoder_of(l.name, codec, config),
        None => Err(not_built(codec)),
    }
}

/// A decoder by the first built-in library.
///
/// # Errors
/// If there is none, or the library fails.
pub fn decoder(codec: VideoCodec) -> Result<Box<dyn VideoDecoder>, VideoError> {
    match list().iter().find(|l| l.codec == codec && l.decodes && l.built_in) {
        Some(l) => decoder_of(l.name, codec),
        None => Err(not_built(codec)),
    }
}

/// An encoder by the library with this name: "openh264", "x264" or "libvpx".
///
/// # Errors
/// If it is not built in or has no encoder for the codec, or the codec does not support the configuration.
#[cfg_attr(
    not(any(feature = "openh264", feature = "x264", feature = "vpx")),
    expect(unused_variables, reason = "nothing is built in")
)]
pub fn encoder_of(
    library: &str,
    codec: VideoCodec,
    config: &EncoderConfig,
) -> Result<Box<dyn VideoEncoder>, VideoError> {
    match (library, codec) {
        #[cfg(feature = "openh264")]
        (OPENH264, VideoCodec::H264) => Ok(Box::new(crate::openh264::Encoder::new(config)?)),
        #[cfg(feature = "x264")]
        (X264, VideoCodec::H264) => Ok(Box::new(crate::x264::Encoder::new(config)?)),
        #[cfg(feature = "vpx")]
        (LIBVPX, VideoCodec::Vp8 | VideoCodec::Vp9) => Ok(Box::new(crate::vpx::Encoder::new(codec, config)?)),
        _ => Err(not_built_of(library, codec)),
    }
}

/// A decoder by the library with this name: "openh264" or "libvpx".
///
/// # Errors
/// If it is not built in, has no decoder for the codec, or fails.
pub fn decoder_of(library: &str, codec: VideoCodec) -> Result<Box<dyn VideoDecoder>, VideoError> {
    match (library, codec) {
        #[cfg(feature = "openh264")]
        (OPENH264, VideoCodec::H264) => Ok(Box::new(crate::openh264::Decoder::new()?)),
        #[cfg(feature = "vpx")]
        (LIBVPX, VideoCodec::Vp8 | VideoCodec::Vp9) => Ok(Box::new(crate::vpx::Decoder::new(codec)?)),
        _ => Err(not_built_of(library, codec)),
    }
}

fn not_built(codec: VideoCodec) -> VideoError {
    let way_out = match codec {
        VideoCodec::H264 => BUILD_OPENH264,
        VideoCodec::Vp8 | VideoCodec::Vp9 => BUILD_LIBVPX,
        _ => "no library of Weir has it",
    };
    VideoError::NotBuilt { codec, way_out }
}

fn not_built_of(library: &str, codec: VideoCodec) -> VideoError {
    let way_out = list()
        .iter()
        .find(|l| l.name == library && l.codec == codec && !l.built_in)
        .map_or("no library of that name has it (see weir_codecs::list)", |l| l.way_out);
    VideoError::NotBuilt { codec, way_out }
}

const BUILD_OPUS: &str = "build with --features opus";

/// A library's support for an audio codec: an encoder and a decoder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AudioLibrary {
    /// The codec.
    pub codec: AudioCodec,
    /// The library's name.
    pub name: &'static str,
    /// Whether it is built in.
    pub built_in: bool,
    /// Its version; empty if it is not built in.
    pub version: String,
    /// How to build with it.
    pub way_out: &'static str,
}

/// Every audio codec of every supported library.
pub fn audio_list() -> Vec<AudioLibrary> {
    vec![AudioLibrary {
        codec: AudioCodec::Opus,
        name: "ropus",
        built_in: cfg!(feature = "opus"),
        version: opus_version(),
        way_out: BUILD_OPUS,
    }]
}

fn opus_version() -> String {
    #[cfg(feature = "opus")]
    return crate::opus::version();
    #[cfg(not(feature = "opus"))]
    String::new()
}

/// An audio encoder.
///
/// # Errors
/// If none is built in, or the codec does not support the configuration.
#[cfg_attr(not(feature = "opus"), expect(unused_variables, reason = "nothing is built in"))]
pub fn audio_encoder(codec: AudioCodec, config: &AudioEncoderConfig) -> Result<Box<dyn AudioEncoder>, AudioError> {
    match codec {
        #[cfg(feature = "opus")]
        AudioCodec::Opus => Ok(Box::new(crate::opus::Encoder::new(config)?)),
        _ => Err(AudioError::NotBuilt { codec, way_out: BUILD_OPUS }),
    }
}

/// An audio decoder.
///
/// # Errors
/// If none is built in, or the library fails.
#[cfg_attr(not(feature = "opus"), expect(unused_variables, reason = "nothing is built in"))]
pub fn audio_decoder(codec: AudioCodec, channels: Channels) -> Result<Box<dyn AudioDecoder>, AudioError> {
    match codec {
        #[cfg(feature = "opus")]
        AudioCodec::Opus => Ok(Box::new(crate::opus::Decoder::new(channels)?)),
        _ => Err(AudioError::NotBuilt { codec, way_out: BUILD_OPUS }),
    }
}
