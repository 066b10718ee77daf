//! A server's port (RFC 4340, section 8.5, steps 2 and 3): Requests become connections, at once or, with Init Cookies,
//! once the other end has proved its address; packets without a connection are answered by a Reset.
//!
//! Pass it datagrams that belong to no open connection. It keeps half-open connections itself and returns them when
//! they open.
//!
//! Traffic to a possibly forged address is bounded: a Response is less than three times as long as its Request
//! (including the headers of IP and UDP), and all Resets together exceed the packets received by at most 4 KiB.

mod config;
mod cookie;

pub use config::{Cookies, ListenerConfig, PairUse};

use crate::connection::limit::RateLimit;
use crate::connection::{Connection, Datagram, State, reset_for};
use crate::option::DccpOption;
use crate::packet::{Packet, PacketType, ResetCode, ServiceCode, parse};
use cookie::{BadCookie, Flow, Secret, Used, datagram};
use std::collections::{BTreeMap, VecDeque};
use weir_cc::tunable::SetupError;
use weir_units::{Seq48, Timestamp};

/// The outcome of a datagram.
#[derive(Debug)]
pub enum ListenerEvent {
    /// The buffer holds a packet for the sender of the datagram.
    Reply,
    /// A connection has opened. The caller takes it over, with everything further from its address and ports; it may
    /// have received data and packets to send.
    Accepted(Box<Connection>),
    /// Nothing to do.
    Nothing,
}

/// Counters of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ListenerCounters {
    /// Requests, repeated ones too.
    pub requests: u64,
    /// Connections that have opened.
    pub accepted: u64,
    /// Responses with a cookie.
    pub cookies_sent: u64,
    /// Cookies that were not this listener's for that address.
    pub cookies_forged: u64,
    /// Cookies received too late, or a second time.
    pub cookies_stale: u64,
    /// Requests for another port or service.
    pub refused: u64,
    /// Requests while too many connections were half open.
    pub too_busy: u64,
    /// Half-open connections that were given up.
    pub given_up: u64,
    /// Packets of no connection.
    pub strays: u64,
    /// Datagrams that are no DCCP packets.
    pub malformed: u64,
    /// Resets sent.
    pub resets: u64,
    /// Resets that were due but suppressed by their rate limit.
    pub rate_limited: u64,
}

/// Initial byte credit of Resets, so that a single packet is answered that is shorter than its Reset.
const FIRST_CREDIT: usize = 1 << 12;
/// Maximum byte credit.
const MAX_CREDIT: usize = 1 << 16;
/// Maximum packets waiting for [`Listener::poll_transmit`]; further ones are dropped, like any lost packet.
const MAX_WAITING: usize = 256;

/// See the module documentation.
#[derive(Debug)]
pub struct Listener {
    config: ListenerConfig,
    secret: Secret,
    used: Used,
    half_open: BTreeMap<Flow, HalfOpen>,
    /// Packets other than replies.
    waiting: VecDeque<(u64, Vec<u8>)>,
    resets: RateLimit,
    /// Bytes received that no Reset has answered yet.
    credit: usize,
    busy: bool,
    counters: ListenerCounters,
    scratch: Vec<u8>,
}

/// A connection in RESPOND.
#[derive(Debug)]
struct HalfOpen {
    connection: Box<Connection>,
    give_up: Timestamp,
}

impl Listener {
    /// A listener in its initial state.
    ///
    /// # Errors
    /// Errors of [`Connection::connect`] for the connections' configuration.
    pub fn new(config: ListenerConfig) -> Result<Self, SetupError> {
        Connection::connect(config.connection.clone(), Timestamp::default())?;
        Ok(Self {
            secret: Secret::new(&config.key),
            used: Used::default(),
            half_open: BTreeMap::new(),
            waiting: VecDeque::new(),
            resets: RateLimit::new(config.resets_per_second),
            credit: FIRST_CREDIT,
            busy: false,
            counters: ListenerCounters::default(),
            scratch: Vec::new(),
            config,
        })
    }
    /// Its configuration.
    pub fn config(&self) -> &ListenerConfig {
        &self.config
    }
    /// Its counters.
    pub fn counters(&self) -> ListenerCounters {
        self.counters
    }
    /// Connections that are half open.
    pub fn half_open(&self) -> usize {
        self.half_open.len()
    }
    /// Refuses all new connections as Too Busy, or accepts them again: for an overloaded server.
    pub fn set_busy(&mut self, busy: bool) {
        self.busy = busy;
    }

    /// Processes a datagram of no open connection. `peer` identifies the pair of UDP addresses and ports that it was
    /// received on: the same number for the same pair throughout the listener's life. The contents of `out` are
    /// replaced.
    pub fn handle_datagram(
        &mut self,
        now: Timestamp,
        peer: u64,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> ListenerEvent {
        out.clear();
        let Some(packet) = self.read(datagram) else { return ListenerEvent::Nothing };
        let flow = (peer, packet.header.source_port, packet.header.destination_port);
        self.counters.requests += u64::from(packet.header.packet_type == PacketType::Request);
        if self.half_open.contains_key(&flow) {
            return self.continue_half_open(now, flow, datagram, out);
        }
        if packet.header.packet_type == PacketType::Request {
            return self.handle_request(now, flow, datagram, &packet, out);
        }
        let cookie = packet.options.iter().flatten().find_map(|o| match o {
            DccpOption::InitCookie(cookie) => Some(cookie),
            _ => None,
        });
        match cookie {
            Some(cookie) if flow.2 == self.config.connection.local_port => {
                self.handle_cookie(now, flow, datagram, &packet, cookie, out)
            }
            _ => {
                self.counters.strays += 1;
                self.reset(now, &packet, ResetCode::NO_CONNECTION, out)
            }
        }
    }

    /// Refuses a datagram whose UDP pair has an open connection with other DCCP ports, for sockets that allow one
    /// connection per pair ([`PairUse::One`]): Encapsulated Port Reuse (RFC 6773, section 3.8).
    pub fn refuse_reuse(&mut self, now: Timestamp, datagram: &Datagram<'_>, out: &mut Vec<u8>) -> ListenerEvent {
        out.clear();
        let Some(packet) = self.read(datagram) else { return ListenerEvent::Nothing };
        self.reset(now, &packet, ResetCode::ENCAPSULATED_PORT_REUSE, out)
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.half_open.values().map(|h| h.give_up).min()
    }
    /// The deadline has passed: gives up connections that were half open for too long. [`Self::poll_transmit`] returns
    /// their Resets.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        while let Some(flow) = self.half_open.iter().find(|(_, h)| h.give_up <= now).map(|(&flow, _)| flow) {
            let Some(mut half) = self.half_open.remove(&flow) else { return };
            self.counters.given_up += 1;
            half.connection.abort(now);
            self.keep_packets(now, flow.0, &mut half.connection);
        }
    }
    /// Writes the next packet that is no reply into `out`, replacing its contents, and returns its destination.
    pub fn poll_transmit(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let (peer, packet) = self.waiting.pop_front()?;
        *out = packet;
        Some(peer)
    }

    /// Steps 1 of section 8.5; the checksum is UDP's.
    fn read<'a>(&mut self, datagram: &Datagram<'a>) -> Option<Packet<'a>> {
        let packet = parse(datagram.bytes, datagram.payload).ok();
        match packet {
            Some(_) => self.credit = (self.credit + datagram.bytes.len()).min(MAX_CREDIT),
            None => self.counters.malformed += 1,
        }
        packet
    }

    fn handle_request(
        &mut self,
        now: Timestamp,
        flow: Flow,
        request: &Datagram<'_>,
        packet: &Packet<'_>,
        out: &mut Vec<u8>,
    ) -> ListenerEvent {
        let service = packet.service_code.unwrap_or(ServiceCode::INVALID);
        let known = self.config.connection.service_code == service || self.config.services.contains(&service);
        if flow.2 != self.config.connection.local_port {
            self.counters.refused += 1;
            return self.reset(now, packet, ResetCode::CONNECTION_REFUSED, out);
        }
        if service == ServiceCode::INVALID || !known {
            self.counters.refused += 1;
            return self.reset(now, packet, ResetCode::BAD_SERVICE_CODE, out);
        }
        let shares = self.half_open.range((flow.0, 0, 0)..=(flow.0, u16::MAX, u16::MAX)).next().is_some();
        if self.config.pairs == PairUse::One && shares {
            return self.reset(now, packet, ResetCode::ENCAPSULATED_PORT_REUSE, out);
        }
        let by_cookie = match self.config.cookies {
            Cookies::Never => false,
            Cookies::From(n) => self.half_open.len() >= n,
            Cookies::Always => true,
        };
        if self.busy || !by_cookie && self.half_open.len() >= self.config.most_half_open {
            self.counters.too_busy += 1;
            return self.reset(now, packet, ResetCode::TOO_BUSY, out);
        }
        if by_cookie {
            let mut cookie = std::mem::take(&mut self.scratch);
            let sealed = self.secret.seal(now, flow, packet, &mut cookie);
            let connection = sealed.and_then(|()| self.accept(now, flow, request, packet));
            let event = match connection {
                Some(mut connection) => {
                    connection.set_init_cookies(&[&cookie]);
                    let sent = connection.poll_transmit(now, out).is_some();
                    self.counters.cookies_sent += u64::from(sent && connection.state() == State::Respond);
                    self.reply(now, sent, connection.state(), out)
                }
                // More Changes than fit a cookie: no honest client has so many.
                None => {
                    self.counters.too_busy += 1;
                    self.reset(now, packet, ResetCode::TOO_BUSY, out)
                }
            };
            self.scratch = cookie;
            return event;
        }
        let Some(mut connection) = self.accept(now, flow, request, packet) else { return ListenerEvent::Nothing };
        let sent = connection.poll_transmit(now, out).is_some();
        let state = connection.state();
        if state == State::Respond {
            let give_up = now + self.config.half_open_timeout;
            self.half_open.insert(flow, HalfOpen { connection, give_up });
        }
        self.reply(now, sent, state, out)
    }

    /// A connection in RESPOND, or one that the Request's options have ended already.
    fn accept(
        &self,
        now: Timestamp,
        flow: Flow,
        request: &Datagram<'_>,
        packet: &Packet<'_>,
    ) -> Option<Box<Connection>> {
        let start = self.secret.start(flow, packet.header.sequence.extend(Seq48::default()));
        let mut config = self.config.connection.clone();
        config.service_code = packet.service_code?;
        (config.remote_port, config.seed) = (flow.1, start.seed);
        Connection::accept(config, now, request, Some(start.iss)).ok().map(Box::new)
    }

    /// Sends the first packet of a new connection: its Response, or a Reset that counts with the others.
    fn reply(&mut self, now: Timestamp, sent: bool, state: State, out: &mut Vec<u8>) -> ListenerEvent {
        if sent && (state == State::Respond || self.may_reset(now, out.len())) {
            return ListenerEvent::Reply;
        }
        out.clear();
        ListenerEvent::Nothing
    }

    fn continue_half_open(
        &mut self,
        now: Timestamp,
        flow: Flow,
        datagram: &Datagram<'_>,
        out: &mut Vec<u8>,
    ) -> ListenerEvent {
        let Some(mut half) = self.half_open.remove(&flow) else { return ListenerEvent::Nothing };
        half.connection.handle_datagram(now, datagram);
        match half.connection.state() {
            State::Respond | State::Closed | State::TimeWait => {
                let sent = half.connection.poll_transmit(now, out).is_some();
                self.keep_packets(now, flow.0, &mut half.connection);
                if half.connection.state() == State::Respond {
                    self.half_open.insert(flow, half);
                }
                if sent { ListenerEvent::Reply } else { ListenerEvent::Nothing }
            }
            _ => {
                self.counters.accepted += 1;
                ListenerEvent::Accepted(half.connection)
            }
        }
    }

    fn handle_cookie(
        &mut self,
        now: Timestamp,
        flow: Flow,
        datagram_in: &Datagram<'_>,
        packet: &Packet<'_>,
        cookie: &[u8],
        out: &mut Vec<u8>,
    ) -> ListenerEvent {
        let opened = self.secret.open(now, self.config.cookie_lifetime, flow, cookie);
        let request = match opened {
            Ok(_) if self.used.contains(cookie) => {
                self.counters.cookies_stale += 1;
                return self.reset(now, packet, ResetCode::NO_CONNECTION, out);
            }
            Ok(request) => request,
            Err(bad) => {
                let stale = bad == BadCookie::Stale;
                self.counters.cookies_stale += u64::from(stale);
                self.counters.cookies_forged += u64::from(!stale);
                return self.reset(now, packet, ResetCode::BAD_INIT_COOKIE, out);
            }
        };
        let request = datagram(&request);
        let connection = parse(request.bytes, 0).ok().and_then(|p| self.accept(now, flow, &request, &p));
        let Some(mut connection) = connection else { return ListenerEvent::Nothing };
        // It has been sent already, with the cookie.
        connection.poll_transmit(now, &mut self.scratch);
        connection.handle_datagram(now, datagram_in);
        match connection.state() {
            State::Respond | State::Closed | State::TimeWait => {
                if connection.poll_transmit(now, out).is_some() {
                    ListenerEvent::Reply
                } else {
                    ListenerEvent::Nothing
                }
            }
            _ => {
                self.used.insert(cookie);
                self.counters.accepted += 1;
                ListenerEvent::Accepted(connection)
            }
        }
    }

    /// Keeps packets other than the reply.
    fn keep_packets(&mut self, now: Timestamp, peer: u64, connection: &mut Connection) {
        let mut packet = Vec::new();
        while self.waiting.len() < MAX_WAITING && connection.poll_transmit(now, &mut packet).is_some() {
            self.waiting.push_back((peer, std::mem::take(&mut packet)));
        }
    }

    fn reset(&mut self, now: Timestamp, packet: &Packet<'_>, code: ResetCode, out: &mut Vec<u8>) -> ListenerEvent {
        if !reset_for(packet, code, [0; 3], "", out) {
            return ListenerEvent::Nothing;
        }
        if self.may_reset(now, out.len()) {
            return ListenerEvent::Reply;
        }
        out.clear();
        ListenerEvent::Nothing
    }

    fn may_reset(&mut self, now: Timestamp, bytes: usize) -> bool {
        let may = self.credit >= bytes && self.resets.take(now);
        if may {
            self.credit -= bytes;
            self.counters.resets += 1;
        } else {
            self.counters.rate_limited += 1;
        }
        may
    }
}

#[cfg(test)]
mod tests;
