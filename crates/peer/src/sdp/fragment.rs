//! Fragments of descriptions that trickle candidates or restart ICE (RFC 8840, RFC 9725, section 4.3).

use super::OfferError;
use crate::ice::Credentials;
use std::fmt::Write as _;
use std::net::SocketAddr;
use weir_session::Label;

/// Longest fragment, in bytes.
const MAX_FRAGMENT: usize = 16 * 1024;

/// The other end's `ice-ufrag` in a fragment. Its candidates are not needed: this end answers checks wherever they come from.
///
/// # Errors
/// It is too long, or has no name of 4 to 256 letters and digits.
pub fn fragment_name(text: &str) -> Result<&str, OfferError> {
    if text.len() > MAX_FRAGMENT {
        return Err(OfferError::new("the fragment", format!("{} bytes", text.len()), "16,384 bytes or fewer"));
    }
    let name = text.lines().find_map(|l| l.trim_end().strip_prefix("a=ice-ufrag:")).unwrap_or_default();
    if (4..=256).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/-_=".contains(&b)) {
        return Ok(name);
    }
    Err(OfferError::new("a=ice-ufrag", name, "4 to 256 letters and digits (RFC 8839, section 5.4)"))
}

/// This end's fragment after a restart.
pub fn write_fragment(mid: Label, own: &Credentials, address: SocketAddr) -> String {
    let mut out = String::new();
    let (ip, port) = (address.ip(), address.port());
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "a=ice-lite\r\na=group:BUNDLE {mid}\r\nm=video 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:{mid}\r\na=ice-ufrag:{}\r\na=ice-pwd:{}\r\n\
         a=candidate:1 1 udp {} {ip} {port} typ host\r\na=end-of-candidates\r\n",
        own.name,
        own.password,
        super::answer::PRIORITY
    );
    out
}
