//! Reference information in the encoder's slices (H.264, sections 7.3.2.1 and 7.3.3), as written by the library:
//! Baseline profile, progressive, picture order counts in frame order.

use crate::h264::{self, NAL_IDR, NAL_SLICE};

/// Contents of the first slice of an access unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Slice {
    pub(super) frame_num: u32,
    /// Set for a key frame.
    pub(super) idr_pic_id: Option<u32>,
    /// Whether the picture becomes a long-term reference.
    pub(super) marks_itself: bool,
    /// Whether the previous picture becomes a long-term reference.
    pub(super) marks_previous: bool,
    /// Whether its first reference is a long-term one.
    pub(super) from_long_term: bool,
}

const NAL_SEQUENCE: u8 = 7;

/// Parses slices, using the stream's sequence parameter set.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct SliceReader {
    frame_num_bits: u32,
}

impl SliceReader {
    /// Parses an access unit; `None` if it is not as expected.
    pub(super) fn read(&mut self, stream: &[u8]) -> Option<Slice> {
        for unit in h264::nal_units(stream) {
            let mut bits = Bits::new(unit.get(1..)?);
            match h264::nal_type(unit) {
                NAL_SEQUENCE => self.frame_num_bits = bits.sequence()?,
                kind @ (NAL_SLICE | NAL_IDR) => return bits.slice(kind == NAL_IDR, self.frame_num_bits),
                _ => {}
            }
        }
        None
    }
}

/// The bits of a NAL unit without emulation prevention (H.264, section 7.4.1).
struct Bits<'a> {
    bytes: &'a [u8],
    /// Bits read of the first byte, and zero bytes before it.
    at: u32,
    zeros: u32,
}

impl<'a> Bits<'a> {
    const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, zeros: 0 }
    }

    fn bit(&mut self) -> Option<u32> {
        if self.at == 0 && self.zeros >= 2 && self.bytes.first() == Some(&3) {
            self.bytes = &self.bytes[1..];
            self.zeros = 0;
        }
        let (&byte, rest) = self.bytes.split_first()?;
        let bit = byte >> (7 - self.at) & 1;
        self.at += 1;
        if self.at == 8 {
            (self.at, self.bytes) = (0, rest);
            self.zeros = if byte == 0 { self.zeros + 1 } else { 0 };
        }
        Some(u32::from(bit))
    }

    fn bits(&mut self, count: u32) -> Option<u32> {
        (0..count).try_fold(0, |value, _| Some(value << 1 | self.bit()?))
    }

    /// `ue(v)` (H.264, section 9.1).
    fn number(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.bit()? == 0 {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some(((1u64 << zeros) - 1 + u64::from(self.bits(zeros)?)) as u32)
    }

    /// Number of bits of `frame_num`, from a sequence parameter set with picture order counts in frame order.
    fn sequence(&mut self) -> Option<u32> {
        const ORDER_BY_FRAMES: u32 = 2;
        self.bits(24)?;
        self.number()?;
        let bits = self.number()? + 4;
        (self.number()? == ORDER_BY_FRAMES && bits <= 16).then_some(bits)
    }

    fn slice(&mut self, idr: bool, frame_num_bits: u32) -> Option<Slice> {
        if frame_num_bits == 0 {
            return None;
        }
        self.number()?;
        let inter = self.number()? % 5 == 0;
        self.number()?;
        let frame_num = self.bits(frame_num_bits)?;
        let idr_pic_id = if idr { Some(self.number()?) } else { None };
        let mut slice =
            Slice { frame_num, idr_pic_id, marks_itself: false, marks_previous: false, from_long_term: false };
        if idr {
            return Some(slice);
        }
        if inter {
            if self.bit()? == 1 {
                self.number()?;
            }
            if self.bit()? == 1 {
                for n in 0.. {
                    match self.number()? {
                        3 => break,
                        2 if n == 0 => slice.from_long_term = true,
                        _ => {}
                    }
                    self.number()?;
                }
            }
        }
        if self.bit()? == 1 {
            loop {
                match self.number()? {
                    0 => break,
                    3 => {
                        slice.marks_previous = true;
                        self.number()?;
                        self.number()?;
                    }
                    5 => {}
                    operation => {
                        slice.marks_itself |= operation == 6;
                        self.number()?;
                    }
                }
            }
        }
        Some(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A NAL unit from bits as text, with its start code.
    fn unit(header: u8, text: &str) -> Vec<u8> {
        let mut bits: Vec<u8> = text.bytes().filter(|b| *b != b' ').map(|b| b - b'0').chain([1]).collect();
        bits.resize(bits.len().next_multiple_of(8), 0);
        let body = bits.chunks(8).map(|c| c.iter().fold(0, |n, b| n << 1 | b));
        [0, 0, 0, 1, header].into_iter().chain(body).collect()
    }

    #[test]
    fn slices_state_their_number_reference_and_marking() {
        let mut reader = SliceReader::default();
        let idr = unit(0x65, "1 0001000 1 0000 00110 0 0");
        assert_eq!(reader.read(&idr), None, "without a sequence parameter set");
        // Profile, constraints, level, number 0, 4 bits of frame_num, order type 2.
        let sequence = unit(0x67, "01000010 11000000 00011110 1 1 011");
        let plain = Slice {
            frame_num: 0,
            idr_pic_id: Some(5),
            marks_itself: false,
            marks_previous: false,
            from_long_term: false,
        };
        assert_eq!(reader.read(&[sequence, idr].concat()), Some(plain));
        let mut read = |text: &str| reader.read(&unit(0x61, text)).unwrap();
        // P, frame_num 9, no override, reorder by 0 then end, no marks.
        let plain = Slice { frame_num: 9, idr_pic_id: None, ..plain };
        assert_eq!(read("1 1 1 1001 0 1 1 1 00100 0"), plain);
        // Override, long-term reference 1, maximum index, unused, and itself long-term.
        let long = Slice { from_long_term: true, marks_itself: true, ..plain };
        assert_eq!(read("1 1 1 1001 1 1 1 011 010 00100 1 00101 011 010 1 00111 1 1"), long);
        assert_eq!(read("1 1 1 1001 0 0 1 00100 1 010 1"), Slice { marks_previous: true, ..plain });
        assert_eq!(reader.read(&unit(0x61, "1 1 1 10")), None);
    }

    #[test]
    fn emulation_prevention_is_left_out() {
        let mut bits = Bits::new(&[0, 0, 3, 1, 0x80]);
        assert_eq!((bits.bits(24), bits.number(), bits.bits(8)), (Some(1), Some(0), None));
    }
}
