//! A peer that knows all numbers, driven by bytes: the packets it sends, their times, and the application's actions.
//! For the tests here and for the fuzz target.

use weir_dccp::connection::{Ccids, Config, Connection, Datagram, State};
use weir_dccp::packet::{Header, PacketType, PacketWriter, ResetCode, ServiceCode, WireSequence, parse};
use weir_dccp::queue::Message;
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

/// Datagrams that may wait for the application.
const RECEIVE_CAPACITY: usize = 32;
/// Maximum packets that an end may send at one instant.
const MOST_AT_ONCE: usize = 2_000;

/// Bytes consumed in order; zeros after the end.
struct Script<'a> {
    bytes: &'a [u8],
}

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&byte, rest)) => {
                self.bytes = rest;
                byte
            }
            None => 0,
        }
    }
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(len.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// Mostly small, sometimes any.
    fn offset(&mut self) -> u64 {
        match self.byte() {
            0xff => self.take(6).iter().fold(0, |n, &b| n << 8 | u64::from(b)),
            small => i64::from(small as i8).cast_unsigned(),
        }
    }
}

/// The end under attack.
pub(crate) struct Target {
    pub(crate) connection: Connection,
    pub(crate) now: Timestamp,
    /// Greatest number that it has sent, and that it has been sent.
    gss: Seq48,
    gsr: Seq48,
}

impl Target {
    /// A client's or a server's end, just begun, or opened by a peer that was well-behaved so far.
    pub(crate) fn new(setup: u8, ccid: u8) -> Self {
        let bit = |n: u8| setup & 1 << n != 0;
        let config = Config::default();
        let numbers: Vec<u8> = config.registry.specs().iter().map(|s| s.number).collect();
        let ccid = numbers.get(usize::from(ccid) % numbers.len().max(1)).copied().unwrap_or(2);
        let config = Config {
            local_port: 1,
            remote_port: 2,
            ccids: Ccids::both(ccid),
            short_sequence_numbers: bit(0),
            data_checksum: bit(1),
            timestamps: bit(2),
            minimum_checksum_coverage: u8::from(bit(3)),
            receive_capacity: RECEIVE_CAPACITY,
            keep_alive: bit(4).then_some(TimeDelta::from_secs(20)),
            ..config
        };
        let other = Config { local_port: 2, remote_port: 1, seed: 9, ..config.clone() };
        let is_server = bit(5);
        let (client, server) = if is_server { (other, config) } else { (config, other) };
        let now = Timestamp::from_secs(1_000);
        let mut client = Connection::connect(client, now).expect("a configuration");
        let mut wire = Vec::new();
        client.poll_transmit(now, &mut wire).expect("a Request");
        let request = wire.clone();
        let mut server = Connection::accept(server, now, &as_datagram(&request), None).expect("a Request");
        let mut newest = [number(&request, Seq48::default()), Seq48::default()];
        if bit(6) || !is_server {
            // The handshake, and on until both ends are silent; or only the client's first packet.
            for _ in 0..if bit(6) { 10 } else { 0 } {
                while server.poll_transmit(now, &mut wire).is_some() {
                    newest[1] = number(&wire, newest[1]);
                    client.handle_datagram(now, &as_datagram(&wire));
                }
                while client.poll_transmit(now, &mut wire).is_some() {
                    newest[0] = number(&wire, newest[0]);
                    server.handle_datagram(now, &as_datagram(&wire));
                }
            }
        }
        let [from_client, from_server] = newest;
        let (connection, gss, gsr) =
            if is_server { (server, from_server, from_client) } else { (client, from_client, from_server) };
        let mut target = Self { connection, now, gss, gsr };
        target.drain();
        target
    }

    /// Sends everything due; the packets can be parsed, and their numbers increase by one.
    fn drain(&mut self) {
        let mut out = Vec::new();
        let mut count = 0;
        while let Some(transmit) = self.connection.poll_transmit(self.now, &mut out) {
            count += 1;
            assert!(count < MOST_AT_ONCE, "it sends without end in {:?}", self.connection.state());
            let packet = parse(&out, transmit.payload).expect("what it sends can be read");
            assert!(packet.options.entries().all(|e| e.option.is_ok()), "what it sends is well-formed");
            assert_eq!(transmit.size.as_bytes(), out.len() as u64 + u64::from(transmit.payload));
            match packet.header.sequence {
                WireSequence::Long(s) if packet.header.packet_type != PacketType::Reset => {
                    assert!(self.gss == Seq48::default() || s == self.gss.next(), "{s:?} behind {:?}", self.gss);
                    self.gss = s;
                }
                // One that answers a packet of no connection takes its numbers from there; it may take the number of
                // the next.
                WireSequence::Long(s) if s == self.gss.next() => self.gss = s,
                WireSequence::Long(_) => {}
                WireSequence::Short(s) => {
                    self.gss = self.gss.next();
                    assert_eq!(u64::from(s), self.gss.get() & 0xff_ffff);
                }
            }
        }
    }

    fn take(&mut self, bytes: &[u8], payload: u32, ecn: u8) {
        self.connection.handle_datagram(self.now, &Datagram { bytes, payload, ecn: Ecn::from_bits(ecn) });
        self.drain();
        self.holds();
    }

    /// A packet with numbers as they would be next, moved by these.
    pub(crate) fn packet(
        &mut self,
        packet_type: PacketType,
        ahead: u64,
        ack_ahead: u64,
        options: &[u8],
        data: &[u8],
        kind: u8,
    ) {
        let sequence = self.gsr.next().add(ahead);
        let ack = self.gss.add(ack_ahead);
        let short = kind & 1 != 0 && packet_type.may_be_short();
        let wire = |s: Seq48| {
            if short { WireSequence::Short((s.get() & 0xff_ffff) as u32) } else { WireSequence::Long(s) }
        };
        let header = Header {
            source_port: 2,
            destination_port: 1,
            ccval: kind >> 4,
            checksum_coverage: if kind & 2 != 0 { kind >> 2 & 0xf } else { 0 },
            packet_type,
            sequence: wire(sequence),
            acknowledgement: packet_type.has_acknowledgement().then(|| wire(ack)),
        };
        let mut out = Vec::new();
        let mut writer = PacketWriter::new(&mut out, &header);
        match packet_type {
            PacketType::Request | PacketType::Response => writer.service_code(ServiceCode::UNSPECIFIED),
            PacketType::Reset => writer.reset(ResetCode(kind), [kind, 0, 1]),
            _ => {}
        }
        writer.finish();
        out.extend_from_slice(&options[..options.len().min(960)]);
        out.resize(out.len().next_multiple_of(4), 0);
        out[4] = (out.len() / 4) as u8;
        out.extend_from_slice(data);
        // Numbers that are close are taken as the peer's newest, so that further ones are near the valid ones.
        if sequence.since(self.gsr) > 0 && sequence.since(self.gsr) < 5_000 {
            self.gsr = sequence;
        }
        self.take(&out, 0, kind);
    }

    /// Time passes, its timers fire.
    pub(crate) fn wait(&mut self, time: TimeDelta) {
        let until = self.now + time;
        for round in 0.. {
            // A timer every millisecond would be 60,000 in the longest wait.
            assert!(round < 100_000, "timers without end in {:?}", self.connection.state());
            let due = self.connection.poll_timeout(self.now).filter(|t| *t <= until);
            let Some(due) = due else { break };
            self.now = self.now.max(due);
            self.connection.handle_timeout(self.now);
            self.drain();
            let late = self.connection.poll_timeout(self.now).filter(|t| *t < self.now);
            assert_eq!(late, None, "a deadline that has passed was dealt with");
        }
        self.now = until;
        self.holds();
    }

    fn holds(&mut self) {
        let c = &self.connection;
        let over = matches!(c.state(), State::Closed | State::TimeWait);
        assert_eq!(over, c.end().is_some(), "{:?}: it lives, or has ended for a reason", c.state());
        assert!(c.queue().len() <= c.queue().config().capacity.max(1));
    }
}

fn as_datagram(bytes: &[u8]) -> Datagram<'_> {
    Datagram { bytes, payload: 0, ecn: Ecn::NotEct }
}

/// A packet's number; a short one is near the newest before it.
fn number(bytes: &[u8], newest: Seq48) -> Seq48 {
    parse(bytes, 0).expect("a packet that a connection wrote").header.sequence.extend(newest)
}

/// Options: of any bytes, or with lengths that fit.
fn options(script: &mut Script<'_>) -> Vec<u8> {
    let how = script.byte();
    if how & 1 == 0 {
        return script.take(usize::from(how >> 1)).to_vec();
    }
    let mut buffer = Vec::new();
    for _ in 0..how >> 5 {
        let number = script.byte();
        // Numbers from 0 to 47 and from 128 on mean something.
        let number = if number & 0x80 == 0 { number % 48 } else { number };
        buffer.push(number);
        if number >= 32 {
            let data = script.take(usize::from(script.bytes.first().copied().unwrap_or(0) % 24) + 1);
            buffer.push(data.len() as u8 + 2);
            buffer.extend_from_slice(data);
            if (32..36).contains(&number) && !data.is_empty() {
                // A feature that there is.
                let at = buffer.len() - data.len();
                buffer[at] %= 11;
            }
        }
    }
    buffer
}

/// Plays a script. None may break the end, which is finally closed by its application and comes to rest.
pub(crate) fn play(bytes: &[u8]) {
    let mut script = Script { bytes };
    let mut target = Target::new(script.byte(), script.byte());
    let mut received = Vec::new();
    while !script.is_empty() {
        match script.byte() % 8 {
            0..=3 => {
                let (kind, packet_type) = (script.byte(), script.byte());
                let packet_type = PacketType::ALL[usize::from(packet_type % 10)];
                let (ahead, ack_ahead) = (script.offset(), script.offset());
                let options = options(&mut script);
                let data = script.take(usize::from(script.bytes.first().copied().unwrap_or(0) % 64));
                target.packet(packet_type, ahead, ack_ahead, &options, data, kind);
            }
            4 => {
                let len = usize::from(script.byte());
                let bytes = script.take(len);
                target.take(bytes, u32::from(len as u8) * 9, len as u8);
            }
            5 => {
                // Up to a minute.
                let time = TimeDelta::from_micros(1 << (script.byte() % 26));
                target.wait(time);
            }
            6 => {
                let now = target.now;
                let c = &mut target.connection;
                match script.byte() % 16 {
                    0 => c.close(now),
                    1 => c.abort(now),
                    2 => c.stop_receiving(),
                    3 => c.set_slow_receiver(true),
                    4..=7 => {
                        let mut count = 0;
                        while c.receive(&mut received).is_some() {
                            count += 1;
                        }
                        assert!(count <= RECEIVE_CAPACITY);
                    }
                    n => {
                        let bytes = [n; 300];
                        let _ = c.send(now, &Message { bytes: &bytes, ..Message::default() });
                    }
                }
                target.drain();
                target.holds();
            }
            _ => {
                // Many of the same kind, with consecutive numbers.
                let (packet_type, count) = (script.byte(), script.byte());
                let packet_type = PacketType::ALL[usize::from(packet_type % 10)];
                let options = options(&mut script);
                for _ in 0..count {
                    target.packet(packet_type, 0, 0, &options, b"", 0);
                }
            }
        }
    }
    let now = target.now;
    target.connection.close(now);
    target.drain();
    target.wait(TimeDelta::from_secs(3_000));
    assert_eq!(target.connection.state(), State::Closed, "it comes to rest without its peer");
    assert!(target.connection.poll_timeout(target.now).is_none());
}
