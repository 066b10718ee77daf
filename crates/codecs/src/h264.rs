//! Common parts of H.264 encoders and decoders: NAL units in byte streams, levels, even sizes, the state of an encoder.

use crate::check::Check;
use weir_media::{CodedFrame, EncoderConfig, Picture, Plane, RateChange, VideoError};
use weir_units::DataRate;

/// Supported slice sizes: a macroblock can need 400 bytes (H.264, section A.3.1), to which OpenH264 adds 20 of headers;
/// above the upper bound slices are useless.
pub(crate) const SLICE_SIZES: core::ops::RangeInclusive<u64> = 421..=65_536;

/// NAL unit types (H.264, table 7-1).
pub(crate) const NAL_IDR: u8 = 5;
pub(crate) const NAL_SLICE: u8 = 1;

/// The NAL units of a byte stream, without start codes and trailing zeros (H.264, Annex B).
pub(crate) fn nal_units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = after_start_code(stream);
    core::iter::from_fn(move || {
        loop {
            let unit = rest?;
            let end = unit.windows(3).position(|w| w == [0, 0, 1]).unwrap_or(unit.len());
            rest = after_start_code(&unit[end..]);
            let len = unit[..end].iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
            if len > 0 {
                return Some(&unit[..len]);
            }
        }
    })
}

fn after_start_code(stream: &[u8]) -> Option<&[u8]> {
    stream.windows(3).position(|w| w == [0, 0, 1]).map(|at| &stream[at + 3..])
}

/// The NAL unit type.
pub(crate) const fn nal_type(unit: &[u8]) -> u8 {
    match unit {
        [first, ..] => *first & 0x1f,
        [] => 0,
    }
}

/// Whether decoding can start with this access unit.
pub(crate) fn is_key(stream: &[u8]) -> bool {
    nal_units(stream).any(|u| nal_type(u) == NAL_IDR)
}

/// Whether no other picture refers to this one: `nal_ref_idc` is 0 (H.264, section 7.4.1).
pub(crate) fn is_discardable(stream: &[u8]) -> bool {
    nal_units(stream).filter(|u| matches!(nal_type(u), NAL_SLICE | NAL_IDR)).all(|u| u[0] & 0x60 == 0)
}

/// Macroblocks a second, macroblocks per frame, kbit/s of the Baseline and Main profiles, `level_idc` (H.264, table
///
const LEVELS: [(u32, u32, u64, u8); 16] = [
    (1_485, 99, 64, 10),
    (3_000, 396, 192, 11),
    (6_000, 396, 384, 12),
    (11_880, 396, 768, 13),
    (11_880, 396, 2_000, 20),
    (19_800, 792, 4_000, 21),
    (20_250, 1_620, 4_000, 22),
    (40_500, 1_620, 10_000, 30),
    (108_000, 3_600, 14_000, 31),
    (216_000, 5_120, 20_000, 32),
    (245_760, 8_192, 20_000, 40),
    (245_760, 8_192, 50_000, 41),
    (522_240, 8_704, 50_000, 42),
    (589_824, 22_080, 135_000, 50),
    (983_040, 36_864, 240_000, 51),
    (2_073_600, 36_864, 240_000, 52),
];

/// Most macroblocks per frame at the highest level.
const MAX_MACROBLOCKS: u32 = LEVELS[LEVELS.len() - 1].1;

/// Rejects a size beyond all levels, or with a side below `min_side`.
pub(crate) fn check_size(check: Check, config: &EncoderConfig, min_side: u32) -> Result<(), VideoError> {
    let (width, height) = (config.width, config.height);
    if width < min_side || height < min_side || macroblocks(width, height) > MAX_MACROBLOCKS {
        let expected = format!("sides of {min_side} or more, and {MAX_MACROBLOCKS} macroblocks of 16x16 at most");
        return Err(check.size(config, expected));
    }
    Ok(())
}

/// Macroblocks per frame.
const fn macroblocks(width: u32, height: u32) -> u32 {
    width.div_ceil(16).saturating_mul(height.div_ceil(16))
}

/// `level_idc` of the lowest level for this size, frame rate and bit rate; the highest level if none suffices.
pub(crate) fn level_idc(width: u32, height: u32, frame_rate: f64, bit_rate: DataRate) -> u8 {
    let frame = macroblocks(width, height);
    LEVELS
        .iter()
        .find(|l| f64::from(frame) * frame_rate <= f64::from(l.0) && frame <= l.1 && bit_rate.as_bps() <= l.2 * 1000)
        .map_or(LEVELS[LEVELS.len() - 1].3, |l| l.3)
}

/// Pictures with even sides: cropping is in pairs of samples (H.264, section 7.4.2.1.1), so an odd side is coded one
/// sample larger, repeating the last sample.
pub(crate) struct Even {
    padded: Option<Picture>,
}

impl Even {
    /// For pictures of this size, with both sides below [`weir_media::MAX_SIDE`].
    pub(crate) fn new(width: u32, height: u32) -> Self {
        let (w, h) = Self::size(width, height);
        Self { padded: if (w, h) == (width, height) { None } else { Picture::new(w, h).ok() } }
    }

    /// The coded size.
    pub(crate) const fn size(width: u32, height: u32) -> (u32, u32) {
        (width.next_multiple_of(2), height.next_multiple_of(2))
    }

    /// The picture to be coded.
    pub(crate) fn of<'a>(&'a mut self, picture: &'a Picture) -> &'a Picture {
        let Some(padded) = &mut self.padded else { return picture };
        for plane in Plane::ALL {
            let ((from_width, _), (to_width, _)) = (picture.size_of(plane), padded.size_of(plane));
            let from = picture.plane(plane);
            let last_row = &from[from.len() - from_width..];
            let rows = from.chunks_exact(from_width).chain(core::iter::repeat(last_row));
            for (to, from) in padded.plane_mut(plane).chunks_exact_mut(to_width).zip(rows) {
                to[..from_width].copy_from_slice(from);
                to[from_width..].fill(from[from_width - 1]);
            }
        }
        padded
    }
}

/// State of an encoder around its library.
pub(crate) struct Encoding {
    check: Check,
    pub(crate) config: EncoderConfig,
    pub(crate) even: Even,
    /// Whether a key frame is due.
    pub(crate) key_frame: bool,
    /// Whether the library's encoder must be reopened before the next frame.
    pub(crate) reopen: bool,
    /// Whether the next frame refers to a selected picture.
    pub(crate) selected: bool,
    /// Number of the next picture.
    pub(crate) next_id: u64,
}

impl Encoding {
    /// For an encoder that has just been opened.
    pub(crate) fn new(check: Check, config: &EncoderConfig, key_frame: bool) -> Self {
        let even = Even::new(config.width, config.height);
        Self { check, config: *config, even, key_frame, reopen: false, selected: false, next_id: 0 }
    }

    /// Sets the bit rate: at once by `apply`, or by reopening the encoder, as configured.
    pub(crate) fn set_bit_rate(
        &mut self,
        rate: DataRate,
        apply: impl FnOnce(&EncoderConfig) -> Result<(), VideoError>,
    ) -> Result<(), VideoError> {
        self.check.bit_rate(rate)?;
        if rate == self.config.bit_rate {
            return Ok(());
        }
        let config = EncoderConfig { bit_rate: rate, ..self.config };
        match config.rate_change {
            RateChange::Seamless => apply(&config)?,
            RateChange::Restart => self.reopen = true,
        }
        self.config = config;
        Ok(())
    }

    /// Checks a picture to be coded into `out`, which is emptied.
    pub(crate) fn begin(&self, picture: &Picture, out: &mut CodedFrame) -> Result<(), VideoError> {
        out.data.clear();
        self.check.picture(picture, &self.config)
    }

    /// Describes the frame coded in `out`, which is empty if it was dropped; returns whether there is one.
    pub(crate) fn describe(&self, out: &mut CodedFrame) -> bool {
        out.discardable = !out.data.is_empty() && is_discardable(&out.data);
        out.picture_id = self.next_id;
        out.from_selected = false;
        !out.data.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_lie_between_start_codes_of_three_or_four_bytes() {
        let stream = [9, 0, 0, 0, 1, 0x67, 1, 2, 0, 0, 1, 0x65, 3, 0, 0, 0, 1, 0, 0, 1, 0x41];
        let units: Vec<_> = nal_units(&stream).collect();
        assert_eq!(units, [&[0x67, 1, 2][..], &[0x65, 3], &[0x41]]);
        assert!(is_key(&stream) && !is_discardable(&stream));
        assert!(is_discardable(&[0, 0, 1, 0x01, 7]) && !is_key(&[0, 0, 1, 0x41, 7]));
        assert_eq!(nal_units(&[0, 0]).count() + nal_units(&[]).count() + nal_units(&[0, 0, 1]).count(), 0);
    }

    #[test]
    fn levels_follow_table_a_1() {
        let at = |w, h, fps, kbps| level_idc(w, h, fps, DataRate::from_kbps(kbps));
        assert_eq!(at(640, 480, 30.0, 2_000), 30);
        assert_eq!(at(640, 480, 60.0, 2_000), 31);
        assert_eq!(at(1280, 720, 30.0, 2_000), 31);
        assert_eq!(at(1920, 1080, 30.0, 8_000), 40);
        assert_eq!(at(176, 144, 15.0, 64), 10);
        assert_eq!(at(176, 144, 15.0, 700), 13);
        assert_eq!(at(16_384, 16_384, 60.0, 900_000), 52);
    }

    #[test]
    fn odd_sides_repeat_their_last_sample() {
        let odd = Picture::from_i420(3, 1, vec![1, 2, 3, 10, 11, 20, 21]).unwrap();
        let mut even = Even::new(3, 1);
        let got = even.of(&odd);
        assert_eq!((got.width(), got.height()), (4, 2));
        assert_eq!(got.as_i420(), [1, 2, 3, 3, 1, 2, 3, 3, 10, 11, 20, 21]);
        assert_eq!(Even::new(4, 2).of(got).as_i420(), got.as_i420());
    }
}
