//! A stream's identity in RTP: its synchronisation sources, payload types and clock.

use core::fmt;

/// Greatest length of a MID or RID in bytes: that of a header extension element with a one-byte header (RFC 8285,
/// section 4.2).
pub const MAX_LABEL: usize = 16;

/// The value of a MID or RID header extension: 1 to 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    bytes: [u8; MAX_LABEL],
    len: u8,
}

impl Label {
    /// The label of this text: letters, digits, `-` and `_` (RFC 8851, section 4; a MID is a token, RFC 5888,
    /// section 4). `None` if it has other characters, or is empty or too long.
    pub fn new(text: &str) -> Option<Self> {
        let allowed = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        Self::from_bytes(text.as_bytes()).filter(|_| allowed)
    }
    /// The label from a packet's bytes; `None` if it is empty or too long.
    pub fn from_bytes(data: &[u8]) -> Option<Self> {
        let mut bytes = [0; MAX_LABEL];
        bytes.get_mut(..data.len())?.copy_from_slice(data);
        (!data.is_empty()).then_some(Self { bytes, len: data.len() as u8 })
    }
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(self.as_bytes()))
    }
}

/// The payload format of parity repair packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ParityFormat {
    /// FlexFEC (RFC 8627), over whole packets.
    #[default]
    FlexFec,
    /// FlexFEC-03 (draft-ietf-payload-flexible-fec-scheme-03), as browsers have it: for one source, and without a code beside
    /// it for which the other end would have a format.
    FlexFec03 {
        /// Identifiers of header extension elements that count as zeros, 0 for none: libwebrtc makes repair packets before it
        /// writes these elements, and takes them as zeros on reception (`RtpPacket::ZeroMutableExtensions`).
        zeroed: [u8; 2],
    },
    /// ULPFEC (RFC 5109) in RED (RFC 2198), on the media's own source and among its sequence numbers, as browsers have it for
    /// VP8. Media packets are in RED too, since libwebrtc repairs no others (`UlpfecReceiver`), and repair packets wait for the
    /// end of a frame, since it joins frames from consecutive packets (`video_coding::PacketBuffer`). Without a code beside it.
    UlpFec(Red),
}

/// Numbers of ULPFEC in RED.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Red {
    /// RTP payload type of RED packets.
    pub payload_type: u8,
    /// Payload type of ULPFEC inside of them.
    pub ulpfec: u8,
    /// RTP payload type of retransmitted RED packets, on reception. This end retransmits media without RED, which is a packet of
    /// the media's payload type with the same content.
    pub retransmission: Option<u8>,
    /// Identifiers of header extension elements that count as zeros, as in [`ParityFormat::FlexFec03`].
    pub zeroed: [u8; 2],
}

impl ParityFormat {
    /// The numbers of RED, if packets are in it.
    pub(crate) const fn red(&self) -> Option<&Red> {
        if let Self::UlpFec(red) = self { Some(red) } else { None }
    }
}

/// Identity in RTP of a stream and its repair and retransmission streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamIdentity {
    /// Synchronisation source of the media; 0 for an incoming stream whose source is unknown.
    pub ssrc: u32,
    /// RTP payload type of the media.
    pub payload_type: u8,
    /// RTP clock in Hz: 90,000 for video, 48,000 for Opus.
    pub clock_rate: u32,
    /// RTP payload type of parity repair packets.
    pub parity_payload_type: u8,
    /// Their format.
    pub parity_format: ParityFormat,
    /// RTP payload type of Reed-Solomon repair packets.
    pub reed_solomon_payload_type: u8,
    /// RTP payload type of repair packets of sliding-window codes.
    pub rlc_payload_type: u8,
    /// RTP payload type of retransmissions (RFC 4588).
    pub retransmission_payload_type: u8,
    /// Synchronisation source of the repair stream; `None` inverts the top bit of [`Self::ssrc`].
    pub repair_ssrc: Option<u32>,
    /// Synchronisation source of the retransmission stream; `None` inverts the second bit of [`Self::ssrc`].
    pub retransmission_ssrc: Option<u32>,
    /// MID of the stream's media section (RFC 9143), sent as a header extension until the stream has been reported on.
    pub mid: Option<Label>,
    /// RID of the encoding of a simulcast (RFC 8852), sent in the same way.
    pub rid: Option<Label>,
}

impl Default for StreamIdentity {
    /// Video of an unknown source, with payload types from 96 on, and 127.
    fn default() -> Self {
        Self {
            ssrc: 0,
            payload_type: 96,
            clock_rate: 90_000,
            parity_payload_type: 97,
            parity_format: ParityFormat::default(),
            reed_solomon_payload_type: 98,
            rlc_payload_type: 127,
            retransmission_payload_type: 99,
            repair_ssrc: None,
            retransmission_ssrc: None,
            mid: None,
            rid: None,
        }
    }
}

impl StreamIdentity {
    /// The default with this source.
    pub fn of(ssrc: u32) -> Self {
        Self { ssrc, ..Self::default() }
    }
    /// The synchronisation source of the repair stream.
    pub fn repair(&self) -> u32 {
        self.repair_ssrc.unwrap_or(self.ssrc ^ (1 << 31))
    }
    /// The synchronisation source of the retransmission stream.
    pub fn retransmission(&self) -> u32 {
        self.retransmission_ssrc.unwrap_or(self.ssrc ^ (1 << 30))
    }
    /// All three, media first.
    pub fn sources(&self) -> [u32; 3] {
        [self.ssrc, self.repair(), self.retransmission()]
    }
    /// Whether the source is one of them.
    pub fn has(&self, ssrc: u32) -> bool {
        self.sources().contains(&ssrc)
    }
}

/// The sources that a feedback message names (RFC 4585, section 6.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FeedbackSsrcs {
    /// Sender of the message.
    pub sender: u32,
    /// Media source that it concerns.
    pub media: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_sixteen_plain_characters_at_most() {
        assert_eq!(Label::new("cam-hi_0").map(|l| l.to_string()), Some("cam-hi_0".into()));
        assert_eq!(Label::new("0123456789abcdef").map(|l| l.as_bytes().len()), Some(16));
        for bad in ["", "0123456789abcdefg", "a b", "a\n"] {
            assert_eq!(Label::new(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn sources_beside_the_media_follow_it_unless_they_are_named() {
        let mut id = StreamIdentity::of(5);
        assert_eq!(id.sources(), [5, 5 | 1 << 31, 5 | 1 << 30]);
        id.repair_ssrc = Some(9);
        assert!(id.has(9) && !id.has(5 | 1 << 31));
    }
}
