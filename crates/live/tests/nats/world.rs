//! Two ends of a call, each behind NATs, with a STUN server between them, in memory: ICE and the session as they are live,
//! and every datagram under way for a fixed time.

use crate::turn::{Lie, TurnServer};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use weir_cc::{Limits, Registry, Setup};
use weir_live::ice::stun::{answer, is_stun};
use weir_live::ice::{AgentConfig, Arrival, Gather, IceConfig, IceEvent, IcePaths, Secret, Stage};
use weir_media::PerfectCodec;
use weir_path::{Nat, NatConfig};
use weir_session::{CallPlan, Control, Datagram, EndConfig, EndName, Endpoint, Handover, Kind, Outcome, PathConfig};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};

/// Ways of telling the other end a new interface's addresses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Announced {
    /// In multipath RTCP.
    InBand,
    /// In SDP, by this many exchanges of offer and answer over a signalling path of this one-way delay.
    OutOfBand { exchanges: i64, delay: TimeDelta },
}

/// The times of a world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delays {
    /// One way between the ends.
    pub ends: TimeDelta,
    /// One way to the STUN server.
    pub server: TimeDelta,
}

/// The result of a trial, since the second interface appeared; `None` for what did not happen.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Found {
    /// A pair of addresses was nominated at the end with the new interface.
    pub nominated: Option<TimeDelta>,
    /// The first media packet arrived on it.
    pub media: Option<TimeDelta>,
}

/// Messages that are kept.
const MAX_TAP: usize = 256;
const SERVER: ([u8; 4], u16) = ([198, 51, 100, 1], 3_478);

fn server() -> SocketAddr {
    SERVER.into()
}

/// A socket of an end: its address there, and the NAT before it.
#[derive(Clone, Copy, Debug)]
struct Socket {
    end: usize,
    at: SocketAddr,
    nat: Option<usize>,
}

pub(crate) struct End {
    pub ice: IcePaths,
    pub call: Endpoint,
    /// This end's address and the other's, by path.
    pub routes: Vec<Option<(SocketAddr, SocketAddr)>>,
    pub events: Vec<(Timestamp, IceEvent)>,
    /// Media packets received by path, and when the first was.
    pub received: [u64; 4],
    pub first: [Option<Timestamp>; 4],
    pub refused_paths: u32,
}

type Flight = Reverse<(Timestamp, u64, SocketAddr, SocketAddr, Vec<u8>, u32)>;

pub(crate) struct World {
    pub ends: [End; 2],
    pub nats: Vec<Nat>,
    sockets: Vec<Socket>,
    flights: BinaryHeap<Flight>,
    count: u64,
    pub now: Timestamp,
    delays: Delays,
    /// Sockets that lose everything.
    pub dead: Vec<SocketAddr>,
    pub in_band: bool,
    /// Messages of STUN under way, the last ones: outer source, destination, bytes.
    pub tap: Vec<(SocketAddr, SocketAddr, Vec<u8>)>,
    /// The server's answer in place of the truth.
    lie: Option<SocketAddr>,
    pub turn: TurnServer,
    seed: u64,
}

fn control(seed: u64, now: Timestamp) -> Control {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(1) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(300), now, seed, params: vec![] };
    Control::new(&Registry::builtin(), "gcc", &setup).expect("built in")
}

impl World {
    /// A call of one path: the first end at a public address, the other one behind this NAT if there is one.
    pub(crate) fn new(other: Option<NatConfig>, delays: Delays, agent: AgentConfig, seed: u64) -> Self {
        Self::with_server(other, delays, agent, seed, None)
    }

    /// Likewise with a TURN server, that may lie, for both ends; or for relays alone.
    pub(crate) fn with_relays(other: Option<NatConfig>, delays: Delays, seed: u64, lie: Lie, relay_only: bool) -> Self {
        Self::made(other, delays, AgentConfig::default(), seed, None, Some((lie, relay_only)))
    }

    /// Likewise with a server that tells everybody this address.
    pub(crate) fn with_server(
        other: Option<NatConfig>,
        delays: Delays,
        agent: AgentConfig,
        seed: u64,
        lie: Option<SocketAddr>,
    ) -> Self {
        Self::made(other, delays, agent, seed, lie, None)
    }

    fn made(
        other: Option<NatConfig>,
        delays: Delays,
        agent: AgentConfig,
        seed: u64,
        lie: Option<SocketAddr>,
        relays: Option<(Lie, bool)>,
    ) -> Self {
        let turn = TurnServer::new(relays.map_or(Lie::None, |r| r.0));
        let now = Timestamp::ZERO;
        let source = PerfectCodec::frames(TimeDelta::from_millis(33), now).into();
        let config = EndConfig { multipath: true, seed, ..EndConfig::default() };
        let name = EndName { cname: "b".into(), seed: 100 + seed };
        let mut plan = CallPlan::of_source(control(seed, now), source, config, name);
        (plan.sender.multipath, plan.receiver.multipath) = (true, true);
        let (a, b) = plan.into_ends(now).expect("one stream");
        let ice = |n: u8| {
            let mut octets = [n; 32];
            octets[..8].copy_from_slice(&seed.to_be_bytes());
            let secret = Secret::new(octets);
            IcePaths::new(IceConfig {
                secret,
                is_controlling: n == 0,
                servers: vec![server()],
                relays: relays.map(|_| turn.account()).into_iter().collect(),
                relay_only: relays.is_some_and(|r| r.1),
                agent,
            })
        };
        let end = |call, ice| End {
            ice,
            call,
            routes: vec![],
            events: vec![],
            received: [0; 4],
            first: [None; 4],
            refused_paths: 0,
        };
        let mut world = Self {
            ends: [end(a, ice(0)), end(b, ice(1))],
            nats: Vec::new(),
            sockets: Vec::new(),
            flights: BinaryHeap::new(),
            count: 0,
            now,
            delays,
            dead: Vec::new(),
            in_band: true,
            tap: Vec::new(),
            lie,
            turn,
            seed,
        };
        let a0 = world.add_socket(0, "192.0.2.1:5000", None);
        let b0 = world.add_socket(1, "10.1.0.2:5000", other);
        world.ends[0].ice.add_interface(a0, now).expect("room");
        world.ends[1].ice.add_interface(b0, now).expect("room");
        // Descriptions are exchanged once the server has answered.
        world.run_until(now + TimeDelta::from_millis(500));
        for n in [0, 1] {
            let [x, y] = &mut world.ends;
            let (own, other) = if n == 0 { (x, y) } else { (y, x) };
            let (credentials, candidates) = (other.ice.credentials().clone(), other.ice.candidates());
            own.ice.set_remote(&credentials, &candidates, world.now);
        }
        world
    }

    /// A socket of an end, behind a NAT of its own if this is one.
    pub(crate) fn add_socket(&mut self, end: usize, at: &str, nat: Option<NatConfig>) -> SocketAddr {
        let at = at.parse().expect("an address");
        let nat = nat.map(|config| {
            let n = self.nats.len();
            self.nats.push(Nat::new(config, [203, 0, 113, n as u8 + 1].into(), self.seed + n as u64));
            n
        });
        self.sockets.push(Socket { end, at, nat });
        at
    }

    pub(crate) fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>, payload: u32) {
        let Some(socket) = self.sockets.iter().find(|s| s.at == from).copied() else { return };
        if self.dead.contains(&from) {
            return;
        }
        let source = socket.nat.map_or(from, |n| self.nats[n].outbound(self.now, from, to));
        if is_stun(&bytes) {
            if self.tap.len() >= MAX_TAP {
                self.tap.remove(0);
            }
            self.tap.push((source, to, bytes.clone()));
        }
        self.launch(source, to, bytes, payload);
    }

    /// A datagram from this outer address.
    pub(crate) fn launch(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>, payload: u32) {
        let is_server = [to.ip(), from.ip()].iter().any(|ip| *ip == server().ip() || *ip == self.turn.at.ip());
        let delay = if is_server { self.delays.server } else { self.delays.ends };
        self.count += 1;
        self.flights.push(Reverse((self.now + delay, self.count, from, to, bytes, payload)));
    }

    fn arrive(&mut self, from: SocketAddr, to: SocketAddr, mut bytes: Vec<u8>, payload: u32) {
        if to == server() {
            if let Some(answered) = answer(&bytes, self.lie.unwrap_or(from)) {
                self.launch(to, from, answered, 0);
            }
            return;
        }
        if to.ip() == self.turn.at.ip() {
            let sent = if to == self.turn.at {
                self.turn.on_client(self.now, from, &bytes)
            } else {
                self.turn.on_peer(self.now, to, from, &bytes).into_iter().collect()
            };
            for (from, to, bytes) in sent {
                self.launch(from, to, bytes, payload);
            }
            return;
        }
        let inside = match self.nats.iter_mut().position(|n| n.external() == to.ip()) {
            Some(n) => self.nats[n].inbound(self.now, from, to),
            None => self.sockets.iter().find(|s| s.at == to && s.nat.is_none()).map(|s| s.at),
        };
        let Some(at) = inside.filter(|at| !self.dead.contains(at)) else { return };
        let Some(end) = self.sockets.iter().find(|s| s.at == at).map(|s| s.end) else { return };
        let now = self.now;
        let end = &mut self.ends[end];
        let (at, from) = match end.ice.handle_datagram(now, at, from, &bytes) {
            Arrival::Taken => return,
            Arrival::Other => (at, from),
            Arrival::Relayed { local, from, bytes: inner } => {
                bytes = inner;
                (local, from)
            }
        };
        let is_here = |r: &Option<(SocketAddr, SocketAddr)>| *r == Some((at, from));
        let at_socket = |r: &Option<(SocketAddr, SocketAddr)>| r.is_some_and(|r| r.0 == at);
        let found = end.routes.iter().position(is_here).or_else(|| end.routes.iter().position(at_socket));
        let Some(path) = found else { return };
        bytes.resize(bytes.len() + payload as usize, 0);
        let datagram = Datagram { path: PathId::new(path as u8), ..Datagram::new(&bytes, Ecn::NotEct) };
        let outcome = end.call.handle_datagram_from(now, &datagram, from);
        if matches!(outcome, Outcome::Rtcp(r) if r.offers > 0) {
            let (offered, restarts) =
                (end.call.remote().offered_addresses().to_vec(), end.call.remote().ice_restarts());
            for (path, count) in restarts.into_iter().enumerate() {
                end.ice.follow_restart(path, count, now);
            }
            end.ice.on_offered(&offered, now);
        }
        if outcome.is_rtp() {
            end.received[path] += 1;
            end.first[path].get_or_insert(now);
        }
    }

    /// Everything that is due at the current time, at both ends.
    fn work(&mut self) {
        let now = self.now;
        for n in [0, 1] {
            loop {
                let end = &mut self.ends[n];
                end.ice.handle_timeout(now);
                let mut sent = Vec::new();
                while let Some(t) = end.ice.poll_transmit() {
                    sent.push((t.from, t.to, t.bytes, 0));
                }
                while let Some(event) = end.ice.poll_event() {
                    end.events.push((now, event));
                    let in_band = self.in_band && !end.routes.is_empty();
                    on_event(end, event, in_band, now);
                }
                end.call.handle_timeout(now);
                let mut out = Vec::new();
                while end.routes.first().is_some_and(Option::is_some)
                    && let Some(t) = end.call.poll_transmit(now, &mut out)
                {
                    if let Some(Some((from, to))) = end.routes.get(t.path.index()).copied() {
                        let payload = if matches!(t.rtp, Some((_, Kind::Media))) { t.payload } else { 0 };
                        let wrapped = end.ice.wrap(now, from, to, &out);
                        sent.extend(wrapped.map(|t| (t.from, t.to, t.bytes, payload)));
                    }
                }
                if sent.is_empty() {
                    break;
                }
                sent.into_iter().for_each(|(from, to, bytes, payload)| self.send(from, to, bytes, payload));
            }
        }
    }

    pub(crate) fn run_until(&mut self, end: Timestamp) {
        loop {
            self.work();
            let mut at = self.flights.peek().map_or(Timestamp::MAX, |f| f.0.0);
            for e in &mut self.ends {
                let call =
                    e.routes.first().is_some_and(Option::is_some).then(|| e.call.poll_timeout(self.now)).flatten();
                at = e.ice.poll_timeout().into_iter().chain(call).fold(at, Timestamp::min);
            }
            if at >= end {
                self.now = end;
                return;
            }
            // A deadline in the past would repeat the same instant without end.
            self.now = at.max(self.now + TimeDelta::from_micros(1));
            while self.flights.peek().is_some_and(|f| f.0.0 <= self.now) {
                let Some(Reverse((_, _, from, to, bytes, payload))) = self.flights.pop() else { break };
                self.arrive(from, to, bytes, payload);
            }
        }
    }

    /// An interface appears at the first end, behind this NAT; it is announced to the other end, and media have up to 10 s to
    /// arrive on it.
    pub(crate) fn second_path(&mut self, nat: NatConfig, way: Announced) -> Found {
        let appeared = self.now;
        let at = self.add_socket(0, "10.0.0.7:6000", Some(nat));
        match way {
            Announced::InBand => _ = self.ends[0].ice.add_interface(at, appeared).expect("room"),
            Announced::OutOfBand { exchanges, delay } => {
                self.in_band = false;
                let mapped = self.ask_server(at);
                self.negotiate(at, mapped, exchanges, delay);
            }
        }
        let end = appeared + TimeDelta::from_secs(10);
        while self.now < end && self.ends[1].first[1].is_none() {
            self.run_until(self.now + TimeDelta::from_millis(1));
        }
        let nominated = self.ends[0].events.iter().find(
            |(_, e)| matches!(e, IceEvent::Selected { path: 1, selection } if selection.stage == Stage::Nominated),
        );
        Found {
            nominated: nominated.map(|(at, _)| *at - appeared),
            media: self.ends[1].first[1].map(|at| at - appeared),
        }
    }

    /// The first end restarts, its first path at this socket if there is one. Its description takes this time to the other end,
    /// and the answer as long.
    pub(crate) fn restart(&mut self, moved: Option<SocketAddr>, delay: TimeDelta) {
        let moves: Vec<_> = moved.map(|at| (0, at)).into_iter().collect();
        self.ends[0].ice.restart(&moves, self.now);
        self.run_until(self.now + self.delays.server * 2 + TimeDelta::from_millis(1));
        for n in [1, 0] {
            let other = &self.ends[1 - n].ice;
            let (credentials, candidates) = (other.credentials().clone(), other.candidates());
            self.run_until(self.now + delay);
            let (now, end) = (self.now, &mut self.ends[n].ice);
            assert!(end.is_restart(&credentials));
            end.restart(&[], now);
            end.set_remote(&credentials, &candidates, now);
        }
    }

    /// Asks the STUN server from a socket that ICE does not know yet.
    fn ask_server(&mut self, at: SocketAddr) -> SocketAddr {
        let mut gather = Gather::new(server(), [9; 12], self.now);
        let request = gather.poll_transmit(self.now).expect("due");
        let Some(nat) = self.sockets.iter().find(|s| s.at == at).and_then(|s| s.nat) else { return at };
        let seen = self.nats[nat].outbound(self.now, at, server());
        self.run_until(self.now + self.delays.server * 2);
        let answered = answer(&request, seen).expect("a request");
        assert!(gather.handle_datagram(server(), &answered));
        gather.mapped().expect("an address")
    }

    /// Offers and answers, of which the last has the candidates.
    fn negotiate(&mut self, at: SocketAddr, mapped: SocketAddr, exchanges: i64, delay: TimeDelta) {
        use weir_live::ice::{Candidate, CandidateKind};
        let begin = self.now;
        self.run_until(begin + delay * (2 * exchanges - 1));
        let candidates: Vec<_> = [(at, CandidateKind::Host), (mapped, CandidateKind::ServerReflexive)]
            .into_iter()
            .filter_map(|(at, kind)| Candidate::new(at, kind, 1))
            .collect();
        let credentials = self.ends[0].ice.credentials().clone();
        let now = self.now;
        self.ends[1].ice.set_remote(&credentials, &candidates, now);
        self.run_until(begin + delay * (2 * exchanges));
        let path = self.ends[0].ice.add_interface(at, self.now).expect("room");
        self.ends[0].ice.add_reflexive(path, mapped);
    }
}

fn on_event(end: &mut End, event: IceEvent, in_band: bool, now: Timestamp) {
    match event {
        IceEvent::Selected { path, selection } => {
            if end.routes.len() <= path {
                end.routes.resize(path + 1, None);
            }
            let is_new = end.routes[path].is_none() && path > 0;
            end.routes[path] = Some((selection.local, selection.remote));
            if is_new {
                let (sending, receiving) = control(7, now).into_directions();
                let number = Some(PathId::new(path as u8));
                let config = PathConfig { sending: Some(sending), receiving: Some(receiving), number };
                let added = end.call.add_path(config, now);
                end.refused_paths += u32::from(added.is_err());
            }
            if selection.stage >= Stage::Valid
                && let Some(mut opened) = end.call.path_mut(PathId::new(path as u8))
            {
                opened.open();
            }
        }
        IceEvent::Lost { path } => {
            let _ = end.call.remove_path(PathId::new(path as u8), Handover::BreakBeforeMake);
            end.routes[path] = None;
        }
        IceEvent::Candidates if in_band => {
            let offers = end.ice.offers();
            end.call.rtcp().set_ice_restarts(end.ice.restarts());
            end.call.rtcp().offer_addresses(&offers);
        }
        IceEvent::Candidates => {}
    }
}
