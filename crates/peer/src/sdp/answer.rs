//! Writing an answer.

use super::flexfec::{NAME as FLEXFEC, own_repair_ssrc};
use super::offer::TRANSPORT_CC;
use super::ulpfec::{RED, ULPFEC};
use super::{Negotiated, Section};
use crate::dtls::Fingerprint;
use crate::ice::Credentials;
use std::fmt::Write as _;
use std::net::SocketAddr;

/// Preference of the one candidate (RFC 8445, section 5.1.2.1): a host's, of one address and component.
pub(super) const PRIORITY: u32 = (126 << 24) | (65_535 << 8) | 255;

/// This end's description of itself.
#[derive(Clone, Debug)]
pub struct Answer<'a> {
    /// Number of the session.
    pub session: u64,
    /// Its ICE credentials.
    pub credentials: &'a Credentials,
    /// Its certificate's fingerprint.
    pub fingerprint: Fingerprint,
    /// Where it can be reached.
    pub address: SocketAddr,
    /// Its synchronisation source, and that of its retransmissions.
    pub ssrc: (u32, u32),
    /// Canonical name.
    pub cname: &'a str,
}

/// The answer to an offer.
pub fn write(n: &Negotiated, a: &Answer<'_>) -> String {
    let mut out = String::with_capacity(2_048);
    // Writing to a string does not fail.
    let _ = compose(&mut out, n, a);
    out
}

/// Sources of sections beside the first have the bits of its source above these.
const SOURCES: u32 = 0xff;

/// The synchronisation source of the section that is number `n` of [`Negotiated::further`]; `first` is that of the first section, and
/// ends in eight zero bits. Retransmissions have it with the second bit inverted.
pub const fn further_ssrc(first: u32, n: usize) -> u32 {
    (first & !SOURCES) | (1 + n as u32 % SOURCES)
}

fn compose(out: &mut String, n: &Negotiated, a: &Answer<'_>) -> std::fmt::Result {
    let first = n.first();
    let further = n.further.iter().enumerate().map(|(k, s)| (s, further_ssrc(a.ssrc.0, k)));
    let further = further.map(|(s, ssrc)| (s, (ssrc, ssrc ^ (1 << 30))));
    let mut taken: Vec<(&Section, (u32, u32))> = std::iter::once((&first, a.ssrc)).chain(further).collect();
    taken.sort_by_key(|(s, _)| s.index);
    // Browsers read it as a signed number.
    let session = a.session >> 1;
    write!(out, "v=0\r\no=weir {session} 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE")?;
    for (section, _) in &taken {
        write!(out, " {}", section.mid)?;
    }
    write!(out, "\r\na=ice-lite\r\na=msid-semantic: WMS *\r\n")?;
    for (index, (kind, offered_mid)) in n.sections.iter().enumerate() {
        if let Some((s, ssrc)) = taken.iter().find(|(s, _)| s.index == index) {
            section(out, s, *ssrc, a)?;
            continue;
        }
        let format = if kind == "application" { "UDP/DTLS/SCTP webrtc-datachannel" } else { "UDP/TLS/RTP/SAVPF 0" };
        let kind: String = kind.chars().filter(char::is_ascii_alphabetic).take(16).collect();
        write!(out, "m={kind} 0 {format}\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\n")?;
        if let Some(mid) = offered_mid.as_deref().and_then(weir_session::Label::new) {
            write!(out, "a=mid:{mid}\r\n")?;
        }
    }
    Ok(())
}

fn section(out: &mut String, s: &Section, (ssrc, rtx): (u32, u32), a: &Answer<'_>) -> std::fmt::Result {
    let (kind, family) = (s.media.name(), if a.address.is_ipv4() { "IP4" } else { "IP6" });
    write!(out, "m={kind} {} UDP/TLS/RTP/SAVPF {}", a.address.port(), s.payload_type)?;
    for payload_type in s.rtx.into_iter().chain(s.flexfec.map(|f| f.payload_type)) {
        write!(out, " {payload_type}")?;
    }
    for payload_type in s.ulpfec.into_iter().flat_map(|u| [Some(u.red), u.rtx, Some(u.payload_type)]).flatten() {
        write!(out, " {payload_type}")?;
    }
    out.push_str("\r\n");
    write!(out, "c=IN {family} {}\r\na=rtcp-mux\r\na=mid:{}\r\n", a.address.ip(), s.mid)?;
    write!(out, "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n", a.credentials.name, a.credentials.password)?;
    write!(out, "a=fingerprint:sha-256 {}\r\na=setup:active\r\na={}\r\n", a.fingerprint, s.direction.name())?;
    let (ip, port) = (a.address.ip(), a.address.port());
    write!(out, "a=candidate:1 1 udp {PRIORITY} {ip} {port} typ host\r\na=end-of-candidates\r\n")?;
    for e in &s.extensions {
        write!(out, "a=extmap:{} {}\r\n", e.id, e.uri)?;
    }
    formats(out, s)?;
    if s.direction.receives && !s.rids.is_empty() {
        for rid in &s.rids {
            write!(out, "a=rid:{rid} recv\r\n")?;
        }
        let rids: Vec<String> = s.rids.iter().map(ToString::to_string).collect();
        write!(out, "a=simulcast:recv {}\r\n", rids.join(";"))?;
    }
    if s.direction.sends {
        // One stream of the page's for both media of a member, since they have places of the same number.
        write!(out, "a=msid:weir {kind}-{}\r\na=ssrc:{ssrc} cname:{}\r\n", s.mid, a.cname)?;
        if s.rtx.is_some() {
            write!(out, "a=ssrc:{rtx} cname:{}\r\na=ssrc-group:FID {ssrc} {rtx}\r\n", a.cname)?;
        }
        if s.flexfec.is_some() {
            // RFC 5956, section 4.3.
            let repair = own_repair_ssrc(ssrc);
            write!(out, "a=ssrc:{repair} cname:{}\r\na=ssrc-group:FEC-FR {ssrc} {repair}\r\n", a.cname)?;
        }
    }
    Ok(())
}

fn formats(out: &mut String, s: &Section) -> std::fmt::Result {
    let pt = s.payload_type;
    write!(out, "a=rtpmap:{pt} {}\r\n", s.name)?;
    if let Some(format) = s.format.as_ref().filter(|f| f.len() < 200 && !f.contains(char::is_control)) {
        write!(out, "a=fmtp:{pt} {format}\r\n")?;
    }
    for feedback in &s.feedback {
        // It is the transport's, not a format's (RFC 8888, section 6).
        if feedback == super::offer::CCFB {
            write!(out, "a=rtcp-fb:* {feedback}\r\n")?;
        } else {
            write!(out, "a=rtcp-fb:{pt} {feedback}\r\n")?;
        }
    }
    if let Some(rtx) = s.rtx {
        write!(out, "a=rtpmap:{rtx} rtx/90000\r\na=fmtp:{rtx} apt={pt}\r\n")?;
    }
    if let Some(u) = s.ulpfec {
        write!(out, "a=rtpmap:{} {RED}\r\n", u.red)?;
        if let Some(rtx) = u.rtx {
            write!(out, "a=rtpmap:{rtx} rtx/90000\r\na=fmtp:{rtx} apt={}\r\n", u.red)?;
        }
        write!(out, "a=rtpmap:{} {ULPFEC}\r\n", u.payload_type)?;
    }
    if let Some(f) = s.flexfec {
        let pt = f.payload_type;
        write!(out, "a=rtpmap:{pt} {FLEXFEC}\r\na=fmtp:{pt} repair-window={}\r\n", f.window)?;
        if f.transport_wide && s.extensions.iter().any(|e| e.uri == TRANSPORT_CC) {
            write!(out, "a=rtcp-fb:{pt} transport-cc\r\n")?;
        }
    }
    Ok(())
}
