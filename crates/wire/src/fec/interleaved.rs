//! One-dimensional interleaved parity (RFC 6015): repair packet i of a block of L columns and D rows protects the D
//! packets of column i, at intervals of L.
//!
//! Its repair packets are not ordinary RTP packets: the P, X, CC and M fields of their RTP header are XORs of the
//! protected packets' fields, and padding, extension and CSRC list are always absent, regardless of these fields
//! (section 4.2). [`Repair::parse`] therefore takes the whole packet, identified by its payload type, and
//! [`PacketView`](crate::rtp::PacketView) must be used for the fields of the fixed header only.

use super::octets::Sink;
use super::parity::{FLAGS, Recovery};
use super::{Coverage, Octets, Pattern};
use crate::Error;
use crate::read::Reader;

/// Bytes of the RTP and the FEC header together.
pub const HEADER: usize = 28;

/// Flags in the RTP header; the payload type is in the FEC header.
const RTP_FLAGS: u16 = FLAGS & !0x7f;
/// The E bit, which extends RFC 2733's header.
const EXTENDED: u32 = 0x8000_0000;

/// A whole repair packet, with its RTP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'a> {
    /// Payload type of the repair stream, 7 bits.
    pub payload_type: u8,
    /// Sequence number in the repair stream.
    pub sequence: u16,
    /// When the repair packet is sent.
    pub timestamp: u32,
    /// The repair stream.
    pub ssrc: u32,
    /// The fields XORed over the protected packets.
    pub recovery: Recovery,
    /// The lowest sequence number of the column (SN base low).
    pub base: u16,
    /// L, columns of the block (the Offset field): 1 to 255.
    pub columns: u8,
    /// D, rows of the block (the NA field): 1 to 255.
    pub rows: u8,
    /// The XOR of what follows the protected packets' fixed headers.
    pub payload: Octets<'a>,
}

impl<'a> Repair<'a> {
    /// Parses a whole RTP packet. Fields that section 6.2 says to ignore are ignored, and so is the E bit; row parity,
    /// which SMPTE 2022-1 marks by the D bit, is not part of RFC 6015 and is parsed as a column.
    ///
    /// # Errors
    /// If a header is cut off, the version is not 2, or L or D is 0.
    pub fn parse(packet: Octets<'a>) -> Result<Self, Error> {
        let mut r = Reader::new(packet.bytes, 0);
        let first = r.u16("RTP flags")?;
        if first >> 14 != 2 {
            return Err(Error::Value { field: "RTP version", offset: 0, value: u64::from(first >> 14), expected: "2" });
        }
        let (sequence, timestamp, ssrc) = (r.u16("RTP sequence")?, r.u32("RTP timestamp")?, r.u32("RTP SSRC")?);
        let (base, length) = (r.u16("SN base low")?, r.u16("length recovery")?);
        let payload_type = (r.u32("PT recovery and mask")? >> 24) as u16 & 0x7f;
        let recovered = r.u32("TS recovery")?;
        let offset = r.offset();
        let [_, columns, rows, _] = r.u32("offset and NA")?.to_be_bytes();
        for (field, at, value) in [("offset (L)", 1, columns), ("NA (D)", 2, rows)] {
            if value == 0 {
                return Err(Error::Value { field, offset: offset + at, value: 0, expected: "1 to 255" });
            }
        }
        Ok(Self {
            payload_type: first as u8 & 0x7f,
            sequence,
            timestamp,
            ssrc,
            recovery: Recovery { flags: first & RTP_FLAGS | payload_type, timestamp: recovered, length },
            base,
            columns,
            rows,
            payload: Octets { bytes: r.rest(), zeros: packet.zeros },
        })
    }
    /// The packets of the column (section 6.3.1).
    pub const fn coverage(&self) -> Coverage {
        Coverage { base: self.base, pattern: Pattern::Every { step: self.columns, count: self.rows } }
    }
    /// Appends the parity of the protected strings, and returns the number of zeros that follow.
    pub fn string_into(&self, out: &mut Vec<u8>) -> u32 {
        self.recovery.join_into(self.payload, out)
    }
    /// Appends the packet with its RTP header, and returns the number of zeros that follow. `None`, with nothing
    /// appended, if there are no columns or no rows.
    #[must_use]
    pub fn write_into(&self, out: &mut Vec<u8>) -> Option<u32> {
        if self.columns == 0 || self.rows == 0 {
            return None;
        }
        let mut sink = Sink::new(out);
        let first = 0x8000 | self.recovery.flags & RTP_FLAGS | u16::from(self.payload_type & 0x7f);
        sink.bytes(&first.to_be_bytes());
        sink.bytes(&self.sequence.to_be_bytes());
        sink.bytes(&self.timestamp.to_be_bytes());
        sink.bytes(&self.ssrc.to_be_bytes());
        sink.bytes(&self.base.to_be_bytes());
        sink.bytes(&self.recovery.length.to_be_bytes());
        sink.bytes(&(EXTENDED | u32::from(self.recovery.flags & 0x7f) << 24).to_be_bytes());
        sink.bytes(&self.recovery.timestamp.to_be_bytes());
        sink.bytes(&[0, self.columns, self.rows, 0]);
        sink.octets(self.payload);
        Some(sink.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fec::parity::{protect_into, rebuild_into};
    use crate::rtp::Header;
    use crate::testing::hex;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// A repair packet with every field apart.
    fn example() -> Repair<'static> {
        Repair {
            payload_type: 0x60,
            sequence: 0x0102,
            timestamp: 0x0304_0506,
            ssrc: 0x0708_090a,
            // P = 1, X = 0, CC = 5, M = 1, PT = 0x21.
            recovery: Recovery { flags: 0x25a1, timestamp: 0x0b0c_0d0e, length: 0x0f10 },
            base: 65_533,
            columns: 4,
            rows: 3,
            payload: Octets { bytes: &[0xff], zeros: 2 },
        }
    }

    #[test]
    fn the_layout() {
        let mut out = vec![];
        assert_eq!(example().write_into(&mut out), Some(2));
        // Section 4.2: the RTP header with P, CC and M XORed, then figure 7 with E = 1 and the mask 0.
        assert_eq!(out, hex("a5e0 0102 03040506 0708090a fffd 0f10 a1 000000 0b0c0d0e 00 04 03 00 ff"));
        assert_eq!(out.len(), HEADER + 1);
        let read = Repair::parse(Octets { bytes: &out, zeros: 2 });
        assert_eq!(read, Ok(example()));
        assert_eq!(example().coverage().sequences().collect::<Vec<_>>(), [65_533, 1, 5]);
    }

    #[test]
    fn a_column_recovers_any_of_its_packets() {
        let packets: Vec<Vec<u8>> = (0..3u16)
            .map(|row| {
                let mut p = vec![];
                let csrcs = [0x11, 0x22];
                let csrcs = &csrcs[..usize::from(row.min(2))];
                let header = Header {
                    payload_type: 33,
                    sequence: 65_533u16.wrapping_add(4 * row),
                    ssrc: 5,
                    csrcs,
                    ..Header::default()
                };
                Header { timestamp: 900 * u32::from(row), marker: row == 2, ..header }.write_into(&mut p);
                p.resize(p.len() + 7 * usize::from(row), 9);
                p
            })
            .collect();
        let string = |p: &[u8]| {
            let mut s = vec![];
            assert_eq!(protect_into(Octets::new(p), &mut s), Ok(0));
            s.resize(64, 0);
            s
        };
        let xor = |a: Vec<u8>, b: Vec<u8>| -> Vec<u8> { a.iter().zip(&b).map(|(x, y)| x ^ y).collect() };
        let parity = packets.iter().map(|p| string(p)).reduce(xor).unwrap();
        let (recovery, payload) = Recovery::split(Octets::new(&parity)).unwrap();
        let mut sent = vec![];
        assert_eq!(Repair { recovery, payload, ..example() }.write_into(&mut sent), Some(0));
        let read = Repair::parse(Octets::new(&sent)).unwrap();
        let mut got = vec![];
        assert_eq!(read.string_into(&mut got), 0);
        for (lost, sequence) in read.coverage().sequences().enumerate() {
            let recovered = (0..3).filter(|i| *i != lost).map(|i| string(&packets[i])).fold(got.clone(), xor);
            let mut packet = vec![];
            assert_eq!(rebuild_into(Octets::new(&recovered), sequence, 5, &mut packet), Ok(0));
            assert_eq!(packet, packets[lost]);
        }
    }

    #[test]
    fn malformed_packets() {
        let mut out = vec![];
        assert_eq!(example().write_into(&mut out), Some(2));
        for len in 0..HEADER {
            // Headers are never carried as a length.
            let short = Repair::parse(Octets { bytes: &out[..len], zeros: 100 });
            assert!(matches!(short, Err(Error::Truncated { offset, .. }) if offset <= len), "{len}");
        }
        let with = |at: usize, value: u8| {
            let mut bytes = out.clone();
            bytes[at] = value;
            Repair::parse(Octets::new(&bytes)).map(|_| ())
        };
        let value = |field, offset, expected| Err(Error::Value { field, offset, value: 0, expected });
        assert_eq!(with(0, 0x25), value("RTP version", 0, "2"));
        assert_eq!(with(25, 0), value("offset (L)", 25, "1 to 255"));
        assert_eq!(with(26, 0), value("NA (D)", 26, "1 to 255"));
        // E, mask, N, D, type, index and SN base ext are ignored.
        for (at, value) in [(16, 0x21), (17, 1), (24, 0xff), (27, 9)] {
            assert_eq!(with(at, value), Ok(()));
        }
        for none in [Repair { columns: 0, ..example() }, Repair { rows: 0, ..example() }] {
            assert_eq!(none.write_into(&mut out), None);
        }
    }

    proptest! {
        #[test]
        fn read_packets_are_written_back(mut bytes in vec(any::<u8>(), 0..40), version: bool, zeros in 0u32..9) {
            if let (true, Some(first)) = (version, bytes.first_mut()) {
                *first = *first & 0x3f | 0x80;
            }
            if let Ok(read) = Repair::parse(Octets { bytes: &bytes, zeros }) {
                let mut out = vec![];
                let zeros = read.write_into(&mut out).unwrap();
                prop_assert_eq!(Repair::parse(Octets { bytes: &out, zeros }), Ok(read));
                prop_assert!(read.coverage().len() <= 255);
            }
        }
    }
}
