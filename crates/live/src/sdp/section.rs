//! One section (`m=`) of a description.

use super::lines::Block;
use super::simulcast::read_simulcast;
use super::transport::{Protocol, read_transport};
use super::{
    Description, Direction, Extension, Feedback, MediaSection, MediaTransport, Payload, RefusedSection, SdpError,
    Section, Sources, StreamCodec, wrong,
};
use weir_media::audio::AudioCodec;
use weir_media::{AUDIO_CLOCK_HZ, RTP_CLOCK_HZ, VideoCodec};
use weir_session::Label;
use weir_session::allocation::MediaKind;

/// Payload types that are read; more are ignored.
const MAX_FORMATS: usize = 64;

impl MediaSection {
    /// A stream with this transport and these payload types, and nothing else.
    pub fn new(kind: MediaKind, transport: MediaTransport, direction: Direction, payloads: Vec<(u8, Payload)>) -> Self {
        Self {
            kind,
            mid: None,
            transport: Some(transport),
            direction,
            payloads,
            feedback: Vec::new(),
            extensions: Vec::new(),
            sources: Sources::default(),
            send: Vec::new(),
            receive: Vec::new(),
        }
    }
}

impl Description {
    /// A description of one stream, without a bundle.
    pub fn of_stream(session: u64, section: MediaSection) -> Self {
        let sections = vec![Section::Media(Box::new(section))];
        Self { session, cname: None, controller: None, bundle: Vec::new(), is_bundle_only: false, sections }
    }
}

/// The name of a section (RFC 5888, section 4).
///
/// # Errors
/// It is no token, or too long for a header extension.
pub(super) fn read_mid(block: &Block<'_>) -> Result<Option<Label>, SdpError> {
    let Some((line, mid)) = block.attribute("mid") else { return Ok(None) };
    // RFC 8866, section 9: token-char.
    let is_token = mid.bytes().all(|b| b.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]".contains(&b));
    let label = Label::from_bytes(mid.as_bytes()).filter(|_| is_token);
    label.map(Some).ok_or_else(|| wrong("a=mid", line, mid, "a token of 1 to 16 characters"))
}

/// Parses a section. If Weir does not support it, the reason is returned with it.
///
/// # Errors
/// A field has an invalid value.
pub(super) fn read_section(
    session: &Block<'_>,
    block: &Block<'_>,
    bundle: &[Label],
) -> Result<(Section, Option<SdpError>), SdpError> {
    let (line, m) = block.first(b'm').unwrap_or((block.line, ""));
    let mut words = m.splitn(4, ' ').map(str::trim);
    let (Some(media), Some(port), Some(protocol), Some(formats)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong("media description (m=)", line, m, "a media type, a port, a protocol and formats"));
    };
    let number = port.split('/').next().unwrap_or_default();
    let port: u16 = number.parse().map_err(|_| wrong("port (m=)", line, number, "a port, 0 to 65535"))?;
    let mid = read_mid(block)?;
    let is_bundled = mid.is_some_and(|mid| bundle.contains(&mid));
    let refused = |why| {
        let text = |s: &str| s.to_owned();
        let r = RefusedSection { media: text(media), protocol: text(protocol), formats: text(formats), mid };
        Ok((Section::Refused(r), why))
    };
    let kind = match media {
        "audio" => MediaKind::Audio,
        "video" => MediaKind::Video,
        _ => return refused(Some(wrong("media type (m=)", line, media, "video or audio"))),
    };
    if port == 0 && !(is_bundled && block.has("bundle-only")) {
        return refused(None);
    }
    let protocol = match Protocol::read(session, block, (line, protocol)) {
        Ok(protocol) => protocol,
        Err(why) => return refused(Some(why)),
    };
    let payloads = read_payloads(block, (line, formats), kind)?;
    if !payloads.iter().any(|(_, p)| p.codec().is_some()) {
        let expected = match kind {
            MediaKind::Audio => "one of opus/48000/2 (a=rtpmap)",
            MediaKind::Video => "one of H264/90000, VP8/90000 or VP9/90000 (a=rtpmap)",
        };
        return refused(Some(wrong("payload types (m=)", line, formats, expected)));
    }
    let transport = if port == 0 { None } else { read_transport(session, block, protocol, (port, is_bundled))? };
    let (send, receive) = read_simulcast(block, &payloads)?;
    let is = |d: &Direction, of: &Block<'_>| of.has(d.name());
    let direction = (Direction::ALL.into_iter().find(|d| is(d, block)))
        .or_else(|| Direction::ALL.into_iter().find(|d| is(d, session)));
    let media = MediaSection {
        kind,
        mid,
        transport,
        direction: direction.unwrap_or_default(),
        feedback: read_feedback(block, &payloads),
        extensions: read_extensions(block),
        // The mapping of sources to encodings is not stated here.
        sources: if send.is_empty() { read_sources(block) } else { Sources::default() },
        payloads,
        send,
        receive,
    };
    Ok((Section::Media(Box::new(media)), None))
}

fn read_payloads(
    block: &Block<'_>,
    (line, formats): (usize, &str),
    kind: MediaKind,
) -> Result<Vec<(u8, Payload)>, SdpError> {
    let fmtp = |pt: u8| block.numbered("fmtp").find(|(_, n, _)| *n == u32::from(pt)).map(|(_, _, v)| v.to_owned());
    let clock_hz = if kind == MediaKind::Audio { AUDIO_CLOCK_HZ } else { RTP_CLOCK_HZ };
    let mut payloads: Vec<(u8, Payload)> = Vec::new();
    for number in formats.split_whitespace().take(MAX_FORMATS) {
        let pt: u8 = number
            .parse()
            .ok()
            .filter(|n| *n < 128)
            .ok_or_else(|| wrong("payload type (m=)", line, number, "0 to 127"))?;
        let map = block.numbered("rtpmap").find(|(_, n, _)| *n == u32::from(pt)).map(|(_, _, v)| v);
        let Some(map) = map.filter(|_| !payloads.iter().any(|(n, _)| *n == pt)) else { continue };
        let mut parts = map.split('/');
        let (name, clock) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if clock.parse() != Ok(clock_hz) {
            continue;
        }
        let payload = match (name.to_ascii_lowercase().as_str(), kind) {
            ("rtx", _) => {
                let of = fmtp(pt).as_deref().and_then(|f| parameter(f, "apt")).and_then(|v| v.parse().ok());
                let Some(of) = of else { continue };
                Payload::Retransmission(of)
            }
            ("flexfec", _) => Payload::FlexFec,
            ("x-weir-rs", _) => Payload::ReedSolomon,
            ("x-weir-rlc", _) => Payload::Rlc,
            // RFC 7587, section 7: two channels for any content.
            (name, MediaKind::Audio) => match AudioCodec::by_name(name).filter(|_| parts.next() == Some("2")) {
                Some(codec) => Payload::Audio(codec, fmtp(pt)),
                None => continue,
            },
            (name, MediaKind::Video) => match VideoCodec::by_name(name) {
                Some(codec) => Payload::Video(codec, fmtp(pt)),
                None => continue,
            },
        };
        payloads.push((pt, payload));
    }
    Ok(payloads)
}

/// A parameter of `a=fmtp`.
pub(super) fn parameter<'a>(fmtp: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = fmtp.split(';').filter_map(|p| p.trim().split_once('='));
    pairs.find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v)
}

/// Names of the codecs of a section.
pub(super) fn codec_names<'a>(sections: impl Iterator<Item = &'a MediaSection>) -> String {
    let all = sections.flat_map(|s| s.payloads.iter().filter_map(|(_, p)| p.codec()));
    let names: Vec<&str> = all.map(StreamCodec::name).collect();
    names.join(", ")
}

fn read_feedback(block: &Block<'_>, payloads: &[(u8, Payload)]) -> Vec<Feedback> {
    let is_media = |which: &str| {
        let of = |pt: u8| payloads.iter().any(|(n, p)| *n == pt && p.codec().is_some());
        which == "*" || which.parse().is_ok_and(of)
    };
    let feedback: Vec<&str> = (block.attributes("rtcp-fb"))
        .filter_map(|(_, v)| v.split_once(' '))
        .filter(|(which, _)| is_media(which))
        .map(|(_, value)| value.trim())
        .collect();
    let has = |value: &str| feedback.iter().any(|t| t.eq_ignore_ascii_case(value));
    Feedback::ALL.into_iter().filter(|(_, value)| has(value)).map(|(f, _)| f).collect()
}

fn read_extensions(block: &Block<'_>) -> Vec<(u8, Extension)> {
    let mut all: Vec<(u8, Extension)> = Vec::new();
    for (_, value) in block.attributes("extmap") {
        let Some((id, rest)) = value.split_once(' ') else { continue };
        // A direction may follow the identifier (RFC 8285, section 5).
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

fn read_sources(block: &Block<'_>) -> Sources {
    let mut sources = Sources { media: block.numbered("ssrc").next().map(|(_, n, _)| n), ..Sources::default() };
    for (_, group) in block.attributes("ssrc-group") {
        let mut words = group.split_whitespace();
        let semantics = words.next().unwrap_or_default();
        let mut number = || words.next().and_then(|n| n.parse::<u32>().ok());
        if let (Some(of), Some(other)) = (number(), number())
            && sources.media == Some(of)
        {
            match semantics {
                "FID" => sources.retransmission = Some(other),
                "FEC-FR" => sources.repair = Some(other),
                _ => {}
            }
        }
    }
    sources
}
