//! Two connections, a link between them, and all packets sent.

use std::collections::BTreeMap;
use weir_dccp::connection::{Config, Connection, Datagram, State};
use weir_dccp::packet::parse;
use weir_dccp::queue::Message;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// A sent packet.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Timestamp,
    pub(crate) by_client: bool,
    pub(crate) bytes: Vec<u8>,
    /// Bytes carried as a length only.
    pub(crate) beyond: u32,
    pub(crate) ecn: Ecn,
}

/// The link's action on the packet of this index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Passes,
    Lost,
    Marked,
    Corrupted,
}

pub(crate) struct Pair {
    pub(crate) now: Timestamp,
    pub(crate) client: Connection,
    pub(crate) server: Option<Connection>,
    server_config: Config,
    /// Decides by each packet's index and contents.
    pub(crate) link: fn(usize, &Sent) -> Fate,
    /// Whether the server's application reads received data.
    pub(crate) server_reads: bool,
    pub(crate) log: Vec<Sent>,
    on_the_way: BTreeMap<(Timestamp, usize), Sent>,
}

const DELAY: TimeDelta = TimeDelta::from_millis(20);

impl Pair {
    pub(crate) fn new(client: Config, server: Config) -> Self {
        let now = Timestamp::from_secs(1);
        let server_config =
            Config { local_port: client.remote_port, remote_port: client.local_port, seed: client.seed + 1, ..server };
        let client = Connection::connect(client, now).expect("a valid configuration");
        let (log, on_the_way) = (vec![], BTreeMap::new());
        let link = |_, _: &Sent| Fate::Passes;
        let mut pair = Self { now, client, server: None, server_config, link, server_reads: true, log, on_the_way };
        pair.flush();
        pair
    }

    /// Both ends in OPEN, by a first datagram from each.
    pub(crate) fn open(client: Config, server: Config) -> Self {
        let mut pair = Self::new(client, server);
        pair.send(true, b"first", 0);
        pair.run(TimeDelta::from_secs(1));
        pair.send(false, b"first too", 0);
        pair.run(TimeDelta::from_secs(1));
        let server = pair.server.as_ref().map(Connection::state);
        assert_eq!((pair.client.state(), server), (State::Open, Some(State::Open)));
        pair
    }

    pub(crate) fn end(&mut self, client: bool) -> Option<&mut Connection> {
        if client { Some(&mut self.client) } else { self.server.as_mut() }
    }

    /// Queues a datagram at an end; returns whether it was accepted.
    pub(crate) fn send(&mut self, client: bool, bytes: &[u8], beyond: u32) -> bool {
        let (now, message) = (self.now, Message { bytes, payload: beyond, ..Message::default() });
        let sent = self.end(client).is_some_and(|c| c.send(now, &message).is_ok());
        self.flush();
        sent
    }

    /// Sends a datagram every 10 ms from both ends.
    pub(crate) fn talk(&mut self, rounds: u8, beyond: u32) {
        for i in 0..rounds {
            self.send(true, &[i; 21], beyond);
            if i % 3 == 0 {
                self.send(false, &[i; 7], 0);
            }
            self.run(TimeDelta::from_millis(10));
        }
        self.run(TimeDelta::from_secs(2));
    }

    pub(crate) fn flush(&mut self) {
        let mut out = vec![];
        for client in [true, false] {
            let (now, reads) = (self.now, client || self.server_reads);
            for round in 0.. {
                assert!(round < 10_000, "packets without end at {now:?}");
                let Some(end) = self.end(client) else { break };
                let Some(t) = end.poll_transmit(now, &mut out) else { break };
                let sent = Sent { at: now, by_client: client, bytes: out.clone(), beyond: t.payload, ecn: t.ecn };
                let mut arrives = sent.clone();
                let fate = (self.link)(self.log.len(), &sent);
                let data = parse(&sent.bytes, sent.beyond).expect("a packet").data.len();
                match fate {
                    Fate::Marked => arrives.ecn = Ecn::Ce,
                    Fate::Corrupted if data > 0 => *arrives.bytes.last_mut().expect("data") ^= 1,
                    _ => {}
                }
                if fate != Fate::Lost {
                    self.on_the_way.insert((now + DELAY, self.log.len()), arrives);
                }
                self.log.push(sent);
            }
            while reads && self.end(client).is_some_and(|c| c.receive(&mut out).is_some()) {}
        }
    }

    /// Delivers a datagram to an end now.
    pub(crate) fn deliver(&mut self, to_client: bool, bytes: &[u8], payload: u32, ecn: Ecn) {
        let (now, datagram) = (self.now, Datagram { bytes, payload, ecn });
        match self.end(to_client) {
            Some(end) => end.handle_datagram(now, &datagram),
            None => self.server = Connection::accept(self.server_config.clone(), now, &datagram, None).ok(),
        }
        self.flush();
    }

    /// Advances time by this much.
    pub(crate) fn run(&mut self, span: TimeDelta) {
        let end = self.now + span;
        for round in 0.. {
            assert!(round < 1_000_000, "events without end");
            let now = self.now;
            let timers = [true, false].into_iter().filter_map(|c| self.end(c)?.poll_timeout(now)).min();
            let arrival = self.on_the_way.keys().next().map(|k| k.0);
            let Some(at) = timers.into_iter().chain(arrival).min().filter(|t| *t <= end) else { break };
            self.now = at.max(now);
            if arrival.is_some_and(|t| t <= self.now) {
                let (_, p) = self.on_the_way.pop_first().expect("an arrival");
                self.deliver(!p.by_client, &p.bytes, p.beyond, p.ecn);
            } else {
                let now = self.now;
                [true, false].into_iter().for_each(|c| {
                    if let Some(end) = self.end(c) {
                        end.handle_timeout(now);
                    }
                });
                self.flush();
            }
        }
        self.now = end;
    }
}
