//! Multipath RTP in descriptions: `a=mprtp`, alone (draft-ietf-avtcore-mprtp-03, section 11.2) or with the addresses of an
//! end's interfaces (draft-singh-mmusic-mprtp-sdp-extension-04, section 3).

use super::lines::Block;
use super::{MediaTransport, SdpError, wrong};
use std::net::SocketAddr;
use weir_session::multipath::MAX_PATHS;

/// Attribute of an interface, up to its colon.
const INTERFACE: &str = "mprtp interface";

/// The interfaces of a section whose default address is `address`: `None` without multipath RTP, only that address if
/// none is listed. More than a call can have paths are left out.
///
/// # Errors
/// An interface has an invalid address, or one that cannot be that of a host.
pub(super) fn read_interfaces(block: &Block<'_>, address: SocketAddr) -> Result<Option<Vec<SocketAddr>>, SdpError> {
    let mut interfaces = Vec::new();
    for (line, value) in block.attributes(INTERFACE) {
        let expected = "NUMBER ADDRESS:PORT of a host";
        let mut words = value.split_whitespace();
        let number = words.next().and_then(|n| n.parse::<u32>().ok());
        let at = words.next().and_then(|a| a.parse::<SocketAddr>().ok()).filter(is_of_a_host);
        let (Some(_), Some(at)) = (number, at) else { return Err(wrong("a=mprtp interface", line, value, expected)) };
        if interfaces.len() < MAX_PATHS && !interfaces.contains(&at) {
            interfaces.push(at);
        }
    }
    if interfaces.is_empty() {
        return Ok(block.has("mprtp").then(|| vec![address]));
    }
    Ok(Some(interfaces))
}

fn is_of_a_host(at: &SocketAddr) -> bool {
    let is_broadcast = matches!(at, SocketAddr::V4(v4) if v4.ip().is_broadcast());
    at.port() != 0 && !at.ip().is_multicast() && !at.ip().is_unspecified() && !is_broadcast
}

/// The values of `a=` for the interfaces.
pub(super) fn interface_lines(interfaces: &[SocketAddr]) -> Vec<String> {
    if interfaces.len() < 2 {
        return vec!["mprtp".into()];
    }
    interfaces.iter().zip(1..).map(|(at, number)| format!("{INTERFACE}:{number} {at}")).collect()
}

/// The other end's address of each path. Path `n` joins the ends' interfaces `n`; an end with fewer of them uses its
/// first one again. A path between addresses of unlike families ends the list.
pub(super) fn paths(ours: &MediaTransport, theirs: &MediaTransport) -> Vec<SocketAddr> {
    let (Some(own), Some(other)) = (&ours.interfaces, &theirs.interfaces) else { return vec![theirs.address] };
    let count = own.len().max(other.len()).clamp(1, MAX_PATHS);
    let at = |n: usize| {
        let (from, to) = (own.get(n).copied().unwrap_or(ours.address), other.get(n).copied().unwrap_or(theirs.address));
        (from.is_ipv4() == to.is_ipv4()).then_some(to)
    };
    let paths: Vec<SocketAddr> = (0..count).map_while(at).collect();
    if paths.is_empty() { vec![theirs.address] } else { paths }
}
