//! Reading an offer: what of it this end takes.

pub(super) use super::choice::has_codec;
use super::choice::{Wanted, choose};
use super::flexfec::{FlexFec, offered_repair_ssrc};
use super::lines::retransmission;
pub(super) use super::lines::{name_of, of_type, payload_types, value, values};
use super::ulpfec::UlpFec;
use super::{Direction, OfferError};
use crate::dtls::Fingerprint;
use rtc_sdp::description::media::MediaDescription;
use rtc_sdp::description::session::SessionDescription;
use std::io::Cursor;
use weir_cc::FeedbackFormat;
use weir_media::{MediaKind, VideoCodec};
use weir_session::Label;

/// Longest offer, in bytes: Chromium's of one video stream has about 6,000.
pub const MAX_OFFER: usize = 64 * 1024;
/// Most sections.
const MAX_SECTIONS: usize = 32;
/// Most attributes of a section.
const MAX_ATTRIBUTES: usize = 1_000;

/// Most encodings of a simulcast: browsers send three.
pub const MAX_ENCODINGS: usize = 3;

/// Feedback of RFC 8888, section 6.
pub(super) const CCFB: &str = "ack ccfb";
/// The receiver's estimate (draft-alvestrand-rmcat-remb-03).
const REMB: &str = "goog-remb";
pub(crate) const TRANSPORT_CC: &str = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01";
const ABS_SEND_TIME: &str = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time";
pub(crate) const MID: &str = "urn:ietf:params:rtp-hdrext:sdes:mid";
/// Of RFC 8852, section 3.
pub(crate) const RID: &str = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id";
pub(crate) const REPAIRED_RID: &str = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id";

/// A header extension's number in the offer and, by that, in the answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Extension {
    pub(super) id: u8,
    pub(super) uri: &'static str,
}

/// A section of the offer that is taken beside the first video section, on the same transport.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Its place in the offer.
    pub(super) index: usize,
    /// MID.
    pub mid: Label,
    /// Kind of media.
    pub media: MediaKind,
    /// Name and clock of its format, as in `rtpmap` lines.
    pub(super) name: &'static str,
    /// Payload type.
    pub payload_type: u8,
    /// Its format parameters, as offered.
    pub(crate) format: Option<String>,
    /// Payload type of retransmissions (RFC 4588).
    pub rtx: Option<u8>,
    /// Repair packets.
    pub flexfec: Option<FlexFec>,
    /// Repair packets in RED.
    pub ulpfec: Option<UlpFec>,
    /// Whether generic NACKs are used.
    pub nack: bool,
    pub(super) feedback: Vec<String>,
    pub(super) extensions: Vec<Extension>,
    /// This end's direction.
    pub direction: Direction,
    /// The other end's synchronisation source, if it names one, and that of its retransmissions.
    pub sources: (Option<u32>, Option<u32>),
    /// The encodings of a simulcast that the other end sends.
    pub(crate) rids: Vec<Label>,
}

impl Negotiated {
    /// The first section as the others are written.
    pub(crate) fn first(&self) -> Section {
        Section {
            index: self.accepted,
            mid: self.mid,
            media: MediaKind::Video,
            name: if self.codec == VideoCodec::H264 { "H264/90000" } else { "VP8/90000" },
            payload_type: self.payload_type,
            format: self.format.clone(),
            rtx: self.rtx,
            flexfec: self.flexfec,
            ulpfec: self.ulpfec,
            nack: self.nack,
            feedback: self.feedback.clone(),
            extensions: self.extensions.clone(),
            direction: self.direction,
            sources: (self.ssrc, self.rtx_ssrc),
            rids: self.rids.clone(),
        }
    }
}

/// Agreement of both ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Negotiated {
    /// Sections of the offer by kind of media and MID; all but one are rejected.
    pub(super) sections: Vec<(String, Option<String>)>,
    /// The one that is not.
    pub(super) accepted: usize,
    /// MID of the section.
    pub mid: Label,
    /// Video codec.
    pub codec: VideoCodec,
    /// Its payload type.
    pub payload_type: u8,
    /// Its format parameters, as offered.
    pub(super) format: Option<String>,
    /// Payload type of retransmissions (RFC 4588).
    pub rtx: Option<u8>,
    /// Repair packets (FlexFEC-03).
    pub flexfec: Option<FlexFec>,
    /// Repair packets in RED (ULPFEC), where there are none of the others.
    pub ulpfec: Option<UlpFec>,
    /// Whether generic NACKs are used.
    pub nack: bool,
    /// Per-packet feedback, both ways.
    pub reports: Option<FeedbackFormat>,
    /// Whether the receiver's estimate (REMB) is all the feedback that the other end has.
    pub remb: bool,
    pub(super) feedback: Vec<String>,
    pub(super) extensions: Vec<Extension>,
    /// Number of the header extension with transport-wide sequence numbers.
    pub transport_sequence: Option<u8>,
    /// Number of that with the absolute send time.
    pub abs_send_time: Option<u8>,
    /// Number of that with the MID.
    pub mid_extension: Option<u8>,
    /// Numbers of those with the RID of an encoding, and of the encoding that a retransmission belongs to.
    pub rid_extensions: (Option<u8>, Option<u8>),
    /// The encodings of a simulcast that the other end sends, in the order of the offer; empty for one without a name.
    pub rids: Vec<Label>,
    /// Further sections that are taken.
    pub further: Vec<Section>,
    /// This end's direction.
    pub direction: Direction,
    /// The other end's synchronisation source, if it names one.
    pub ssrc: Option<u32>,
    /// And that of its retransmissions.
    pub rtx_ssrc: Option<u32>,
    /// And that of its repair packets.
    pub repair_ssrc: Option<u32>,
    /// `ice-ufrag` of the other end.
    pub ice_name: String,
    /// Fingerprint of the other end's certificate.
    pub fingerprint: Fingerprint,
}

/// Kinds and MIDs of sections.
pub(super) fn kinds(media: &[MediaDescription]) -> Vec<(String, Option<String>)> {
    media.iter().map(|m| (m.media_name.media.clone(), value(m, "mid").map(str::to_owned))).collect()
}

/// Parses an offer within its bounds.
pub(super) fn read(offer: &str) -> Result<SessionDescription, OfferError> {
    if offer.len() > MAX_OFFER {
        return Err(OfferError::new("the offer", format!("{} bytes", offer.len()), "65,536 bytes or fewer"));
    }
    let session = SessionDescription::unmarshal(&mut Cursor::new(offer.as_bytes()))
        .map_err(|e| OfferError::new("the offer", e.to_string(), "a session description (RFC 8866)"))?;
    let media = &session.media_descriptions;
    if media.is_empty() || media.len() > MAX_SECTIONS {
        return Err(OfferError::new("the offer", format!("{} sections", media.len()), "1 to 32 sections"));
    }
    if media.iter().any(|m| m.attributes.len() > MAX_ATTRIBUTES) {
        return Err(OfferError::new("the offer", "a section of many attributes", "1,000 attributes or fewer in each"));
    }
    Ok(session)
}

/// The section's value, or the session's.
fn inherited<'a>(session: &'a SessionDescription, m: &'a MediaDescription, key: &str) -> Option<&'a str> {
    value(m, key).or_else(|| session.attribute(key).map(String::as_str))
}

pub(super) fn section(
    session: &SessionDescription,
    m: &MediaDescription,
    wanted: Wanted,
) -> Result<Negotiated, OfferError> {
    let protocol = m.media_name.protos.join("/");
    if !["UDP/TLS/RTP/SAVPF", "UDP/TLS/RTP/SAVP", "RTP/SAVPF"].contains(&protocol.as_str()) {
        return Err(OfferError::new("m=video", protocol, "UDP/TLS/RTP/SAVPF: media are sent protected only"));
    }
    if !m.has_attribute("rtcp-mux") {
        return Err(OfferError::new("m=video", "no a=rtcp-mux", "RTP and RTCP on one port (RFC 5761)"));
    }
    let setup = inherited(session, m, "setup").unwrap_or("actpass");
    if !["actpass", "passive"].contains(&setup) {
        return Err(OfferError::new("a=setup", setup, "actpass (RFC 8842, section 5.2)"));
    }
    let mid = value(m, "mid").unwrap_or("0");
    let mid = Label::new(mid).ok_or_else(|| OfferError::new("a=mid", mid, "1 to 16 letters and digits"))?;
    let ice_name = inherited(session, m, "ice-ufrag").unwrap_or_default();
    if !(4..=256).contains(&ice_name.len())
        || !ice_name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/-_=".contains(&b))
    {
        return Err(OfferError::new("a=ice-ufrag", ice_name, "4 to 256 letters and digits (RFC 8839, section 5.4)"));
    }
    let fingerprint = fingerprint(session, m)?;
    let (codec, payload_type) = choose(m, wanted)?;
    let format = of_type(m, "fmtp", payload_type).next().map(str::to_owned);
    let offers = |f: &str| of_type(m, "rtcp-fb", payload_type).any(|o| o == f);
    // RFC 8888 where both are offered: it has ECN marks, and needs no header extension.
    let by_source = offers(CCFB);
    let extensions = extensions(m, offers("transport-cc") && !by_source);
    let is_transport_wide = extensions.iter().any(|e| e.uri == TRANSPORT_CC);
    let reports = match (by_source, is_transport_wide) {
        (true, _) => Some(FeedbackFormat::CongestionControl),
        (false, true) => Some(FeedbackFormat::TransportWide),
        (false, false) => None,
    };
    // An estimate needs the times of sending.
    let remb = reports.is_none() && offers(REMB) && extensions.iter().any(|e| e.uri == ABS_SEND_TIME);
    let of_reports = [(CCFB, by_source), ("transport-cc", is_transport_wide), (REMB, remb)];
    let of_reports = of_reports.into_iter().filter(|f| f.1).map(|f| f.0);
    let others = ["nack", "nack pli", "ccm fir"].into_iter().filter(|f| offers(f));
    let feedback: Vec<String> = of_reports.chain(others).map(str::to_owned).collect();
    let number = |uri| extensions.iter().find(|e| e.uri == uri).map(|e| e.id);
    let (transport_sequence, abs_send_time, mid_extension) = (number(TRANSPORT_CC), number(ABS_SEND_TIME), number(MID));
    let rtx = retransmission(m, payload_type);
    let direction = direction(session, m).reversed();
    let direction = Direction {
        sends: direction.sends && wanted.direction.sends,
        receives: direction.receives && wanted.direction.receives,
    };
    if direction.sends && reports.is_none() && !remb {
        let expected = "feedback that controllers need: a=rtcp-fb transport-cc or goog-remb with its a=extmap, or a=rtcp-fb ack ccfb \
                        (RFC 8888)";
        return Err(OfferError::new("m=video", "neither transport-cc, ack ccfb nor goog-remb", expected));
    }
    if !direction.sends && !direction.receives {
        return Err(OfferError::new("m=video", "nothing would be sent", "a direction of media"));
    }
    let (ssrc, rtx_ssrc) = sources(m);
    let nack = offers("nack");
    let flexfec = FlexFec::of(m);
    let ulpfec = UlpFec::of(m, codec).filter(|u| flexfec.is_none() && ![u.red, u.payload_type].contains(&payload_type));
    Ok(Negotiated {
        sections: Vec::new(),
        accepted: 0,
        mid,
        codec,
        payload_type,
        format,
        rtx,
        flexfec,
        ulpfec,
        nack,
        reports,
        remb,
        transport_sequence,
        abs_send_time,
        mid_extension,
        rid_extensions: (number(RID), number(REPAIRED_RID)),
        rids: rids(m),
        further: Vec::new(),
        direction,
        ssrc,
        rtx_ssrc,
        repair_ssrc: ssrc.and_then(|ssrc| offered_repair_ssrc(m, ssrc)).filter(|s| Some(*s) != rtx_ssrc),
        ice_name: ice_name.to_owned(),
        fingerprint,
        feedback,
        extensions,
    })
}

pub(super) fn fingerprint(session: &SessionDescription, m: &MediaDescription) -> Result<Fingerprint, OfferError> {
    let own = values(m, "fingerprint");
    let shared = session.attributes.iter().filter(|a| a.key == "fingerprint").filter_map(|a| a.value.as_deref());
    let mut found = "none";
    for text in own.chain(shared).take(16) {
        found = text;
        let Some((hash, value)) = text.split_once(' ') else { continue };
        if hash.eq_ignore_ascii_case("sha-256")
            && let Ok(fingerprint) = value.trim().parse()
        {
            return Ok(fingerprint);
        }
    }
    Err(OfferError::new("a=fingerprint", found, "sha-256 and 32 bytes (RFC 8122)"))
}

pub(super) fn direction(session: &SessionDescription, m: &MediaDescription) -> Direction {
    let named = |name: &str| match name {
        "sendrecv" => Some(Direction { sends: true, receives: true }),
        "sendonly" => Some(Direction { sends: true, receives: false }),
        "recvonly" => Some(Direction { sends: false, receives: true }),
        "inactive" => Some(Direction { sends: false, receives: false }),
        _ => None,
    };
    let both = Direction { sends: true, receives: true };
    let own = m.attributes.iter().find_map(|a| named(&a.key));
    own.or_else(|| session.attributes.iter().find_map(|a| named(&a.key))).unwrap_or(both)
}

pub(super) fn extensions(m: &MediaDescription, has_feedback: bool) -> Vec<Extension> {
    let known = [TRANSPORT_CC, ABS_SEND_TIME, MID, RID, REPAIRED_RID];
    let mut found: Vec<Extension> = Vec::new();
    for text in values(m, "extmap") {
        let mut words = text.split_whitespace();
        let number = words.next().and_then(|n| n.split('/').next()).and_then(|n| n.parse().ok());
        let Some(id) = number.filter(|n| (1..=14).contains(n)) else { continue };
        let Some(uri) = words.next().and_then(|u| known.into_iter().find(|k| *k == u)) else { continue };
        let is_new = found.iter().all(|e| e.id != id && e.uri != uri);
        if is_new && (uri != TRANSPORT_CC || has_feedback) {
            found.push(Extension { id, uri });
        }
    }
    found
}

/// The first source and its retransmissions', from `ssrc` and `ssrc-group` lines (RFC 5576).
pub(super) fn sources(m: &MediaDescription) -> (Option<u32>, Option<u32>) {
    let pair = values(m, "ssrc-group").find_map(|v| {
        let mut words = v.split_whitespace();
        let is_pair = words.next() == Some("FID");
        let (media, rtx) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        is_pair.then_some((media, rtx))
    });
    match pair {
        Some((media, rtx)) if media != rtx && media != 0 && rtx != 0 => (Some(media), Some(rtx)),
        _ => (values(m, "ssrc").find_map(|v| v.split(' ').next()?.parse().ok()).filter(|s| *s != 0), None),
    }
}

/// The encodings that the other end would send, of `a=simulcast:send` where each has one alternative (RFC 8853, section 5.1).
fn rids(m: &MediaDescription) -> Vec<Label> {
    let mut words = value(m, "simulcast").unwrap_or_default().split_whitespace();
    let sent = words.by_ref().find(|w| *w == "send").and_then(|_| words.next()).unwrap_or_default();
    let offered = |rid: &str| values(m, "rid").any(|v| v.split_whitespace().take(2).eq([rid, "send"]));
    // An encoding that begins with `~` is paused at the beginning (section 5.2).
    let names = sent.split(';').map(|r| r.split(',').next().unwrap_or_default().trim_start_matches('~'));
    let names = names.filter(|r| offered(r)).filter_map(Label::new);
    let mut found: Vec<Label> = Vec::new();
    for rid in names {
        if found.len() < MAX_ENCODINGS && !found.contains(&rid) {
            found.push(rid);
        }
    }
    found
}
