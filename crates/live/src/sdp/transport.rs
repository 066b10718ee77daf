//! The transport of a section's packets, and their keys.

use super::ice::read_ice;
use super::lines::Block;
use super::multipath::read_interfaces;
use super::{DccpMedia, MediaTransport, SdpError, Setup, wrong};
use crate::srtp::{SrtpKey, Suite};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use std::net::SocketAddr;
use weir_dccp::packet::ServiceCode;

/// DCCP's port if UDP's identifies the ends.
pub(crate) const DCCP_PORT: u16 = 5_004;

/// The protocol of a section.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Protocol {
    is_secure: bool,
    over_dccp: bool,
}

impl Protocol {
    /// # Errors
    /// Weir does not support it.
    pub(super) fn read(session: &Block<'_>, block: &Block<'_>, (line, name): (usize, &str)) -> Result<Self, SdpError> {
        let (is_secure, over_dccp) = match name.to_ascii_uppercase().as_str() {
            "RTP/AVP" | "RTP/AVPF" => (false, false),
            "RTP/SAVP" | "RTP/SAVPF" => (true, false),
            "UDP/DCCP/RTP/AVP" | "UDP/DCCP/RTP/AVPF" => (false, true),
            _ => {
                let expected = "RTP/AVPF, RTP/SAVPF, RTP/AVP, RTP/SAVP or UDP/DCCP/RTP/AVPF";
                return Err(wrong("protocol (m=)", line, name, expected));
            }
        };
        if let Some((line, _)) = block.attribute("fingerprint").or(session.attribute("fingerprint"))
            && is_secure
        {
            let expected = "a=crypto (SDES, RFC 4568): there is no DTLS here";
            return Err(wrong("a=fingerprint", line, "a fingerprint for DTLS-SRTP", expected));
        }
        Ok(Self { is_secure, over_dccp })
    }
}

/// The transport of a section with this port; `None` if it is bundled and describes none.
///
/// # Errors
/// A field is missing or has an invalid value.
pub(super) fn read_transport(
    session: &Block<'_>,
    block: &Block<'_>,
    protocol: Protocol,
    (port, is_bundled): (u16, bool),
) -> Result<Option<MediaTransport>, SdpError> {
    if protocol.is_secure && is_bundled && !block.has("crypto") {
        return Ok(None);
    }
    let (line, connection) = block.first(b'c').or(session.first(b'c')).ok_or(SdpError::Missing {
        field: "a connection address (c=)",
        line: block.line,
        way_out: "state the destination",
    })?;
    let host = connection.split(' ').nth(2).and_then(|a| a.split('/').next()).unwrap_or_default();
    let ip = host.parse().map_err(|_| wrong("connection address (c=)", line, host, "an IPv4 or IPv6 address"))?;
    let address = SocketAddr::new(ip, port);
    let interfaces = if protocol.over_dccp { None } else { read_interfaces(block, address)? };
    Ok(Some(MediaTransport {
        address,
        keys: if protocol.is_secure { read_keys(block)? } else { Vec::new() },
        dccp: if protocol.over_dccp { Some(read_dccp(block)?) } else { None },
        // Multipath RTP implies it (draft-ietf-avtcore-mprtp-03, section 11.2).
        rtcp_mux: block.has("rtcp-mux") || interfaces.is_some(),
        interfaces,
        ice: if protocol.over_dccp { None } else { read_ice(session, block) },
    }))
}

/// The DCCP connection (RFC 5762, section 5; RFC 6773, section 5).
fn read_dccp(block: &Block<'_>) -> Result<DccpMedia, SdpError> {
    let (line, port) = block.attribute("dccp-port").ok_or(SdpError::Missing {
        field: "a=dccp-port",
        line: block.line,
        way_out: "DCCP over UDP has ports of both (RFC 6773)",
    })?;
    let port = port.trim().parse().map_err(|_| wrong("a=dccp-port", line, port, "a port, 0 to 65535"))?;
    if let Some((line, code)) = block.attribute("dccp-service-code")
        && code.trim().parse() != Ok(ServiceCode::RTP_VIDEO)
    {
        return Err(wrong("a=dccp-service-code", line, code, "SC:RTPV, video over RTP"));
    }
    // RFC 4145, section 4: an offer without it would be active.
    let (line, setup) = block.attribute("setup").map_or((0, "active"), |(line, s)| (line, s.trim()));
    let setup = (Setup::ALL.iter().find(|s| s.1 == setup).map(|s| s.0))
        .ok_or_else(|| wrong("a=setup", line, setup, "active, passive or actpass"))?;
    Ok(DccpMedia { port, setup })
}

fn read_keys(block: &Block<'_>) -> Result<Vec<(u32, SrtpKey)>, SdpError> {
    const FIELD: &str = "key (a=crypto)";
    let mut keys = Vec::new();
    let mut unknown = Vec::new();
    for (line, tag, value) in block.numbered("crypto") {
        let mut words = value.split_whitespace();
        let (name, params) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let Some(suite) = Suite::by_name(name) else {
            unknown.push(super::shortened(name));
            continue;
        };
        // Session parameters would change the protocol (RFC 4568, section 6.3): such a key is not used.
        if words.next().is_some() {
            continue;
        }
        let secret = params.strip_prefix("inline:").ok_or_else(|| {
            wrong(FIELD, line, params.split(':').next().unwrap_or_default(), "inline:KEY (RFC 4568, section 9.2)")
        })?;
        // Lifetime and MKI may follow; an MKI would lengthen packets.
        let mut parts = secret.split('|');
        let encoded = parts.next().unwrap_or_default();
        if parts.any(|p| p.contains(':')) {
            continue;
        }
        let bytes = STANDARD.decode(encoded).or_else(|_| STANDARD_NO_PAD.decode(encoded));
        let bytes = bytes.map_err(|_| wrong(FIELD, line, "something else", "base64"))?;
        keys.push((tag, SrtpKey::new(suite, bytes).map_err(|e| wrong(FIELD, line, e, "the suite's length"))?));
    }
    if keys.is_empty() {
        let names: Vec<_> = Suite::ALL.iter().map(|s| s.name()).collect();
        let (what, ours) = (unknown.join(", "), names.join(", "));
        return Err(if what.is_empty() {
            let way_out = "the protocol is a secure one: SDES (RFC 4568)";
            SdpError::Missing { field: "a key (a=crypto)", line: block.line, way_out }
        } else {
            SdpError::NothingShared { what: "cipher suite", theirs: what, ours }
        });
    }
    Ok(keys)
}

/// The key of each end: of those in `ours` and `theirs`, that of the other end's preferred tag.
///
/// # Errors
/// One end has none, or there is no common suite.
pub(super) fn shared_keys(
    ours: &MediaTransport,
    theirs: &MediaTransport,
) -> Result<Option<(SrtpKey, SrtpKey)>, SdpError> {
    match (ours.keys.is_empty(), theirs.keys.is_empty()) {
        (true, true) => Ok(None),
        (false, false) => {
            let pair = theirs.keys.iter().find_map(|(tag, key)| {
                let own = ours.keys.iter().find(|(t, k)| t == tag && k.suite() == key.suite())?;
                Some((own.1.clone(), key.clone()))
            });
            pair.map(Some).ok_or_else(|| no_suite(ours, theirs))
        }
        (is_clear, _) => Err(protection(is_clear)),
    }
}

/// The key of an answer: the offer's tag, with this end's own key (RFC 4568, section 5.1.2).
///
/// # Errors
/// As [`shared_keys`].
pub(super) fn answer_keys(ours: &MediaTransport, offered: &MediaTransport) -> Result<Vec<(u32, SrtpKey)>, SdpError> {
    match (ours.keys.is_empty(), offered.keys.is_empty()) {
        (true, true) => Ok(Vec::new()),
        (false, false) => {
            let shared = offered.keys.iter().find_map(|(tag, key)| {
                let own = ours.keys.iter().find(|(_, k)| k.suite() == key.suite())?;
                Some((*tag, own.1.clone()))
            });
            Ok(vec![shared.ok_or_else(|| no_suite(ours, offered))?])
        }
        (is_clear, _) => Err(protection(is_clear)),
    }
}

/// The answer about the DCCP connection.
///
/// # Errors
/// This end requires one and the offer has none.
pub(super) fn answer_dccp(ours: Option<DccpMedia>, offered: Option<DccpMedia>) -> Result<Option<DccpMedia>, SdpError> {
    match (ours, offered) {
        (_, Some(offered)) => {
            let port = ours.map_or(DCCP_PORT, |d| d.port);
            Ok(Some(DccpMedia { port, setup: offered.setup.answer() }))
        }
        (Some(_), None) => Err(at_one_end()),
        (None, None) => Ok(None),
    }
}

/// The DCCP connection described by both ends: the other end's port, and this end's role.
///
/// # Errors
/// One end has none, or both have the same role.
pub(super) fn shared_dccp(ours: Option<DccpMedia>, theirs: Option<DccpMedia>) -> Result<Option<DccpMedia>, SdpError> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if ours.setup != theirs.setup => {
            // The answer decides; it never leaves the choice open.
            let active = ours.setup == Setup::Active || theirs.setup == Setup::Passive;
            let setup = if active { Setup::Active } else { Setup::Passive };
            Ok(Some(DccpMedia { port: theirs.port, setup }))
        }
        (Some(ours), Some(_)) => {
            let role = if ours.setup == Setup::Active { "passive" } else { "active" };
            Err(wrong("a=setup", 0, "the same at both ends", role))
        }
        (None, None) => Ok(None),
        _ => Err(at_one_end()),
    }
}

fn at_one_end() -> SdpError {
    let expected = "the same at both ends: UDP/DCCP/RTP/AVPF is --transport dccp --no-srtp";
    wrong("protocol (m=)", 0, "DCCP at one end and plain datagrams at the other", expected)
}

fn no_suite(ours: &MediaTransport, theirs: &MediaTransport) -> SdpError {
    let names = |t: &MediaTransport| t.keys.iter().map(|(_, k)| k.suite().name()).collect::<Vec<_>>().join(", ");
    SdpError::NothingShared { what: "cipher suite", theirs: names(theirs), ours: names(ours) }
}

fn protection(ours_is_clear: bool) -> SdpError {
    if ours_is_clear {
        wrong("protocol (m=)", 0, "SRTP", "unencrypted RTP, as this end is configured: omit --no-srtp")
    } else {
        let expected = "SRTP (RTP/SAVPF with a=crypto): use --no-srtp for an unencrypted call";
        wrong("protocol (m=)", 0, "RTP in the clear", expected)
    }
}
