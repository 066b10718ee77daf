//! A relayed address of one socket (TURN, RFC 8656): its allocation, permissions and channels by the library
//! `turn-client-proto`, with bounds on what a server can cause.
//!
//! The library checks the server's answers by the password. It is given no more than that of a message: requests of a server, which
//! only relays of TCP have, are dropped before, since each would take memory.

#[cfg(feature = "turn")]
mod client;
#[cfg(not(feature = "turn"))]
#[path = "relay/no_client.rs"]
mod client;
#[cfg_attr(not(feature = "turn"), expect(dead_code, reason = "without a client nothing is received"))]
mod event;

use super::candidate::{is_of_an_end, is_public};
use super::stun::is_stun;
use client::Client;
use event::{Event, Received};
use serde::Serialize;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use weir_units::{TimeDelta, Timestamp};

/// Hosts with which an allocation exchanges datagrams (permissions, section 9), and addresses with a channel (section 12).
const MAX_PEERS: usize = 64;
const MAX_CHANNELS: usize = 16;
/// Datagrams that wait for a permission, and those that wait to be sent.
const MAX_HELD: usize = 16;
const MAX_WAITING: usize = 64;
/// Messages to the server for one that has arrived, or one timer.
const MAX_STEPS: usize = 16;
/// Least time between two looks at the library's timers, so that no answer makes them busy (calibrated: below the library's
/// 50 ms between requests).
const LEAST_WAIT: TimeDelta = TimeDelta::from_millis(5);
/// The server has this long for an allocation (RFC 8489, section 6.2.1: a request is given up after 39.5 s).
const PATIENCE: TimeDelta = TimeDelta::from_secs(40);

/// Answers to Allocate, Refresh, CreatePermission and ChannelBind requests, and Data indications (section 17).
const METHODS: [u16; 4] = [0x003, 0x004, 0x008, 0x009];
const DATA_INDICATION: u16 = 0x0017;

/// A TURN server, and this end's account there.
#[derive(Clone, PartialEq, Eq)]
pub struct RelayServer {
    /// Its address, reached by UDP.
    pub address: SocketAddr,
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for RelayServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RelayServer").field("address", &self.address).field("user", &self.user).finish_non_exhaustive()
    }
}

/// How far an allocation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RelayState {
    /// The server is asked.
    Asking,
    /// There is one.
    Ready,
    /// The server refused, did not answer, or let it expire.
    Failed,
    /// It was given back.
    Returned,
}

/// Datagrams of a relay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelayCounters {
    /// Datagrams passed to the server for other ends.
    pub sent: u64,
    /// Datagrams of other ends by the server.
    pub received: u64,
    /// Datagrams of other ends to which this one has given no permission, and messages that no request waits for.
    pub unexpected: u64,
    /// Datagrams that were dropped since there was no permission yet, or too many, or for a private address, which a server at a
    /// public one does not reach.
    pub dropped: u64,
}

/// A datagram from a relay's server, after the relay has looked at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromServer {
    /// No message of TURN.
    Other,
    /// A message for this end.
    Taken,
    /// A datagram of another end, by its address as the server sees it.
    Data {
        /// The address.
        from: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
}

/// One allocation at one server.
#[derive(Debug)]
pub struct Relay {
    client: Client,
    local: SocketAddr,
    server: SocketAddr,
    state: RelayState,
    relayed: Option<SocketAddr>,
    /// The allocation's clock less the caller's.
    offset: TimeDelta,
    begun: Timestamp,
    next: Timestamp,
    peers: Vec<IpAddr>,
    channels: Vec<SocketAddr>,
    held: VecDeque<(SocketAddr, Vec<u8>)>,
    out: VecDeque<Vec<u8>>,
    counters: RelayCounters,
    is_closing: bool,
}

/// Whether a datagram of the server is data by a channel (section 12.4), an answer, or a Data indication.
fn is_expected(bytes: &[u8]) -> bool {
    let Some(kind) = bytes.first_chunk().map(|b| u16::from_be_bytes(*b)) else { return false };
    // RFC 8489, section 5: class bits 0x0110, here 0x0100 for a success and 0x0110 for an error.
    let is_answer = kind & 0x0100 != 0 && METHODS.contains(&(kind & !0x0110));
    is_channel(bytes) || is_stun(bytes) && (is_answer || kind == DATA_INDICATION)
}

fn is_channel(bytes: &[u8]) -> bool {
    bytes.len() >= 4 && (0x40..0x50).contains(&bytes[0])
}

impl Relay {
    /// Asks a server for an allocation for this socket from now on.
    pub fn new(local: SocketAddr, server: &RelayServer, now: Timestamp) -> Self {
        Self {
            client: Client::allocate(local, server.address, &server.user, &server.password),
            local,
            server: server.address,
            state: RelayState::Asking,
            relayed: None,
            offset: TimeDelta::ZERO,
            begun: now,
            next: now,
            peers: Vec::new(),
            channels: Vec::new(),
            held: VecDeque::new(),
            out: VecDeque::new(),
            counters: RelayCounters::default(),
            is_closing: false,
        }
    }

    /// The socket's address.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }
    /// The server's.
    pub const fn server(&self) -> SocketAddr {
        self.server
    }
    /// How far the allocation is.
    pub const fn state(&self) -> RelayState {
        self.state
    }
    /// The address at which other ends reach this one, while there is an allocation.
    pub const fn relayed(&self) -> Option<SocketAddr> {
        self.relayed
    }
    /// Datagrams so far.
    pub const fn counters(&self) -> RelayCounters {
        self.counters
    }
    /// From now on times are of a clock that is this much behind.
    pub fn set_clock(&mut self, behind: TimeDelta) {
        self.offset += behind;
        self.next = self.next - behind;
        self.begun = self.begun - behind;
    }

    /// A time by the allocation's clock.
    fn own(&self, now: Timestamp) -> Timestamp {
        now + self.offset
    }

    /// Whether the server can have a way to this host. One at a public address has none to private networks, each of which may be
    /// anywhere; coturn closes an allocation if the system refuses to send there.
    fn can_reach(&self, host: IpAddr) -> bool {
        host.is_ipv4() == self.local.is_ipv4() && (is_public(host) || !is_public(self.server.ip()))
    }

    /// Datagrams may be exchanged with this host. Beyond the bound they are not, nor with hosts of private networks if the server's
    /// address is public.
    pub fn permit(&mut self, host: IpAddr, now: Timestamp) {
        let fits = self.can_reach(host) && self.peers.len() < MAX_PEERS;
        if self.state == RelayState::Ready && fits && !self.peers.contains(&host) {
            self.peers.push(host);
            self.client.permit(host, self.own(now));
            self.step(now);
        }
    }
    /// Media go to this address: a channel saves 32 bytes a datagram.
    pub fn prefer(&mut self, peer: SocketAddr, now: Timestamp) {
        if self.state == RelayState::Ready && self.channels.len() < MAX_CHANNELS && !self.channels.contains(&peer) {
            self.channels.push(peer);
            self.client.bind(peer, self.own(now));
            self.step(now);
        }
    }

    /// The datagram that passes these bytes on to an end. `None` if there is no allocation, or no permission yet: then it
    /// is sent once there is one, if few are waiting.
    pub fn wrap(&mut self, now: Timestamp, to: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
        let at = self.own(now);
        if self.state != RelayState::Ready || !self.can_reach(to.ip()) {
            self.counters.dropped += 1;
            return None;
        }
        if !self.client.has_permission(to.ip()) {
            self.permit(to.ip(), now);
            if self.held.len() >= MAX_HELD {
                self.held.pop_front();
                self.counters.dropped += 1;
            }
            self.held.push_back((to, bytes.to_vec()));
            return None;
        }
        let sent = self.client.send(to, bytes, at);
        let count = if sent.is_some() { &mut self.counters.sent } else { &mut self.counters.dropped };
        *count += 1;
        sent
    }

    /// Takes a datagram that has come from the server.
    pub fn handle_datagram(&mut self, now: Timestamp, bytes: &[u8]) -> FromServer {
        if !is_stun(bytes) && !is_channel(bytes) {
            return FromServer::Other;
        }
        let at = self.own(now);
        let is_read = is_expected(bytes) && !self.is_over();
        match if is_read { self.client.recv(bytes, at) } else { Received::Ignored } {
            Received::Data(from, bytes) if self.peers.contains(&from.ip()) => {
                self.counters.received += 1;
                return FromServer::Data { from, bytes };
            }
            Received::Handled => self.step(now),
            Received::Data(..) | Received::Ignored => self.counters.unexpected += 1,
        }
        FromServer::Taken
    }

    /// Timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        if self.state == RelayState::Asking && now - self.begun > PATIENCE {
            self.fail();
        }
        if now >= self.next {
            self.step(now);
        }
    }

    /// When [`Self::handle_timeout`] is due; `None` without an allocation.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        (!self.is_over()).then_some(self.next)
    }

    /// The next datagram for the server, from the socket.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// The allocation is no longer needed; one message says so to the server.
    pub fn close(&mut self, now: Timestamp) {
        if self.state == RelayState::Ready && !self.is_closing && self.client.delete(self.own(now)) {
            (self.is_closing, self.relayed) = (true, None);
            self.held.clear();
            self.step(now);
        }
    }

    const fn is_over(&self) -> bool {
        matches!(self.state, RelayState::Failed | RelayState::Returned)
    }
    fn fail(&mut self) {
        let state = if self.is_closing { RelayState::Returned } else { RelayState::Failed };
        (self.state, self.relayed) = (state, None);
        self.held.clear();
    }

    /// Takes what the library has to say and to send.
    fn step(&mut self, now: Timestamp) {
        if self.is_over() {
            return;
        }
        let at = self.own(now);
        let mut wait = TimeDelta::ZERO;
        for _ in 0..MAX_STEPS {
            while let Some(event) = self.client.poll_event() {
                self.on_event(event, now);
            }
            let sent = self.client.poll_transmit(at);
            let has_sent = sent.is_some();
            if let Some(bytes) = sent {
                self.push(bytes);
            }
            let Some(until) = self.client.poll(at) else {
                self.fail();
                return;
            };
            wait = until;
            if wait > TimeDelta::ZERO && !has_sent {
                break;
            }
        }
        self.next = now + wait.max(LEAST_WAIT).min(TimeDelta::from_secs(60));
    }

    fn push(&mut self, bytes: Vec<u8>) {
        if self.out.len() >= MAX_WAITING {
            self.out.pop_front();
        }
        self.out.push_back(bytes);
    }

    fn on_event(&mut self, event: Event, now: Timestamp) {
        match event {
            Event::Allocated(at) if self.state == RelayState::Asking => {
                // A server that names an address at which no end can be has no other one to offer.
                if is_of_an_end(at) && at.is_ipv4() == self.local.is_ipv4() {
                    (self.state, self.relayed) = (RelayState::Ready, Some(at));
                } else {
                    self.fail();
                }
            }
            Event::NotAllocated => self.fail(),
            Event::Permitted(host) => {
                let all = std::mem::take(&mut self.held);
                let (free, held): (VecDeque<_>, VecDeque<_>) = all.into_iter().partition(|(to, _)| to.ip() == host);
                self.held = held;
                for (to, bytes) in free {
                    if let Some(bytes) = self.wrap(now, to, &bytes) {
                        self.push(bytes);
                    }
                }
            }
            // The host stays in the list, so that a server that refuses is asked once.
            Event::NotPermitted(host) => self.held.retain(|(to, _)| to.ip() != host),
            Event::NoChannel(peer) => self.channels.retain(|known| *known != peer),
            Event::Allocated(_) => {}
        }
    }
}
