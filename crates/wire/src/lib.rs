//! RTP and RTCP on the wire: formats, without any decision on when to send what.
//!
//! Parsing does not allocate: packets are views into the caller's bytes, and lists in them are iterators. Writing
//! appends to the caller's `Vec<u8>`, which can be reused. Input from the network never causes a panic; it returns an
//! [`Error`] with field and offset.
//!
//! | module | follows |
//! |---|---|
//! | [`rtp`] | RFC 3550 section 5, RFC 8285, RFC 6051 section 3.3, draft-ietf-avtcore-mprtp-03 section 9.1 |
//! | [`rtcp`] | RFC 3550 section 6, RFC 3611, 4585, 5104, 5506, 5725, 6051, 6776, 6798, 6843, 6958, 7002, 7003, 7097, 7243, 8698, 8888, 3GPP TS 26.234 (NADU), draft-alvestrand-rmcat-remb-03, draft-holmer-rmcat-transport-wide-cc-extensions-01, draft-ietf-avtcore-mprtp-03 sections 9.2 and 9.3 |
//! | [`ntp`] | RFC 3550 section 4 |
//! | [`fec`] | RFC 2198, 5109, 6015, 6865, 8627 |

mod error;
pub mod fec;
mod list;
pub mod ntp;
mod read;
pub mod rtcp;
pub mod rtp;

pub use error::Error;
pub use list::{Entries, Entry, List};

/// The kind of a datagram on a port shared by RTP and RTCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatagramKind {
    /// RTP.
    Rtp,
    /// RTCP.
    Rtcp,
}

/// Distinguishes RTP from RTCP by the second octet, 192 to 223 being RTCP (RFC 5761, section 4).
///
/// `None` if the datagram is neither: empty, one octet long, or not of version 2 (STUN, DTLS; RFC 7983).
#[inline]
pub fn kind_of(datagram: &[u8]) -> Option<DatagramKind> {
    match datagram {
        [first, second, ..] if first >> 6 == 2 => {
            Some(if (192..=223).contains(second) { DatagramKind::Rtcp } else { DatagramKind::Rtp })
        }
        _ => None,
    }
}

#[cfg(test)]
mod testing {
    /// Bytes of hexadecimal digits; other characters are ignored.
    pub(crate) fn hex(s: &str) -> Vec<u8> {
        let digits: Vec<u8> = s.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|p| u8::from_str_radix(std::str::from_utf8(p).unwrap(), 16).unwrap()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_rtp_from_rtcp() {
        assert_eq!(kind_of(&[0x80, 200]), Some(DatagramKind::Rtcp));
        assert_eq!(kind_of(&[0x80, 96 | 0x80]), Some(DatagramKind::Rtp));
        assert_eq!(kind_of(&[0x80, 191]), Some(DatagramKind::Rtp));
        assert_eq!(kind_of(&[0x80, 224]), Some(DatagramKind::Rtp));
        assert_eq!(kind_of(&[0x00, 200]), None);
        assert_eq!(kind_of(&[0x80]), None);
    }
}

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
