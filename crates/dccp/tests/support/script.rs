//! A client and a listener with a link between them that follows a script of bytes: nothing panics, nothing is sent
//! endlessly, no timeout is due for ever, times do not decrease, memory stays bounded, and everything sent can be
//! parsed. For the tests here and for the fuzz target.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use weir_dccp::ccid::Registry;
use weir_dccp::connection::{Ccids, Config, Connection, Datagram, State};
use weir_dccp::data_dropped::DropCode;
use weir_dccp::feature::Location;
use weir_dccp::listener::{Cookies, Listener, ListenerConfig, ListenerEvent};
use weir_dccp::option::FeatureNumber;
use weir_dccp::packet::{Header, PacketType, PacketWriter, ResetCode, ServiceCode, WireSequence, parse};
use weir_dccp::queue::{Message, QueueConfig, QueuePolicy};
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

fn registry() -> Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(|| Arc::new(Registry::builtin())).clone()
}

/// A packet in flight.
struct Flying {
    bytes: Vec<u8>,
    beyond: u32,
    ecn: Ecn,
}

/// Timeouts in half a minute, of both ends: each may send for features every 5 ms, for data and for acknowledgements.
const MAX_TURNS: u32 = 20_000;
/// Timeouts at one instant.
const MAX_TURNS_AT_ONCE: u32 = 4;
/// Maximum packets in flight; the oldest are then lost.
const MAX_FLYING: usize = 64;

struct Link {
    now: Timestamp,
    client: Connection,
    listener: Listener,
    server: Option<Connection>,
    /// To the client, and to the server.
    flying: [VecDeque<Flying>; 2],
    /// The newest number that either has sent.
    newest: [Seq48; 2],
    capacity: usize,
    buffer: Vec<u8>,
}

impl Link {
    fn new(flags: [u8; 3]) -> Self {
        let now = Timestamp::from_secs(1);
        let bit = |n: u8| flags[0] >> n & 1 == 1;
        let registry = registry();
        let ccids = Ccids::both(registry.specs()[usize::from(flags[1]) % registry.specs().len()].number);
        let policy = if bit(7) { QueuePolicy::DropOldest } else { QueuePolicy::Refuse };
        let capacity = usize::from(flags[2] % 8) + 1;
        let config = Config {
            registry,
            ccids,
            ecn: bit(0),
            short_sequence_numbers: bit(1),
            data_checksum: bit(2),
            timestamps: bit(3),
            checksum_coverage: flags[2] >> 4,
            minimum_checksum_coverage: u8::from(bit(4)),
            keep_alive: bit(5).then(|| TimeDelta::from_secs(10)),
            sequence_window: if bit(6) { 32 } else { 1_000 },
            receive_capacity: capacity,
            queue: QueueConfig { capacity: 8, policy },
            ..Config::default()
        };
        let cookies = if flags[2] & 8 == 0 { Cookies::Never } else { Cookies::Always };
        let listener = ListenerConfig { cookies, ..ListenerConfig::new(Config { seed: 2, ..config.clone() }, [9; 32]) };
        let mut link = Self {
            now,
            client: Connection::connect(config, now).expect("a valid configuration"),
            listener: Listener::new(listener).expect("a valid configuration"),
            server: None,
            flying: [VecDeque::new(), VecDeque::new()],
            newest: [Seq48::default(); 2],
            capacity,
            buffer: Vec::new(),
        };
        link.pump();
        link
    }

    /// Records a sent packet: it and all its options can be parsed.
    fn put(&mut self, from_client: bool, bytes: Vec<u8>, beyond: u32, ecn: Ecn) {
        let p = parse(&bytes, beyond).expect("what an end sends can be read");
        assert!(p.options.iter().all(|o| o.is_ok()), "{:?}", p.options);
        assert!(p.options.entries().all(|e| e.due_reset().is_none()));
        // A Reset without a connection has the numbers of the packet that it answers.
        if p.header.packet_type != PacketType::Reset {
            let newest = &mut self.newest[usize::from(!from_client)];
            *newest = p.header.sequence.extend(*newest);
        }
        let flying = &mut self.flying[usize::from(from_client)];
        if flying.len() >= MAX_FLYING {
            flying.pop_front();
        }
        flying.push_back(Flying { bytes, beyond, ecn });
    }

    fn pump(&mut self) {
        for from_client in [true, false] {
            for round in 0.. {
                assert!(round < 1_000, "packets without end");
                let end = if from_client { Some(&mut self.client) } else { self.server.as_mut() };
                let Some(end) = end else { break };
                let Some(t) = end.poll_transmit(self.now, &mut self.buffer) else { break };
                assert_eq!(t.size.as_bytes(), self.buffer.len() as u64 + u64::from(t.payload));
                assert!(t.header <= self.buffer.len() && t.size.as_bytes() <= 1_472);
                let bytes = std::mem::take(&mut self.buffer);
                self.put(from_client, bytes, t.payload, t.ecn);
            }
        }
        while self.listener.poll_transmit(&mut self.buffer).is_some() {
            let bytes = std::mem::take(&mut self.buffer);
            self.put(false, bytes, 0, Ecn::NotEct);
        }
    }

    fn deliver(&mut self, to_client: bool, f: &Flying) {
        let datagram = Datagram { bytes: &f.bytes, payload: f.beyond, ecn: f.ecn };
        match &mut self.server {
            _ if to_client => self.client.handle_datagram(self.now, &datagram),
            Some(server) => server.handle_datagram(self.now, &datagram),
            None => match self.listener.handle_datagram(self.now, 7, &datagram, &mut self.buffer) {
                ListenerEvent::Reply => {
                    let bytes = std::mem::take(&mut self.buffer);
                    self.put(false, bytes, 0, Ecn::NotEct);
                }
                ListenerEvent::Accepted(connection) => self.server = Some(*connection),
                ListenerEvent::Nothing => {}
            },
        }
        self.pump();
    }

    /// Time passes without a turn, as while the process does not run; then everything due is handled.
    fn oversleep(&mut self, span: TimeDelta) {
        self.now += span;
        for turn in 0.. {
            self.client.handle_timeout(self.now);
            if let Some(server) = &mut self.server {
                server.handle_timeout(self.now);
            }
            self.listener.handle_timeout(self.now);
            self.pump();
            let now = self.now;
            let server = self.server.as_mut().and_then(|s| s.poll_timeout(now));
            let next = [self.client.poll_timeout(now), server, self.listener.poll_timeout()];
            if next.into_iter().flatten().all(|t| t > now) {
                break;
            }
            assert!(turn < MAX_TURNS_AT_ONCE, "time stands still after a pause: {next:?} at {now:?}");
        }
    }

    /// Advances time, running timers. Time always advances: an end whose timeout was handled and whose packets were
    /// sent requests a later one, except for a few turns at one instant that each change its state.
    fn advance(&mut self, span: TimeDelta) {
        let end = self.now + span;
        let mut turns = 0;
        for round in 0.. {
            let now = self.now;
            let server = self.server.as_mut().and_then(|s| s.poll_timeout(now));
            let all = [self.client.poll_timeout(now), server, self.listener.poll_timeout()];
            let Some(at) = all.into_iter().flatten().min().filter(|t| *t <= end) else { break };
            assert!(round < MAX_TURNS, "timeouts without end: {all:?} at {now:?} of {end:?}, {:?}", self.server);
            turns = if at > now { 0 } else { turns + 1 };
            assert!(
                turns <= MAX_TURNS_AT_ONCE,
                "time stands still: {all:?} at {now:?}, {:?}, {:?}",
                self.client,
                self.server
            );
            self.now = at.max(now);
            self.client.handle_timeout(self.now);
            if let Some(server) = &mut self.server {
                server.handle_timeout(self.now);
            }
            self.listener.handle_timeout(self.now);
            self.pump();
        }
        self.now = end;
    }

    /// A packet that claims to be from one end, with numbers near the valid ones.
    fn forge(&mut self, from_client: bool, op: &[u8; 5], options: &[u8]) {
        let packet_type = PacketType::ALL[usize::from(op[0]) % 10];
        let short = op[0] & 0x80 != 0 && packet_type.may_be_short();
        let near = |n: Seq48, by: u8| if by < 128 { n.add(by.into()) } else { n.sub(u64::from(by) - 128) };
        let form = |n| if short { WireSequence::short(n) } else { WireSequence::Long(n) };
        let [ours, theirs] = [from_client, !from_client].map(|c| self.newest[usize::from(!c)]);
        let header = Header {
            source_port: 5_004,
            destination_port: 5_004,
            ccval: op[3] >> 4,
            checksum_coverage: 0,
            packet_type,
            sequence: form(near(ours, op[1])),
            acknowledgement: packet_type.has_acknowledgement().then(|| form(near(theirs, op[2]))),
        };
        let mut bytes = Vec::new();
        let mut w = PacketWriter::new(&mut bytes, &header);
        match packet_type {
            PacketType::Request | PacketType::Response => w.service_code(ServiceCode::UNSPECIFIED),
            PacketType::Reset => w.reset(ResetCode(op[3]), [op[4], 0, 0]),
            _ => {}
        }
        w.finish();
        bytes.extend_from_slice(options);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes[4] = (bytes.len() / 4) as u8;
        if from_client && packet_type == PacketType::Request && op[4] & 1 != 0 {
            // Of a stranger, whose connection stays half open.
            let datagram = Datagram { bytes: &bytes, payload: 0, ecn: Ecn::NotEct };
            let event = self.listener.handle_datagram(self.now, u64::from(op[4]), &datagram, &mut self.buffer);
            assert!(!matches!(event, ListenerEvent::Accepted(_)), "a Request opens no connection");
            return;
        }
        self.deliver(!from_client, &Flying { bytes, beyond: op[4].into(), ecn: Ecn::from_bits(op[3]) });
    }

    fn step(&mut self, op: u8, rest: &mut &[u8]) {
        let mut take = |n: usize| {
            let (taken, behind) = rest.split_at(n.min(rest.len()));
            *rest = behind;
            taken
        };
        let side = op & 1 == 0;
        match op >> 1 & 0xf {
            0..=4 => {
                if let Some(f) = self.flying[usize::from(!side)].pop_front() {
                    self.deliver(side, &f);
                }
            }
            5 => drop(self.flying[usize::from(!side)].pop_front()),
            6 => {
                // Twice, and marked.
                if let Some(mut f) = self.flying[usize::from(!side)].pop_front() {
                    f.ecn = Ecn::Ce;
                    self.deliver(side, &f);
                    self.deliver(side, &f);
                }
            }
            7 => {
                if let ([at, by], Some(mut f)) = (take(2), self.flying[usize::from(!side)].pop_front()) {
                    let at = usize::from(*at) % f.bytes.len();
                    f.bytes[at] ^= by;
                    self.deliver(side, &f);
                }
            }
            8 => {
                let flying = &mut self.flying[usize::from(!side)];
                flying.rotate_left(flying.len().min(1));
            }
            9 | 10 => {
                let (fixed, len) = (take(5), take(1).first().map_or(0, |&l| usize::from(l) % 64));
                let options = take(len);
                if let Ok(fixed) = fixed.try_into() {
                    self.forge(side, fixed, options);
                }
            }
            11 | 12 => {
                let byte = take(1).first().copied().unwrap_or(0);
                let span = TimeDelta::from_micros(1 << (byte % 26));
                if byte < 208 { self.advance(span) } else { self.oversleep(span) }
            }
            13 | 14 => {
                let [len, importance] = take(2) else { return };
                let message = Message {
                    bytes: &[0xa5; 8][..usize::from(len % 8)],
                    payload: u32::from(*len) * 5,
                    importance: *importance,
                    deadline: (importance % 5 == 0).then(|| self.now + TimeDelta::from_millis(30)),
                };
                let end = if side { Some(&mut self.client) } else { self.server.as_mut() };
                if let Some(end) = end {
                    let _ = end.send(self.now, &message);
                    assert!(end.queue().len() <= 8);
                }
                self.pump();
            }
            _ => {
                let what = take(1).first().copied().unwrap_or(0);
                let end = if side { Some(&mut self.client) } else { self.server.as_mut() };
                let Some(end) = end else { return };
                match what % 8 {
                    0 => end.close(self.now),
                    1 => end.abort(self.now),
                    2 => end.stop_receiving(),
                    3 => end.set_slow_receiver(what & 8 == 0),
                    5 => {
                        let location = if what & 8 == 0 { Location::Local } else { Location::Remote };
                        let values: &[u64] = if what & 16 == 0 { &[1, 0] } else { &[0, 100, 5_000] };
                        end.change_feature(location, FeatureNumber(what >> 4), values);
                    }
                    6 => {
                        let newest = self.newest[usize::from(side)];
                        end.report_dropped(newest, DropCode::RECEIVE_BUFFER);
                    }
                    _ => {
                        let mut came = 0;
                        while end.receive(&mut self.buffer).is_some() {
                            came += 1;
                        }
                        assert!(came <= self.capacity);
                    }
                }
                self.pump();
            }
        }
    }
}

/// Plays a script: three bytes of setup, then steps.
pub(crate) fn play(data: &[u8]) {
    let Some((flags, mut rest)) = data.split_first_chunk::<3>() else { return };
    let mut link = Link::new(*flags);
    while let Some((&op, behind)) = rest.split_first() {
        rest = behind;
        link.step(op, &mut rest);
    }
    let ends = [Some(&link.client), link.server.as_ref()];
    for end in ends.into_iter().flatten() {
        // An end has a reason once the connection is over, and not before.
        assert_eq!(end.end().is_some(), matches!(end.state(), State::Closed | State::TimeWait));
        end.metrics(&mut |name, value| assert!(!value.is_infinite(), "{name}"));
        assert!(end.rate().is_none_or(|r| r.as_bps() < 1 << 60));
    }
}
