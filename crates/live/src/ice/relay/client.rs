//! The client of one allocation, by `turn-client-proto`.

use super::event::{Event, Received};
use std::net::{IpAddr, SocketAddr};
use turn_client_proto::api::{TurnConfig, TurnEvent, TurnPollRet, TurnRecvRet};
use turn_client_proto::prelude::TurnClientApi;
use turn_client_proto::stun::Instant;
use turn_client_proto::stun::agent::Transmit;
use turn_client_proto::types::{AddressFamily, TransportType, TurnCredentials};
use turn_client_proto::udp::TurnClientUdp;
use weir_units::{TimeDelta, Timestamp};

const UDP: TransportType = TransportType::Udp;

#[derive(Debug)]
pub(super) struct Client {
    client: TurnClientUdp,
    local: SocketAddr,
    server: SocketAddr,
}

fn instant(at: Timestamp) -> Instant {
    Instant::from_nanos(at.as_nanos())
}

impl Client {
    /// Asks for an allocation.
    pub(super) fn allocate(local: SocketAddr, server: SocketAddr, user: &str, password: &str) -> Self {
        let mut config = TurnConfig::new(TurnCredentials::new(user, password));
        let family = if local.is_ipv4() { AddressFamily::IPV4 } else { AddressFamily::IPV6 };
        config.set_address_family(family);
        Self { client: TurnClientUdp::allocate(local, server, config), local, server }
    }

    /// Asks for a permission; a refusal is an event.
    pub(super) fn permit(&mut self, host: IpAddr, at: Timestamp) {
        let _ = self.client.create_permission(UDP, host, instant(at));
    }
    /// Asks for a channel; without one, data go by indications.
    pub(super) fn bind(&mut self, peer: SocketAddr, at: Timestamp) {
        let _ = self.client.bind_channel(UDP, peer, instant(at));
    }
    pub(super) fn has_permission(&self, host: IpAddr) -> bool {
        self.client.have_permission(UDP, host)
    }
    /// The datagram for the server that passes these bytes on.
    pub(super) fn send(&mut self, to: SocketAddr, bytes: &[u8], at: Timestamp) -> Option<Vec<u8>> {
        self.client.send_to(UDP, to, bytes, instant(at)).ok().flatten().map(|t| t.build().data)
    }
    pub(super) fn recv(&mut self, bytes: &[u8], at: Timestamp) -> Received {
        match self.client.recv(Transmit::new(bytes, UDP, self.server, self.local), instant(at)) {
            TurnRecvRet::PeerData(data) => Received::Data(data.peer, data.data().to_vec()),
            TurnRecvRet::Handled => Received::Handled,
            _ => Received::Ignored,
        }
    }
    /// Gives the allocation back; `false` if there is none.
    pub(super) fn delete(&mut self, at: Timestamp) -> bool {
        self.client.delete(instant(at)).is_ok()
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        loop {
            return Some(match self.client.poll_event()? {
                TurnEvent::AllocationCreated(_, at) => Event::Allocated(at),
                TurnEvent::AllocationCreateFailed(_) => Event::NotAllocated,
                TurnEvent::PermissionCreated(_, host) => Event::Permitted(host),
                TurnEvent::PermissionCreateFailed(_, host) => Event::NotPermitted(host),
                TurnEvent::ChannelCreateFailed(_, peer) => Event::NoChannel(peer),
                _ => continue,
            });
        }
    }
    pub(super) fn poll_transmit(&mut self, at: Timestamp) -> Option<Vec<u8>> {
        self.client.poll_transmit(instant(at)).map(|t| t.data.to_vec())
    }
    /// The time until it wants to be asked again; `None` if the allocation is over.
    pub(super) fn poll(&mut self, at: Timestamp) -> Option<TimeDelta> {
        let now = instant(at);
        let TurnPollRet::WaitUntil(due) = self.client.poll(now) else { return None };
        let wait = due.saturating_duration_since(now).as_nanos();
        Some(TimeDelta::from_nanos(i64::try_from(wait).unwrap_or(i64::MAX)))
    }
}
