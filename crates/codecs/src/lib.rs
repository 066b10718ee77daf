//! Video and audio codecs by other libraries, behind the traits of `weir_media`.
//!
//! This is the only room that calls foreign code. Each library has its own feature:
//!
//! | codec | library | feature | licence | from |
//! |---|---|---|---|---|
//! | H.264 | OpenH264 | `openh264` (default) | BSD-2 | bundled source; a C++ compiler, and nasm for its vector code |
//! | H.264, encoder only | x264 | `x264` | GPL-2+ | the system: Debian's libx264-dev, libclang-dev |
//! | Opus | ropus | `opus` (default) | BSD-3 | Rust, no compiler of C |
//! | VP8, VP9 | libvpx | `vpx` | BSD-3 | the system: Debian's libvpx-dev |
//!
//! [`Vmaf`] scores decoded pictures by libvmaf (BSD-2), from bundled source, behind the feature `vmaf`; it needs meson,
//! ninja and nasm. Without the feature it cannot be made.
//!
//! For audio there are [`audio_encoder`] and [`audio_decoder`].
//!
//! [`encoder`] and [`decoder`] use the first built-in library for a codec; [`list`] returns the libraries and their
//! capabilities. All pictures are 4:2:0 with 8 bits. With one thread the same pictures and calls give the same bytes.
//!
//! | | OpenH264 | x264 | VP8 | VP9 |
//! |---|---|---|---|---|
//! | another bit rate without a key frame | yes | yes | yes | yes |
//! | slices of a wanted size | yes; another size costs a key frame | yes | no | no |
//! | reference picture selection | yes | yes | yes | yes |
//! | shows what has arrived of a frame | yes | yes | the head and more | no |
//! | goes on behind a lost frame | yes | yes | yes | with reference selection |
//! | odd sizes | coded one sample larger | coded one sample larger | yes | yes |
//!
//! Foreign code has one room. `codecs` has one folder or file per library, each behind a feature; a frame's claims are
//! checked before a library parses it, and the choice of references is plain Rust, tested without a codec.
#![warn(clippy::undocumented_unsafe_blocks)]

#[cfg(any(feature = "openh264", feature = "x264", feature = "vpx"))]
mod check;
#[cfg(any(feature = "openh264", feature = "vpx"))]
mod dips;
#[cfg(any(feature = "openh264", feature = "x264"))]
mod h264;
#[cfg(feature = "openh264")]
mod openh264;
#[cfg(feature = "opus")]
mod opus;
mod registry;
#[cfg_attr(not(feature = "vmaf"), path = "vmaf_absent.rs")]
mod vmaf;
#[cfg(feature = "vpx")]
mod vpx;
#[cfg(feature = "x264")]
mod x264;

pub use vmaf::{Vmaf, VmafScores};

pub use registry::{
    AudioLibrary, Library, audio_decoder, audio_encoder, audio_list, decoder, decoder_of, encoder, encoder_of, list,
};
