//! Layers: the library's flags and structures, and the signalling of each frame's layer.

use super::{Context, sys};
use core::mem::MaybeUninit;
use weir_media::{LayerId, LayerInfo, LayerRates, Layering, TemporalStep, VideoError};
use weir_units::DataRate;

/// Number of reference buffers in VP9.
const BUFFERS: usize = 8;

fn kbps(rate: DataRate) -> u32 {
    (rate.as_bps().saturating_add(500) / 1000).clamp(1, 500_000) as u32
}

/// Writes layers and their rates to the library's configuration.
pub(super) fn configure(c: &mut sys::vpx_codec_enc_cfg_t, layering: Layering, rates: &LayerRates) {
    let (spatial, temporal) = (usize::from(layering.spatial()), usize::from(layering.temporal()));
    c.ss_number_layers = spatial as u32;
    c.ts_number_layers = temporal as u32;
    // Every picture, every second or every fourth one, up to each layer.
    c.ts_rate_decimator[..temporal].copy_from_slice(&[4, 2, 1][3 - temporal..]);
    let pattern: &[u32] = match temporal {
        1 => &[0],
        2 => &[0, 1],
        _ => &[0, 2, 1, 2],
    };
    c.ts_periodicity = pattern.len() as u32;
    c.ts_layer_id[..pattern.len()].copy_from_slice(pattern);
    // Modes 0101 and 0212 of VP9; VP8 uses flags.
    c.temporal_layering_mode = match temporal {
        1 => sys::VP9E_TEMPORAL_LAYERING_MODE::VP9E_TEMPORAL_LAYERING_MODE_NOLAYERING as i32,
        2 => sys::VP9E_TEMPORAL_LAYERING_MODE::VP9E_TEMPORAL_LAYERING_MODE_0101 as i32,
        _ => sys::VP9E_TEMPORAL_LAYERING_MODE::VP9E_TEMPORAL_LAYERING_MODE_0212 as i32,
    };
    set_rates(c, layering, rates);
}

/// The library's rate of a temporal layer includes those below it, that of a spatial layer does not.
pub(super) fn set_rates(c: &mut sys::vpx_codec_enc_cfg_t, layering: Layering, rates: &LayerRates) {
    c.rc_target_bitrate = kbps(rates.total());
    // VP8 requires increasing sums, even if a layer has no rate.
    let mut least = 0;
    for t in 0..layering.temporal() {
        least = kbps(rates.up_to(LayerId::new(u8::MAX, t))).max(least + 1);
        c.ts_target_bitrate[usize::from(t)] = least;
    }
    for s in 0..layering.spatial() {
        let mut sum = DataRate::ZERO;
        for t in 0..layering.temporal() {
            sum += rates.get(LayerId::new(s, t));
            c.layer_target_bitrate[usize::from(s * layering.temporal() + t)] = kbps(sum);
        }
        c.ss_target_bitrate[usize::from(s)] = kbps(sum);
    }
}

impl Context {
    /// Enables VP9's layers.
    pub(super) fn set_svc(&mut self, layering: Layering, config: &sys::vpx_codec_enc_cfg_t) -> Result<(), VideoError> {
        self.set(sys::vp8e_enc_control_id::VP9E_SET_SVC, 1)?;
        let mut extra = sys::vpx_svc_extra_cfg_t {
            max_quantizers: [config.rc_max_quantizer as i32; 12],
            min_quantizers: [config.rc_min_quantizer as i32; 12],
            scaling_factor_num: [1; 12],
            scaling_factor_den: [1; 12],
            speed_per_layer: [8; 12],
            temporal_layering_mode: config.temporal_layering_mode,
            loopfilter_ctrl: [0; 12],
        };
        for s in 0..layering.spatial() {
            extra.scaling_factor_den[usize::from(s)] = 1 << (layering.spatial() - 1 - s);
        }
        // SAFETY: the context is valid, and this control copies a struct of this type.
        let answer = unsafe {
            let control = sys::vp8e_enc_control_id::VP9E_SET_SVC_PARAMETERS as i32;
            sys::vpx_codec_control_(&mut *self.raw, control, &raw mut extra)
        };
        self.check("VP9E_SET_SVC_PARAMETERS", answer)
    }

    /// The temporal layer of the last coded picture, and the buffers that each of its spatial layers read and wrote.
    pub(super) fn svc_frame_layers(&mut self) -> Result<(u8, sys::vpx_svc_ref_frame_config), VideoError> {
        let mut id = MaybeUninit::<sys::vpx_svc_layer_id>::zeroed();
        let mut references = MaybeUninit::<sys::vpx_svc_ref_frame_config>::zeroed();
        // SAFETY: the context is valid; both controls write structs of these types, for which zeros are valid in any
        // case.
        let (answer, id, references) = unsafe {
            let control = sys::vp8e_enc_control_id::VP9E_GET_SVC_LAYER_ID as i32;
            let mut answer = sys::vpx_codec_control_(&mut *self.raw, control, id.as_mut_ptr());
            if answer == sys::VPX_CODEC_OK {
                let control = sys::vp8e_enc_control_id::VP9E_GET_SVC_REF_FRAME_CONFIG as i32;
                answer = sys::vpx_codec_control_(&mut *self.raw, control, references.as_mut_ptr());
            }
            (answer, id.assume_init(), references.assume_init())
        };
        self.check("VP9E_GET_SVC_REF_FRAME_CONFIG", answer)?;
        Ok((u8::try_from(id.temporal_layer_id).unwrap_or(0), references))
    }
}

/// The temporal layers of VP8: the buffers that each picture reads and writes. The base layer uses the last-frame
/// buffer, layer 1 of three the golden one.
#[derive(Clone, Debug)]
pub(super) struct Temporal {
    layering: Layering,
    /// Pictures coded since the last key frame.
    since_key: u64,
    tl0_pic_idx: u8,
}

impl Temporal {
    pub(super) const fn new(layering: Layering) -> Self {
        Self { layering, since_key: 0, tl0_pic_idx: 0 }
    }

    /// The role of the next picture, and its flags for `vpx_codec_encode`.
    pub(super) fn plan(&self, key: bool) -> (TemporalStep, u32) {
        let step = self.layering.step(if key { 0 } else { self.since_key });
        if key {
            return (step, sys::VPX_EFLAG_FORCE_KF);
        }
        let mut flags = sys::VP8_EFLAG_NO_REF_ARF | sys::VP8_EFLAG_NO_UPD_ARF;
        let refers_to_middle = self.layering.temporal() == 3 && step.temporal == 2 && !step.sync;
        if !refers_to_middle {
            flags |= sys::VP8_EFLAG_NO_REF_GF;
        }
        let is_middle = self.layering.temporal() == 3 && step.temporal == 1;
        if !is_middle {
            flags |= sys::VP8_EFLAG_NO_UPD_GF;
        }
        if step.temporal > 0 {
            // The entropy coder keeps the state of the base layer; otherwise a dropped frame would corrupt it.
            flags |= sys::VP8_EFLAG_NO_UPD_LAST | sys::VP8_EFLAG_NO_UPD_ENTROPY;
        }
        (step, flags)
    }

    /// A picture was coded by this plan, or as a key frame.
    pub(super) fn coded(&mut self, key: bool, step: TemporalStep) -> (TemporalStep, LayerInfo) {
        let step = if key { self.layering.step(0) } else { step };
        self.since_key = if key { 1 } else { self.since_key + 1 };
        if step.temporal == 0 {
            self.tl0_pic_idx = self.tl0_pic_idx.wrapping_add(1);
        }
        let info = LayerInfo {
            id: LayerId::new(0, step.temporal),
            sync: step.sync,
            tl0_pic_idx: Some(self.tl0_pic_idx),
            ..LayerInfo::default()
        };
        (step, info)
    }
}

/// Contents of VP9's buffers: picture and spatial layer.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers([Option<(u64, u8)>; BUFFERS]);

impl Buffers {
    /// The layer signalling of a spatial layer's frame, from the buffers that it read; records those that it wrote.
    pub(super) fn coded(
        &mut self,
        picture: u64,
        key: bool,
        id: LayerId,
        layering: Layering,
        config: &sys::vpx_svc_ref_frame_config,
    ) -> LayerInfo {
        let s = usize::from(id.spatial);
        let mut info = LayerInfo {
            id,
            // In both patterns no picture refers to an upper layer's picture from before a lower one's.
            sync: true,
            references: Some([0; 3]),
            spatial_layers: (key && id.spatial == 0).then_some(layering.spatial()),
            ..LayerInfo::default()
        };
        if key && id.spatial == 0 {
            self.0 = [Some((picture, 0)); BUFFERS];
            return info;
        }
        let read = [
            (config.reference_last[s], config.lst_fb_idx[s]),
            (config.reference_golden[s], config.gld_fb_idx[s]),
            (config.reference_alt_ref[s], config.alt_fb_idx[s]),
        ];
        let mut back: Vec<u8> = Vec::new();
        for (_, buffer) in read.iter().filter(|r| r.0 != 0) {
            let Some((from, _)) = usize::try_from(*buffer).ok().and_then(|b| self.0.get(b).copied().flatten()) else {
                continue;
            };
            match picture.saturating_sub(from) {
                0 => info.inter_layer = true,
                n => back.push(n.min(127) as u8),
            }
        }
        back.sort_unstable();
        back.dedup();
        if let Some(references) = &mut info.references {
            back.iter().zip(references).for_each(|(from, to)| *to = *from);
        }
        for (n, buffer) in self.0.iter_mut().enumerate() {
            if config.update_buffer_slot[s] & 1 << n != 0 {
                *buffer = Some((picture, id.spatial));
            }
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::VideoCodec;

    #[test]
    fn upper_layers_leave_the_base_alone() {
        for t in 2..=3 {
            let layering = Layering::new(1, t).unwrap();
            let mut temporal = Temporal::new(layering);
            let mut middle = false;
            for n in 0..9 {
                let (step, flags) = temporal.plan(n == 0);
                let (step, info) = temporal.coded(n == 0, step);
                assert_eq!((step, info.id.temporal), (layering.step(n), layering.step(n).temporal));
                assert_eq!(info.tl0_pic_idx, Some(1 + (n / if t == 2 { 2 } else { 4 }) as u8));
                if n == 0 {
                    assert_eq!(flags, sys::VPX_EFLAG_FORCE_KF);
                    continue;
                }
                assert_eq!(flags & sys::VP8_EFLAG_NO_UPD_LAST != 0, step.temporal > 0, "{n}");
                let writes_golden = flags & sys::VP8_EFLAG_NO_UPD_GF == 0;
                assert_eq!(writes_golden, !step.discardable && step.temporal > 0, "{n}");
                // A picture that reads the golden buffer follows the one that wrote it.
                assert!(middle || flags & sys::VP8_EFLAG_NO_REF_GF != 0, "{n}");
                middle = writes_golden || (middle && step.temporal > 0);
            }
        }
    }

    #[test]
    fn rates_are_written_as_the_library_counts_them() {
        let mut c = super::super::default_config(VideoCodec::Vp9).unwrap();
        let layering = Layering::new(2, 2).unwrap();
        let mut rates = LayerRates::default();
        for (layer, kbps) in layering.layers().zip([100, 50, 400, 200]) {
            rates.set(layer, DataRate::from_kbps(kbps));
        }
        configure(&mut c, layering, &rates);
        assert_eq!((c.rc_target_bitrate, c.ss_number_layers, c.ts_number_layers), (750, 2, 2));
        assert_eq!(c.layer_target_bitrate[..4], [100, 150, 400, 600]);
        assert_eq!((&c.ss_target_bitrate[..2], &c.ts_target_bitrate[..2]), (&[150, 600][..], &[500, 750][..]));
        assert_eq!((c.ts_periodicity, &c.ts_rate_decimator[..2]), (2, &[2, 1][..]));
    }
}
