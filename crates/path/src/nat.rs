//! Network address translators of UDP (NATs), by their mapping and filtering (RFC 4787).
//!
//! A [`Nat`] has one external address. What leaves gets a source there ([`Nat::outbound`]); what arrives is passed to
//! the inside or dropped ([`Nat::inbound`]). It has no clock and no randomness but its seed.

use crate::random::Random;
use core::net::{IpAddr, SocketAddr};
use weir_units::{TimeDelta, Timestamp};

/// The part of the other end's address on which a mapping (RFC 4787, section 4.1) or a filter (section 5) depends.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dependence {
    /// Nothing: one for all destinations.
    EndpointIndependent,
    /// The other end's address.
    Address,
    /// Its address and port.
    AddressAndPort,
}

impl Dependence {
    fn same(self, a: SocketAddr, b: SocketAddr) -> bool {
        match self {
            Self::EndpointIndependent => true,
            Self::Address => a.ip() == b.ip(),
            Self::AddressAndPort => a == b,
        }
    }
}

/// How a NAT works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NatConfig {
    /// The packets that share an external port.
    pub mapping: Dependence,
    /// From where packets to an external port are let in: from wherever the inside has sent to.
    pub filtering: Dependence,
    /// A mapping and its permissions end after this time without a packet from inside (RFC 4787, section 4.3: two
    /// minutes at least).
    pub lifetime: TimeDelta,
}

impl NatConfig {
    /// The four kinds of RFC 3489, section 5, with their names.
    pub const KINDS: [(&'static str, Self); 4] = [
        ("full cone", Self::of(Dependence::EndpointIndependent, Dependence::EndpointIndependent)),
        ("restricted", Self::of(Dependence::EndpointIndependent, Dependence::Address)),
        ("port restricted", Self::of(Dependence::EndpointIndependent, Dependence::AddressAndPort)),
        ("symmetric", Self::of(Dependence::AddressAndPort, Dependence::AddressAndPort)),
    ];

    const fn of(mapping: Dependence, filtering: Dependence) -> Self {
        Self { mapping, filtering, lifetime: TimeDelta::from_secs(120) }
    }
}

/// Mappings that are kept, and permissions of each; the oldest gives way.
const MAX_MAPPINGS: usize = 1_024;
const MAX_PERMITTED: usize = 256;
/// Ports that are assigned: the dynamic ones.
const FIRST_PORT: u16 = 49_152;

#[derive(Clone, Debug)]
struct Mapping {
    inside: SocketAddr,
    /// The destination that made it.
    to: SocketAddr,
    port: u16,
    used: Timestamp,
    /// Where the inside has sent to, and when last.
    permitted: Vec<(SocketAddr, Timestamp)>,
}

/// A NAT.
#[derive(Clone, Debug)]
pub struct Nat {
    config: NatConfig,
    external: IpAddr,
    mappings: Vec<Mapping>,
    rng: Random,
    dropped: u64,
}

impl Nat {
    /// A NAT with this external address.
    pub fn new(config: NatConfig, external: IpAddr, seed: u64) -> Self {
        Self { config, external, mappings: Vec::new(), rng: Random::new(seed), dropped: 0 }
    }
    /// Its external address.
    pub const fn external(&self) -> IpAddr {
        self.external
    }
    /// Packets from outside that were not let in.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn expire(&mut self, now: Timestamp) {
        let lifetime = self.config.lifetime;
        self.mappings.retain(|m| now.saturating_since(m.used) < lifetime);
    }

    fn free_port(&mut self) -> u16 {
        loop {
            let port = FIRST_PORT + self.rng.up_to(u32::from(u16::MAX - FIRST_PORT)) as u16;
            // There are fewer mappings than ports.
            if !self.mappings.iter().any(|m| m.port == port) {
                return port;
            }
        }
    }

    /// A packet leaves from an inner address; returns its source outside.
    pub fn outbound(&mut self, now: Timestamp, from: SocketAddr, to: SocketAddr) -> SocketAddr {
        self.expire(now);
        let mapping = self.config.mapping;
        let found = self.mappings.iter().position(|m| m.inside == from && mapping.same(m.to, to));
        let index = found.unwrap_or_else(|| {
            if self.mappings.len() >= MAX_MAPPINGS {
                self.mappings.remove(0);
            }
            let port = self.free_port();
            self.mappings.push(Mapping { inside: from, to, port, used: now, permitted: Vec::new() });
            self.mappings.len() - 1
        });
        let m = &mut self.mappings[index];
        m.used = now;
        match m.permitted.iter_mut().find(|p| p.0 == to) {
            Some(p) => p.1 = now,
            None => {
                if m.permitted.len() >= MAX_PERMITTED {
                    m.permitted.remove(0);
                }
                m.permitted.push((to, now));
            }
        }
        SocketAddr::new(self.external, m.port)
    }

    /// A packet arrives at an external address; returns the inner one that gets it, if the filter lets it in.
    pub fn inbound(&mut self, now: Timestamp, from: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
        self.expire(now);
        let (filtering, lifetime) = (self.config.filtering, self.config.lifetime);
        let mapping = self.mappings.iter().find(|m| to == SocketAddr::new(self.external, m.port));
        let is_permitted = |m: &&Mapping| {
            let is_alive = |at: Timestamp| now.saturating_since(at) < lifetime;
            m.permitted.iter().any(|(to, at)| is_alive(*at) && filtering.same(*to, from))
        };
        let inside = mapping.filter(is_permitted).map(|m| m.inside);
        self.dropped += u64::from(inside.is_none());
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(host: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, host], port))
    }
    fn nat(kind: usize) -> Nat {
        Nat::new(NatConfig::KINDS[kind].1, [203, 0, 113, 1].into(), 7)
    }

    #[test]
    fn the_four_kinds_map_and_filter_as_they_are_defined() {
        let inside = SocketAddr::from(([10, 0, 0, 2], 5_000));
        let now = Timestamp::from_secs(1);
        // Let in: from the port sent to, from another port, from another host.
        let expected = [(true, true, true), (true, true, false), (true, false, false), (true, false, false)];
        for (kind, expected) in expected.into_iter().enumerate() {
            let mut n = nat(kind);
            let (first, second) = (n.outbound(now, inside, at(1, 1)), n.outbound(now, inside, at(1, 2)));
            assert_eq!(first == second, kind < 3, "mapping of kind {kind}");
            assert_eq!(first, n.outbound(now, inside, at(1, 1)));
            let mut n = nat(kind);
            let outside = n.outbound(now, inside, at(1, 1));
            let mut enters = |from| n.inbound(now, from, outside) == Some(inside);
            assert_eq!((enters(at(1, 1)), enters(at(1, 9)), enters(at(2, 1))), expected, "kind {kind}");
            assert_eq!(n.inbound(now, at(1, 1), SocketAddr::new(n.external(), 1)), None);
        }
    }

    #[test]
    fn mappings_end_and_are_bounded() {
        let inside = SocketAddr::from(([10, 0, 0, 2], 5_000));
        let mut n = nat(3);
        let outside = n.outbound(Timestamp::ZERO, inside, at(1, 1));
        let later = |s| Timestamp::from_secs(s);
        assert_eq!(n.inbound(later(119), at(1, 1), outside), Some(inside));
        assert_eq!(n.inbound(later(120), at(1, 1), outside), None, "packets from outside do not keep it");
        for port in 0..2_000 {
            n.outbound(later(200), inside, at(2, port));
        }
        assert_eq!(n.mappings.len(), MAX_MAPPINGS);
        assert_eq!(n.dropped(), 1);
    }
}
