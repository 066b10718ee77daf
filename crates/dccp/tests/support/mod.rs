//! Shared by the tests of whole connections: hand-made packets, and both ends of a connection side by side.
#![allow(dead_code, unreachable_pub)]

pub mod bench;

use std::collections::BTreeMap;
use weir_dccp::connection::{Config, Connection, Datagram, State};
use weir_dccp::listener::{Cookies, Listener, ListenerConfig, ListenerEvent};
use weir_dccp::option::DccpOption;
use weir_dccp::packet::{Header, PacketType, PacketWriter, ResetCode, ServiceCode, WireSequence, parse};
use weir_dccp::queue::Message;
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

/// Ports of the client and the server.
pub const PORTS: (u16, u16) = (1_001, 2_002);
/// The client's address.
pub const PEER: u64 = 5;

/// A client's configuration, with the initial Sequence Window: nothing widens it.
pub fn client_config() -> Config {
    Config { local_port: PORTS.0, remote_port: PORTS.1, sequence_window: 100, seed: 11, ..Config::default() }
}

/// The server's.
pub fn server_config() -> Config {
    Config { local_port: PORTS.1, remote_port: PORTS.0, ..client_config() }
}

pub fn listener(cookies: Cookies) -> Listener {
    Listener::new(ListenerConfig { cookies, ..ListenerConfig::new(server_config(), [3; 32]) }).expect("a configuration")
}

pub fn datagram(bytes: &[u8]) -> Datagram<'_> {
    Datagram { bytes, payload: 0, ecn: Ecn::NotEct }
}

/// A packet's numbers, type and reset code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    pub packet_type: PacketType,
    pub sequence: Seq48,
    pub ack: Option<Seq48>,
    pub code: Option<ResetCode>,
}

pub fn seen(bytes: &[u8]) -> Seen {
    let packet = parse(bytes, 0).expect("a packet that a connection wrote");
    let zero = Seq48::default();
    Seen {
        packet_type: packet.header.packet_type,
        sequence: packet.header.sequence.extend(zero),
        ack: packet.header.acknowledgement.map(|a| a.extend(zero)),
        code: packet.reset.map(|r| r.0),
    }
}

/// A hand-made packet, from the client to the server or back.
pub fn forge(
    to_server: bool,
    packet_type: PacketType,
    sequence: Seq48,
    ack: Seq48,
    options: &[DccpOption<'_>],
    data: &[u8],
) -> Vec<u8> {
    let (source_port, destination_port) = if to_server { PORTS } else { (PORTS.1, PORTS.0) };
    let header = Header {
        source_port,
        destination_port,
        ccval: 0,
        checksum_coverage: 0,
        packet_type,
        sequence: WireSequence::Long(sequence),
        acknowledgement: packet_type.has_acknowledgement().then_some(WireSequence::Long(ack)),
    };
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, &header);
    match packet_type {
        PacketType::Request | PacketType::Response => writer.service_code(ServiceCode::UNSPECIFIED),
        PacketType::Reset => writer.reset(ResetCode::ABORTED, [0; 3]),
        _ => {}
    }
    for option in options {
        writer.option(option);
    }
    writer.finish();
    out.extend_from_slice(data);
    out
}

/// All that a connection has to send.
pub fn drain(connection: &mut Connection, now: Timestamp) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut out = Vec::new();
    while connection.poll_transmit(now, &mut out).is_some() {
        all.push(out.clone());
        assert!(all.len() < 10_000, "it sends without end");
    }
    all
}

/// A server: connections of one client, and their listener.
pub struct Server {
    pub listener: Listener,
    pub connection: Option<Connection>,
}

impl Server {
    pub fn new(cookies: Cookies) -> Self {
        Self { listener: listener(cookies), connection: None }
    }
    /// Processes a datagram; returns the packets sent.
    pub fn take(&mut self, now: Timestamp, bytes: &[u8]) -> Vec<Vec<u8>> {
        if let Some(connection) = &mut self.connection {
            connection.handle_datagram(now, &datagram(bytes));
            return drain(connection, now);
        }
        let mut out = Vec::new();
        match self.listener.handle_datagram(now, PEER, &datagram(bytes), &mut out) {
            ListenerEvent::Reply => {
                let mut all = vec![std::mem::take(&mut out)];
                while self.listener.poll_transmit(&mut out).is_some() {
                    all.push(std::mem::take(&mut out));
                }
                all
            }
            ListenerEvent::Accepted(mut connection) => {
                let all = drain(&mut connection, now);
                self.connection = Some(*connection);
                all
            }
            ListenerEvent::Nothing => Vec::new(),
        }
    }
    /// As a state of section 8.4: a half-open connection is the listener's.
    pub fn state(&self) -> State {
        match &self.connection {
            Some(c) => c.state(),
            None if self.listener.half_open() > 0 => State::Respond,
            None => State::Listen,
        }
    }
}

/// A client and a server with a listener, joined by a link that only delays.
pub struct Link {
    pub now: Timestamp,
    pub client: Connection,
    pub server: Server,
    pub delay: TimeDelta,
    /// Data received by the applications, by end: client, server.
    pub received: [Vec<Vec<u8>>; 2],
    /// Bytes and packets sent by each end.
    pub bytes_sent: [usize; 2],
    pub packets_sent: [usize; 2],
    /// The newest sequence numbers that they have used.
    pub newest_sent: [u64; 2],
    on_the_way: BTreeMap<(Timestamp, u64), (bool, Vec<u8>)>,
    count: u64,
}

impl Link {
    pub fn new(client: Config, server: Config) -> Self {
        let now = Timestamp::from_secs(100);
        let listener = ListenerConfig { cookies: Cookies::Never, ..ListenerConfig::new(server, [3; 32]) };
        let mut link = Self {
            now,
            client: Connection::connect(client, now).expect("a configuration"),
            server: Server { listener: Listener::new(listener).expect("a configuration"), connection: None },
            delay: TimeDelta::from_millis(10),
            received: Default::default(),
            bytes_sent: [0; 2],
            packets_sent: [0; 2],
            newest_sent: [0; 2],
            on_the_way: BTreeMap::new(),
            count: 0,
        };
        link.flush();
        link
    }
    /// Both ends in OPEN, nothing in flight.
    pub fn open(client: Config, server: Config) -> Self {
        let mut link = Self::new(client, server);
        link.run_for(TimeDelta::from_millis(500));
        assert_eq!((link.client.state(), link.server.state()), (State::Open, State::Open));
        link
    }
    pub fn server(&mut self) -> &mut Connection {
        self.server.connection.as_mut().expect("a server's connection")
    }
    pub fn send(&mut self, from_client: bool, bytes: &[u8]) -> bool {
        let now = self.now;
        let end = if from_client { &mut self.client } else { self.server() };
        let sent = end.send(now, &Message { bytes, ..Message::default() }).is_ok();
        self.flush();
        sent
    }
    fn put(&mut self, to_server: bool, packets: Vec<Vec<u8>>) {
        for bytes in packets {
            if let WireSequence::Long(s) = parse(&bytes, 0).expect("a packet").header.sequence {
                self.newest_sent[usize::from(!to_server)] = s.get();
            } else {
                self.newest_sent[usize::from(!to_server)] += 1;
            }
            self.bytes_sent[usize::from(!to_server)] += bytes.len();
            self.packets_sent[usize::from(!to_server)] += 1;
            self.on_the_way.insert((self.now + self.delay, self.count), (to_server, bytes));
            self.count += 1;
        }
    }
    fn flush(&mut self) {
        let sent = drain(&mut self.client, self.now);
        self.put(true, sent);
        let sent = self.server.connection.as_mut().map_or_else(Vec::new, |s| drain(s, self.now));
        self.put(false, sent);
        let mut out = Vec::new();
        while self.client.receive(&mut out).is_some() {
            self.received[0].push(out.clone());
        }
        while self.server.connection.as_mut().is_some_and(|s| s.receive(&mut out).is_some()) {
            self.received[1].push(out.clone());
        }
    }
    /// A packet arrives from any address; replies are delivered to the other end.
    pub fn inject(&mut self, to_server: bool, bytes: &[u8]) {
        if to_server {
            let sent = self.server.take(self.now, bytes);
            self.put(false, sent);
        } else {
            self.client.handle_datagram(self.now, &datagram(bytes));
        }
        self.flush();
    }
    pub fn run_for(&mut self, time: TimeDelta) {
        let until = self.now + time;
        loop {
            let now = self.now;
            let server = self.server.connection.as_mut().and_then(|s| s.poll_timeout(now));
            let timer = [self.client.poll_timeout(now), server, self.server.listener.poll_timeout()];
            let arrival = self.on_the_way.first_key_value().map(|(k, _)| k.0);
            let next = timer.into_iter().chain([arrival]).flatten().min().filter(|t| *t <= until);
            let Some(next) = next else { break };
            self.now = now.max(next);
            let now = self.now;
            while let Some(entry) = self.on_the_way.first_entry().filter(|e| e.key().0 <= now) {
                let (to_server, bytes) = entry.remove();
                self.inject(to_server, &bytes);
            }
            self.client.handle_timeout(now);
            if let Some(server) = &mut self.server.connection {
                server.handle_timeout(now);
            }
            self.server.listener.handle_timeout(now);
            self.flush();
        }
        self.now = until;
    }
}
