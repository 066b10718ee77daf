//! The decoder.

use super::{CHECK, LIBRARY};
use crate::h264;
use core::ffi::{c_int, c_uchar, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use openh264_sys2::{self as sys, source::APILoader};
use weir_media::{Decoded, Picture, Plane, VideoCodec, VideoDecoder, VideoError};

/// Greatest size of an access unit: above any level's limit, and far inside the library's 32-bit arithmetic.
const MAX_BYTES: usize = 16 << 20;

/// An access unit delimiter (H.264, section 7.3.2.4).
const DELIMITER: [u8; 6] = [0, 0, 0, 1, 0x09, 0xf0];

/// Owns a decoder of the library.
struct Handle(*mut sys::ISVCDecoder);

// SAFETY: the library has no thread-local state, and all state of this decoder belongs to the pointer.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the pointer was returned by `WelsCreateDecoder` and is destroyed once; both calls accept a decoder
        // whose initialisation failed.
        unsafe {
            if let Some(uninitialize) = (**self.0).Uninitialize {
                uninitialize(self.0);
            }
            APILoader::WelsDestroyDecoder(self.0);
        }
    }
}

impl Handle {
    fn open() -> Result<Self, VideoError> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes the pointer.
        let code = unsafe { APILoader::WelsCreateDecoder(&mut raw) };
        if code != 0 || raw.is_null() {
            return Err(CHECK.failure("WelsCreateDecoder", code));
        }
        let handle = Self(raw);
        let mut level = sys::WELS_LOG_QUIET;
        // SAFETY: the pointer is valid; this option reads an integer.
        unsafe {
            handle
                .vtable()
                .SetOption
                .map(|f| f(raw, sys::DECODER_OPTION_TRACE_LEVEL, (&raw mut level).cast::<c_void>()))
        };
        let param = sys::SDecodingParam {
            pFileNameRestructed: ptr::null_mut(),
            uiCpuLoad: 0,
            uiTargetDqLayer: u8::MAX,
            // Concealment copies along motion vectors, and a damaged resolution is not accepted.
            eEcActiveIdc: sys::ERROR_CON_SLICE_MV_COPY_CROSS_IDR_FREEZE_RES_CHANGE,
            bParseOnly: false,
            sVideoProperty: sys::SVideoProperty {
                size: size_of::<sys::SVideoProperty>() as u32,
                eVideoBsType: sys::VIDEO_BITSTREAM_AVC,
            },
        };
        // SAFETY: the pointer is valid and the parameters outlive the call, which copies them.
        let code = unsafe { handle.vtable().Initialize.map(|f| f(raw, &param)) };
        if code == Some(0) { Ok(handle) } else { Err(CHECK.failure("decoder Initialize", code.unwrap_or(-1))) }
    }

    fn vtable(&self) -> &sys::ISVCDecoderVtbl {
        // SAFETY: the pointer is valid, and its object begins with the pointer to its function table.
        unsafe { &**self.0 }
    }

    /// Passes in bytes, or with `None` signals the end of the access unit. An output picture is copied.
    fn decode(&mut self, data: Option<&[u8]>, picture: &mut Picture) -> (c_int, bool) {
        let Some(decode) = self.vtable().DecodeFrame2 else { return (-1, false) };
        let mut planes = [ptr::null_mut::<c_uchar>(); 3];
        // SAFETY: zeros are valid for integers, pointers and a union of these.
        let mut info: sys::SBufferInfo = unsafe { MaybeUninit::zeroed().assume_init() };
        let (src, len) = data.map_or((ptr::null(), 0), |d| (d.as_ptr(), d.len() as c_int));
        // SAFETY: the pointer is valid, the bytes are only read and copied, `planes` has three entries and `info` one.
        let code = unsafe { decode(self.0, src, len, planes.as_mut_ptr(), &mut info) };
        if info.iBufferStatus != 1 || planes.iter().any(|p| p.is_null()) {
            return (code, false);
        }
        // SAFETY: the union has this single member, which is set together with the status.
        let buffer = unsafe { info.UsrData.sSystemBuffer };
        let (Ok(width), Ok(height)) = (u32::try_from(buffer.iWidth), u32::try_from(buffer.iHeight)) else {
            return (code, false);
        };
        if (picture.width(), picture.height()) != (width, height) {
            let Ok(new) = Picture::new(width, height) else { return (code, false) };
            *picture = new;
        }
        for (plane, (from, stride)) in Plane::ALL.into_iter().zip(planes.into_iter().zip([
            buffer.iStride[0],
            buffer.iStride[1],
            buffer.iStride[1],
        ])) {
            let (w, h) = picture.size_of(plane);
            let Ok(stride) = usize::try_from(stride) else { return (code, false) };
            if stride < w {
                return (code, false);
            }
            for (y, to) in picture.plane_mut(plane).chunks_exact_mut(w).take(h).enumerate() {
                // SAFETY: the library returns planes of `h` rows, at intervals of `stride` bytes and at least `w` wide,
                // valid until the next call.
                to.copy_from_slice(unsafe { core::slice::from_raw_parts(from.add(y * stride), w) });
            }
        }
        (code, true)
    }
}

/// Decodes H.264 with concealment: missing parts of a picture are concealed from the previous one.
pub(crate) struct Decoder {
    handle: Handle,
}

impl Decoder {
    pub(crate) fn new() -> Result<Self, VideoError> {
        Ok(Self { handle: Handle::open()? })
    }

    fn try_decode(&mut self, data: &[u8], picture: &mut Picture) -> (c_int, bool) {
        let (code, got) = self.handle.decode(Some(data), picture);
        // The library returns the picture when it detects the end of the access unit.
        let (end_code, mut end_got) = self.handle.decode(None, picture);
        let mut code = code | end_code;
        if !got && !end_got {
            // With slices missing it waits for the next access unit before it conceals; a delimiter signals that.
            let (conceal_code, concealed) = self.handle.decode(Some(&DELIMITER), picture);
            code |= conceal_code;
            end_got = concealed;
        }
        (code, got || end_got)
    }
}

impl VideoDecoder for Decoder {
    fn codec(&self) -> VideoCodec {
        VideoCodec::H264
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }

    fn decode(&mut self, data: &[u8], whole: bool, picture: &mut Picture) -> Decoded {
        if data.is_empty() || data.len() > MAX_BYTES {
            return Decoded::Nothing;
        }
        let (mut code, mut got) = self.try_decode(data, picture);
        if (!got || code != sys::dsErrorFree) && whole && h264::is_key(data) {
            // A key frame needs none of the library's state from earlier damage.
            let Ok(handle) = Handle::open() else { return Decoded::Nothing };
            self.handle = handle;
            (code, got) = self.try_decode(data, picture);
        }
        match (got, code) {
            (false, _) => Decoded::Nothing,
            (true, sys::dsErrorFree) if whole => Decoded::Intact,
            (true, _) => Decoded::Concealed,
        }
    }
}
