//! The encoder.

use super::layers::{self, Buffers, Temporal};
use super::references::{Plan, References};
use super::{Context, LIBRARY, MAX_SAMPLES, MAX_SIDE, check, default_config, header, sys};
use crate::dips::{self, Depth, Dips};
use core::mem::MaybeUninit;
use core::ptr;
use weir_media::{
    Capabilities, CodedFrame, EncoderConfig, LayerId, LayerInfo, LayerRates, Layering, Picture, Plane, RateChange,
    TemporalStep, VideoCodec, VideoEncoder, VideoError,
};
use weir_units::{DataRate, DataSize};

/// Time units per second passed to the library, as in RTP.
const CLOCK: i32 = 90_000;
/// Weight of a picture's distance from the one before in the mean that is passed to the library, and the greatest factor between the two. Such a
/// mean changes by less than the tenth from which the library takes a frame's duration at once for that of all. Chosen here.
const INTERVAL_WEIGHT: f64 = 1.0 / 32.0;
const INTERVAL_FACTOR: f64 = 4.0;
/// Frames a second.
const FRAME_RATES: core::ops::RangeInclusive<f64> = 1.0..=120.0;
/// Bit rates in kbit/s, the library's unit; above any useful rate.
const RATES: core::ops::RangeInclusive<u64> = 1..=500_000;
/// Size, initial and optimal level of the decoder's buffer in ms (libwebrtc, as of 2024).
const BUFFER: [u32; 3] = [1000, 500, 600];
const DROP_THRESHOLD: u32 = 30;
/// Largest rate of a key frame, in percent of a frame's share: half of the optimal buffer at 30 frames per second
/// (libwebrtc, as of 2024).
const MAX_KEY_PERCENT: i32 = 900;

/// Owns an encoder of the library.
struct Handle {
    context: Context,
    config: sys::vpx_codec_enc_cfg_t,
}

// SAFETY: a configuration is plain data; its pointers are to two-pass statistics, which are absent.
unsafe impl Send for Handle {}

fn kbps(rate: DataRate) -> u32 {
    let kbps = rate.as_bps().saturating_add(500) / 1000;
    kbps.clamp(*RATES.start(), *RATES.end()) as u32
}

impl Handle {
    fn open(codec: VideoCodec, config: &EncoderConfig) -> Result<Self, VideoError> {
        let mut c = default_config(codec)?;
        c.g_w = config.width;
        c.g_h = config.height;
        c.g_threads = config.threads;
        c.g_timebase = sys::vpx_rational_t { num: 1, den: CLOCK };
        // So that pictures are decodable regardless of losses between their references and them.
        c.g_error_resilient = u32::from(config.reference_selection || !config.layering.is_single());
        c.g_pass = sys::vpx_enc_pass::VPX_RC_ONE_PASS;
        c.g_lag_in_frames = 0;
        c.rc_dropframe_thresh = if config.may_drop { DROP_THRESHOLD } else { 0 };
        c.rc_resize_allowed = 0;
        c.rc_end_usage = sys::vpx_rc_mode::VPX_CBR;
        c.rc_target_bitrate = kbps(config.bit_rate);
        // Nearly the whole range, so that quality is reduced before frames are dropped.
        c.rc_min_quantizer = 2;
        c.rc_max_quantizer = 63;
        c.rc_undershoot_pct = 100;
        c.rc_overshoot_pct = 15;
        [c.rc_buf_sz, c.rc_buf_initial_sz, c.rc_buf_optimal_sz] = BUFFER;
        // Key frames are only made on request.
        c.kf_mode = sys::vpx_kf_mode::VPX_KF_DISABLED;
        c.kf_min_dist = 0;
        c.kf_max_dist = 1 << 30;
        if !config.layering.is_single() {
            layers::configure(&mut c, config.layering, &config.layering.share_out(config.bit_rate));
        }
        let mut context = Context::encoder(codec, &c)?;
        use sys::vp8e_enc_control_id as control;
        let large = config.width * config.height > 640 * 480;
        if codec == VideoCodec::Vp8 {
            // Negative: a fixed speed; a positive one adapts to measured time.
            context.set(control::VP8E_SET_CPUUSED, if large { -12 } else { -6 })?;
            context.set(control::VP8E_SET_STATIC_THRESHOLD, 1)?;
            context.set(control::VP8E_SET_TOKEN_PARTITIONS, config.threads.ilog2().min(3) as i32)?;
        } else {
            context.set(control::VP8E_SET_CPUUSED, if large { 9 } else { 8 })?;
            // Cyclic refresh.
            context.set(control::VP9E_SET_AQ_MODE, 3)?;
            context.set(control::VP9E_SET_TILE_COLUMNS, config.threads.ilog2().min(6) as i32)?;
            context.set(control::VP9E_SET_ROW_MT, i32::from(config.threads > 1))?;
        }
        context.set(control::VP8E_SET_ENABLEAUTOALTREF, 0)?;
        context.set(control::VP8E_SET_MAX_INTRA_BITRATE_PCT, MAX_KEY_PERCENT)?;
        if codec == VideoCodec::Vp9 && !config.layering.is_single() {
            context.set_svc(config.layering, &c)?;
        }
        Ok(Self { context, config: c })
    }

    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        if self.config.rc_target_bitrate == kbps(rate) {
            return Ok(());
        }
        self.set_config(|c| c.rc_target_bitrate = kbps(rate))
    }

    fn set_config(&mut self, change: impl FnOnce(&mut sys::vpx_codec_enc_cfg_t)) -> Result<(), VideoError> {
        let before = self.config;
        change(&mut self.config);
        // SAFETY: the context is valid and the configuration is copied.
        let answer = unsafe { sys::vpx_codec_enc_config_set(&mut *self.context.raw, &self.config) };
        self.context.check("vpx_codec_enc_config_set", answer).inspect_err(|_| self.config = before)
    }

    /// Encodes a picture and appends it to `out`; returns the flags of the frame.
    fn encode(
        &mut self,
        picture: &Picture,
        pts: i64,
        duration: u64,
        flags: u32,
        out: &mut Vec<u8>,
    ) -> Result<u32, VideoError> {
        let mut image = MaybeUninit::<sys::vpx_image_t>::zeroed();
        // SAFETY: the call writes the struct and stores the pointer without dereferencing it.
        let wrapped = unsafe {
            let data = picture.as_i420().as_ptr().cast_mut();
            let format = sys::vpx_img_fmt::VPX_IMG_FMT_I420;
            sys::vpx_img_wrap(image.as_mut_ptr(), format, picture.width(), picture.height(), 1, data)
        };
        if wrapped.is_null() {
            return Err(self.context.check.failure("vpx_img_wrap", "refused"));
        }
        // SAFETY: it has just been written.
        let mut image = unsafe { image.assume_init() };
        // The library would require padding for odd widths.
        for (n, plane) in Plane::ALL.into_iter().enumerate() {
            image.planes[n] = picture.plane(plane).as_ptr().cast_mut();
            image.stride[n] = picture.size_of(plane).0 as i32;
        }
        // SAFETY: the context is valid, and the planes have the given sizes and strides and are only read.
        let answer = unsafe {
            let (flags, deadline) = (flags.into(), sys::VPX_DL_REALTIME.into());
            sys::vpx_codec_encode(&mut *self.context.raw, &image, pts, duration as _, flags, deadline)
        };
        self.context.check("vpx_codec_encode", answer)?;
        let (mut iterator, mut flags_out) = (ptr::null(), 0);
        loop {
            // SAFETY: the context is valid; the packet is valid until the next encoding call.
            let Some(packet) = (unsafe { sys::vpx_codec_get_cx_data(&mut *self.context.raw, &mut iterator).as_ref() })
            else {
                return Ok(flags_out);
            };
            if packet.kind == sys::vpx_codec_cx_pkt_kind::VPX_CODEC_CX_FRAME_PKT {
                // SAFETY: packets of this kind have this member, with `sz` bytes at `buf`.
                unsafe {
                    let frame = packet.data.frame;
                    out.extend_from_slice(core::slice::from_raw_parts(frame.buf.cast::<u8>(), frame.sz as usize));
                    flags_out |= frame.flags;
                }
            }
        }
    }
}

/// The most layers of a codec: VP8 has no spatial layers.
fn most_layers(codec: VideoCodec) -> Layering {
    let spatial = if codec == VideoCodec::Vp9 { weir_media::MAX_SPATIAL_LAYERS } else { 1 };
    Layering::new(spatial, weir_media::MAX_TEMPORAL_LAYERS).unwrap_or_default()
}

/// Layers of the next picture.
enum LayerPlan {
    /// A single layer.
    None,
    Vp8(TemporalStep),
    Vp9,
}

/// Encodes VP8 or VP9.
pub(crate) struct Encoder {
    codec: VideoCodec,
    handle: Handle,
    config: EncoderConfig,
    references: References,
    temporal: Temporal,
    buffers: Buffers,
    /// Layer frames of the last picture not yet taken, highest first.
    upper: Vec<(Vec<u8>, LayerInfo)>,
    dips: Dips,
    key_frame: bool,
    /// Whether the library's encoder must be reopened before the next frame.
    reopen: bool,
    next_id: u64,
    /// The last key frame.
    last_key: u64,
    time: Time,
}

/// Time as passed to the library. Its rate control takes the distance of two pictures for the duration of each, and returns from that by 3 % a
/// picture: after a gap of four pictures, 1.8 times the target is coded for more than a second, and after a picture that is coded once more, a
/// tick later, next to nothing for eight.
#[derive(Clone, Copy, Debug)]
struct Time {
    last: Option<u64>,
    /// Mean distance of pictures in ticks.
    interval: f64,
    pts: i64,
}

impl Time {
    const fn new(interval: f64) -> Self {
        Self { last: None, interval, pts: 0 }
    }

    /// A picture that the library is not given: no gap for it, which its rate control would make up for at once.
    const fn skip(&mut self, ticks: u64) {
        self.last = Some(ticks);
    }

    /// Whether the picture at `ticks` was coded before.
    fn is_again(&self, ticks: u64) -> bool {
        self.last == Some(ticks)
    }

    /// The time and duration of the picture at `ticks`, in those of the library.
    fn next(&mut self, ticks: u64) -> (i64, u64) {
        let Some(last) = self.last.replace(ticks) else { return (self.pts, self.duration()) };
        // One that is coded once more is the next one.
        if ticks != last {
            let (least, most) = (self.interval / INTERVAL_FACTOR, self.interval * INTERVAL_FACTOR);
            let gap = (ticks.saturating_sub(last) as f64).clamp(least, most);
            self.interval += INTERVAL_WEIGHT * (gap - self.interval);
        }
        self.pts += self.duration() as i64;
        (self.pts, self.duration())
    }

    fn duration(&self) -> u64 {
        (self.interval as u64).max(1)
    }
}

impl Encoder {
    pub(crate) fn new(codec: VideoCodec, config: &EncoderConfig) -> Result<Self, VideoError> {
        let check = check(codec);
        check.common(config, FRAME_RATES)?;
        let sides = 1..=MAX_SIDE;
        let samples = u64::from(config.width) * u64::from(config.height);
        if !sides.contains(&config.width) || !sides.contains(&config.height) || samples > MAX_SAMPLES {
            return Err(check.size(config, format!("sides of 1 to {MAX_SIDE}, and {MAX_SAMPLES} samples at most")));
        }
        if let Some(size) = config.slice_size {
            return Err(check.refusal("slice_size", size.as_bytes(), "none: the codec has no slices"));
        }
        check.layering(config, most_layers(codec))?;
        Ok(Self {
            codec,
            handle: Handle::open(codec, config)?,
            config: *config,
            references: References::default(),
            temporal: Temporal::new(config.layering),
            buffers: Buffers::default(),
            upper: Vec::new(),
            dips: Dips::new(if codec == VideoCodec::Vp8 { Depth::QUARTER } else { Depth::TENTH }),
            key_frame: true,
            reopen: false,
            next_id: 0,
            last_key: 0,
            time: Time::new(f64::from(CLOCK) / config.frame_rate),
        })
    }

    fn layer_plan(&self, key: bool) -> (LayerPlan, u32) {
        match self.codec {
            _ if self.config.layering.is_single() => (LayerPlan::None, 0),
            VideoCodec::Vp9 => (LayerPlan::Vp9, 0),
            _ => {
                let (step, flags) = self.temporal.plan(key);
                (LayerPlan::Vp8(step), flags)
            }
        }
    }

    /// Sets the frame's layer, and keeps its upper spatial layers.
    fn state_layers(&mut self, plan: LayerPlan, out: &mut CodedFrame) -> Result<(), VideoError> {
        let layering = self.config.layering;
        let top = layering.temporal() - 1;
        match plan {
            LayerPlan::None => {}
            LayerPlan::Vp8(step) => {
                let (step, info) = self.temporal.coded(out.key, step);
                (out.layer, out.discardable) = (Some(info), step.discardable);
            }
            LayerPlan::Vp9 => {
                let (temporal, references) = self.handle.context.svc_frame_layers()?;
                let id = |s| LayerId::new(s, if out.key { 0 } else { temporal });
                let frames = header::vp9_frames(&out.data).zip(0..layering.spatial());
                let (buffers, picture, key) = (&mut self.buffers, self.next_id, out.key);
                let mut all: Vec<_> = frames
                    .map(|(f, s)| (f.to_vec(), buffers.coded(picture, key, id(s), layering, &references)))
                    .collect();
                all.reverse();
                // Lower spatial layers of a picture are references of upper ones.
                let single = layering.spatial() == 1;
                out.discardable = single && top > 0 && temporal == top && !out.key;
                if let Some((data, info)) = all.pop() {
                    (out.data, out.layer) = (data, Some(info));
                }
                out.more_layers = !all.is_empty();
                self.upper = all;
            }
        }
        Ok(())
    }

    /// Sets the library's rate for the picture at `ticks`; `None` if the picture is skipped.
    fn follow_target(&mut self, ticks: u64) -> Result<Option<DataRate>, VideoError> {
        let rate = self.dips.next(&self.config, ticks);
        if let Some(rate) = rate.filter(|_| dips::follows(&self.config)) {
            self.handle.set_bit_rate(rate)?;
        }
        Ok(rate)
    }

    fn plan(&self) -> Plan {
        if self.config.reference_selection { self.references.plan(self.next_id) } else { Plan::free() }
    }
}

impl VideoEncoder for Encoder {
    fn codec(&self) -> VideoCodec {
        self.codec
    }
    fn library(&self) -> &'static str {
        LIBRARY
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities { slices: false, reference_selection: true }
    }
    fn config(&self) -> &EncoderConfig {
        &self.config
    }

    fn set_bit_rate(&mut self, rate: DataRate) -> Result<(), VideoError> {
        check(self.codec).bit_rate(rate)?;
        if rate == self.config.bit_rate {
            return Ok(());
        }
        match self.config.rate_change {
            // With the next picture.
            RateChange::Seamless if dips::follows(&self.config) => {}
            RateChange::Seamless => {
                let layering = self.config.layering;
                self.handle.set_config(|c| layers::set_rates(c, layering, &layering.share_out(rate)))?;
            }
            RateChange::Restart => self.reopen = true,
        }
        self.config.bit_rate = rate;
        Ok(())
    }

    fn set_slice_size(&mut self, size: Option<DataSize>) -> Result<(), VideoError> {
        let refuse =
            |s: DataSize| check(self.codec).refusal("slice_size", s.as_bytes(), "none: the codec has no slices");
        size.map_or(Ok(()), |s| Err(refuse(s)))
    }

    fn request_key_frame(&mut self) {
        self.key_frame = true;
    }

    fn acknowledge(&mut self, picture_id: u64) {
        self.references.acknowledge(picture_id);
    }

    fn select_reference(&mut self, picture_id: u64) -> bool {
        self.config.reference_selection && self.references.select(picture_id)
    }

    fn encode(&mut self, picture: &Picture, ticks: u64, out: &mut CodedFrame) -> Result<(), VideoError> {
        out.data.clear();
        check(self.codec).picture(picture, &self.config)?;
        // A picture coded in place of a key frame is not charged with it: the library would leave pictures out for the bits of all attempts.
        if self.reopen || (self.key_frame && self.time.is_again(ticks)) {
            self.handle = Handle::open(self.codec, &self.config)?;
            self.reopen = false;
            self.key_frame = true;
        }
        (out.key, out.discardable, out.picture_id) = (false, false, self.next_id);
        (out.from_selected, out.layer, out.more_layers) = (false, None, false);
        self.upper.clear();
        let Some(rate) = self.follow_target(ticks)? else {
            self.time.skip(ticks);
            return Ok(());
        };
        let due = self.config.key_interval.is_some_and(|n| self.next_id >= self.last_key + u64::from(n.max(1)));
        let plan = self.plan();
        let (layer_plan, layer_flags) = self.layer_plan(self.key_frame || due);
        let flags = if self.key_frame || due { sys::VPX_EFLAG_FORCE_KF } else { plan.flags | layer_flags };
        if let LayerPlan::Vp8(step) = &layer_plan {
            let control = sys::vp8e_enc_control_id::VP8E_SET_TEMPORAL_LAYER_ID;
            self.handle.context.set(control, step.temporal.into())?;
        }
        let (pts, duration) = self.time.next(ticks);
        let flags_out = self.handle.encode(picture, pts, duration, flags, &mut out.data)?;
        out.key = flags_out & sys::VPX_FRAME_IS_KEY != 0;
        out.discardable = flags_out & sys::VPX_FRAME_IS_DROPPABLE != 0;
        self.dips.coded(rate, out.data.len());
        if !out.data.is_empty() {
            self.state_layers(layer_plan, out)?;
            out.from_selected = plan.from_selected && !out.key;
            self.references.coded(self.next_id, out.key, plan);
            if out.key {
                self.last_key = self.next_id;
                self.key_frame = false;
            }
            self.next_id += 1;
        }
        Ok(())
    }

    fn most_layers(&self) -> Layering {
        most_layers(self.codec)
    }

    fn set_layer_rates(&mut self, rates: &LayerRates) -> Result<(), VideoError> {
        if self.config.layering.is_single() {
            return self.set_bit_rate(rates.total());
        }
        check(self.codec).bit_rate(rates.total())?;
        let layering = self.config.layering;
        self.handle.set_config(|c| layers::set_rates(c, layering, rates))?;
        self.config.bit_rate = rates.total();
        Ok(())
    }

    fn next_layer(&mut self, out: &mut CodedFrame) -> bool {
        let Some((data, info)) = self.upper.pop() else { return false };
        (out.data, out.layer, out.more_layers) = (data, Some(info), !self.upper.is_empty());
        // Of the last coded picture.
        out.picture_id = self.next_id.saturating_sub(1);
        (out.key, out.from_selected) = (self.last_key == out.picture_id, false);
        let top = self.config.layering.top();
        out.discardable = info.id == top && top.temporal > 0 && !out.key;
        true
    }
}
