//! FlexFEC-03 in offers and answers (draft-ietf-payload-flexible-fec-scheme-03, section 5.1.1).

use super::lines::{name_of, of_type, payload_types, values};
use rtc_sdp::description::media::MediaDescription;

/// Name and clock, as in `rtpmap` lines.
pub(super) const NAME: &str = "flexfec-03/90000";
/// Chromium's, ten seconds.
const WINDOW: u32 = 10_000_000;

/// Repair packets on a source of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlexFec {
    /// Payload type.
    pub payload_type: u8,
    /// Longest time from a packet to the last that repairs it, in microseconds, as offered.
    pub(super) window: u32,
    /// Whether its packets are in transport-wide feedback.
    pub(super) transport_wide: bool,
}

impl FlexFec {
    /// The format, if a section offers it.
    pub(super) fn of(m: &MediaDescription) -> Option<Self> {
        let payload_type =
            payload_types(m).find(|&n| name_of(m, n).is_some_and(|name| name.eq_ignore_ascii_case(NAME)))?;
        let parameters = of_type(m, "fmtp", payload_type).flat_map(|f| f.split(';'));
        let window = parameters.filter_map(|p| p.trim().strip_prefix("repair-window=")?.parse().ok()).next();
        let transport_wide = of_type(m, "rtcp-fb", payload_type).any(|f| f == "transport-cc");
        Some(Self { payload_type, window: window.unwrap_or(WINDOW), transport_wide })
    }
}

/// The other end's source of repair packets for its stream of this source, by an `ssrc-group` line (RFC 5956, section 4.3).
pub(super) fn offered_repair_ssrc(m: &MediaDescription, media: u32) -> Option<u32> {
    values(m, "ssrc-group").find_map(|v| {
        let mut words = v.split_whitespace();
        let is_pair = words.next() == Some("FEC-FR") && words.next()?.parse() == Ok(media);
        words.next()?.parse().ok().filter(|repair| is_pair && *repair != media && *repair != 0)
    })
}

/// The source of this end's repair packets for its stream; the same rule as the session's.
pub(super) const fn own_repair_ssrc(media: u32) -> u32 {
    media ^ (1 << 31)
}
