//! Key frames of limited size.
//!
//! A rate control gives a key frame several times the bits of others, and libraries do not coarsen it at will: OpenH264 2.6 codes it
//! with a quantiser of at most 40. Where that is too much for the path, the picture is coded again with less detail, which the
//! following frames add.

use crate::{CodedFrame, Picture, Plane, VideoEncoder, VideoError};
use weir_units::DataSize;

/// Greatest side of the squares, in samples, that replace a picture's detail: a macroblock.
const COARSEST: usize = 16;
/// A key frame this far below the limit lets the next one begin with twice the detail. Halving the sides takes about three times the
/// bits, measured with the built-in clips.
const ROOM: u64 = 4;

/// Codes pictures, key frames within a limit.
#[derive(Debug)]
pub(super) struct SmallKeys {
    most: Option<DataSize>,
    /// Side of the squares in the last key frame; 1 for all detail.
    side: usize,
    coarse: Option<Picture>,
    again: CodedFrame,
}

impl Default for SmallKeys {
    fn default() -> Self {
        Self { most: None, side: 1, coarse: None, again: CodedFrame::default() }
    }
}

impl SmallKeys {
    pub(super) fn limit(&mut self, most: DataSize) {
        self.most = Some(most);
    }

    /// As [`VideoEncoder::encode`]; a key frame above the limit is replaced by coarser ones until it fits, or until no detail is
    /// left.
    pub(super) fn encode(
        &mut self,
        encoder: &mut dyn VideoEncoder,
        expects_key: bool,
        picture: &Picture,
        ticks: u64,
        out: &mut CodedFrame,
    ) -> Result<(), VideoError> {
        let Some(most) = self.most else { return encoder.encode(picture, ticks, out) };
        let mut side = if expects_key { self.side } else { 1 };
        encoder.encode(self.coarse(picture, side), ticks, out)?;
        if !out.key || out.data.is_empty() {
            return Ok(());
        }
        while out.data.len() as u64 > most.as_bytes() && side < COARSEST {
            side *= 2;
            encoder.request_key_frame();
            let mut again = core::mem::take(&mut self.again);
            let coded = encoder.encode(self.coarse(picture, side), ticks, &mut again);
            // The later one is the reference of what follows, if there is one.
            let replaces = coded.is_ok() && again.key && !again.data.is_empty();
            if replaces {
                core::mem::swap(out, &mut again);
            }
            self.again = again;
            if !replaces {
                break;
            }
        }
        let has_room = out.data.len() as u64 * ROOM < most.as_bytes();
        self.side = if has_room { (side / 2).max(1) } else { side };
        Ok(())
    }

    /// The picture with the detail of squares of this side.
    fn coarse<'a>(&'a mut self, picture: &'a Picture, side: usize) -> &'a Picture {
        if side == 1 {
            return picture;
        }
        let coarse = self.coarse.get_or_insert_with(|| picture.clone());
        coarse.clone_from(picture);
        for plane in Plane::ALL {
            // Chroma has half the samples in each direction.
            let side = if plane == Plane::Y { side } else { side / 2 };
            let (width, _) = picture.size_of(plane);
            for rows in coarse.plane_mut(plane).chunks_mut(width * side) {
                level(rows, width, side);
            }
        }
        coarse
    }
}

/// Replaces each square of this side, in as many rows or fewer, by its mean.
fn level(rows: &mut [u8], width: usize, side: usize) {
    for left in (0..width).step_by(side) {
        let right = (left + side).min(width);
        let sum: usize = rows.chunks(width).flat_map(|row| &row[left..right]).map(|&s| usize::from(s)).sum();
        let count = (rows.len() / width * (right - left)).max(1);
        let mean = ((sum + count / 2) / count) as u8;
        rows.chunks_mut(width).for_each(|row| row[left..right].fill(mean));
    }
}
