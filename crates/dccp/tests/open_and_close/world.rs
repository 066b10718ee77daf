//! Both ends, the network between them and the events that may occur.

use super::support::{PEER, client_config, datagram, drain, server_config};
use Side::{Client, Server};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use weir_dccp::connection::{Config, Connection, EndReason, State};
use weir_dccp::listener::{Cookies, Listener, ListenerConfig, ListenerEvent};
use weir_dccp::packet::ResetCode;
use weir_dccp::queue::Message;
use weir_units::{TimeDelta, Timestamp};

/// An end, or the direction away from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Client,
    Server,
}

/// The next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Event {
    /// The oldest packet sent by this side arrives.
    Deliver(Side),
    /// The newest arrives before the others.
    DeliverNewest(Side),
    /// The oldest is lost.
    Lose(Side),
    /// A copy of the oldest arrives; the original stays in flight.
    Repeat(Side),
    /// The application sends a datagram.
    Send(Side),
    /// The application closes.
    Close(Side),
    /// The application aborts.
    Abort(Side),
    /// Nothing happens until the next timer, with any packets in flight.
    Wait,
}

pub(super) const EVENTS: [Event; 15] = [
    Event::Deliver(Client),
    Event::Deliver(Server),
    Event::Wait,
    Event::Lose(Client),
    Event::Lose(Server),
    Event::Send(Client),
    Event::Send(Server),
    Event::Close(Client),
    Event::Close(Server),
    Event::Repeat(Client),
    Event::Repeat(Server),
    Event::DeliverNewest(Client),
    Event::DeliverNewest(Server),
    Event::Abort(Client),
    Event::Abort(Server),
];

/// Maximum number of faults in one sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) losses: u32,
    pub(super) repeats: u32,
    pub(super) reorderings: u32,
    pub(super) sends: u32,
    pub(super) closes: u32,
    pub(super) aborts: u32,
    /// Timers that expire before anything arrives: the network's delay is shorter than the time before an end gives up.
    pub(super) waits: u32,
}

/// Time between two events.
const STEP: TimeDelta = TimeDelta::from_millis(5);

/// Short times, so that the end is reached soon; their order is that of the defaults.
fn timed(config: Config, budget: Budget) -> Config {
    Config {
        give_up_after: TimeDelta::from_secs(20),
        time_wait: TimeDelta::from_secs(5),
        // A lost Reset is not repeated: without data only a test shows that the other end is gone.
        keep_alive: (budget.aborts > 0).then_some(TimeDelta::from_secs(6)),
        ..config
    }
}

pub(super) struct World {
    now: Timestamp,
    pub(super) client: Connection,
    listener: Listener,
    server: Option<Connection>,
    /// Packets in flight, by the side that sent them.
    on_the_way: [VecDeque<Vec<u8>>; 2],
    sent: [u32; 2],
    received: [u32; 2],
    budget: Budget,
    client_was: HashSet<State>,
    server_was: HashSet<State>,
    ended: bool,
    /// The ends of servers' connections that are gone.
    pub(super) server_ends: Vec<EndReason>,
}

impl World {
    pub(super) fn new(cookies: Cookies, budget: Budget) -> Self {
        let now = Timestamp::from_secs(10);
        let listener = ListenerConfig {
            cookies,
            half_open_timeout: TimeDelta::from_secs(30),
            ..ListenerConfig::new(timed(server_config(), budget), [9; 32])
        };
        let mut world = Self {
            now,
            client: Connection::connect(timed(client_config(), budget), now).expect("a configuration"),
            listener: Listener::new(listener).expect("a configuration"),
            server: None,
            on_the_way: Default::default(),
            sent: [0; 2],
            received: [0; 2],
            budget,
            client_was: HashSet::new(),
            server_was: HashSet::new(),
            ended: false,
            server_ends: Vec::new(),
        };
        world.after();
        world
    }

    fn end(&mut self, side: Side) -> Option<&mut Connection> {
        match side {
            Client => Some(&mut self.client),
            Server => self.server.as_mut(),
        }
    }

    /// Plays an event; returns `false` if it cannot occur.
    pub(super) fn play(&mut self, event: Event) -> bool {
        let budget = match event {
            Event::Lose(_) => &mut self.budget.losses,
            Event::Repeat(_) => &mut self.budget.repeats,
            Event::DeliverNewest(_) => &mut self.budget.reorderings,
            Event::Send(_) => &mut self.budget.sends,
            Event::Close(_) => &mut self.budget.closes,
            Event::Abort(_) => &mut self.budget.aborts,
            Event::Wait => &mut self.budget.waits,
            Event::Deliver(_) => &mut 1,
        };
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        let happens = match event {
            Event::Deliver(from) => match self.on_the_way[from as usize].pop_front() {
                Some(packet) => self.deliver(from, &packet),
                None => false,
            },
            Event::DeliverNewest(from) => match self.on_the_way[from as usize].len() {
                0 | 1 => false,
                _ => {
                    let packet = self.on_the_way[from as usize].pop_back();
                    packet.is_some_and(|p| self.deliver(from, &p))
                }
            },
            Event::Lose(from) => self.on_the_way[from as usize].pop_front().is_some(),
            Event::Repeat(from) => match self.on_the_way[from as usize].front().cloned() {
                Some(packet) => self.deliver(from, &packet),
                None => false,
            },
            Event::Send(side) => {
                let (now, number) = (self.now, self.sent[side as usize]);
                let bytes = [side as u8, number as u8];
                let message = Message { bytes: &bytes, ..Message::default() };
                let taken = self.end(side).is_some_and(|c| c.send(now, &message).is_ok());
                self.sent[side as usize] += u32::from(taken);
                taken
            }
            Event::Close(side) | Event::Abort(side) => {
                let now = self.now;
                let open = self.end(side).filter(|c| c.end().is_none());
                let Some(connection) = open else { return false };
                if matches!(event, Event::Close(_)) {
                    connection.close(now);
                } else {
                    connection.abort(now);
                }
                self.ended = true;
                true
            }
            Event::Wait => self.wait(),
        };
        if happens {
            self.now += STEP;
            self.after();
        }
        happens
    }

    fn deliver(&mut self, from: Side, packet: &[u8]) -> bool {
        let (now, packet) = (self.now, datagram(packet));
        match (from, &mut self.server) {
            (Server, _) => self.client.handle_datagram(now, &packet),
            (Client, Some(server)) => server.handle_datagram(now, &packet),
            (Client, None) => {
                let mut out = Vec::new();
                match self.listener.handle_datagram(now, PEER, &packet, &mut out) {
                    ListenerEvent::Reply => self.on_the_way[Server as usize].push_back(out),
                    ListenerEvent::Accepted(connection) => self.server = Some(*connection),
                    ListenerEvent::Nothing => {}
                }
            }
        }
        true
    }

    fn next_timer(&mut self) -> Option<Timestamp> {
        let now = self.now;
        let server = self.server.as_mut().and_then(|s| s.poll_timeout(now));
        [self.client.poll_timeout(now), server, self.listener.poll_timeout()].into_iter().flatten().min()
    }

    fn wait(&mut self) -> bool {
        let Some(next) = self.next_timer() else { return false };
        self.now = self.now.max(next);
        let now = self.now;
        self.client.handle_timeout(now);
        if let Some(server) = &mut self.server {
            server.handle_timeout(now);
        }
        self.listener.handle_timeout(now);
        true
    }

    /// Takes packets sent and data received, and checks the invariants.
    fn after(&mut self) {
        let now = self.now;
        let mut out = Vec::new();
        self.on_the_way[Client as usize].extend(drain(&mut self.client, now));
        while self.listener.poll_transmit(&mut out).is_some() {
            self.on_the_way[Server as usize].push_back(out.clone());
        }
        if let Some(server) = &mut self.server {
            self.on_the_way[Server as usize].extend(drain(server, now));
        }
        for side in [Client, Server] {
            let Some(end) = self.end(side) else { continue };
            let mut came = Vec::new();
            while end.receive(&mut out).is_some() {
                came.push(out.clone());
            }
            for data in came {
                let from = if side == Client { Server } else { Client };
                assert_eq!(data[0], from as u8, "data of its own");
                assert!(u32::from(data[1]) < self.sent[from as usize], "data that was not sent");
                let bit = 1 << data[1];
                assert_eq!(self.received[side as usize] & bit, 0, "data twice");
                self.received[side as usize] |= bit;
            }
        }
        self.client_was.insert(self.client.state());
        if let Some(server) = &self.server {
            self.server_was.insert(server.state());
        }
        let client_has_heard = self.client_was.contains(&State::PartOpen);
        assert!(!self.server_was.contains(&State::Open) || client_has_heard, "a server alone in OPEN");
        // The server may have left OPEN within the same packet.
        assert!(!self.client_was.contains(&State::Open) || self.server_was.iter().any(|s| *s >= State::Open));
        if let Some(end) = self.server.as_ref().filter(|s| s.state() == State::Closed).map(|s| s.end()) {
            self.server_ends.extend(end.map(|e| e.reason));
            self.server = None;
        }
    }

    fn is_over(&self) -> bool {
        self.client.state() == State::Closed && self.server.is_none() && self.listener.half_open() == 0
    }

    /// Identifies this state; the internals of congestion control are not included.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.client).hash(&mut hasher);
        format!("{:?}", self.server).hash(&mut hasher);
        format!("{:?}", self.listener).hash(&mut hasher);
        (self.now, &self.on_the_way, self.sent, self.received, self.ended).hash(&mut hasher);
        format!("{:?}", self.budget).hash(&mut hasher);
        hasher.finish()
    }

    /// Continues over a network without faults until no event is left.
    pub(super) fn run_on(&mut self) {
        self.budget.waits = u32::MAX;
        let until = self.now + TimeDelta::from_secs(180);
        let (mut quiet, mut steps) = (0, 0);
        while !self.is_over() && self.now < until && quiet < 4 {
            steps += 1;
            assert!(steps < 20_000, "it does not come to rest");
            let from = [Client, Server].into_iter().find(|s| !self.on_the_way[*s as usize].is_empty());
            match from {
                Some(from) => {
                    self.play(Event::Deliver(from));
                }
                None => {
                    // Both in OPEN, silent except for tests of the other end.
                    let open = |s: Option<&Connection>| s.is_some_and(|s| s.state() == State::Open);
                    let both_open = open(Some(&self.client)) && open(self.server.as_ref()) && !self.ended;
                    quiet += u32::from(both_open);
                    if !self.play(Event::Wait) {
                        break;
                    }
                }
            }
        }
    }

    pub(super) fn has_ended_well(&self) {
        let server = self.server.as_ref().map(Connection::state);
        if self.ended {
            assert!(self.is_over(), "closed, but {:?} and {server:?}, {:?}", self.client.state(), self.client.end());
        } else {
            assert_eq!((self.client.state(), server), (State::Open, Some(State::Open)), "{:?}", self.client.end());
            assert!(self.client.end().is_none() && self.server_ends.is_empty());
        }
        // Without an abort a reset occurs only for lateness.
        for reason in self.server_ends.iter().copied().chain(self.client.end().map(|e| e.reason)) {
            let fine = match reason {
                EndReason::Closed | EndReason::TimedOut => true,
                EndReason::ResetByPeer(code, _) => {
                    [ResetCode::NO_CONNECTION, ResetCode::ABORTED, ResetCode::CLOSED].contains(&code)
                }
                EndReason::Reset(code, _) => code == ResetCode::ABORTED,
                _ => false,
            };
            assert!(fine, "{reason:?}");
        }
    }
}
