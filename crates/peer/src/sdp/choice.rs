//! The video codecs of an offer's section, and the choice among them.

use super::lines::{name_of, of_type, payload_types};
use super::{Direction, OfferError};
use rtc_sdp::description::media::MediaDescription;
use weir_media::VideoCodec;

/// Preferences of this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// The codec of its choice; another that both have if the offer lacks it.
    pub codec: VideoCodec,
    /// Those that it has.
    pub built_in: Codecs,
    /// Whether it would send, and receive.
    pub direction: Direction,
}

/// Codecs of this program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Codecs {
    /// VP8.
    pub vp8: bool,
    /// H.264.
    pub h264: bool,
}

impl Codecs {
    /// Those that were built in.
    pub fn built_in() -> Self {
        let has = |codec| weir_codecs::list().iter().any(|l| l.codec == codec && l.built_in && l.encodes);
        Self { vp8: has(VideoCodec::Vp8), h264: has(VideoCodec::H264) }
    }
    /// Whether this is one of them.
    pub const fn has(self, codec: VideoCodec) -> bool {
        match codec {
            VideoCodec::Vp8 => self.vp8,
            VideoCodec::H264 => self.h264,
            _ => false,
        }
    }
}

/// The codecs of a section that Weir knows, built in or not, with their payload types.
fn offered(m: &MediaDescription) -> impl Iterator<Item = (VideoCodec, u8)> {
    let codec = |payload_type: u8| -> Option<VideoCodec> {
        let name = name_of(m, payload_type)?;
        if name.eq_ignore_ascii_case("VP8/90000") {
            return Some(VideoCodec::Vp8);
        }
        let format = of_type(m, "fmtp", payload_type).next().unwrap_or_default();
        (name.eq_ignore_ascii_case("H264/90000") && is_baseline(format)).then_some(VideoCodec::H264)
    };
    payload_types(m).filter_map(move |n| Some((codec(n)?, n)))
}

const VP8: &str = "VP8";
const H264: &str = "H.264 in baseline profile and packetisation mode 1";

/// Checks that a section of a room has its codec.
///
/// # Errors
/// It has others alone.
pub(super) fn has_codec(m: &MediaDescription, codec: VideoCodec) -> Result<(), OfferError> {
    if offered(m).any(|(c, _)| c == codec) {
        return Ok(());
    }
    let expected = if codec == VideoCodec::H264 { H264 } else { VP8 };
    Err(OfferError::new("m=video", names(m), &format!("{expected}, the codec of this room")))
}

/// The names of a section's formats.
fn names(m: &MediaDescription) -> String {
    let named: Vec<String> = payload_types(m)
        .take(16)
        .map(|n| name_of(m, n).map_or(n.to_string(), |name| name.split('/').next().unwrap_or_default().to_owned()))
        .collect();
    named.join(" ")
}

/// The codec that this end takes, with its payload type: the wanted one if the other end has it.
///
/// # Errors
/// The section has none that is built in.
pub(super) fn choose(m: &MediaDescription, wanted: Wanted) -> Result<(VideoCodec, u8), OfferError> {
    let built_in = wanted.built_in;
    let known = || offered(m).filter(|(c, _)| built_in.has(*c));
    let wanted = wanted.codec;
    let constrained = |n: u8| of_type(m, "fmtp", n).any(is_constrained);
    let chosen = known()
        .find(|(c, n)| *c == wanted && (*c != VideoCodec::H264 || constrained(*n)))
        .or_else(|| known().find(|(c, _)| *c == wanted))
        .or_else(|| known().next());
    chosen.ok_or_else(|| {
        let expected = match (built_in.vp8, offered(m).any(|(c, _)| c == VideoCodec::Vp8)) {
            (true, _) => format!("{VP8}, or {H264}"),
            (false, true) => format!(
                "{H264}: this build lacks VP8, which the cargo feature vpx adds (cargo build --release -p weir --features webrtc,vpx)"
            ),
            (false, false) => format!("{H264}; or {VP8}, in a build with the cargo feature vpx"),
        };
        OfferError::new("m=video", names(m), &expected)
    })
}

/// Baseline profile, constrained or not, in NAL units that may be fragmented (RFC 6184, section 8.1).
fn is_baseline(format: &str) -> bool {
    let mut parameters = format.split(';').filter_map(|p| p.trim().split_once('='));
    let parameters: Vec<_> = parameters.by_ref().take(20).collect();
    let has = |name: &str, test: &dyn Fn(&str) -> bool| {
        parameters.iter().any(|(n, v)| n.eq_ignore_ascii_case(name) && test(v))
    };
    has("packetization-mode", &|v| v == "1") && has("profile-level-id", &|v| v.get(..2) == Some("42"))
}

/// Constrained baseline profile, which is all that OpenH264 decodes: constraint_set1_flag (RFC 6184, section 8.1).
fn is_constrained(format: &str) -> bool {
    let flags = format.split_once("profile-level-id=").and_then(|(_, id)| id.get(2..4));
    flags.and_then(|f| u8::from_str_radix(f, 16).ok()).is_some_and(|f| f & 0x40 != 0)
}
