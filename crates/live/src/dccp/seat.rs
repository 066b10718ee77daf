//! The seat of a port's listener: what stands for addresses towards it, and what answers while nobody listens.

use super::error::DccpError;
use super::port::{overhead, random};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, SocketAddr};
use weir_dccp::connection::{Config, Datagram, reset_for};
use weir_dccp::listener::{Listener, ListenerConfig, ListenerEvent, PairUse};
use weir_dccp::packet::{PacketType, ResetCode, parse};
use weir_units::{TimeDelta, Timestamp};

/// Resets a second for packets of no connection (RFC 4340, section 8.1.3, has this as an example).
const RESETS_PER_SECOND: u32 = 1_024;
/// Addresses remembered for a listener, several for each connection that may be half open.
const MAX_PEERS: usize = 4_096;
/// How often half-open connections are looked through for those that have been so for too long.
const LOOK: TimeDelta = TimeDelta::from_secs(1);

/// Where a datagram came from, and the address of this host that it was sent to, of several.
pub(super) type Way = (SocketAddr, Option<IpAddr>);

#[derive(Debug)]
pub(super) struct Seat {
    listener: Listener,
    hasher: RandomState,
    /// What the listener's opaque peers stand for.
    peers: HashMap<u64, Way>,
    next_look: Timestamp,
}

impl Seat {
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

    /// A datagram of no connection. `is_used` tells whether one with other DCCP ports came the same way.
    pub(super) fn handle(
        &mut self,
        now: Timestamp,
        way: Way,
        is_busy: bool,
        is_used: impl FnOnce() -> bool,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> ListenerEvent {
        if self.listener.config().pairs == PairUse::One && is_used() {
            return self.listener.refuse_reuse(now, datagram, out);
        }
        let peer = self.hasher.hash_one(way);
        self.listener.set_busy(is_busy);
        let event = self.listener.handle_datagram(now, peer, datagram, out);
        if self.listener.half_open() == 0 {
            self.peers.clear();
        } else if self.peers.len() < MAX_PEERS || self.peers.contains_key(&peer) {
            self.peers.insert(peer, way);
        }
        event
    }

    /// Gives up what has been half open for too long, every so often, and sends what else there is to be sent.
    pub(super) fn tick(&mut self, now: Timestamp, out: &mut Vec<u8>, mut send: impl FnMut(Way, &[u8])) {
        if now >= self.next_look {
            self.next_look = now + LOOK;
            if self.listener.poll_timeout().is_some_and(|t| t <= now) {
                self.listener.handle_timeout(now);
            }
        }
        while let Some(peer) = self.listener.poll_transmit(out) {
            if let Some(way) = self.peers.get(&peer) {
                send(*way, out);
            }
        }
    }
}

/// What answers while nobody listens.
#[derive(Debug, Default)]
pub(super) struct Resets {
    second: i64,
    count: u32,
}

impl Resets {
    /// Whether the buffer holds an answer to a datagram of no connection.
    pub(super) fn answer(&mut self, now: Timestamp, datagram: &Datagram<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        let Ok(packet) = parse(datagram.bytes, datagram.payload) else { return false };
        let second = now.as_nanos() / TimeDelta::from_secs(1).as_nanos();
        if second != self.second {
            *self = Self { second, count: 0 };
        }
        self.count += 1;
        let is_request = packet.header.packet_type == PacketType::Request;
        let code = if is_request { ResetCode::CONNECTION_REFUSED } else { ResetCode::NO_CONNECTION };
        self.count <= RESETS_PER_SECOND && reset_for(&packet, code, [0; 3], "", out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_dccp::connection::Connection;
    use weir_units::Ecn;

    #[test]
    fn a_pair_of_one_connection_takes_no_other() {
        let way = ("127.0.0.1:9".parse().expect("an address"), None);
        let now = Timestamp::from_secs(1);
        let mut request = Vec::new();
        let mut client = Connection::connect(Config::default(), now).expect("a configuration");
        client.poll_transmit(now, &mut request).expect("a Request");
        let datagram = Datagram { bytes: &request, payload: 0, ecn: Ecn::NotEct };
        let mut out = Vec::new();
        let mut code = |pairs, used| {
            let config = ListenerConfig { pairs, ..ListenerConfig::new(Config::default(), [0; 32]) };
            let mut seat = Seat::new(config, way.0).expect("a seat");
            let event = seat.handle(now, way, false, || used, &datagram, &mut out);
            assert!(matches!(event, ListenerEvent::Reply));
            parse(&out, 0).expect("a packet").reset.map(|r| r.0)
        };
        assert_eq!(code(PairUse::One, true), Some(ResetCode::ENCAPSULATED_PORT_REUSE));
        assert_eq!((code(PairUse::One, false), code(PairUse::Many, true)), (None, None));
    }
}
