//! VP8 and VP9 by libvpx.
#![expect(unsafe_code, reason = "libvpx is a C library")]

mod decoder;
mod encoder;
mod header;
mod layers;
mod references;

pub(crate) use decoder::Decoder;
pub(crate) use encoder::Encoder;

use crate::check::Check;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use vpx_sys as sys;
use weir_media::{VideoCodec, VideoError};

const LIBRARY: &str = "libvpx";

/// Most samples of a picture, coded or decoded: 4096x2304, the largest frame of H.264's level 5.2. It bounds the
/// decoder's allocations for damaged or forged frames.
const MAX_SAMPLES: u64 = 36_864 * 256;
/// Greatest width and height: VP8 has 14 bits for each (RFC 6386, section 9.1).
const MAX_SIDE: u32 = 16_383;

const fn check(codec: VideoCodec) -> Check {
    Check { codec, library: LIBRARY }
}

/// The library's version.
pub(crate) fn version() -> String {
    // SAFETY: returns a static string.
    let text = unsafe { CStr::from_ptr(sys::vpx_codec_version_str()) };
    text.to_string_lossy().trim_start_matches('v').to_owned()
}

/// Owns an encoder or a decoder of the library.
struct Context {
    /// Boxed, since the library may keep pointers into it.
    raw: Box<sys::vpx_codec_ctx_t>,
    check: Check,
}

// SAFETY: the library has no thread-local state, and all state of a codec belongs to its context.
unsafe impl Send for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was initialised, and is destroyed once.
        unsafe { sys::vpx_codec_destroy(&mut *self.raw) };
    }
}

impl Context {
    fn encoder(codec: VideoCodec, config: &sys::vpx_codec_enc_cfg_t) -> Result<Self, VideoError> {
        let version = sys::VPX_ENCODER_ABI_VERSION as i32;
        Self::open(codec, "vpx_codec_enc_init", |raw| {
            // SAFETY: the context is zeroed as the library requires, the interface is static and the configuration is
            // copied.
            unsafe { sys::vpx_codec_enc_init_ver(raw, encoder_interface(codec), config, 0, version) }
        })
    }

    fn decoder(codec: VideoCodec) -> Result<Self, VideoError> {
        let config = sys::vpx_codec_dec_cfg_t { threads: 1, w: 0, h: 0 };
        let version = sys::VPX_DECODER_ABI_VERSION as i32;
        Self::open(codec, "vpx_codec_dec_init", |raw| {
            // SAFETY: as for the encoder.
            unsafe {
                let interface =
                    if codec == VideoCodec::Vp8 { sys::vpx_codec_vp8_dx() } else { sys::vpx_codec_vp9_dx() };
                sys::vpx_codec_dec_init_ver(raw, interface, &config, 0, version)
            }
        })
    }

    fn open(
        codec: VideoCodec,
        what: &'static str,
        init: impl FnOnce(&mut sys::vpx_codec_ctx_t) -> sys::vpx_codec_err_t,
    ) -> Result<Self, VideoError> {
        // SAFETY: zeros are valid for pointers, integers and an enumeration with a zero value.
        let mut raw: Box<sys::vpx_codec_ctx_t> = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        match init(&mut raw) {
            sys::VPX_CODEC_OK => Ok(Self { raw, check: check(codec) }),
            error => Err(check(codec).failure(what, text(error))),
        }
    }

    /// Converts the library's return value to a result.
    fn check(&mut self, what: &'static str, answer: sys::vpx_codec_err_t) -> Result<(), VideoError> {
        if answer == sys::VPX_CODEC_OK {
            return Ok(());
        }
        // SAFETY: the context is valid; the detail is null or a string that is valid until the next call.
        let detail = unsafe {
            let detail = sys::vpx_codec_error_detail(&mut *self.raw);
            if detail.is_null() { "".into() } else { CStr::from_ptr(detail).to_string_lossy() }
        };
        let message = if detail.is_empty() { text(answer) } else { format!("{}: {detail}", text(answer)) };
        Err(self.check.failure(what, message))
    }

    /// Sets a control whose value is an integer.
    fn set(&mut self, control: sys::vp8e_enc_control_id, value: i32) -> Result<(), VideoError> {
        // SAFETY: the context is valid, and callers pass controls with an `int` or `unsigned` value.
        let answer = unsafe { sys::vpx_codec_control_(&mut *self.raw, control as i32, value) };
        self.check("vpx_codec_control", answer)
    }
}

fn encoder_interface(codec: VideoCodec) -> *mut sys::vpx_codec_iface_t {
    // SAFETY: both return a static.
    unsafe { if codec == VideoCodec::Vp8 { sys::vpx_codec_vp8_cx() } else { sys::vpx_codec_vp9_cx() } }
}

/// The library's default configuration of an encoder.
fn default_config(codec: VideoCodec) -> Result<sys::vpx_codec_enc_cfg_t, VideoError> {
    // Its enumerations have no zero value, so only the library may fill it.
    let mut config = MaybeUninit::<sys::vpx_codec_enc_cfg_t>::uninit();
    // SAFETY: the interface is static, and the call writes the whole struct on success.
    let answer = unsafe { sys::vpx_codec_enc_config_default(encoder_interface(codec), config.as_mut_ptr(), 0) };
    if answer == sys::VPX_CODEC_OK {
        // SAFETY: it has just been written.
        Ok(unsafe { config.assume_init() })
    } else {
        Err(check(codec).failure("vpx_codec_enc_config_default", text(answer)))
    }
}

fn text(error: sys::vpx_codec_err_t) -> String {
    // SAFETY: returns a static string for any value.
    unsafe { CStr::from_ptr(sys::vpx_codec_err_to_string(error)) }.to_string_lossy().into_owned()
}
