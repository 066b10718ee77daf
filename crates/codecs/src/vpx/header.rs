//! Parts of frame headers needed before the library decodes a frame: whether it is a key frame, and its size, which
//! determines the library's allocations.

use super::{MAX_SAMPLES, MAX_SIDE};
use weir_media::VideoCodec;

/// Properties of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Header {
    pub(super) key: bool,
    /// Its size if signalled; otherwise it has that of an earlier picture.
    size: Option<(u32, u32)>,
    /// Number of leading bytes that must be present for decoding; `None` if all must.
    head: Option<usize>,
}

impl Header {
    /// Whether the frame's size is supported.
    pub(super) fn fits(self) -> bool {
        self.size.is_none_or(|(w, h)| {
            (1..=MAX_SIDE).contains(&w) && (1..=MAX_SIDE).contains(&h) && u64::from(w) * u64::from(h) <= MAX_SAMPLES
        })
    }

    /// Whether these bytes, some of which may be missing after the start, can be decoded.
    pub(super) fn is_of_use(self, data: &[u8]) -> bool {
        self.head.is_some_and(|head| data.len() > head)
    }

    /// The header of the first frame in these bytes; `None` if it is invalid.
    pub(super) fn parse(codec: VideoCodec, data: &[u8]) -> Option<Self> {
        if codec == VideoCodec::Vp8 { Self::vp8(data) } else { Self::vp9(data) }
    }

    /// RFC 6386, section 9.1.
    fn vp8(data: &[u8]) -> Option<Self> {
        let [tag, middle, high, rest @ ..] = data else { return None };
        // The first partition has the modes and motion of the whole frame, and all state kept for the next.
        let first_partition = u32::from_le_bytes([*tag, *middle, *high, 0]) >> 5;
        let head = |start| Some(start + first_partition as usize);
        if tag & 1 == 1 {
            return Some(Self { key: false, size: None, head: head(3) });
        }
        let [0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..] = *rest else { return None };
        let side = |low, high| u32::from(u16::from_le_bytes([low, high]) & 0x3fff);
        Some(Self { key: true, size: Some((side(w0, w1), side(h0, h1))), head: head(10) })
    }

    /// VP9 bitstream specification, section 6.2 (`uncompressed_header`).
    fn vp9(data: &[u8]) -> Option<Self> {
        let mut bits = Bits { data, at: 0 };
        if bits.take(2)? != 2 {
            return None;
        }
        let profile = bits.take(1)? | bits.take(1)? << 1;
        if profile == 3 {
            bits.take(1)?;
        }
        if bits.take(1)? == 1 {
            // It shows an existing picture.
            return Some(Self { key: false, size: None, head: None });
        }
        let key = bits.take(1)? == 0;
        let shown = bits.take(1)? == 1;
        let resilient = bits.take(1)? == 1;
        if key {
            bits.sync_code()?;
            bits.colour(profile)?;
            return Some(Self { key, size: Some(bits.size()?), head: None });
        }
        let intra_only = !shown && bits.take(1)? == 1;
        if !resilient {
            bits.take(2)?;
        }
        if intra_only {
            bits.sync_code()?;
            if profile > 0 {
                bits.colour(profile)?;
            }
            bits.take(8)?;
            return Some(Self { key, size: Some(bits.size()?), head: None });
        }
        bits.take(8 + 3 * 4)?;
        for _ in 0..3 {
            if bits.take(1)? == 1 {
                return Some(Self { key, size: None, head: None });
            }
        }
        Some(Self { key, size: Some(bits.size()?), head: None })
    }
}

struct Bits<'a> {
    data: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn take(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            let byte = *self.data.get(self.at / 8)?;
            value = value << 1 | u32::from(byte >> (7 - self.at % 8) & 1);
            self.at += 1;
        }
        Some(value)
    }

    fn sync_code(&mut self) -> Option<()> {
        (self.take(24)? == 0x49_83_42).then_some(())
    }

    /// `color_config`.
    fn colour(&mut self, profile: u32) -> Option<()> {
        const RGB: u32 = 7;
        if profile >= 2 {
            self.take(1)?;
        }
        if self.take(3)? != RGB {
            self.take(1)?;
            if profile & 1 == 1 {
                self.take(3)?;
            }
        } else if profile & 1 == 1 {
            self.take(1)?;
        }
        Some(())
    }

    fn size(&mut self) -> Option<(u32, u32)> {
        Some((self.take(16)? + 1, self.take(16)? + 1))
    }
}

/// The frames of a VP9 superframe (VP9 bitstream specification, annex B), or a single frame.
pub(super) fn vp9_frames(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = data;
    let mut sizes = index(data);
    let mut whole = sizes.is_none().then_some(data);
    core::iter::from_fn(move || {
        if let Some(data) = whole.take() {
            return Some(data);
        }
        let (index, width) = sizes.as_mut()?;
        let (size, others) = index.split_at_checked(*width)?;
        *index = others;
        let size = size.iter().rev().fold(0usize, |n, &b| n << 8 | usize::from(b));
        let (frame, others) = rest.split_at_checked(size)?;
        rest = others;
        Some(frame)
    })
}

/// The bytes with the sizes of a superframe's frames, and the number of bytes per size.
fn index(data: &[u8]) -> Option<(&[u8], usize)> {
    let marker = *data.last()?;
    let (frames, width) = (usize::from(marker & 7) + 1, usize::from(marker >> 3 & 3) + 1);
    let start = data.len().checked_sub(2 + frames * width)?;
    (marker >> 5 == 0b110 && data[start] == marker).then(|| (&data[start + 1..data.len() - 1], width))
}

/// Writes a superframe of one frame, so that the library does not look for further frames after the first.
pub(super) fn vp9_single(frame: &[u8], out: &mut Vec<u8>) {
    const MARKER: u8 = 0b1101_1000;
    out.clear();
    out.extend_from_slice(frame);
    out.push(MARKER);
    out.extend_from_slice(&(frame.len() as u32).to_le_bytes());
    out.push(MARKER);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vp8_key_frames_tell_their_size() {
        let key = [0x50, 0, 0, 0x9d, 1, 0x2a, 0x80, 0x42, 0xe0, 0x01];
        let header = Header::parse(VideoCodec::Vp8, &key).unwrap();
        assert_eq!(header, Header { key: true, size: Some((640, 480)), head: Some(12) });
        assert!(!header.is_of_use(&[0; 12]) && header.is_of_use(&[0; 13]));
        assert!(header.fits());
        assert!(!Header { size: Some((16_383, 16_383)), ..header }.fits());
        assert!(!Header { size: Some((0, 16)), ..header }.fits());
        assert_eq!(
            Header::parse(VideoCodec::Vp8, &[0x51, 0, 0]),
            Some(Header { key: false, size: None, head: Some(5) })
        );
        assert_eq!(Header::parse(VideoCodec::Vp8, &[0x51, 0]), None);
        assert_eq!(Header::parse(VideoCodec::Vp8, &key[..9]), None);
    }

    /// Bits as text.
    fn bits(text: &str) -> Vec<u8> {
        let mut bits: Vec<u8> = text.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
        bits.resize(bits.len().next_multiple_of(8), 0);
        bits.chunks(8).map(|c| c.iter().fold(0, |n, b| n << 1 | b)).collect()
    }

    #[test]
    fn vp9_frames_tell_their_size_where_they_have_one() {
        let parse = |text: &str| Header::parse(VideoCodec::Vp9, &bits(text));
        let (sync, vga) = ("010010011000001101000010", "0000001001111111 0000000111011111");
        let key = |size| Some(Header { key: true, size, head: None });
        let delta = |size| Some(Header { key: false, size, head: None });
        assert_eq!(parse(&format!("10 00 0 0 1 0 {sync} 010 0 {vga}")), key(Some((640, 480))));
        // Profile 1 signals its subsampling, profile 2 its depth.
        assert_eq!(parse(&format!("10 10 0 0 1 0 {sync} 010 0 000 {vga}")), key(Some((640, 480))));
        assert_eq!(parse(&format!("10 01 0 0 1 0 {sync} 0 010 0 {vga}")), key(Some((640, 480))));
        assert_eq!(parse(&format!("10 00 0 1 0 0 1 00 {sync} 00000000 {vga}")), delta(Some((640, 480))));
        let refs = "00000000 0000 0010 0100";
        assert_eq!(parse(&format!("10 00 0 1 1 1 {refs} 000 {vga}")), delta(Some((640, 480))));
        assert_eq!(parse(&format!("10 00 0 1 1 0 00 {refs} 01")), delta(None));
        assert_eq!(parse("10 00 1 000"), delta(None));
        assert_eq!(parse(&format!("01 00 0 0 1 0 {sync} 010 0 {vga}")), None);
        assert_eq!(parse("10 00 0 0 1 0 010010011000001101000011"), None);
        assert_eq!(parse("10 00 0 1 1 1 0000"), None);
    }

    #[test]
    fn superframes_are_taken_apart_and_single_ones_are_made() {
        let split = |data: &[u8]| vp9_frames(data).map(<[u8]>::to_vec).collect::<Vec<_>>();
        assert_eq!(split(&[1, 2, 3]), [[1, 2, 3]]);
        let two = [1, 2, 3, 4, 5, 0b1100_0001, 3, 2, 0b1100_0001];
        assert_eq!(split(&two), [&[1, 2, 3][..], &[4, 5]]);
        // Sizes beyond the end yield no further frames.
        assert_eq!(split(&[1, 2, 0b1100_0001, 1, 99, 0b1100_0001]), [[1]]);
        assert_eq!(split(&[]).len(), 1);
        let mut single = Vec::new();
        vp9_single(&[7, 8, 9], &mut single);
        assert_eq!(split(&single), [[7, 8, 9]]);
    }
}
