//! Memory of a connection, and that packets in steady state allocate nothing.

use std::sync::Arc;
use weir_dccp::ccid::Registry;
use weir_dccp::connection::{Ccids, Config, Connection, Datagram, State};
use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence};
use weir_dccp::queue::{Message, QueueConfig};
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

/// A client, its server and the packets between them.
struct Ends {
    now: Timestamp,
    ends: [Connection; 2],
    wire: Vec<u8>,
    received: Vec<u8>,
    delivered: u64,
    /// One packet of this many is lost.
    one_lost_of: Option<u64>,
    sent: u64,
}

fn configs(ccid: u8, registry: &Arc<Registry>) -> (Config, Config) {
    let client = Config {
        local_port: 1,
        remote_port: 2,
        registry: registry.clone(),
        ccids: Ccids::both(ccid),
        queue: QueueConfig { capacity: 64, ..QueueConfig::default() },
        timestamps: true,
        data_checksum: true,
        ..Config::default()
    };
    let server = Config { local_port: 2, remote_port: 1, ..client.clone() };
    (client, server)
}

fn open(ccid: u8, registry: &Arc<Registry>) -> Ends {
    let now = Timestamp::from_secs(1);
    let (client, server) = configs(ccid, registry);
    let mut client = Connection::connect(client, now).expect("a valid configuration");
    let mut wire = Vec::with_capacity(2_000);
    client.poll_transmit(now, &mut wire).expect("a Request");
    let request = Datagram { bytes: &wire, payload: 0, ecn: Ecn::NotEct };
    let server = Connection::accept(server, now, &request, None).expect("a Request");
    let received = Vec::with_capacity(2_000);
    let mut ends = Ends { now, ends: [client, server], wire, received, delivered: 0, one_lost_of: None, sent: 0 };
    ends.settle();
    assert!(ends.ends.iter().all(|e| e.state() == State::Open));
    ends
}

impl Ends {
    fn settle(&mut self) {
        for _ in 0..1_000 {
            let mut moved = false;
            for side in 0..2 {
                while let Some(t) = self.ends[side].poll_transmit(self.now, &mut self.wire) {
                    moved = true;
                    self.sent += 1;
                    if self.one_lost_of.is_some_and(|n| self.sent.is_multiple_of(n)) {
                        continue;
                    }
                    let ecn = if self.sent.is_multiple_of(101) && t.ecn.is_capable() { Ecn::Ce } else { t.ecn };
                    let datagram = Datagram { bytes: &self.wire, payload: t.payload, ecn };
                    // Packets in flight take a short time.
                    self.now += TimeDelta::from_micros(20);
                    self.ends[1 - side].handle_datagram(self.now, &datagram);
                }
                while self.ends[side].receive(&mut self.received).is_some() {
                    self.delivered += 1;
                }
            }
            if !moved {
                return;
            }
        }
        panic!("the ends send without end");
    }
    fn step(&mut self, data: bool) {
        self.now += TimeDelta::from_millis(1);
        for end in &mut self.ends {
            if end.poll_timeout(self.now).is_some_and(|t| t <= self.now) {
                end.handle_timeout(self.now);
            }
            if data {
                let _ = end.send(self.now, &Message { bytes: &[7; 1_200], ..Message::default() });
            }
        }
        self.settle();
    }
}

/// The CCIDs that are there.
fn ccids(registry: &Registry) -> impl Iterator<Item = u8> + '_ {
    registry.specs().iter().map(|s| s.number)
}

/// Bytes that remain allocated by the result of `make`.
fn kept<T>(make: impl FnOnce() -> T) -> (i64, T) {
    let mut made = None;
    let info = allocation_counter::measure(|| made = Some(make()));
    (info.bytes_current, made.expect("it was made"))
}

const IDLE_LIMIT: i64 = 16 * 1_024;

#[test]
fn an_idle_connection_stays_below_16_kib() {
    let registry = Arc::new(Registry::builtin());
    for ccid in ccids(&registry) {
        // Just opened; `measure` counts the heap, the rest is the connection itself.
        let (bytes, mut ends) = kept(|| open(ccid, &registry));
        let each = bytes / 2 + size_of::<Connection>() as i64;
        assert!(each < IDLE_LIMIT, "ccid {ccid}: {each} bytes when opened");
        // After traffic and a quiet time: memory used by a burst is released.
        let info = allocation_counter::measure(|| {
            ends.one_lost_of = Some(97);
            (0..5_000).for_each(|_| ends.step(true));
            ends.one_lost_of = None;
            (0..20_000).for_each(|_| ends.step(false));
        });
        let each = (bytes + info.bytes_current) / 2 + size_of::<Connection>() as i64;
        assert!(ends.delivered > 500, "ccid {ccid}: {} delivered", ends.delivered);
        assert!(each < IDLE_LIMIT, "ccid {ccid}: {each} bytes after traffic");
        println!("ccid {ccid}: {each} bytes idle, {} of them the connection itself", size_of::<Connection>());
    }
}

#[test]
fn packets_allocate_nothing_in_steady_state() {
    let registry = Arc::new(Registry::builtin());
    for ccid in ccids(&registry) {
        let mut ends = open(ccid, &registry);
        (0..100_000).for_each(|_| ends.step(true));
        let before = ends.delivered;
        let info = allocation_counter::measure(|| (0..5_000).for_each(|_| ends.step(true)));
        assert!(ends.delivered - before > 500, "ccid {ccid}");
        assert_eq!(info.count_total, 0, "ccid {ccid}");
    }
}

#[test]
fn no_input_makes_a_connection_grow() {
    // Valid data that is never read, with a hole before each, and options of all kinds.
    let registry = Arc::new(Registry::builtin());
    let ccid = ccids(&registry).next().expect("a CCID");
    let mut ends = open(ccid, &registry);
    let mut first = Seq48::default();
    ends.ends[0].send(ends.now, &Message { bytes: b"x", ..Message::default() }).expect("room");
    if ends.ends[0].poll_transmit(ends.now, &mut ends.wire).is_some() {
        let packet = weir_dccp::packet::parse(&ends.wire, 0).expect("a packet");
        first = packet.header.sequence.extend(Seq48::default());
    }
    let mut sizes = Vec::new();
    let server = &mut ends.ends[1];
    for round in 0..4 {
        let info = allocation_counter::measure(|| {
            for i in 0..20_000u64 {
                let sequence = first.add(2 * (round * 20_000 + i));
                let header = Header {
                    source_port: 1,
                    destination_port: 2,
                    ccval: 0,
                    checksum_coverage: 0,
                    packet_type: PacketType::Data,
                    sequence: WireSequence::Long(sequence),
                    acknowledgement: None,
                };
                let mut bytes = Vec::with_capacity(200);
                PacketWriter::new(&mut bytes, &header).finish();
                bytes.extend_from_slice(&[7; 100]);
                server.handle_datagram(ends.now, &Datagram { bytes: &bytes, payload: 0, ecn: Ecn::Ce });
                if i % 10 == 0 {
                    while server.poll_transmit(ends.now, &mut ends.wire).is_some() {}
                }
            }
        });
        sizes.push(info.bytes_current);
    }
    assert_eq!(server.state(), State::Open);
    assert_eq!(server.counters().data_received, 80_000);
    // The first fills what is bounded; then nothing is kept.
    assert!(sizes[0] < 512 * 1_024 && sizes[1..].iter().all(|s| *s <= 4_096), "{sizes:?}");
}
