//! ULPFEC in RED in offers and answers (RFC 5109, section 14.2; RFC 2198).

use super::lines::{name_of, payload_types, retransmission};
use rtc_sdp::description::media::MediaDescription;
use weir_media::VideoCodec;

/// Names and clocks, as in `rtpmap` lines.
pub(super) const RED: &str = "red/90000";
pub(super) const ULPFEC: &str = "ulpfec/90000";

/// Repair packets in RED, on the media's own source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UlpFec {
    /// Payload type of RED packets.
    pub red: u8,
    /// Payload type of repair packets in RED.
    pub payload_type: u8,
    /// Payload type of retransmitted RED packets.
    pub rtx: Option<u8>,
}

impl UlpFec {
    /// The format, if a section offers it and the codec is VP8. A repair packet takes a number of the media's, and libwebrtc does not
    /// send it again: with VP8 the picture IDs tell that no picture is missing, but with H.264 nothing does. So libwebrtc itself sends
    /// no ULPFEC with H.264 and NACK (`ShouldDisableRedAndUlpfec`).
    pub(super) fn of(m: &MediaDescription, codec: VideoCodec) -> Option<Self> {
        let find = |wanted: &str| {
            payload_types(m).find(|&n| name_of(m, n).is_some_and(|name| name.eq_ignore_ascii_case(wanted)))
        };
        let (red, payload_type) = find(RED).zip(find(ULPFEC)).filter(|_| codec == VideoCodec::Vp8)?;
        (red != payload_type).then(|| Self { red, payload_type, rtx: retransmission(m, red) })
    }
}
