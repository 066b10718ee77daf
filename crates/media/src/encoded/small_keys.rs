//! Key frames of limited size, and the detail that follows them.
//!
//! A rate control gives a key frame several times the bits of others, and libraries do not coarsen it at will: OpenH264 2.6 codes it
//! with a quantiser of at most 40. Where that is too much for the path, the picture is coded again with less detail. The frame after it
//! would bring all of that detail at once, with the key frame's quantiser: five times a frame's share of the rate at 100 kbit/s, which
//! arrives too late for its playout, so that the next key frame is requested. The detail therefore returns by rows of macroblocks, as
//! many in each frame as the rate has room for.

use crate::{CodedFrame, Picture, Plane, VideoEncoder, VideoError};
use weir_units::DataSize;

/// Greatest side of the squares, in samples, that replace a picture's detail: two macroblocks.
const COARSEST: usize = 32;
/// A key frame this far below the limit lets the next one begin with twice the detail. Halving the sides takes about three times the
/// bits, measured with the built-in clips.
const ROOM: u64 = 4;
/// A frame that takes more than this many times a key frame's limit, and a frame's share of the rate, comes too late for its playout, as at
/// a change of scene: a key frame replaces it. Chosen here: 400 ms at the rate, twice the time of a key frame.
const LARGE: u64 = 2;
const LARGE_SHARES: u64 = 6;
/// Side of a macroblock in samples.
const MACROBLOCK: usize = 16;
/// First guess of what all detail takes, as a multiple of the coarse key frame: 2.5 to 5, measured with the built-in clips.
const DETAIL: u64 = 5;
/// Most frames over which the detail returns. Chosen here: a second at 15 frames a second.
const MOST_FRAMES: usize = 15;

/// Codes pictures, key frames within a limit.
#[derive(Debug)]
pub(super) struct SmallKeys {
    most: Option<DataSize>,
    /// Side of the squares with which the next key frame begins; 1 for all detail.
    side: usize,
    refinement: Option<Refinement>,
    coarse: Option<Picture>,
    again: CodedFrame,
}

/// The return of detail after a coarse key frame.
#[derive(Clone, Copy, Debug)]
struct Refinement {
    /// Side of the squares in the rest of the picture.
    side: usize,
    /// Rows of macroblocks with all detail, from the top.
    rows: usize,
    /// Rows to be added with the next frame.
    step: usize,
}

impl Default for SmallKeys {
    fn default() -> Self {
        Self { most: None, side: 1, refinement: None, coarse: None, again: CodedFrame::default() }
    }
}

impl SmallKeys {
    pub(super) fn limit(&mut self, most: DataSize) {
        self.most = Some(most);
    }

    /// As [`VideoEncoder::encode`]; a key frame above the limit, and any frame far above it, is replaced by coarser key frames until one
    /// fits, or until no detail is left, and following frames add detail as far as they stay near `share`, a frame's share of the rate.
    pub(super) fn encode(
        &mut self,
        encoder: &mut dyn VideoEncoder,
        expects_key: bool,
        share: DataSize,
        picture: &Picture,
        ticks: u64,
        out: &mut CodedFrame,
    ) -> Result<(), VideoError> {
        let Some(most) = self.most else { return encoder.encode(picture, ticks, out) };
        let (mut side, detailed) = match self.refinement {
            _ if expects_key => (self.side, 0),
            Some(r) => (r.side, r.rows + r.step),
            None => (1, 0),
        };
        encoder.encode(self.coarse(picture, side, detailed), ticks, out)?;
        if out.data.is_empty() {
            return Ok(());
        }
        let total = (picture.height() as usize).div_ceil(MACROBLOCK);
        let size = out.data.len() as u64;
        let is_large = size > most.as_bytes() * LARGE && size > share.as_bytes() * LARGE_SHARES;
        if !out.key && !is_large {
            self.refinement = self.refinement.and_then(|r| r.after(size, share.as_bytes(), total));
            return Ok(());
        }
        let mut next = if out.key { side * 2 } else { self.side };
        while (!out.key || out.data.len() as u64 > most.as_bytes()) && next <= COARSEST {
            side = next;
            next *= 2;
            encoder.request_key_frame();
            let mut again = core::mem::take(&mut self.again);
            let coded = encoder.encode(self.coarse(picture, side, 0), ticks, &mut again);
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
        let size = out.data.len() as u64;
        if !out.key {
            self.refinement = None;
            return Ok(());
        }
        self.refinement = (side > 1).then(|| Refinement::new(side, size, share.as_bytes(), total));
        self.side = if size * ROOM < most.as_bytes() { (side / 2).max(1) } else { side };
        Ok(())
    }

    /// The picture with the detail of squares of this side below the first `detailed` rows of macroblocks.
    fn coarse<'a>(&'a mut self, picture: &'a Picture, side: usize, detailed: usize) -> &'a Picture {
        if side == 1 {
            return picture;
        }
        let coarse = self.coarse.get_or_insert_with(|| picture.clone());
        coarse.clone_from(picture);
        for plane in Plane::ALL {
            // Chroma has half the samples in each direction.
            let half = if plane == Plane::Y { 1 } else { 2 };
            let (width, _) = picture.size_of(plane);
            for rows in coarse.plane_mut(plane).chunks_mut(width * side / half) {
                level(rows, width, side / half);
            }
            let whole = picture.plane(plane);
            let end = (width * detailed * MACROBLOCK / half).min(whole.len());
            coarse.plane_mut(plane)[..end].copy_from_slice(&whole[..end]);
        }
        coarse
    }
}

impl Refinement {
    /// After a coarse key frame of this size.
    fn new(side: usize, size: u64, share: u64, total: usize) -> Self {
        Self { side, rows: 0, step: total }.stepping(share, size * DETAIL, total)
    }

    /// Adds as many rows as fit into the share if `step` rows take this size.
    fn stepping(self, share: u64, size: u64, total: usize) -> Self {
        let fitting = (self.step as u64).saturating_mul(share) / size.max(1);
        let step = usize::try_from(fitting).unwrap_or(total).clamp(total.div_ceil(MOST_FRAMES), total);
        Self { step, ..self }
    }

    /// After a frame of this size that has added a step; `None` if the picture has all of its detail.
    fn after(self, size: u64, share: u64, total: usize) -> Option<Self> {
        let rows = self.rows + self.step;
        (rows < total).then(|| Self { rows, ..self }.stepping(share, size, total))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capabilities, EncoderConfig, VideoCodec};
    use weir_units::DataRate;

    /// Key frames of 9,000 bytes, or 2,000 of a picture without detail; deltas as large as told, or 100 bytes.
    struct Told {
        config: EncoderConfig,
        key: bool,
        deltas: Vec<usize>,
    }

    impl VideoEncoder for Told {
        fn codec(&self) -> VideoCodec {
            VideoCodec::H264
        }
        fn library(&self) -> &'static str {
            "told"
        }
        fn capabilities(&self) -> Capabilities {
            Capabilities::default()
        }
        fn config(&self) -> &EncoderConfig {
            &self.config
        }
        fn set_bit_rate(&mut self, _: DataRate) -> Result<(), VideoError> {
            Ok(())
        }
        fn set_slice_size(&mut self, _: Option<DataSize>) -> Result<(), VideoError> {
            Ok(())
        }
        fn request_key_frame(&mut self) {
            self.key = true;
        }
        fn acknowledge(&mut self, _: u64) {}
        fn select_reference(&mut self, _: u64) -> bool {
            false
        }
        fn encode(&mut self, picture: &Picture, _: u64, out: &mut CodedFrame) -> Result<(), VideoError> {
            let is_flat = picture.plane(Plane::Y).iter().all(|s| *s == picture.plane(Plane::Y)[0]);
            out.key = core::mem::take(&mut self.key);
            let size = match (out.key, is_flat) {
                (true, true) => 2_000,
                (true, false) => 9_000,
                _ => self.deltas.pop().unwrap_or(100),
            };
            out.data = vec![1; size];
            Ok(())
        }
    }

    #[test]
    fn a_frame_far_above_the_limit_is_replaced_by_a_key_frame_within_it() {
        let mut picture = Picture::new(32, 32).expect("sound");
        picture.plane_mut(Plane::Y).iter_mut().enumerate().for_each(|(i, s)| *s = (i % 2) as u8 * 200);
        let mut encoder = Told { config: EncoderConfig::live(32, 32), key: true, deltas: vec![6_000, 4_000] };
        let (mut keys, mut out) = (SmallKeys::default(), CodedFrame::default());
        keys.limit(DataSize::from_bytes(2_500));
        let mut coded = |expects: bool| {
            let share = DataSize::from_bytes(833);
            keys.encode(&mut encoder, expects, share, &picture, 0, &mut out).expect("sound");
            (out.key, out.data.len())
        };
        assert_eq!(coded(true), (true, 2_000));
        // Less than 5,000 bytes are sent as they are.
        assert_eq!([coded(false), coded(false)], [(false, 4_000), (true, 2_000)]);
        assert_eq!(coded(false), (false, 100));
    }

    #[test]
    fn detail_returns_by_as_many_rows_as_the_share_has_room_for() {
        // 30 rows of 200 bytes each after a key frame of 2,000, in frames of 833.
        let mut r = Refinement::new(16, 2_000, 833, 30);
        assert_eq!(r.step, 2);
        let mut sizes = vec![];
        loop {
            let size = 200 * r.step as u64;
            sizes.push(size);
            match r.after(size, 833, 30) {
                Some(next) => r = next,
                None => break,
            }
        }
        assert!(sizes[1..].iter().all(|&s| (400..=833).contains(&s)) && (8..=10).contains(&sizes.len()), "{sizes:?}");
    }

    #[test]
    fn detail_returns_at_once_where_there_is_room_and_within_a_second_where_there_is_none() {
        assert_eq!(Refinement::new(2, 1_000, 20_000, 30).step, 30);
        let mut frames = 1;
        let mut r = Refinement::new(32, 2_000, 100, 30);
        while let Some(next) = r.after(3_000, 100, 30) {
            (r, frames) = (next, frames + 1);
        }
        assert_eq!(frames, MOST_FRAMES);
    }

    #[test]
    fn rows_above_keep_their_detail_and_squares_below_have_none() {
        let mut picture = Picture::new(64, 64).expect("sound");
        for plane in Plane::ALL {
            picture.plane_mut(plane).iter_mut().enumerate().for_each(|(i, s)| *s = (i % 7) as u8 * 30);
        }
        let mut keys = SmallKeys::default();
        let coarse = keys.coarse(&picture, 32, 1);
        for (plane, half) in [(Plane::Y, 1), (Plane::U, 2), (Plane::V, 2)] {
            let (width, _) = picture.size_of(plane);
            let (seen, whole) = (coarse.plane(plane), picture.plane(plane));
            let above = width * 16 / half;
            assert_eq!(seen[..above], whole[..above]);
            assert!(seen[above..above + 32 / half].iter().all(|&s| s == seen[above]), "a square");
            assert_ne!(seen[above..], whole[above..]);
        }
        assert_eq!(keys.coarse(&picture, 1, 0), &picture);
    }
}
