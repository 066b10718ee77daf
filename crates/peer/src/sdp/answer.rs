//! Writing an answer.

use super::Negotiated;
use crate::dtls::Fingerprint;
use crate::ice::Credentials;
use std::fmt::Write as _;
use std::net::SocketAddr;
use weir_media::VideoCodec;

/// Preference of the one candidate (RFC 8445, section 5.1.2.1): a host's, of one address and component.
const PRIORITY: u32 = (126 << 24) | (65_535 << 8) | 255;

/// What this end says of itself.
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

fn compose(out: &mut String, n: &Negotiated, a: &Answer<'_>) -> std::fmt::Result {
    let (mid, family) = (n.mid, if a.address.is_ipv4() { "IP4" } else { "IP6" });
    // Browsers read it as a signed number.
    let session = a.session >> 1;
    write!(out, "v=0\r\no=weir {session} 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n")?;
    write!(out, "a=group:BUNDLE {mid}\r\na=ice-lite\r\na=msid-semantic: WMS weir\r\n")?;
    for (index, (kind, offered_mid)) in n.sections.iter().enumerate() {
        if index != n.accepted {
            let format = if kind == "application" { "UDP/DTLS/SCTP webrtc-datachannel" } else { "UDP/TLS/RTP/SAVPF 0" };
            let kind: String = kind.chars().filter(char::is_ascii_alphabetic).take(16).collect();
            write!(out, "m={kind} 0 {format}\r\nc=IN IP4 0.0.0.0\r\na=inactive\r\n")?;
            if let Some(mid) = offered_mid.as_deref().and_then(weir_session::Label::new) {
                write!(out, "a=mid:{mid}\r\n")?;
            }
            continue;
        }
        let rtx = n.rtx.map(|pt| format!(" {pt}")).unwrap_or_default();
        write!(out, "m=video {} UDP/TLS/RTP/SAVPF {}{rtx}\r\n", a.address.port(), n.payload_type)?;
        write!(out, "c=IN {family} {}\r\na=rtcp-mux\r\na=mid:{mid}\r\n", a.address.ip())?;
        write!(out, "a=ice-ufrag:{}\r\na=ice-pwd:{}\r\n", a.credentials.name, a.credentials.password)?;
        write!(out, "a=fingerprint:sha-256 {}\r\na=setup:active\r\na={}\r\n", a.fingerprint, n.direction.name())?;
        let (ip, port) = (a.address.ip(), a.address.port());
        write!(out, "a=candidate:1 1 udp {PRIORITY} {ip} {port} typ host\r\na=end-of-candidates\r\n")?;
        for e in &n.extensions {
            write!(out, "a=extmap:{} {}\r\n", e.id, e.uri)?;
        }
        formats(out, n)?;
        if n.direction.sends {
            let (ssrc, rtx) = a.ssrc;
            write!(out, "a=msid:weir video\r\na=ssrc:{ssrc} cname:{}\r\n", a.cname)?;
            if n.rtx.is_some() {
                write!(out, "a=ssrc:{rtx} cname:{}\r\na=ssrc-group:FID {ssrc} {rtx}\r\n", a.cname)?;
            }
        }
    }
    Ok(())
}

fn formats(out: &mut String, n: &Negotiated) -> std::fmt::Result {
    let pt = n.payload_type;
    let name = if n.codec == VideoCodec::H264 { "H264" } else { "VP8" };
    write!(out, "a=rtpmap:{pt} {name}/90000\r\n")?;
    if let Some(format) = n.format.as_ref().filter(|f| f.len() < 200 && !f.contains(char::is_control)) {
        write!(out, "a=fmtp:{pt} {format}\r\n")?;
    }
    for feedback in &n.feedback {
        // It is the transport's, not a format's (RFC 8888, section 6).
        if feedback == super::offer::CCFB {
            write!(out, "a=rtcp-fb:* {feedback}\r\n")?;
        } else {
            write!(out, "a=rtcp-fb:{pt} {feedback}\r\n")?;
        }
    }
    if let Some(rtx) = n.rtx {
        write!(out, "a=rtpmap:{rtx} rtx/90000\r\na=fmtp:{rtx} apt={pt}\r\n")?;
    }
    Ok(())
}
