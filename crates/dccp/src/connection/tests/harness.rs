//! Two connections joined by a link that delays, drops, duplicates and reorders, all by a seed. Deterministic.

use crate::ccid::{
    Acknowledgement, CcidReceiver, CcidSender, Permission, ReceivedPacket, Receiver, Registry, Requirements, Sender,
    SentPacket, Spec,
};
use crate::connection::{Ccids, Config, Connection, Datagram, State, Transmit};
use crate::option::DccpOption;
use crate::packet::{Header, Packet, PacketType, PacketWriter, ResetCode, ServiceCode, WireSequence, parse};
use crate::queue::{Message, QueueConfig, QueuePolicy};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_units::{DataRate, DataSize, Ecn, Seq48, TimeDelta, Timestamp};

/// Number of the CCID of tests: a fixed window, an acknowledgement for every second data packet or after 50 ms.
pub(crate) const TEST_CCID: u8 = 250;
/// Packets in flight that it allows.
pub(crate) const TEST_WINDOW: usize = 32;

#[derive(Default)]
struct FixedWindow {
    in_flight: Vec<Seq48>,
    last_sent: Option<Timestamp>,
}

impl CcidSender for FixedWindow {
    fn may_send(&self, now: Timestamp, _: DataSize) -> Permission {
        let stale = self.last_sent.is_some_and(|t| now.saturating_since(t) > TimeDelta::from_secs(1));
        if self.in_flight.len() < TEST_WINDOW || stale { Permission::Now } else { Permission::Blocked }
    }
    fn on_packet_sent(&mut self, sent: &SentPacket) {
        if sent.packet_type.is_data() {
            if self.in_flight.len() >= TEST_WINDOW {
                self.in_flight.clear();
            }
            self.in_flight.push(sent.sequence);
            self.last_sent = Some(sent.now);
        }
    }
    fn on_acknowledgement(&mut self, ack: &Acknowledgement<'_>) {
        self.in_flight.retain(|s| s.is_after(ack.acknowledged));
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        (self.in_flight.len() >= TEST_WINDOW)
            .then(|| self.last_sent.map(|t| t + TimeDelta::from_millis(1_001)))
            .flatten()
    }
    fn on_timeout(&mut self, _: Timestamp) {
        self.in_flight.clear();
    }
    fn rate(&self) -> Option<DataRate> {
        None
    }
    fn smoothed_rate(&self) -> Option<DataRate> {
        None
    }
    fn rtt(&self) -> Option<TimeDelta> {
        None
    }
}

#[derive(Default)]
struct EachSecond {
    unacknowledged: u32,
    since: Option<Timestamp>,
}

impl CcidReceiver for EachSecond {
    fn on_packet(&mut self, packet: &ReceivedPacket<'_>) {
        if packet.packet_type.is_data() {
            self.unacknowledged += 1;
            self.since.get_or_insert(packet.now);
        }
    }
    fn wants_ack(&self, now: Timestamp) -> bool {
        self.unacknowledged >= 2 || self.poll_timeout().is_some_and(|t| t <= now)
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        self.since.map(|t| t + TimeDelta::from_millis(50))
    }
    fn write_options(&mut self, _: Timestamp, _: &mut PacketWriter<'_>) {}
    fn on_ack_sent(&mut self, _: Timestamp) {
        *self = Self::default();
    }
}

/// The built-in CCIDs and that of tests.
pub(crate) fn registry() -> Arc<Registry> {
    let mut registry = Registry::builtin();
    registry.register(Spec {
        number: TEST_CCID,
        name: "test",
        summary: "a fixed window",
        source: "none",
        requirements: Requirements { ack_vector: true, ndp_count: true, elapsed_time: true },
        params: Vec::new(),
        sender: Arc::new(|_| Ok(Sender::Custom(Box::<FixedWindow>::default()))),
        receiver: Arc::new(|_| Ok(Receiver::Custom(Box::<EachSecond>::default()))),
    });
    Arc::new(registry)
}

/// A configuration with the CCID of tests and a send queue of 1,000.
pub(crate) fn config() -> Config {
    Config {
        local_port: 1_001,
        remote_port: 2_002,
        registry: registry(),
        ccids: Ccids::both(TEST_CCID),
        queue: QueueConfig { capacity: 1_000, policy: QueuePolicy::Refuse },
        ..Config::default()
    }
}

/// Configuration of the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) delay: TimeDelta,
    /// A random delay of up to this is added to each packet, which reorders them.
    pub(crate) jitter: TimeDelta,
    pub(crate) loss: f64,
    pub(crate) repeats: f64,
    pub(crate) marks: f64,
    pub(crate) mtu: u64,
    pub(crate) seed: u64,
}

impl Default for Link {
    fn default() -> Self {
        let delay = TimeDelta::from_millis(20);
        Self { delay, jitter: TimeDelta::ZERO, loss: 0.0, repeats: 0.0, marks: 0.0, mtu: 1_500, seed: 7 }
    }
}

/// An end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) fn other(self) -> Self {
        if self == Self::Client { Self::Server } else { Self::Client }
    }
}

/// A sent packet.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Timestamp,
    pub(crate) from: Side,
    pub(crate) packet_type: PacketType,
    pub(crate) sequence: u64,
    pub(crate) ack: Option<u64>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) transmit: Transmit,
}

impl Sent {
    pub(crate) fn packet(&self) -> Packet<'_> {
        parse(&self.bytes, self.transmit.payload).expect("a packet that a connection wrote")
    }
    pub(crate) fn options(&self) -> Vec<DccpOption<'_>> {
        self.packet().options.iter().map(|o| o.expect("an option that a connection wrote")).collect()
    }
}

/// Destination, bytes, payload and ECN field.
type OnTheWay = (Side, Vec<u8>, u32, Ecn);

/// Two ends. The server's is created from the first Request received.
pub(crate) struct Pair {
    pub(crate) now: Timestamp,
    pub(crate) client: Connection,
    pub(crate) server: Option<Connection>,
    pub(crate) server_config: Config,
    pub(crate) link: Link,
    /// All packets sent, including lost ones; cleared by tests that need it.
    pub(crate) log: Vec<Sent>,
    /// The datagrams received by each application.
    pub(crate) received: BTreeMap<Side, Vec<Vec<u8>>>,
    /// Selects packets to drop: called with each packet sent.
    pub(crate) filter: fn(&Sent) -> bool,
    on_the_way: BTreeMap<(Timestamp, u64), OnTheWay>,
    count: u64,
    random: Pcg64Mcg,
}

impl Pair {
    /// Both ends have this configuration, with ports exchanged.
    pub(crate) fn new(client: Config, link: Link) -> Self {
        let server = Config {
            local_port: client.remote_port,
            remote_port: client.local_port,
            seed: client.seed + 1,
            ..client.clone()
        };
        Self::with(client, server, link)
    }
    pub(crate) fn with(client: Config, server_config: Config, link: Link) -> Self {
        let now = Timestamp::from_secs(100);
        let mut pair = Self {
            now,
            client: Connection::connect(client, now).expect("a valid configuration"),
            server: None,
            server_config,
            link,
            log: Vec::new(),
            received: BTreeMap::new(),
            filter: |_| false,
            on_the_way: BTreeMap::new(),
            count: 0,
            random: Pcg64Mcg::seed_from_u64(link.seed),
        };
        pair.flush();
        pair
    }
    /// Both ends in OPEN, the log empty.
    pub(crate) fn open(client: Config, link: Link) -> Self {
        let mut pair = Self::new(client, link);
        let message = Message { bytes: b"first", ..Message::default() };
        pair.client.send(pair.now, &message).expect("room");
        pair.run(TimeDelta::from_secs(3));
        assert_eq!(pair.states(), (State::Open, State::Open));
        pair.log.clear();
        pair.received.clear();
        pair
    }
    pub(crate) fn states(&self) -> (State, State) {
        (self.client.state(), self.server.as_ref().map_or(State::Listen, Connection::state))
    }
    pub(crate) fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Client => &mut self.client,
            Side::Server => self.server.as_mut().expect("a server that a Request has made"),
        }
    }
    pub(crate) fn server(&mut self) -> &mut Connection {
        self.end(Side::Server)
    }
    pub(crate) fn send(&mut self, from: Side, bytes: &[u8]) {
        let now = self.now;
        self.end(from).send(now, &Message { bytes, ..Message::default() }).expect("room in the queue");
        self.flush();
    }
    /// Takes all packets due from both ends, and the datagrams received by the applications.
    pub(crate) fn flush(&mut self) {
        for side in [Side::Client, Side::Server] {
            if side == Side::Server && self.server.is_none() {
                continue;
            }
            let mut out = Vec::new();
            let now = self.now;
            for round in 0.. {
                assert!(round < 10_000, "{side:?} sends without end at {now:?}");
                let Some(transmit) = self.end(side).poll_transmit(now, &mut out) else { break };
                self.put(side, transmit, out.clone());
            }
            while self.end(side).receive(&mut out).is_some() {
                self.received.entry(side).or_default().push(out.clone());
            }
        }
    }
    fn put(&mut self, from: Side, transmit: Transmit, bytes: Vec<u8>) {
        let packet = parse(&bytes, transmit.payload).expect("a packet that a connection wrote");
        let number = |s: WireSequence| match s {
            WireSequence::Long(s) => s.get(),
            WireSequence::Short(s) => u64::from(s),
        };
        let sent = Sent {
            at: self.now,
            from,
            packet_type: packet.header.packet_type,
            sequence: number(packet.header.sequence),
            ack: packet.header.acknowledgement.map(number),
            bytes: bytes.clone(),
            transmit,
        };
        let lost = (self.filter)(&sent)
            || self.random.random_bool(self.link.loss)
            || transmit.size.as_bytes() + 28 > self.link.mtu;
        self.log.push(sent);
        let copies = if lost { 0 } else { 1 + usize::from(self.random.random_bool(self.link.repeats)) };
        for _ in 0..copies {
            let marked = transmit.ecn.is_capable() && self.random.random_bool(self.link.marks);
            let ecn = if marked { Ecn::Ce } else { transmit.ecn };
            let at = self.now + self.link.delay + self.link.jitter.mul_f64(self.random.random::<f64>());
            self.count += 1;
            self.on_the_way.insert((at, self.count), (from.other(), bytes.clone(), transmit.payload, ecn));
        }
    }
    /// Delivers a packet to an end now.
    pub(crate) fn deliver(&mut self, to: Side, bytes: &[u8], payload: u32, ecn: Ecn) {
        let now = self.now;
        let datagram = Datagram { bytes, payload, ecn };
        if to == Side::Server && self.server.is_none() {
            self.server = Connection::accept(self.server_config.clone(), now, &datagram, None).ok();
        } else {
            self.end(to).handle_datagram(now, &datagram);
        }
        self.flush();
    }
    /// Advances time by this much.
    pub(crate) fn run(&mut self, span: TimeDelta) {
        let end = self.now + span;
        self.flush();
        for round in 0.. {
            assert!(round < 10_000_000, "events without end");
            let now = self.now;
            let mut next = self.client.poll_timeout(now);
            if let Some(server) = &mut self.server {
                next = next.into_iter().chain(server.poll_timeout(now)).min();
            }
            let arrival = self.on_the_way.keys().next().map(|k| k.0);
            let Some(at) = next.into_iter().chain(arrival).min().filter(|t| *t <= end) else { break };
            self.now = at.max(now);
            if arrival.is_some_and(|t| t <= self.now) {
                let (_, (to, bytes, payload, ecn)) = self.on_the_way.pop_first().expect("an arrival");
                self.deliver(to, &bytes, payload, ecn);
            } else {
                let now = self.now;
                self.client.handle_timeout(now);
                if let Some(server) = &mut self.server {
                    server.handle_timeout(now);
                }
                self.flush();
            }
        }
        self.now = end;
    }
    /// Types of packets in the log, with the end that sent them.
    pub(crate) fn types(&self) -> Vec<(Side, PacketType)> {
        self.log.iter().map(|s| (s.from, s.packet_type)).collect()
    }
    /// Packets of a type sent by an end.
    pub(crate) fn sent(&self, from: Side, packet_type: PacketType) -> Vec<&Sent> {
        self.log.iter().filter(|s| s.from == from && s.packet_type == packet_type).collect()
    }
    /// A packet as the end `from` might send it, with given numbers; `options` are inserted unchanged.
    pub(crate) fn forge(&self, from: Side, packet_type: PacketType, sequence: Seq48, ack: Option<Seq48>) -> Vec<u8> {
        self.forge_with(from, packet_type, sequence, ack, &[])
    }
    pub(crate) fn forge_with(
        &self,
        from: Side,
        packet_type: PacketType,
        sequence: Seq48,
        ack: Option<Seq48>,
        options: &[DccpOption<'_>],
    ) -> Vec<u8> {
        let c = self.client.config();
        let (source_port, destination_port) = match from {
            Side::Client => (c.local_port, c.remote_port),
            Side::Server => (c.remote_port, c.local_port),
        };
        let header = Header {
            source_port,
            destination_port,
            ccval: 0,
            checksum_coverage: 0,
            packet_type,
            sequence: WireSequence::Long(sequence),
            acknowledgement: packet_type.has_acknowledgement().then(|| WireSequence::Long(ack.unwrap_or_default())),
        };
        let mut bytes = Vec::new();
        let mut writer = PacketWriter::new(&mut bytes, &header);
        match packet_type {
            PacketType::Request | PacketType::Response => writer.service_code(ServiceCode::UNSPECIFIED),
            PacketType::Reset => writer.reset(ResetCode::ABORTED, [0; 3]),
            _ => {}
        }
        options.iter().for_each(|o| assert!(writer.option(o)));
        writer.finish();
        bytes
    }
}
