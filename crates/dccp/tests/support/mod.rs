//! What the tests of whole connections share: packets by hand, and both ends of a connection side by side.
#![allow(dead_code, unreachable_pub)]

use weir_dccp::connection::{Config, Connection, Datagram, State};
use weir_dccp::listener::{Cookies, Listener, ListenerConfig, ListenerEvent};
use weir_dccp::option::DccpOption;
use weir_dccp::packet::{Header, PacketType, PacketWriter, ResetCode, ServiceCode, WireSequence, parse};
use weir_units::{Ecn, Seq48, Timestamp};

/// Ports of the client and the server.
pub const PORTS: (u16, u16) = (1_001, 2_002);
/// Where the client is.
pub const PEER: u64 = 5;

/// A client's configuration, with the Sequence Window that connections begin with: nothing moves it.
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

/// A packet by hand, from the client to the server or back.
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

/// A server: connections of one client, and the listener that they come from.
pub struct Server {
    pub listener: Listener,
    pub connection: Option<Connection>,
}

impl Server {
    pub fn new(cookies: Cookies) -> Self {
        Self { listener: listener(cookies), connection: None }
    }
    /// Takes a datagram; what leaves.
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
