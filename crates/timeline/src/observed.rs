//! Packets that a program saw itself, of a simulated call or of one of its own: a recording without a file.

use crate::capture::{Elements, elements};
use crate::format::Format;
use crate::recording::Recording;
use crate::rtcp::{self, fingerprint};
use crate::schema::{Direction, Estimate, Packet};
use weir_units::Timestamp;

/// A recording in the making, at one end of a call.
///
/// Packets come in the clear: headers of RTP, payloads as far as they exist, RTCP whole. As in files, rows that are more than
/// a recording keeps are left out.
#[derive(Debug)]
pub struct Observed {
    recording: Recording,
    reader: rtcp::Reader,
    transport: Option<u8>,
    number: u32,
}

impl Observed {
    /// A recording of this name. `transport` is the identifier of the header extension with transport-wide numbers.
    pub fn new(name: &str, transport: Option<u8>) -> Self {
        let recording = Recording::new(name, Format::Observed);
        Self { recording, reader: rtcp::Reader::default(), transport, number: 0 }
    }

    /// Adds the UDP payload of a datagram, RTP or RTCP (RFC 5761): `bytes` is its beginning, `length` its whole length. Anything
    /// else is counted as a fault of the recording.
    pub fn datagram(&mut self, at: Timestamp, direction: Direction, bytes: &[u8], length: usize) {
        self.number = self.number.saturating_add(1);
        let whole = u32::try_from(length).unwrap_or(u32::MAX);
        match bytes {
            [128..=191, 192..=223, ..] if bytes.len() >= 8 && bytes.len() == length => {
                let first = self.recording.rtcp.len();
                self.recording.record = self.number;
                self.reader.read(&mut self.recording, at, direction, bytes);
                // Both ends see the same bytes.
                self.recording.rtcp[first..].iter_mut().for_each(|r| r.fingerprint = Some(fingerprint(bytes)));
            }
            [128..=191, kind, s0, s1, t0, t1, t2, t3, i0, i1, i2, i3, ..] => {
                let found: Elements = elements(bytes);
                let number = |id: u8| found.iter().find(|e| e.0 == id).map(|e| e.1);
                let packet = Packet {
                    at,
                    number: self.number,
                    direction,
                    ssrc: u32::from_be_bytes([*i0, *i1, *i2, *i3]),
                    sequence: u16::from_be_bytes([*s0, *s1]),
                    timestamp: u32::from_be_bytes([*t0, *t1, *t2, *t3]),
                    payload_type: kind & 0x7f,
                    marker: kind & 0x80 != 0,
                    size: whole,
                    padding: None,
                    transport_sequence: self.transport.and_then(number),
                };
                if self.recording.room(1) {
                    self.recording.packets.push(packet);
                }
            }
            _ => self.recording.fault("datagrams that are neither RTP nor whole RTCP"),
        }
    }

    /// Adds an estimate or a target.
    pub fn estimate(&mut self, estimate: Estimate) {
        if self.recording.room(1) {
            self.recording.estimates.push(estimate);
        }
    }

    /// The recording, in order of time.
    pub fn finish(mut self) -> Recording {
        self.recording.sort();
        self.recording
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_feedback_become_rows() {
        let mut end = Observed::new("sender", Some(3));
        // An RTP packet with a transport-wide number in a one-byte extension, whose payload exists as a length only.
        let rtp = [0x90, 0xe0, 0, 7, 0, 0, 0, 90, 0, 0, 0, 5, 0xbe, 0xde, 0, 1, 0x31, 0x01, 0x02, 0];
        end.datagram(Timestamp::from_millis(20), Direction::Sent, &rtp, 1_200);
        // A picture loss indication.
        let pli = [0x81, 206, 0, 2, 0, 0, 0, 1, 0, 0, 0, 5];
        end.datagram(Timestamp::from_millis(10), Direction::Received, &pli, pli.len());
        end.datagram(Timestamp::from_millis(30), Direction::Received, &[1, 2, 3], 3);
        let seen = end.finish();
        let [packet] = &seen.packets[..] else { panic!("{seen:?}") };
        assert_eq!((packet.ssrc, packet.sequence, packet.timestamp, packet.size), (5, 7, 90, 1_200));
        assert_eq!((packet.marker, packet.payload_type, packet.transport_sequence), (true, 96, Some(0x0102)));
        assert_eq!(seen.rtcp.len(), 1);
        assert!(seen.rtcp[0].fingerprint.is_some());
        assert_eq!(seen.faults.values().sum::<u64>(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in proptest::collection::vec(0_u8.., 0..80), length in 0_usize..200) {
            let mut end = Observed::new("end", Some(1));
            end.datagram(Timestamp::ZERO, Direction::Sent, &bytes, length);
            let seen = end.finish();
            proptest::prop_assert!(seen.packets.len() <= 1);
        }
    }
}
