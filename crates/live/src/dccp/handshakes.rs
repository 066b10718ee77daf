//! Handshakes begun by other ends: the sans-IO listener, and the addresses of its opaque peers.

use super::error::DccpError;
use super::outlet::{Addresses, overhead};
use super::random::random;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use weir_dccp::connection::{Config, Datagram};
use weir_dccp::listener::{Listener, ListenerConfig, ListenerEvent, PairUse};
use weir_units::{TimeDelta, Timestamp};

/// Addresses remembered for a listener, several for each connection that may be half open.
const MAX_PEERS: usize = 4_096;
/// Interval at which expired half-open connections are removed.
const LOOK: TimeDelta = TimeDelta::from_secs(1);

/// A listener on a UDP port.
#[derive(Debug)]
pub(super) struct Handshakes {
    listener: Listener,
    hasher: RandomState,
    /// The addresses of the listener's opaque peers.
    peers: HashMap<u64, Addresses>,
    next_look: Timestamp,
}

impl Handshakes {
    /// The secret is drawn here; IP's overhead is that of the port's address.
    pub(super) fn new(config: ListenerConfig, local: SocketAddr) -> Result<Self, DccpError> {
        let mut key = [0; 32];
        for part in key.chunks_exact_mut(8) {
            part.copy_from_slice(&random()?.to_ne_bytes());
        }
        let connection = Config { header_overhead: overhead(local.ip()), ..config.connection };
        let listener = Listener::new(ListenerConfig { key, connection, ..config })?;
        Ok(Self { listener, hasher: RandomState::new(), peers: HashMap::new(), next_look: Timestamp::ZERO })
    }

    /// A datagram of no connection. `is_used` returns whether these addresses have a connection with other DCCP ports.
    pub(super) fn handle(
        &mut self,
        now: Timestamp,
        addresses: Addresses,
        is_busy: bool,
        is_used: impl FnOnce() -> bool,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> ListenerEvent {
        if self.listener.config().pairs == PairUse::One && is_used() {
            return self.listener.refuse_reuse(now, datagram, out);
        }
        let peer = self.hasher.hash_one(addresses);
        self.listener.set_busy(is_busy);
        let event = self.listener.handle_datagram(now, peer, datagram, out);
        if self.listener.half_open() == 0 {
            self.peers.clear();
        } else if self.peers.len() < MAX_PEERS || self.peers.contains_key(&peer) {
            self.peers.insert(peer, addresses);
        }
        event
    }

    /// Periodically removes expired half-open connections, and sends pending packets.
    pub(super) fn tick(&mut self, now: Timestamp, out: &mut Vec<u8>, mut send: impl FnMut(Addresses, &[u8])) {
        if now >= self.next_look {
            self.next_look = now + LOOK;
            if self.listener.poll_timeout().is_some_and(|t| t <= now) {
                self.listener.handle_timeout(now);
            }
        }
        while let Some(peer) = self.listener.poll_transmit(out) {
            if let Some(addresses) = self.peers.get(&peer) {
                send(*addresses, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_dccp::connection::Connection;
    use weir_dccp::packet::{ResetCode, parse};
    use weir_units::Ecn;

    #[test]
    fn a_pair_of_one_connection_takes_no_other() {
        let addresses = Addresses { peer: "127.0.0.1:9".parse().expect("an address"), local_ip: None };
        let now = Timestamp::from_secs(1);
        let mut request = Vec::new();
        let mut client = Connection::connect(Config::default(), now).expect("a configuration");
        client.poll_transmit(now, &mut request).expect("a Request");
        let datagram = Datagram { bytes: &request, payload: 0, ecn: Ecn::NotEct };
        let mut out = Vec::new();
        let mut code = |pairs, used| {
            let config = ListenerConfig { pairs, ..ListenerConfig::new(Config::default(), [0; 32]) };
            let mut handshakes = Handshakes::new(config, addresses.peer).expect("a listener");
            let event = handshakes.handle(now, addresses, false, || used, &datagram, &mut out);
            assert!(matches!(event, ListenerEvent::Reply));
            parse(&out, 0).expect("a packet").reset.map(|r| r.0)
        };
        assert_eq!(code(PairUse::One, true), Some(ResetCode::ENCAPSULATED_PORT_REUSE));
        assert_eq!((code(PairUse::One, false), code(PairUse::Many, true)), (None, None));
    }
}
