//! The library's encoder behind its function table, and its parameters.

use super::CHECK;
use super::long_term::{MARK_EVERY, Word};
use crate::h264::{self, Even};
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use openh264_sys2::{self as sys, source::APILoader};
use weir_media::{EncoderConfig, Picture, Plane, VideoError};
use weir_units::DataRate;

/// Number of long-term references in the library.
const LONG_TERM_REFERENCES: c_int = 2;
/// The library determines the references that its layers need (its AUTO_REF_PIC_COUNT).
const AUTO_REFERENCES: c_int = -1;
/// The highest bit rate of any level (H.264, table A-1: 240,000 times 1,200).
const MAX_RATE: DataRate = DataRate::from_kbps(288_000);
/// The library rejects less than a bit per frame.
const MIN_RATE: DataRate = DataRate::from_kbps(1);
/// Ratio of the rate that a stream's level allows to the first target.
const LEVEL_HEADROOM: u64 = 4;

/// Owns an encoder of the library.
pub(super) struct Handle {
    raw: *mut sys::ISVCEncoder,
    /// The library's output for a frame; kept because it is large.
    info: Box<sys::SFrameBSInfo>,
}

// SAFETY: the library has no thread-local state, and all state of this encoder belongs to the pointer; `info` points
// into it and is read only directly after the call that fills it.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the pointer was returned by `WelsCreateSVCEncoder` and is destroyed once; both calls accept an
        // encoder whose initialisation failed.
        unsafe {
            if let Some(uninitialize) = self.vtable().Uninitialize {
                uninitialize(self.raw);
            }
            APILoader::WelsDestroySVCEncoder(self.raw);
        }
    }
}

impl Handle {
    fn vtable(&self) -> &sys::ISVCEncoderVtbl {
        // SAFETY: the pointer is valid, and its object begins with the pointer to its function table.
        unsafe { &**self.raw }
    }

    pub(super) fn open(config: &EncoderConfig) -> Result<Self, VideoError> {
        let mut raw = ptr::null_mut();
        // SAFETY: writes the pointer.
        let code = unsafe { APILoader::WelsCreateSVCEncoder(&mut raw) };
        if code != 0 || raw.is_null() {
            return Err(CHECK.failure("WelsCreateSVCEncoder", code));
        }
        // SAFETY: zeros are valid for integers, floats and pointers.
        let info: Box<sys::SFrameBSInfo> = Box::new(unsafe { MaybeUninit::zeroed().assume_init() });
        let mut handle = Self { raw, info };
        let mut level = sys::WELS_LOG_QUIET;
        handle.set_option(sys::ENCODER_OPTION_TRACE_LEVEL, &mut level, "ENCODER_OPTION_TRACE_LEVEL")?;

        let mut param = MaybeUninit::<sys::SEncParamExt>::zeroed();
        // SAFETY: the pointer is valid; the call fills the struct, for which zeros are valid in any case.
        let (code, mut param) = unsafe {
            let code = handle.vtable().GetDefaultParams.map(|f| f(raw, param.as_mut_ptr()));
            (code, param.assume_init())
        };
        if code != Some(0) {
            return Err(CHECK.failure("GetDefaultParams", code.unwrap_or(-1)));
        }
        configure(&mut param, config);
        // SAFETY: the pointer is valid and the parameters outlive the call, which copies them.
        let code = unsafe { handle.vtable().InitializeExt.map(|f| f(raw, &param)) };
        if code == Some(0) { Ok(handle) } else { Err(CHECK.failure("encoder InitializeExt", code.unwrap_or(-1))) }
    }

    /// Sets an option whose value has the library's type `T`.
    fn set_option<T>(
        &mut self,
        option: sys::ENCODER_OPTION,
        value: &mut T,
        what: &'static str,
    ) -> Result<(), VideoError> {
        // SAFETY: the pointer is valid; callers pass the option's documented type.
        let code =
            unsafe { self.vtable().SetOption.map(|f| f(self.raw, option, ptr::from_mut(value).cast::<c_void>())) };
        if code == Some(0) { Ok(()) } else { Err(CHECK.failure(what, code.unwrap_or(-1))) }
    }

    pub(super) fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        // A target above the maximum is rejected, so the maximum is set first; the layer is given explicitly, since
        // "all layers" returns an error although it is applied.
        let mut max = sys::SBitrateInfo { iLayer: sys::SPATIAL_LAYER_0, iBitrate: bits(MAX_RATE) };
        self.set_option(sys::ENCODER_OPTION_MAX_BITRATE, &mut max, "ENCODER_OPTION_MAX_BITRATE")?;
        let mut target = sys::SBitrateInfo { iLayer: sys::SPATIAL_LAYER_0, iBitrate: bits(rate) };
        self.set_option(sys::ENCODER_OPTION_BITRATE, &mut target, "ENCODER_OPTION_BITRATE")
    }

    /// Sets the target alone, so that it may be below what streams may have.
    pub(super) fn set_least_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        let bits = c_int::try_from(rate.as_bps()).unwrap_or(c_int::MAX);
        let mut target = sys::SBitrateInfo { iLayer: sys::SPATIAL_LAYER_0, iBitrate: bits };
        self.set_option(sys::ENCODER_OPTION_BITRATE, &mut target, "ENCODER_OPTION_BITRATE")
    }

    /// Sets whether the library may leave pictures out.
    pub(super) fn set_may_drop(&mut self, mut may: bool) -> Result<(), VideoError> {
        self.set_option(sys::ENCODER_OPTION_RC_FRAME_SKIP, &mut may, "ENCODER_OPTION_RC_FRAME_SKIP")
    }

    /// Reports to the library what the receiver has or has lost.
    pub(super) fn report(&mut self, word: Word) -> Result<(), VideoError> {
        match word {
            Word::Marked { frame_num, idr_pic_id, success } => {
                let kind = if success { sys::LTR_MARKING_SUCCESS } else { sys::LTR_MARKING_FAILED };
                let mut feedback = sys::SLTRMarkingFeedback {
                    uiFeedbackType: kind as u32,
                    uiIDRPicId: idr_pic_id,
                    iLTRFrameNum: frame_num as c_int,
                    iLayerId: 0,
                };
                self.set_option(sys::ENCODER_LTR_MARKING_FEEDBACK, &mut feedback, "ENCODER_LTR_MARKING_FEEDBACK")
            }
            Word::Lost { last_correct, current, idr_pic_id } => {
                let mut request = sys::SLTRRecoverRequest {
                    uiFeedbackType: sys::LTR_RECOVERY_REQUEST as u32,
                    uiIDRPicId: idr_pic_id,
                    iLastCorrectFrameNum: last_correct as c_int,
                    iCurrentFrameNum: current as c_int,
                    iLayerId: 0,
                };
                self.set_option(sys::ENCODER_LTR_RECOVERY_REQUEST, &mut request, "ENCODER_LTR_RECOVERY_REQUEST")
            }
        }
    }

    pub(super) fn force_key_frame(&mut self) {
        // SAFETY: the pointer is valid.
        unsafe { self.vtable().ForceIntraFrame.map(|f| f(self.raw, true)) };
    }

    /// Encodes a picture and appends it to `out`; returns whether it is a key frame, and its temporal layer.
    pub(super) fn encode(
        &mut self,
        picture: &Picture,
        ticks: u64,
        out: &mut Vec<u8>,
    ) -> Result<(bool, u8), VideoError> {
        let plane = |p| picture.plane(p).as_ptr().cast_mut();
        let stride = |p| picture.size_of(p).0 as c_int;
        let source = sys::SSourcePicture {
            iColorFormat: sys::videoFormatI420,
            iStride: [stride(Plane::Y), stride(Plane::U), stride(Plane::V), 0],
            pData: [plane(Plane::Y), plane(Plane::U), plane(Plane::V), ptr::null_mut()],
            iPicWidth: picture.width() as c_int,
            iPicHeight: picture.height() as c_int,
            uiTimeStamp: (ticks / 90) as i64,
            bPsnrY: false,
            bPsnrU: false,
            bPsnrV: false,
        };
        let Some(encode) = self.vtable().EncodeFrame else { return Err(CHECK.failure("EncodeFrame", "absent")) };
        // SAFETY: the pointer is valid, the planes have the given strides and sizes and are only read and copied.
        let code = unsafe { encode(self.raw, &source, &mut *self.info) };
        if code != 0 {
            return Err(CHECK.failure("EncodeFrame", code));
        }
        if self.info.eFrameType == sys::videoFrameTypeSkip || self.info.eFrameType == sys::videoFrameTypeInvalid {
            return Ok((false, 0));
        }
        let mut temporal = 0;
        let layers = usize::try_from(self.info.iLayerNum).unwrap_or(0).min(self.info.sLayerInfo.len());
        for layer in &self.info.sLayerInfo[..layers] {
            let units = usize::try_from(layer.iNalCount).unwrap_or(0);
            if units == 0 || layer.pNalLengthInByte.is_null() || layer.pBsBuf.is_null() {
                continue;
            }
            temporal = temporal.max(layer.uiTemporalId);
            // SAFETY: the layer has this many lengths, which sum to the bytes at `pBsBuf`, valid until the next call.
            unsafe {
                let lengths = core::slice::from_raw_parts(layer.pNalLengthInByte, units);
                let bytes = lengths.iter().map(|&l| usize::try_from(l).unwrap_or(0)).sum();
                out.extend_from_slice(core::slice::from_raw_parts(layer.pBsBuf, bytes));
            }
        }
        Ok((self.info.eFrameType == sys::videoFrameTypeIDR, temporal))
    }
}

/// Bit/s in the library's type.
fn bits(rate: DataRate) -> c_int {
    c_int::try_from(rate.clamp(MIN_RATE, MAX_RATE).as_bps()).unwrap_or(c_int::MAX)
}

fn configure(param: &mut sys::SEncParamExt, config: &EncoderConfig) {
    let (width, height) = Even::size(config.width, config.height);
    param.iUsageType = sys::CAMERA_VIDEO_REAL_TIME;
    param.iPicWidth = width as c_int;
    param.iPicHeight = height as c_int;
    param.fMaxFrameRate = config.frame_rate as f32;
    param.iTargetBitrate = bits(config.bit_rate);
    param.iMaxBitrate = bits(MAX_RATE);
    param.iRCMode = sys::RC_BITRATE_MODE;
    param.bEnableFrameSkip = config.may_drop;
    // The whole range of the codec, so that quality is reduced before frames are dropped.
    param.iMinQp = 12;
    param.iMaxQp = 51;
    param.iTemporalLayerNum = config.layering.temporal().into();
    param.iSpatialLayerNum = 1;
    param.iNumRefFrame = match config.reference_selection {
        true => 1 + LONG_TERM_REFERENCES,
        // Three temporal layers keep two pictures; the library determines that.
        false if config.layering.temporal() > 1 => AUTO_REFERENCES,
        false => 1,
    };
    param.bEnableLongTermReference = config.reference_selection;
    param.iLTRRefNum = if config.reference_selection { LONG_TERM_REFERENCES } else { 0 };
    // It marks after more than this many frames.
    param.iLtrMarkPeriod = MARK_EVERY - 1;
    param.iComplexityMode = sys::LOW_COMPLEXITY;
    param.uiIntraPeriod = config.key_interval.unwrap_or(0);
    param.eSpsPpsIdStrategy = sys::CONSTANT_ID;
    param.iEntropyCodingModeFlag = 0;
    param.iMultipleThreadIdc = u16::try_from(config.threads).unwrap_or(u16::MAX);
    // It balances by measured time, which gives different bytes on every run.
    param.bUseLoadBalancing = false;
    param.bEnableDenoise = false;
    // It makes unrequested key frames.
    param.bEnableSceneChangeDetect = false;
    param.bEnableAdaptiveQuant = false;
    let layer = &mut param.sSpatialLayers[0];
    layer.iVideoWidth = width as c_int;
    layer.iVideoHeight = height as c_int;
    layer.fFrameRate = config.frame_rate as f32;
    layer.iSpatialBitrate = bits(config.bit_rate);
    layer.iMaxSpatialBitrate = bits(MAX_RATE);
    layer.uiProfileIdc = sys::PRO_BASELINE;
    let room = DataRate::from_bps(config.bit_rate.as_bps().saturating_mul(LEVEL_HEADROOM));
    layer.uiLevelIdc = c_int::from(h264::level_idc(width, height, config.frame_rate, room));
    match config.slice_size {
        None => layer.sSliceArgument.uiSliceMode = sys::SM_SINGLE_SLICE,
        Some(size) => {
            layer.sSliceArgument.uiSliceMode = sys::SM_SIZELIMITED_SLICE;
            layer.sSliceArgument.uiSliceSizeConstraint = size.as_bytes() as u32;
            param.uiMaxNalSize = 0;
        }
    }
}
