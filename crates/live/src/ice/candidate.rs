//! Candidates: addresses at which an end may be reached, and their form in SDP (RFC 8839, section 5.1).

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Candidates that are kept of an end's, and sent: those of eight paths with a host, a reflexive and a relayed address each.
pub const MAX_CANDIDATES: usize = 24;

/// The type of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CandidateKind {
    /// An address of the host itself.
    Host,
    /// As a STUN server has seen it.
    ServerReflexive,
    /// Of a relay.
    Relayed,
}

impl CandidateKind {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Host, "host"), (Self::ServerReflexive, "srflx"), (Self::Relayed, "relay")];

    /// The recommended preference (RFC 8445, section 5.1.2.2).
    const fn preference(self) -> u32 {
        match self {
            Self::Host => 126,
            Self::ServerReflexive => 100,
            Self::Relayed => 0,
        }
    }
}

/// A candidate of an end, for UDP and the one component that RTP and RTCP share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Candidate {
    /// Its address.
    pub address: SocketAddr,
    /// Its type.
    pub kind: CandidateKind,
    /// Its priority, 1 to 2^31 - 1.
    pub priority: u32,
    /// The path that it is of, from 0 on, if the end says so (`network-id`, counted from 1).
    pub path: Option<u8>,
}

/// Whether an end can be at this address.
pub(super) fn is_of_an_end(at: SocketAddr) -> bool {
    let is_impossible = match at.ip() {
        IpAddr::V4(ip) => ip.is_broadcast() || ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    at.port() != 0 && !at.ip().is_unspecified() && !at.ip().is_multicast() && !is_impossible
}

/// Whether an address is one of the public Internet, not of a private network, a carrier's inner one (RFC 6598) or a host itself.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let is_shared = ip.octets()[0] == 100 && ip.octets()[1] & 0xc0 == 64;
            !ip.is_private() && !ip.is_loopback() && !ip.is_link_local() && !is_shared
        }
        IpAddr::V6(ip) => !ip.is_unique_local() && !ip.is_loopback() && !ip.is_unicast_link_local(),
    }
}

impl Candidate {
    /// A candidate with the recommended priority (RFC 8445, section 5.1.2.1); `path` counts as the local preference, the
    /// first one being preferred. `None` if no end can be at the address.
    pub fn new(address: SocketAddr, kind: CandidateKind, path: u8) -> Option<Self> {
        let local = 65_535 - u32::from(path);
        let priority = kind.preference() << 24 | local << 8 | 255;
        is_of_an_end(address).then_some(Self { address, kind, priority, path: Some(path) })
    }

    /// The value of `a=candidate`. `None` if it is no candidate for UDP and component 1, of a type that is known, at an
    /// address in figures at which an end can be.
    pub fn parse(value: &str) -> Option<Self> {
        let mut words = value.split_ascii_whitespace();
        let _foundation = words.next().filter(|f| f.len() <= 32)?;
        let component = words.next()?;
        let transport = words.next()?;
        let priority: u32 = words.next()?.parse().ok()?;
        let ip: IpAddr = words.next()?.parse().ok()?;
        let address = SocketAddr::new(ip, words.next()?.parse().ok()?);
        let is_typed = words.next()? == "typ";
        let name = words.next()?;
        let kind = CandidateKind::ALL.iter().find(|k| k.1 == name)?.0;
        let mut path = None;
        while let (Some(key), Some(value)) = (words.next(), words.next()) {
            if key == "network-id" {
                path = value.parse::<u8>().ok().and_then(|n| n.checked_sub(1));
            }
        }
        let fits = component == "1" && transport.eq_ignore_ascii_case("udp") && is_typed;
        let fits = fits && (1..1 << 31).contains(&priority) && is_of_an_end(address);
        fits.then_some(Self { address, kind, priority, path })
    }

    /// For the library, as one of the other end's.
    pub(super) fn remote(&self) -> is::Candidate {
        let kind = match self.kind {
            CandidateKind::Host => is::CandidateKind::Host,
            CandidateKind::ServerReflexive => is::CandidateKind::ServerReflexive,
            CandidateKind::Relayed => is::CandidateKind::Relayed,
        };
        let (udp, none) = (is::Protocol::Udp, None);
        is::Candidate::from_parts(self.foundation(), 1, udp, self.priority, self.address, kind, none, None, None)
    }

    /// Equal for candidates of one type and path (RFC 8445, section 5.1.1.3: one base, one server).
    fn foundation(&self) -> String {
        format!("{}{}", self.kind as u8 + 1, self.path.unwrap_or_default())
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CandidateKind::ALL.iter().find(|k| k.0 == self.kind).map_or("host", |k| k.1);
        let (ip, port) = (self.address.ip(), self.address.port());
        write!(f, "{} 1 udp {} {ip} {port} typ {name}", self.foundation(), self.priority)?;
        if self.kind != CandidateKind::Host {
            // RFC 8839, section 5.1: an address that is not to be revealed is written so.
            f.write_str(if ip.is_ipv4() { " raddr 0.0.0.0 rport 9" } else { " raddr :: rport 9" })?;
        }
        self.path.map_or(Ok(()), |path| write!(f, " network-id {}", u16::from(path) + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_read_as_it_was_written() {
        for (at, kind, path) in
            [("192.0.2.7:5000", CandidateKind::Host, 0), ("[2001:db8::7]:5000", CandidateKind::ServerReflexive, 3)]
        {
            let candidate = Candidate::new(at.parse().unwrap(), kind, path).expect("usable");
            assert_eq!(Candidate::parse(&candidate.to_string()), Some(candidate), "{candidate}");
        }
        let first = Candidate::new("192.0.2.7:5000".parse().unwrap(), CandidateKind::Host, 0).expect("usable");
        assert_eq!(first.priority, 2_130_706_431);
    }

    #[test]
    fn private_addresses_are_not_public() {
        for private in
            ["10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "169.254.1.1", "fd00::1", "::1"]
        {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in ["100.128.0.1", "172.32.0.1", "192.0.2.1", "2001:db8::1"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    #[test]
    fn others_are_read_or_refused() {
        let chrome = "842163049 1 udp 1677729535 203.0.113.4 46154 typ srflx raddr 10.0.0.1 rport 46154 generation 0";
        let read = Candidate::parse(chrome).expect("a candidate");
        assert_eq!((read.kind, read.path), (CandidateKind::ServerReflexive, None));
        for bad in [
            "",
            "1 1 udp 1 192.0.2.1 5000",
            "1 2 udp 1 192.0.2.1 5000 typ host",
            "1 1 tcp 1 192.0.2.1 9 typ host tcptype active",
            "1 1 udp 0 192.0.2.1 5000 typ host",
            "1 1 udp 2147483648 192.0.2.1 5000 typ host",
            "1 1 udp 1 224.0.0.1 5000 typ host",
            "1 1 udp 1 0.0.0.0 5000 typ host",
            "1 1 udp 1 192.0.2.1 0 typ host",
            "1 1 udp 1 name.local 5000 typ host",
            "1 1 udp 1 192.0.2.1 5000 typ elsewhere",
        ] {
            assert_eq!(Candidate::parse(bad), None, "{bad}");
        }
    }
}
