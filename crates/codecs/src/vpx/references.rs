//! Selects which pictures the golden and the alternative reference buffers keep, so that encoding can return to one
//! that the receiver has.
//!
//! VP8 and VP9 use three buffers here: the last picture, golden and alternative reference. The latter two are written
//! alternately every few frames. An acknowledged picture is kept until the other one is acknowledged too: at any time
//! one buffer has a picture that the receiver is known to have, and the other one awaits its acknowledgement.

use vpx_sys as sys;

/// Interval of kept pictures in frames: 133 ms at 30 a second, so that references are recent.
const KEEP_EVERY: u64 = 4;
/// Frames after which an unacknowledged picture is assumed lost: 0.5 s at 30 a second, above the round-trip times of
/// live video.
const AWAIT: u64 = 16;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ReferenceBuffer {
    /// The picture in the buffer; `None` if it is later than a loss.
    id: Option<u64>,
    acknowledged: bool,
}

/// The role of the next frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// Flags for `vpx_codec_encode`.
    pub(super) flags: u32,
    /// Whether it refers to the selected picture only.
    pub(super) from_selected: bool,
    /// The buffer that it is written to.
    writes: Option<usize>,
}

impl Plan {
    /// No constraints.
    pub(super) const fn free() -> Self {
        Self { flags: 0, from_selected: false, writes: None }
    }
}

/// The two buffers: golden, alternative reference.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    buffers: [ReferenceBuffer; 2],
    /// The buffer from which to encode the next frame.
    selected: Option<usize>,
    last_kept: u64,
}

const NO_REFERENCE: [u32; 2] = [sys::VP8_EFLAG_NO_REF_GF, sys::VP8_EFLAG_NO_REF_ARF];
const NO_UPDATE: [u32; 2] = [sys::VP8_EFLAG_NO_UPD_GF, sys::VP8_EFLAG_NO_UPD_ARF];

impl References {
    pub(super) fn acknowledge(&mut self, id: u64) {
        for kept in self.buffers.iter_mut().filter(|k| k.id == Some(id)) {
            kept.acknowledged = true;
        }
    }

    /// The receiver has this picture and all its references, and has lost a later one.
    pub(super) fn select(&mut self, id: u64) -> bool {
        for kept in self.buffers.iter_mut().filter(|k| k.id.is_some_and(|kept| kept > id)) {
            *kept = ReferenceBuffer::default();
        }
        self.selected = (0..2).filter(|&n| self.buffers[n].id.is_some()).max_by_key(|&n| self.buffers[n].id);
        self.selected.is_some()
    }

    /// The buffer to which frame `next` is written.
    fn to_write(&self, next: u64) -> Option<usize> {
        if next < self.last_kept + KEEP_EVERY {
            return None;
        }
        let newest = self.buffers.iter().max_by_key(|k| k.id)?;
        if newest.id.is_some() && !newest.acknowledged && next < self.last_kept + AWAIT {
            return None;
        }
        let older = usize::from(self.buffers[1].id < self.buffers[0].id);
        Some(match (self.buffers[0].acknowledged, self.buffers[1].acknowledged) {
            (true, false) => 1,
            (false, true) => 0,
            _ => older,
        })
    }

    /// The plan of frame `next`.
    pub(super) fn plan(&self, next: u64) -> Plan {
        // The entropy coder keeps the state set by the key frame; otherwise a lost frame would corrupt it.
        let mut flags = sys::VP8_EFLAG_NO_UPD_ENTROPY;
        let writes = self.to_write(next);
        for n in 0..2 {
            if self.selected.map_or(self.buffers[n].id.is_none(), |s| s != n) {
                flags |= NO_REFERENCE[n];
            }
            if writes != Some(n) {
                flags |= NO_UPDATE[n];
            }
        }
        if self.selected.is_some() {
            flags |= sys::VP8_EFLAG_NO_REF_LAST;
        }
        Plan { flags, from_selected: self.selected.is_some(), writes }
    }

    /// Frame `id` was coded by this plan, or as a key frame, which is written to all buffers.
    pub(super) fn coded(&mut self, id: u64, key: bool, plan: Plan) {
        self.selected = None;
        for n in 0..2 {
            if key || plan.writes == Some(n) {
                self.buffers[n] = ReferenceBuffer { id: Some(id), acknowledged: false };
                self.last_kept = id;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(r: &References) -> [Option<u64>; 2] {
        r.buffers.map(|k| k.id)
    }

    fn run(r: &mut References, ids: core::ops::Range<u64>, delay: Option<u64>) -> Vec<[Option<u64>; 2]> {
        ids.map(|id| {
            if let Some(back) = delay.and_then(|d| id.checked_sub(d)) {
                r.acknowledge(back);
            }
            let plan = r.plan(id);
            r.coded(id, id == 0, plan);
            kept(r)
        })
        .collect()
    }

    #[test]
    fn one_buffer_always_holds_a_received_picture() {
        let mut r = References::default();
        let steps = run(&mut r, 0..40, Some(6));
        assert_eq!((steps[0], steps[5], steps[6]), ([Some(0), Some(0)], [Some(0), Some(0)], [Some(6), Some(0)]));
        // 6 is acknowledged at 12 and replaces 0; 12 is at 18 and replaces 6.
        assert_eq!((steps[12], steps[18]), ([Some(6), Some(12)], [Some(18), Some(12)]));
        for (n, step) in steps.iter().enumerate().skip(12) {
            let oldest = step.iter().flatten().min().copied().unwrap();
            assert!((6..=12).contains(&(n as u64 - oldest)), "{n}: {step:?}");
        }
    }

    #[test]
    fn without_acknowledgements_the_buffers_take_turns() {
        let steps = run(&mut References::default(), 0..60, None);
        assert_eq!(
            (steps[16], steps[32], steps[48]),
            ([Some(16), Some(0)], [Some(16), Some(32)], [Some(48), Some(32)])
        );
    }

    #[test]
    fn acknowledged_pictures_outlive_lost_ones() {
        let mut r = References::default();
        run(&mut r, 0..6, None);
        r.acknowledge(0);
        let steps = run(&mut r, 6..60, None);
        assert!(steps.iter().all(|s| s[1] == Some(0)), "{steps:?}");
        assert_eq!((steps[0][0], steps[16][0], steps[32][0]), (Some(6), Some(22), Some(38)));
    }

    #[test]
    fn going_back_takes_the_newest_that_is_not_after_the_loss_and_forgets_the_rest() {
        let mut r = References::default();
        run(&mut r, 0..31, Some(6));
        assert_eq!(kept(&r), [Some(30), Some(24)]);
        assert!(!r.clone().select(23));
        assert!(r.clone().select(30));
        assert!(r.select(27));
        let plan = r.plan(31);
        assert!(plan.from_selected);
        let refused = sys::VP8_EFLAG_NO_REF_LAST | sys::VP8_EFLAG_NO_REF_GF;
        assert_eq!(plan.flags & (refused | sys::VP8_EFLAG_NO_REF_ARF), refused);
        r.coded(31, false, plan);
        // The buffer with a picture after the loss is not referred to until it is rewritten.
        let next = r.plan(32);
        assert!(!next.from_selected && next.flags & refused == sys::VP8_EFLAG_NO_REF_GF);
        assert_eq!(next.writes, None);
        let steps = run(&mut r, 32..50, None);
        assert_eq!((steps[1], steps[2], steps[17]), ([None, Some(24)], [Some(34), Some(24)], [Some(34), Some(24)]));
    }

    #[test]
    fn a_key_frame_fills_every_buffer_and_ends_a_selection() {
        let mut r = References::default();
        assert!(!r.select(5));
        run(&mut r, 0..20, Some(3));
        assert!(r.select(19));
        let plan = r.plan(20);
        r.coded(20, true, plan);
        assert_eq!(kept(&r), [Some(20), Some(20)]);
        assert!(!r.plan(21).from_selected && r.select(20) && !r.select(19));
    }
}
