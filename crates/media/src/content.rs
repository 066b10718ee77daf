//! The bytes of frames that have any: as payloads on the way out, as what arrived on the way in.

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
    /// Empties it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.parts.clear();
    }
    /// Appends a payload made of several pieces. `discardable` where nothing is predicted from it.
    pub fn push(&mut self, pieces: &[&[u8]], discardable: bool) {
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.parts.push(PayloadPart { end: self.bytes.len(), discardable });
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.parts.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
    /// All bytes together.
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

/// What the other end tells of the pictures it has got. Frames go by their [`Frame::rtp_timestamp`](crate::Frame).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SourceFeedback {
    /// This frame was decoded.
    Decoded {
        /// Its timestamp.
        rtp_timestamp: u32,
    },
    /// Frames behind this one were damaged, and it was decoded: it is a reference to go back to.
    ReferenceWanted {
        /// Its timestamp.
        rtp_timestamp: u32,
    },
    /// Slices are to have at most so many bytes; `None` for one slice a frame.
    SliceSize(Option<DataSize>),
    /// The share of packets lost, in 1/256 (RFC 3550, section 6.4.1): what in-band FEC of audio is made for.
    FractionLost(u8),
}

/// What has arrived of a frame when its turn to be played came.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedFrame {
    /// RTP timestamp as it stood in the packets.
    pub rtp_timestamp: u32,
    /// When it is played.
    pub at: Timestamp,
    /// Whether nothing of it is missing.
    pub whole: bool,
    /// Its packets, by rising sequence number.
    pub packets: Vec<ReceivedPayload>,
}

/// One packet of a frame.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReceivedPayload {
    /// Sequence number, unwrapped.
    pub sequence: u64,
    /// Whether it is the last of its frame.
    pub marker: bool,
    /// Whether it was lost and brought back.
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
