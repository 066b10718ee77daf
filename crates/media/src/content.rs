//! Content of frames: payloads to be sent, and payloads received.

use crate::shape::Shape;
use weir_units::{DataSize, Timestamp};

/// The RTP payloads of a frame, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Payloads {
    bytes: Vec<u8>,
    parts: Vec<PayloadPart>,
}

/// One payload of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct PayloadPart {
    end: usize,
    discardable: bool,
}

impl Payloads {
    /// Removes all payloads.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }
    /// Appends a payload consisting of several pieces. It is `discardable` if nothing is predicted from it.
    pub fn push(&mut self, pieces: &[&[u8]], discardable: bool) {
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.parts.push(PayloadPart { end: self.bytes.len(), discardable });
    }
    /// Number of payloads.
    pub fn len(&self) -> usize {
        self.parts.len()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
    /// Total size.
    pub fn size(&self) -> DataSize {
        DataSize::from_bytes(self.bytes.len() as u64)
    }
    /// The payloads and whether each is discardable, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], bool)> + Clone {
        self.parts.iter().enumerate().map(|(i, part)| {
            let start = if i == 0 { 0 } else { self.parts[i - 1].end };
            (&self.bytes[start..part.end], part.discardable)
        })
    }
}

/// Feedback from the other end about received pictures, identified by [`Frame::rtp_timestamp`](crate::Frame).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SourceFeedback {
    /// This frame was decoded.
    Decoded {
        /// Its timestamp.
        rtp_timestamp: u32,
    },
    /// Frames after this one were damaged, and it was decoded: it is requested as a reference.
    ReferenceWanted {
        /// Its timestamp.
        rtp_timestamp: u32,
    },
    /// Greatest size of slices; `None` for one slice per frame.
    SliceSize(Option<DataSize>),
    /// The share of packets lost in 1/256 (RFC 3550, section 6.4.1), for which in-band FEC of audio is dimensioned.
    FractionLost(u8),
    /// The shape in which pictures are to be coded.
    Shape(Shape),
}

/// The received part of a frame at its playout time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedFrame {
    /// RTP timestamp as received.
    pub rtp_timestamp: u32,
    /// When it is played.
    pub at: Timestamp,
    /// Whether it is complete.
    pub whole: bool,
    /// Its packets by sequence number.
    pub packets: Vec<ReceivedPayload>,
}

/// One packet of a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedPayload {
    /// Sequence number, unwrapped.
    pub sequence: u64,
    /// Whether it is the last of its frame.
    pub marker: bool,
    /// Whether it was lost and recovered.
    pub repaired: bool,
    /// RTP payload.
    pub bytes: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_are_read_back_as_they_were_pushed() {
        let mut p = Payloads::default();
        p.push(&[b"ab", b"", b"c"], false);
        p.push(&[], true);
        p.push(&[b"de"], true);
        let all: Vec<_> = p.iter().collect();
        assert_eq!(all, [(&b"abc"[..], false), (&b""[..], true), (&b"de"[..], true)]);
        assert_eq!((p.len(), p.size().as_bytes()), (3, 5));
        p.clear();
        assert!(p.is_empty());
    }
}
