//! H.264 by x264, encoder only: Constrained Baseline profile, no delay.
#![expect(unsafe_code, reason = "x264 is a C library")]

use crate::check::Check;
use crate::h264::{self, Encoding, Even, SLICE_SIZES};
use core::ffi::{CStr, c_int};
use core::mem::MaybeUninit;
use core::ptr;
use weir_media::{Capabilities, CodedFrame, EncoderConfig, Picture, Plane, VideoCodec, VideoEncoder, VideoError};
use weir_units::{DataRate, DataSize};
use x264_sys as sys;

const LIBRARY: &str = "x264";
const CHECK: Check = Check { codec: VideoCodec::H264, library: LIBRARY };

/// Frames a second.
const FRAME_RATES: core::ops::RangeInclusive<f64> = 1.0..=120.0;
const MIN_SIDE: u32 = 16;
/// Bit rates in kbit/s, the library's unit (H.264, table A-1: at most 240,000 times 1,200).
const RATES: core::ops::RangeInclusive<u64> = 1..=288_000;
/// Size of the decoder's buffer in ms at the target rate. A frame is dropped while more is waiting to be sent.
const BUFFER_MS: u64 = 500;
/// Pictures kept as references (H.264, section A.3.1: at most 16): half a second at 30 frames per second.
const KEPT: u64 = 16;

/// The library's version.
pub(crate) fn version() -> String {
    CStr::from_bytes_until_nul(sys::X264_POINTVER).map_or_else(|_| String::new(), |s| s.to_string_lossy().into_owned())
}

/// Owns an encoder of the library.
struct Handle(*mut sys::x264_t);

// SAFETY: the library has no thread-local state, and all state of this encoder belongs to the pointer.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the pointer was returned by `x264_encoder_open` and is closed once.
        unsafe { sys::x264_encoder_close(self.0) };
    }
}

/// Sets rate and slices in the parameters, initially and on changes.
fn set_rate_and_slices(param: &mut sys::x264_param_t, config: &EncoderConfig) {
    let kbps = kbps(config.bit_rate);
    param.rc.i_bitrate = kbps as c_int;
    param.rc.i_vbv_max_bitrate = kbps as c_int;
    param.rc.i_vbv_buffer_size = (kbps * BUFFER_MS / 1000).max(1) as c_int;
    param.i_slice_max_size = config.slice_size.map_or(0, |s| s.as_bytes() as c_int);
}

fn kbps(rate: DataRate) -> u64 {
    (rate.as_bps().saturating_add(500) / 1000).clamp(*RATES.start(), *RATES.end())
}

impl Handle {
    fn open(config: &EncoderConfig) -> Result<Self, VideoError> {
        let (width, height) = Even::size(config.width, config.height);
        let preset = if width * height > 640 * 480 { c"superfast" } else { c"veryfast" };
        let mut param = MaybeUninit::<sys::x264_param_t>::zeroed();
        // SAFETY: the call writes the whole struct, for which zeros are valid in any case; the names are C strings.
        let (code, mut param) = unsafe {
            let code = sys::x264_param_default_preset(param.as_mut_ptr(), preset.as_ptr(), c"zerolatency".as_ptr());
            (code, param.assume_init())
        };
        if code != 0 {
            return Err(CHECK.failure("x264_param_default_preset", code));
        }
        param.i_log_level = sys::X264_LOG_NONE;
        param.i_width = width as c_int;
        param.i_height = height as c_int;
        param.i_csp = sys::X264_CSP_I420 as c_int;
        param.i_threads = config.threads as c_int;
        param.b_sliced_threads = c_int::from(config.threads > 1);
        param.b_deterministic = 1;
        param.b_cpu_independent = 1;
        param.i_fps_num = (config.frame_rate * 1000.0).round() as u32;
        param.i_fps_den = 1000;
        param.b_vfr_input = 0;
        // Key frames are only made on request.
        param.i_keyint_max = sys::X264_KEYINT_MAX_INFINITE as c_int;
        param.i_scenecut_threshold = 0;
        param.b_repeat_headers = 1;
        param.b_annexb = 1;
        param.b_aud = 0;
        param.i_frame_reference = 1;
        if config.reference_selection {
            param.i_dpb_size = KEPT as c_int;
        }
        param.rc.i_rc_method = sys::X264_RC_ABR as c_int;
        set_rate_and_slices(&mut param, config);
        // SAFETY: the struct is filled; the profile is a C string. The encoder copies the parameters, and their strings
        // are freed after it.
        let (code, raw) = unsafe {
            let code = sys::x264_param_apply_profile(&mut param, c"baseline".as_ptr());
            let raw = if code == 0 { sys::x264_encoder_open(&mut param) } else { ptr::null_mut() };
            sys::x264_param_cleanup(&mut param);
            (code, raw)
        };
        if raw.is_null() { Err(CHECK.failure("x264_encoder_open", code)) } else { Ok(Self(raw)) }
    }

    fn reconfigure(&mut self, config: &EncoderConfig) -> Result<(), VideoError> {
        let mut param = MaybeUninit::<sys::x264_param_t>::zeroed();
        // SAFETY: the pointer is valid; the first call writes the whole struct, the second reads it.
        let code = unsafe {
            sys::x264_encoder_parameters(self.0, param.as_mut_ptr());
            let mut param = param.assume_init();
            set_rate_and_slices(&mut param, config);
            sys::x264_encoder_reconfig(self.0, &mut param)
        };
        if code == 0 { Ok(()) } else { Err(CHECK.failure("x264_encoder_reconfig", code)) }
    }

    /// Invalidates this frame and all later ones as references.
    fn forget(&mut self, pts: i64) -> bool {
        // SAFETY: the pointer is valid.
        unsafe { sys::x264_encoder_invalidate_reference(self.0, pts) == 0 }
    }

    /// Encodes a picture and appends it to `out`; returns whether it is a key frame.
    fn encode(&mut self, picture: &Picture, pts: i64, key: bool, out: &mut Vec<u8>) -> Result<bool, VideoError> {
        let (mut input, mut output) = (MaybeUninit::zeroed(), MaybeUninit::zeroed());
        // SAFETY: the calls write the structs, for which zeros are valid in any case.
        let (mut input, mut output): (sys::x264_picture_t, sys::x264_picture_t) = unsafe {
            sys::x264_picture_init(input.as_mut_ptr());
            sys::x264_picture_init(output.as_mut_ptr());
            (input.assume_init(), output.assume_init())
        };
        input.i_pts = pts;
        input.i_type = if key { sys::X264_TYPE_IDR } else { sys::X264_TYPE_AUTO } as c_int;
        input.img.i_csp = sys::X264_CSP_I420 as c_int;
        input.img.i_plane = 3;
        for (n, plane) in Plane::ALL.into_iter().enumerate() {
            input.img.plane[n] = picture.plane(plane).as_ptr().cast_mut();
            input.img.i_stride[n] = picture.size_of(plane).0 as c_int;
        }
        let (mut units, mut count) = (ptr::null_mut::<sys::x264_nal_t>(), 0);
        // SAFETY: the pointer is valid, and the planes have the given sizes and strides and are only read and copied.
        let bytes = unsafe { sys::x264_encoder_encode(self.0, &mut units, &mut count, &mut input, &mut output) };
        let Ok(bytes) = usize::try_from(bytes) else { return Err(CHECK.failure("x264_encoder_encode", bytes)) };
        if bytes == 0 || count == 0 || units.is_null() {
            return Err(CHECK.failure("x264_encoder_encode", "no frame came out"));
        }
        // SAFETY: the payloads of all units are contiguous, `bytes` long in total, and valid until the next call.
        out.extend_from_slice(unsafe { core::slice::from_raw_parts((*units).p_payload, bytes) });
        Ok(output.i_type == sys::X264_TYPE_IDR as c_int)
    }
}

fn check(config: &EncoderConfig) -> Result<(), VideoError> {
    CHECK.common(config, FRAME_RATES)?;
    CHECK.layering(config, weir_media::Layering::SINGLE)?;
    h264::check_size(CHECK, config, MIN_SIDE)?;
    CHECK.slice_size(config.slice_size, SLICE_SIZES)
}

/// Encodes H.264.
pub(crate) struct Encoder {
    handle: Handle,
    state: Encoding,
    /// The last key frame, the earliest possible reference.
    last_key: u64,
    last_ticks: Option<u64>,
    /// Bits not yet sent by a sender at the target rate.
    waiting: f64,
}

impl Encoder {
    pub(crate) fn new(config: &EncoderConfig) -> Result<Self, VideoError> {
        check(config)?;
        Ok(Self {
            handle: Handle::open(config)?,
            state: Encoding::new(CHECK, config, true),
            last_key: 0,
            last_ticks: None,
            waiting: 0.0,
        })
    }

    /// Subtracts the time since the last picture from what is waiting; returns whether more than the buffer's share is
    /// left.
    fn is_behind(&mut self, ticks: u64) -> bool {
        let rate = kbps(self.state.config.bit_rate) as f64 * 1000.0;
        let gap = self.last_ticks.map_or(0, |last| ticks.saturating_sub(last));
        self.last_ticks = Some(ticks);
        self.waiting = (self.waiting - rate * gap as f64 / 90_000.0).max(0.0);
        self.waiting > rate * BUFFER_MS as f64 / 1000.0
    }
}

impl VideoEncoder for Encoder {
    fn codec(&self) -> VideoCodec {
        VideoCodec::H264
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { slices: true, reference_selection: true }
    }
    fn config(&self) -> &EncoderConfig {
        &self.state.config
    }

    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        self.state.set_bit_rate(rate, |config| self.handle.reconfigure(config))
    }

    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError> {
        CHECK.slice_size(size, SLICE_SIZES)?;
        let config = EncoderConfig { slice_size: size, ..self.state.config };
        self.handle.reconfigure(&config)?;
        self.state.config = config;
        Ok(())
    }

    fn request_key_frame(&mut self) {
        self.state.key_frame = true;
    }

    fn acknowledge(&mut self, _: u64) {}

    fn select_reference(&mut self, picture_id: u64) -> bool {
        let kept = self.state.next_id.saturating_sub(KEPT).max(self.last_key);
        let known = self.state.config.reference_selection
            && !self.state.reopen
            && (kept..self.state.next_id).contains(&picture_id);
        self.state.selected |= known && self.handle.forget(picture_id as i64 + 1);
        known && self.state.selected
    }

    fn encode(&mut self, picture: &Picture, ticks: u64, out: &mut CodedFrame) -> Result<(), VideoError> {
        self.state.begin(picture, out)?;
        if self.state.reopen {
            self.handle = Handle::open(&self.state.config)?;
            self.state.reopen = false;
            self.state.key_frame = true;
        }
        let due =
            self.state.config.key_interval.is_some_and(|n| self.state.next_id >= self.last_key + u64::from(n.max(1)));
        let key = self.state.key_frame || due;
        out.key = false;
        if !self.is_behind(ticks) || !self.state.config.may_drop || key {
            out.key = self.handle.encode(self.state.even.of(picture), self.state.next_id as i64, key, &mut out.data)?;
            self.waiting += out.data.len() as f64 * 8.0;
        }
        if self.state.describe(out) {
            out.from_selected = core::mem::take(&mut self.state.selected) && !out.key;
            if out.key {
                self.last_key = self.state.next_id;
                self.state.key_frame = false;
            }
            self.state.next_id += 1;
        }
        Ok(())
    }
}
