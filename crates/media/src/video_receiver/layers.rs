//! Tracks the references of frames in a layered stream.

use crate::{LayerInfo, PictureId, Unpacked};
use std::collections::VecDeque;

/// Number of pictures remembered: references go back by at most 127 (RFC 9628, section 4.2, P_DIFF).
const REMEMBERED: usize = 128;

/// State of earlier pictures.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerChain {
    /// Intact pictures, with their highest spatial layer.
    good: VecDeque<(PictureId, u8)>,
    /// TL0PICIDX of the last base-layer picture.
    base: Option<u8>,
    /// Whether a picture of an upper temporal layer is missing since one that refers to the base layer only.
    upper_broken: bool,
}

impl LayerChain {
    /// Whether all references of a frame not yet recorded are intact; `missing` pictures are between it and the last.
    pub(super) fn has_what_it_needs(&self, unpacked: &Unpacked, layer: &LayerInfo, missing: u16) -> bool {
        if unpacked.key {
            return true;
        }
        if let Some((listed, id)) = layer.references.zip(unpacked.picture_id) {
            let is_good = |back: u8| {
                let refers = |good: &&(PictureId, u8)| id.since(good.0) == u16::from(back);
                self.good.iter().rev().find(refers).is_some_and(|g| g.1 >= layer.id.spatial)
            };
            return listed.into_iter().filter(|d| *d > 0).all(is_good);
        }
        match (layer.tl0_pic_idx, self.base) {
            (Some(index), Some(base)) if layer.id.temporal == 0 => index.wrapping_sub(base) == 1,
            (Some(index), Some(base)) => index == base && (layer.sync || (missing == 0 && !self.upper_broken)),
            _ => missing == 0,
        }
    }

    /// Records a frame, `good` if it and all its references are intact.
    pub(super) fn note(&mut self, unpacked: &Unpacked, layer: &LayerInfo, good: bool) {
        if layer.id.temporal == 0 {
            self.base = layer.tl0_pic_idx;
            self.upper_broken = false;
        } else {
            self.upper_broken = !good;
        }
        if let Some(id) = unpacked.picture_id.filter(|_| good) {
            if self.good.len() == REMEMBERED {
                self.good.pop_front();
            }
            self.good.push_back((id, layer.id.spatial));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LayerId;

    fn frame(id: u16, key: bool) -> Unpacked {
        Unpacked { key, picture_id: Some(PictureId { value: id & 0x7fff, long: true }), ..Unpacked::default() }
    }

    #[test]
    fn the_base_layer_is_followed_by_its_index() {
        let mut c = LayerChain::default();
        let layer = |temporal, tl0: u8, sync| LayerInfo {
            id: LayerId::new(0, temporal),
            sync,
            tl0_pic_idx: Some(tl0),
            ..LayerInfo::default()
        };
        c.note(&frame(10, true), &layer(0, 255, false), true);
        // Picture 11 is dropped: 12 refers to the base layer only, 13 to 12.
        assert!(c.has_what_it_needs(&frame(12, false), &layer(1, 255, true), 1));
        assert!(!c.has_what_it_needs(&frame(12, false), &layer(1, 255, false), 1));
        c.note(&frame(12, false), &layer(1, 255, true), true);
        assert!(c.has_what_it_needs(&frame(13, false), &layer(2, 255, false), 0));
        // 13 is dropped too; 14 is the next of the base layer, and 18 the one after the next.
        assert!(c.has_what_it_needs(&frame(14, false), &layer(0, 0, false), 1));
        assert!(!c.has_what_it_needs(&frame(18, false), &layer(0, 1, false), 5));
        // An upper layer of a base picture that is missing.
        assert!(!c.has_what_it_needs(&frame(15, false), &layer(2, 0, true), 2));
        // A damaged one affects later ones, up to a switching point.
        c.note(&frame(13, false), &layer(2, 255, false), false);
        assert!(!c.has_what_it_needs(&frame(14, false), &layer(2, 255, false), 0));
    }

    #[test]
    fn references_are_looked_up() {
        let mut c = LayerChain::default();
        let layer = |spatial, references| LayerInfo {
            id: LayerId::new(spatial, 0),
            references: Some(references),
            ..LayerInfo::default()
        };
        c.note(&frame(0x7fff, true), &layer(1, [0; 3]), true);
        c.note(&frame(0, false), &layer(0, [1, 0, 0]), true);
        assert!(c.has_what_it_needs(&frame(1, false), &layer(1, [2, 0, 0]), 0));
        assert!(c.has_what_it_needs(&frame(1, false), &layer(0, [1, 2, 0]), 0));
        // Of picture 0 only the lower spatial layer exists; of picture 1 nothing.
        assert!(!c.has_what_it_needs(&frame(1, false), &layer(1, [1, 2, 0]), 0));
        assert!(!c.has_what_it_needs(&frame(2, false), &layer(0, [1, 0, 0]), 1));
        assert!(c.has_what_it_needs(&frame(2, true), &layer(0, [1, 0, 0]), 1));
        for id in 2..400 {
            c.note(&frame(id, false), &layer(0, [1, 0, 0]), true);
        }
        assert_eq!(c.good.len(), REMEMBERED);
    }
}
