//! H.264 by OpenH264: Constrained Baseline profile, one layer.
#![expect(unsafe_code, reason = "OpenH264 is a C++ library")]

mod account;
mod decoder;
mod encoder;
mod handle;
mod long_term;
mod slice;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;

use crate::check::Check;
use openh264_sys2::source::APILoader;
use weir_media::VideoCodec;

const LIBRARY: &str = "openh264";
const CHECK: Check = Check { codec: VideoCodec::H264, library: LIBRARY };

/// The library's version.
pub(crate) fn version() -> String {
    // SAFETY: takes nothing and returns a plain struct.
    let v = unsafe { APILoader::WelsGetCodecVersion() };
    format!("{}.{}.{}", v.uMajor, v.uMinor, v.uRevision)
}
