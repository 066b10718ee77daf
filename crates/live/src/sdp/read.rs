//! Descriptions from text, which may be anybody's.

use super::{DccpMedia, Description, Direction, Extension, Feedback, MAX_LENGTH, Payload, SdpError, Setup, wrong};
use crate::srtp::{SrtpKey, Suite};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use sdp_types::{Media, Session};
use std::net::SocketAddr;
use weir_dccp::packet::ServiceCode;
use weir_media::{RTP_CLOCK_HZ, VideoCodec};

/// Entries of a kind that are read; more are passed over.
const MAX_ENTRIES: usize = 64;

impl Description {
    /// Reads a description: its first video stream. What Weir has no use for is passed over.
    ///
    /// # Errors
    /// Where it does not follow the grammar, has no stream of video, or says what cannot be.
    pub fn parse(text: &str) -> Result<Self, SdpError> {
        if text.len() > MAX_LENGTH {
            return Err(SdpError::Syntax(format!("{} bytes: expected {MAX_LENGTH} at most", text.len())));
        }
        let session = Session::parse(text.as_bytes()).map_err(|e| SdpError::Syntax(e.to_string()))?;
        let media = session.medias.iter().find(|m| m.media == "video").ok_or(SdpError::Missing {
            field: "a media description of video (m=video)",
            way_out: "Weir calls have one stream of video",
        })?;
        let attribute = |name: &str| {
            let own = media.get_first_attribute_value(name).flatten().map(str::to_owned);
            own.or_else(|| session.get_first_attribute_value(name).flatten().map(str::to_owned))
        };
        let (secure, over_dccp) = check_protocol(media)?;
        let dccp = if over_dccp { Some(read_dccp(media)?) } else { None };
        if secure && (media.has_attribute("fingerprint") || session.has_attribute("fingerprint")) {
            return Err(wrong(
                "keys",
                "a fingerprint for DTLS-SRTP",
                "a=crypto (SDES, RFC 4568): there is no DTLS here",
            ));
        }
        let connection = media.connections.first().or(session.connection.as_ref());
        let connection = connection
            .ok_or(SdpError::Missing { field: "a connection address (c=)", way_out: "say where to send to" })?;
        let host = connection.connection_address.split('/').next().unwrap_or_default();
        let ip = host.parse().map_err(|_| wrong("connection address (c=)", host, "an IPv4 or IPv6 address"))?;
        let payloads = read_payloads(media)?;
        let keys = if secure { read_keys(media)? } else { Vec::new() };
        let d = Self {
            session: session.origin.sess_id.parse().unwrap_or(0),
            address: SocketAddr::new(ip, media.port),
            direction: Direction::ALL
                .into_iter()
                .find(|d| media.has_attribute(d.name()))
                .or_else(|| Direction::ALL.into_iter().find(|d| session.has_attribute(d.name())))
                .unwrap_or_default(),
            feedback: read_feedback(media, &payloads),
            payloads,
            extensions: read_extensions(media),
            keys,
            dccp,
            rtcp_mux: media.has_attribute("rtcp-mux"),
            controller: attribute("x-weir-controller").filter(|c| c.len() <= 64),
            ..Self::without_sources(SocketAddr::new(ip, media.port))
        };
        Ok(read_sources(media, d))
    }

    fn without_sources(address: SocketAddr) -> Self {
        Self {
            session: 0,
            address,
            direction: Direction::default(),
            payloads: Vec::new(),
            feedback: Vec::new(),
            extensions: Vec::new(),
            keys: Vec::new(),
            dccp: None,
            ssrc: None,
            repair_ssrc: None,
            retransmission_ssrc: None,
            cname: None,
            rtcp_mux: false,
            controller: None,
        }
    }
}

/// Whether the stream is protected, and whether it goes over DCCP.
fn check_protocol(media: &Media) -> Result<(bool, bool), SdpError> {
    match media.proto.to_ascii_uppercase().as_str() {
        "RTP/AVP" | "RTP/AVPF" => Ok((false, false)),
        "RTP/SAVP" | "RTP/SAVPF" => Ok((true, false)),
        "UDP/DCCP/RTP/AVP" | "UDP/DCCP/RTP/AVPF" => Ok((false, true)),
        _ => Err(wrong("protocol (m=)", &media.proto, "RTP/AVPF, RTP/SAVPF, RTP/AVP, RTP/SAVP or UDP/DCCP/RTP/AVPF")),
    }
}

/// The DCCP connection (RFC 5762, section 5; RFC 6773, section 5).
fn read_dccp(media: &Media) -> Result<DccpMedia, SdpError> {
    let value = |name| media.get_first_attribute_value(name).flatten();
    let port = value("dccp-port")
        .ok_or(SdpError::Missing { field: "a=dccp-port", way_out: "DCCP over UDP has ports of both (RFC 6773)" })?;
    let port = port.trim().parse().map_err(|_| wrong("a=dccp-port", port, "a port, 0 to 65535"))?;
    if let Some(code) = value("dccp-service-code")
        && code.trim().parse() != Ok(ServiceCode::RTP_VIDEO)
    {
        return Err(wrong("a=dccp-service-code", code, "SC:RTPV, video over RTP"));
    }
    // RFC 4145, section 4: an offer without it would be active.
    let setup = value("setup").map_or("active", str::trim);
    let setup = (Setup::ALL.iter().find(|s| s.1 == setup).map(|s| s.0))
        .ok_or_else(|| wrong("a=setup", setup, "active, passive or actpass"))?;
    Ok(DccpMedia { port, setup })
}

/// Attributes of a name whose value begins with a number, and the rest of the value.
fn numbered<'a>(media: &'a Media, name: &'a str) -> impl Iterator<Item = (u32, &'a str)> {
    let values = media.get_attribute_values(name).flatten();
    values
        .filter_map(|v| v.split_once(' ').and_then(|(n, rest)| Some((n.parse().ok()?, rest.trim()))))
        .take(MAX_ENTRIES)
}

fn read_payloads(media: &Media) -> Result<Vec<(u8, Payload)>, SdpError> {
    let fmtp = |pt: u32| numbered(media, "fmtp").find(|(n, _)| *n == pt).map(|(_, v)| v.to_owned());
    let mut payloads = Vec::new();
    for number in media.fmt.split_whitespace().take(MAX_ENTRIES) {
        let pt: u8 =
            number.parse().ok().filter(|n| *n < 128).ok_or_else(|| wrong("payload type (m=)", number, "0 to 127"))?;
        let map = numbered(media, "rtpmap").find(|(n, _)| *n == u32::from(pt)).map(|(_, v)| v);
        let Some(map) = map else { continue };
        let mut parts = map.split('/');
        let (name, clock) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if clock != RTP_CLOCK_HZ.to_string() {
            continue;
        }
        let payload = match name.to_ascii_lowercase().as_str() {
            "rtx" => {
                let of = fmtp(pt.into()).as_deref().and_then(|f| parameter(f, "apt")).and_then(|v| v.parse().ok());
                let Some(of) = of else { continue };
                Payload::Retransmission(of)
            }
            "flexfec" => Payload::FlexFec,
            "x-weir-rs" => Payload::ReedSolomon,
            _ => match VideoCodec::by_name(name) {
                Some(codec) => Payload::Video(codec, fmtp(pt.into())),
                None => continue,
            },
        };
        payloads.push((pt, payload));
    }
    if !payloads.iter().any(|(_, p)| matches!(p, Payload::Video(..))) {
        return Err(wrong(
            "payload types (m=video)",
            &media.fmt,
            "one of H264/90000, VP8/90000 or VP9/90000 (a=rtpmap)",
        ));
    }
    Ok(payloads)
}

/// A parameter of `a=fmtp`.
pub(super) fn parameter<'a>(fmtp: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = fmtp.split(';').filter_map(|p| p.trim().split_once('='));
    pairs.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
}

fn read_feedback(media: &Media, payloads: &[(u8, Payload)]) -> Vec<Feedback> {
    let is_video = |which: &str| {
        let of = |pt: u8| payloads.iter().any(|(n, p)| *n == pt && matches!(p, Payload::Video(..)));
        which == "*" || which.parse().is_ok_and(of)
    };
    let told: Vec<&str> = (media.get_attribute_values("rtcp-fb").flatten())
        .filter_map(|v| v.split_once(' '))
        .filter(|(which, _)| is_video(which))
        .map(|(_, value)| value.trim())
        .take(2 * MAX_ENTRIES)
        .collect();
    let has = |value: &str| told.iter().any(|t| t.eq_ignore_ascii_case(value));
    Feedback::ALL.into_iter().filter(|(_, value)| has(value)).map(|(f, _)| f).collect()
}

fn read_extensions(media: &Media) -> Vec<(u8, Extension)> {
    let mut all = Vec::new();
    for value in media.get_attribute_values("extmap").flatten().take(MAX_ENTRIES) {
        let Some((id, rest)) = value.split_once(' ') else { continue };
        // A direction may stand behind the identifier (RFC 8285, section 5).
        let id = id.split('/').next().and_then(|n| n.parse().ok()).filter(|n| (1..=14).contains(n));
        let uri = rest.split_whitespace().next().unwrap_or_default();
        let known = Extension::ALL.iter().find(|(_, u)| *u == uri).map(|(e, _)| *e);
        if let (Some(id), Some(extension)) = (id, known)
            && !all.iter().any(|(i, e)| *i == id || *e == extension)
        {
            all.push((id, extension));
        }
    }
    all
}

fn read_keys(media: &Media) -> Result<Vec<(u32, SrtpKey)>, SdpError> {
    let mut keys = Vec::new();
    let mut unknown = Vec::new();
    for (tag, value) in numbered(media, "crypto") {
        let mut words = value.split_whitespace();
        let (name, params) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Some(suite) = Suite::by_name(name) else {
            unknown.push(name.to_owned());
            continue;
        };
        // Session parameters would change the protocol (RFC 4568, section 6.3): such a key cannot be taken.
        if words.next().is_some() {
            continue;
        }
        let secret = params.strip_prefix("inline:").ok_or_else(|| {
            wrong("key (a=crypto)", params.split(':').next().unwrap_or_default(), "inline:KEY (RFC 4568, section 9.2)")
        })?;
        // Lifetime and MKI may follow; an MKI would lengthen packets.
        let mut parts = secret.split('|');
        let encoded = parts.next().unwrap_or_default();
        if parts.any(|p| p.contains(':')) {
            continue;
        }
        let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded));
        let bytes = bytes.map_err(|_| wrong("key (a=crypto)", "something else", "base64"))?;
        keys.push((tag, SrtpKey::new(suite, bytes).map_err(|e| wrong("key (a=crypto)", e, "the suite's length"))?));
    }
    if keys.is_empty() {
        let names: Vec<_> = Suite::ALL.iter().map(|s| s.name()).collect();
        let (what, ours) = (unknown.join(", "), names.join(", "));
        return Err(if what.is_empty() {
            SdpError::Missing { field: "a key (a=crypto)", way_out: "the protocol is a secure one: SDES (RFC 4568)" }
        } else {
            SdpError::NothingShared { what: "cipher suite", theirs: what, ours }
        });
    }
    Ok(keys)
}

fn read_sources(media: &Media, mut d: Description) -> Description {
    for (ssrc, rest) in numbered(media, "ssrc") {
        d.ssrc.get_or_insert(ssrc);
        if let Some(cname) = rest.strip_prefix("cname:") {
            d.cname.get_or_insert(cname.chars().take(255).collect());
        }
    }
    for group in media.get_attribute_values("ssrc-group").flatten().take(MAX_ENTRIES) {
        let mut words = group.split_whitespace();
        let semantics = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|n| n.parse::<u32>().ok());
        if let (Some(of), Some(other)) = (number(), number())
            && d.ssrc == Some(of)
        {
            match semantics {
                "FID" => d.retransmission_ssrc = Some(other),
                "FEC-FR" => d.repair_ssrc = Some(other),
                _ => {}
            }
        }
    }
    d
}
