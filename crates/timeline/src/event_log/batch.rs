//! Columns of delta-coded values (libwebrtc's `encoder/delta_encoding.cc` and `blob_encoding.cc`).

use super::message::Message;
use crate::varint::varint;

/// Columns of a batch: the first row's value is a field, the others' are bits of the field 100 above.
#[derive(Debug)]
pub(super) struct Batch<'m, 'a> {
    message: &'m Message<'a>,
    /// Rows after the first.
    more: usize,
    pub(super) faults: Vec<&'static str>,
}

impl<'m, 'a> Batch<'m, 'a> {
    /// The batch of a message whose field `deltas` counts the rows after the first.
    ///
    /// A count above the message's bits is refused: each row has at least one bit in the column of times.
    pub(super) fn new(message: &'m Message<'a>, deltas: u32) -> Result<Self, &'static str> {
        let more = message.number(deltas).unwrap_or(0);
        let most = message.length() as u64 * 8;
        if more > most {
            return Err("more rows than its bits can hold");
        }
        Ok(Self { message, more: more as usize, faults: vec![] })
    }

    /// Rows.
    pub(super) fn rows(&self) -> usize {
        self.more + 1
    }

    /// Values of a field in every row. A column that cannot be read is empty but for its first row.
    pub(super) fn column(&mut self, field: u32) -> Vec<Option<u64>> {
        let first = self.message.number(field);
        let mut all = vec![first];
        match self.message.bytes(field + 100) {
            None => all.resize(self.rows(), first),
            Some(bits) => match deltas(first, bits, self.more) {
                Ok(values) => all.extend(values),
                Err(why) => self.faults.push(why),
            },
        }
        all.resize(self.rows(), None);
        all
    }

    /// Bytes of a field in every row.
    pub(super) fn blobs(&mut self, field: u32) -> Vec<&'a [u8]> {
        let mut all: Vec<&[u8]> = vec![self.message.bytes(field).unwrap_or_default()];
        let mut at = self.message.bytes(field + 100).unwrap_or_default();
        let mut lengths = Vec::new();
        for _ in 0..self.more {
            let Some((length, rest)) = varint(at) else { break };
            lengths.push(length);
            at = rest;
        }
        for length in lengths {
            match usize::try_from(length).ok().filter(|l| *l <= at.len()) {
                Some(length) => {
                    let (blob, rest) = at.split_at(length);
                    all.push(blob);
                    at = rest;
                }
                None => break,
            }
        }
        if all.len() < self.rows() {
            self.faults.push("a list of packets is cut");
            all.resize(self.rows(), &[]);
        }
        all
    }
}

/// Bits, the most significant first.
#[derive(Debug)]
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    /// The next `n` bits, at most 64.
    fn take(&mut self, n: u32) -> Result<u64, &'static str> {
        let mut value = 0u64;
        let mut left = n as usize;
        while left > 0 {
            let byte = *self.bytes.get(self.at / 8).ok_or("a column is cut")?;
            let free = 8 - self.at % 8;
            let now = free.min(left);
            let part = u64::from(byte) >> (free - now) & ((1 << now) - 1);
            // A shift by 64 is none of ours: `now` is at most 8.
            value = value << now | part;
            self.at += now;
            left -= now;
        }
        Ok(value)
    }

    fn varint(&mut self) -> Result<u64, &'static str> {
        let mut value = 0u64;
        for i in 0..10 {
            let byte = self.take(8)?;
            value |= (byte & 0x7f) << (7 * i).min(63);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a varint in a column is too long")
    }
}

/// Lower `n` bits.
fn mask(n: u32) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// The values after the first.
fn deltas(first: Option<u64>, bits: &[u8], count: usize) -> Result<Vec<Option<u64>>, &'static str> {
    let mut bits = Bits { bytes: bits, at: 0 };
    let kind = bits.take(2)?;
    let width = bits.take(6)? as u32 + 1;
    let (signed, missing, value_width) = match kind {
        0 => (false, false, 64),
        1 => (bits.take(1)? == 1, bits.take(1)? == 1, bits.take(6)? as u32 + 1),
        _ => return Err("a column of an unknown encoding"),
    };
    let mut present = vec![true; count];
    if missing {
        for p in &mut present {
            *p = bits.take(1)? == 1;
        }
    }
    let mut before = first;
    let mut values = Vec::with_capacity(count);
    for p in present {
        if !p {
            values.push(None);
            continue;
        }
        let value = match before {
            None => bits.varint()?,
            Some(before) => {
                let delta = bits.take(width)?;
                // Two's complement of the width.
                let delta = if signed && delta >> (width - 1) == 1 { delta | !mask(width) } else { delta };
                before.wrapping_add(delta) & mask(value_width)
            }
        };
        before = Some(value);
        values.push(Some(value));
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of text, padded to whole bytes.
    fn bits(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text.bytes().filter(|b| matches!(b, b'0' | b'1')).map(|b| b - b'0').collect();
        bits.chunks(8).map(|c| c.iter().enumerate().fold(0, |v, (i, b)| v | b << (7 - i))).collect()
    }

    #[test]
    fn unsigned_deltas_add_up() {
        // Kind 0, width 4: 3, 0, 15.
        let column = bits("00 000011 0011 0000 1111");
        assert_eq!(deltas(Some(10), &column, 3), Ok(vec![Some(13), Some(13), Some(28)]));
    }

    #[test]
    fn signed_deltas_wrap_at_the_width_of_values() {
        // Kind 1, width 3, signed, none missing, values of 8 bits: +2, -1, -4.
        let column = bits("01 000010 1 0 000111 010 111 100");
        assert_eq!(deltas(Some(254), &column, 3), Ok(vec![Some(0), Some(255), Some(251)]));
    }

    #[test]
    fn values_may_be_missing_and_begin_with_a_varint() {
        // Kind 1, width 2, unsigned, some missing, values of 16 bits: absent, 300 as a varint, absent, +1.
        let column = bits("01 000001 0 1 001111 0101 10101100 00000010 01");
        assert_eq!(deltas(None, &column, 4), Ok(vec![None, Some(300), None, Some(301)]));
    }

    #[test]
    fn a_column_cut_or_reserved_is_an_error() {
        assert!(deltas(Some(1), &bits("00 111111 0000"), 1).is_err());
        assert!(deltas(Some(1), &bits("10 000000 1"), 1).is_err());
        assert!(deltas(Some(1), &[], 1).is_err());
    }
}
