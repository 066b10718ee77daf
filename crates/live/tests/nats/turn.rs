//! A TURN server in memory, which may lie.

use std::net::{IpAddr, SocketAddr};
use turn_client_proto::types::attribute::{
    ChannelNumber, ConnectionId, Data, Lifetime, XorPeerAddress, XorRelayedAddress,
};
use turn_client_proto::types::message::{
    ALLOCATE, CHANNEL_BIND, CONNECTION_ATTEMPT, CREATE_PERMISSION, DATA, REFRESH, SEND,
};
use turn_client_proto::types::stun::attribute::{ErrorCode, Nonce, Realm};
use turn_client_proto::types::stun::message::{
    IntegrityAlgorithm, LongTermKeyCredentials, Message, MessageClass, MessageWriteVec,
};
use turn_client_proto::types::stun::prelude::{MessageWrite, MessageWriteExt};
use weir_live::ice::RelayServer;
use weir_units::{TimeDelta, Timestamp};

/// Lifetime of an allocation and of a nonce, as of coturn.
const LIFETIME_S: u32 = 600;
const NONCE: TimeDelta = TimeDelta::from_secs(600);

/// A behaviour of the server in place of the honest one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Lie {
    None,
    /// It never answers.
    Silence,
    /// It takes no password, and names another realm each time.
    Realms,
    /// No nonce is ever new enough.
    Nonces,
    /// Allocations end at once, or never.
    Lifetime(u32),
    /// The address that it lends is somebody else's.
    Victim(SocketAddr),
    /// It sends this many datagrams of hosts without permission for each that arrives.
    Strangers(usize),
    /// It sends as many requests, which only relays of TCP have, each for another host.
    Requests(usize),
    /// Its answers are not protected by the password.
    Unprotected,
    /// No permission is given.
    Refusal,
}

#[derive(Debug)]
struct Allocation {
    client: SocketAddr,
    relayed: SocketAddr,
    permits: Vec<(IpAddr, Timestamp)>,
    channels: Vec<(u16, SocketAddr)>,
    until: Timestamp,
}

/// Source, destination, bytes.
type Sent = (SocketAddr, SocketAddr, Vec<u8>);

#[derive(Debug)]
pub(crate) struct TurnServer {
    pub at: SocketAddr,
    lie: Lie,
    allocations: Vec<Allocation>,
    /// Messages of clients, and datagrams passed on either way, those by a channel apart.
    pub asked: u64,
    pub passed: u64,
    pub by_channel: u64,
    count: u16,
}

impl TurnServer {
    pub(crate) fn new(lie: Lie) -> Self {
        let at = SocketAddr::from(([198, 51, 100, 2], 3_478));
        Self { at, lie, allocations: Vec::new(), asked: 0, passed: 0, by_channel: 0, count: 0 }
    }
    pub(crate) fn account(&self) -> RelayServer {
        RelayServer { address: self.at, user: "user".into(), password: "secret".into() }
    }
    pub(crate) fn allocations(&self, now: Timestamp) -> usize {
        self.allocations.iter().filter(|a| a.until > now).count()
    }
    pub(crate) fn permissions(&self, now: Timestamp) -> usize {
        self.allocations.iter().flat_map(|a| &a.permits).filter(|p| p.1 > now).count()
    }

    /// A datagram of a client.
    pub(crate) fn on_client(&mut self, now: Timestamp, from: SocketAddr, bytes: &[u8]) -> Vec<Sent> {
        self.asked += 1;
        let mut sent = Vec::new();
        match self.lie {
            Lie::Silence => return sent,
            Lie::Strangers(n) => {
                for _ in 0..n {
                    let peer = SocketAddr::from(([198, 18, (self.count >> 8) as u8, self.count as u8], 9));
                    self.count = self.count.wrapping_add(1);
                    sent.push((self.at, from, indication(peer, &[0x80; 900])));
                }
            }
            Lie::Requests(n) => {
                for _ in 0..n {
                    self.count = self.count.wrapping_add(1);
                    let mut m = Message::builder_request(CONNECTION_ATTEMPT, MessageWriteVec::new());
                    let id = m.transaction_id();
                    let peer = SocketAddr::from(([198, 18, (self.count >> 8) as u8, self.count as u8], 9));
                    m.add_attribute(&ConnectionId::new(u32::from(self.count))).expect("room");
                    m.add_attribute(&XorPeerAddress::new(peer, id)).expect("room");
                    sent.push((self.at, from, protected(m, true)));
                }
            }
            _ => {}
        }
        if bytes.first().is_some_and(|b| (0x40..0x50).contains(b)) {
            let channel = u16::from_be_bytes([bytes[0], bytes[1]]);
            let length = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
            let allocation = self.allocations.iter().find(|a| a.client == from && a.until > now);
            if let Some((a, (_, to))) = allocation.and_then(|a| Some((a, a.channels.iter().find(|c| c.0 == channel)?)))
            {
                self.passed += 1;
                self.by_channel += 1;
                sent.push((a.relayed, *to, bytes[4..4 + length].to_vec()));
            }
            return sent;
        }
        let Ok(m) = Message::from_bytes(bytes) else { return sent };
        if m.has_class(MessageClass::Indication) {
            if m.method() == SEND
                && let (Ok(to), Ok(data)) = (m.attribute::<XorPeerAddress>(), m.attribute::<Data<'_>>())
            {
                let to = to.addr(m.transaction_id());
                let allocation = self.allocations.iter().find(|a| a.client == from && a.until > now);
                if let Some(a) = allocation.filter(|a| a.permits.iter().any(|p| p.0 == to.ip() && p.1 > now)) {
                    self.passed += 1;
                    sent.push((a.relayed, to, data.data().to_vec()));
                }
            }
            return sent;
        }
        sent.push((self.at, from, self.answer(now, from, &m)));
        sent
    }

    fn answer(&mut self, now: Timestamp, from: SocketAddr, m: &Message<'_>) -> Vec<u8> {
        let nonce = format!("nonce{}", now.as_nanos() / NONCE.as_nanos());
        let given = m.attribute::<Nonce>().ok().map(|n| n.nonce().to_owned());
        let refuse = |code: u16, realm: &str, nonce: &str| {
            let mut e = Message::builder_error(m, MessageWriteVec::new());
            e.add_attribute(&ErrorCode::builder(code).build().expect("a code")).expect("room");
            e.add_attribute(&Realm::new(realm).expect("a realm")).expect("room");
            e.add_attribute(&Nonce::new(nonce).expect("a nonce")).expect("room");
            e.finish()
        };
        self.count = self.count.wrapping_add(1);
        if self.lie == Lie::Realms {
            return refuse(401, &format!("realm{}", self.count), &nonce);
        }
        if self.lie == Lie::Nonces && given.is_some() {
            return refuse(438, "realm", &format!("nonce-{}", self.count));
        }
        if given.is_none() || m.validate_integrity(&key().into()).is_err() {
            return refuse(401, "realm", &nonce);
        }
        if given.as_ref() != Some(&nonce) {
            return refuse(438, "realm", &nonce);
        }
        let mut done = Message::builder_success(m, MessageWriteVec::new());
        let id = done.transaction_id();
        let lifetime = if let Lie::Lifetime(s) = self.lie { s } else { LIFETIME_S };
        let until = now + TimeDelta::from_secs(i64::from(lifetime));
        let known = self.allocations.iter().position(|a| a.client == from);
        let peer = m.attribute::<XorPeerAddress>().ok().map(|p| p.addr(m.transaction_id()));
        match (m.method(), known) {
            (ALLOCATE, _) => {
                let port = 49_152 + self.allocations.len() as u16;
                let own = SocketAddr::new(self.at.ip(), port);
                let relayed = if let Lie::Victim(at) = self.lie { at } else { own };
                let (permits, channels) = (Vec::new(), Vec::new());
                self.allocations.push(Allocation { client: from, relayed, permits, channels, until });
                done.add_attribute(&XorRelayedAddress::new(relayed, id)).expect("room");
                done.add_attribute(&Lifetime::new(lifetime)).expect("room");
            }
            (REFRESH, Some(known)) => {
                let asked = m.attribute::<Lifetime>().map_or(LIFETIME_S, |l| l.seconds());
                self.allocations[known].until = if asked == 0 { now } else { until };
                done.add_attribute(&Lifetime::new(if asked == 0 { 0 } else { lifetime })).expect("room");
            }
            (CREATE_PERMISSION | CHANNEL_BIND, Some(known)) if peer.is_some() && self.lie != Lie::Refusal => {
                let (a, peer) = (&mut self.allocations[known], peer.expect("there is one"));
                a.permits.retain(|p| p.0 != peer.ip());
                a.permits.push((peer.ip(), now + TimeDelta::from_secs(300)));
                if let Ok(channel) = m.attribute::<ChannelNumber>() {
                    a.channels.retain(|c| c.1 != peer);
                    a.channels.push((channel.channel(), peer));
                }
            }
            _ => return refuse(403, "realm", &nonce),
        }
        protected(done, self.lie != Lie::Unprotected)
    }

    /// A datagram that has arrived at an address that was lent.
    pub(crate) fn on_peer(
        &mut self,
        now: Timestamp,
        relayed: SocketAddr,
        from: SocketAddr,
        bytes: &[u8],
    ) -> Option<Sent> {
        let a = self.allocations.iter().find(|a| a.relayed == relayed && a.until > now)?;
        a.permits.iter().find(|p| p.0 == from.ip() && p.1 > now)?;
        self.passed += 1;
        if let Some((channel, _)) = a.channels.iter().find(|c| c.1 == from) {
            self.by_channel += 1;
            let mut out = channel.to_be_bytes().to_vec();
            out.extend((bytes.len() as u16).to_be_bytes());
            out.extend(bytes);
            return Some((self.at, a.client, out));
        }
        Some((self.at, a.client, indication(from, bytes)))
    }
}

fn key() -> LongTermKeyCredentials {
    LongTermKeyCredentials::new("user".into(), "secret".into(), "realm".into())
}

fn protected(mut m: MessageWriteVec, is_protected: bool) -> Vec<u8> {
    if is_protected {
        m.add_message_integrity(&key().into(), IntegrityAlgorithm::Sha1).expect("room");
    }
    m.finish()
}

fn indication(peer: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut m = Message::builder_indication(DATA, MessageWriteVec::new());
    let id = m.transaction_id();
    m.add_attribute(&XorPeerAddress::new(peer, id)).expect("room");
    m.add_attribute(&Data::new(bytes)).expect("room");
    m.finish()
}
