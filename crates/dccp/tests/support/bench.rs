//! An end brought into any state by network events, and the valid numbers there.

use super::{Server, client_config, datagram, drain, forge, seen};
use State::{CloseReq, Closed, Closing, Listen, Open, PartOpen, Request, Respond, TimeWait};
use weir_dccp::connection::{Connection, State};
use weir_dccp::listener::Cookies;
use weir_dccp::packet::{PacketType as T, ResetCode};
use weir_units::{Seq48, Timestamp};

/// Sequence numbers by position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sequence {
    /// GSR + 1.
    Next,
    /// SWH.
    Highest,
    /// Missing so far, between GSR and OSR.
    Missed,
    /// Missing so far, from before the connection opened.
    MissedEarly,
    /// SWL - 1.
    Below,
    /// SWH + 1.
    Above,
    /// Half a circle away.
    FarAhead,
}

/// Acknowledgement numbers by position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ack {
    /// GSS.
    Newest,
    /// GAR - 1, in the window.
    Older,
    /// AWL - 1.
    Below,
    /// GSS + 1.
    Above,
}

pub const SEQUENCES: [Sequence; 7] = [
    Sequence::Next,
    Sequence::Highest,
    Sequence::Missed,
    Sequence::MissedEarly,
    Sequence::Below,
    Sequence::Above,
    Sequence::FarAhead,
];
pub const ACKS: [Ack; 4] = [Ack::Newest, Ack::Older, Ack::Below, Ack::Above];

/// Sequence Window of both ends: the initial one.
pub const WINDOW: u64 = 100;

/// The end under test, and the previous events of the other end and the network.
pub struct Bench {
    pub now: Timestamp,
    pub is_server: bool,
    client: Option<Connection>,
    server: Server,
    /// Of the end under test: greatest number sent, the first, greatest received and the first, greatest acknowledged.
    pub gss: Seq48,
    pub iss: Seq48,
    pub gsr: Seq48,
    pub isr: Seq48,
    pub gar: Seq48,
}

impl Bench {
    /// Brings an end into a state by network events: real packets of the other end, some with increased numbers as if
    /// others before them had been lost.
    pub fn new(is_server: bool, state: State) -> Self {
        let now = Timestamp::from_secs(50);
        let mut bench = Self {
            now,
            is_server,
            client: None,
            server: Server::new(Cookies::Never),
            gss: Seq48::default(),
            iss: Seq48::default(),
            gsr: Seq48::default(),
            isr: Seq48::default(),
            gar: Seq48::default(),
        };
        let mut client = Connection::connect(client_config(), now).expect("a configuration");
        let mut request = drain(&mut client, now).remove(0);
        if is_server {
            bench.drive_server(state, &mut client, &mut request);
        } else {
            bench.drive_client(state, client, &request);
        }
        bench
    }

    fn drive_server(&mut self, state: State, client: &mut Connection, request: &mut [u8]) {
        self.isr = seen(request).sequence;
        self.gsr = self.isr;
        if state == Listen {
            return;
        }
        let response = self.take(request).remove(0);
        self.iss = seen(&response).sequence;
        self.gar = self.iss;
        // Another Request, with missing numbers between: so some can arrive late.
        let mut other = request.to_vec();
        renumber(&mut other, self.isr.add(6));
        self.take(&other);
        if state == Respond {
            return;
        }
        client.handle_datagram(self.now, &datagram(&response));
        let mut ack = drain(client, self.now).remove(0);
        renumber(&mut ack, self.isr.add(12));
        self.take(&ack);
        self.settle(18);
        self.end(state);
    }

    fn drive_client(&mut self, state: State, client: Connection, request: &[u8]) {
        self.iss = seen(request).sequence;
        (self.gss, self.gar) = (self.iss, self.iss);
        self.client = Some(client);
        if state == Request {
            return;
        }
        // The server's end is real, so that features are negotiated.
        let response = self.server.take(self.now, request).remove(0);
        self.isr = seen(&response).sequence;
        let ack = self.take(&response).remove(0);
        let mut other = forge(false, T::Response, self.isr.add(6), self.gss, &[], &[]);
        self.take(&other);
        if state == PartOpen {
            return;
        }
        let mut from_server = self.server.take(self.now, &ack);
        if from_server.is_empty() {
            from_server.push(forge(false, T::Ack, self.isr.next(), self.gss, &[], &[]));
        }
        other.clone_from(&from_server[0]);
        renumber(&mut other, self.isr.add(12));
        self.take(&other);
        self.settle(18);
        self.end(state);
    }

    /// Delivers the remaining packets of the handshake, the other end's numbers from here on being increased.
    fn settle(&mut self, ahead: u64) {
        for i in 0..2 {
            let bytes = forge(self.is_server, T::Ack, self.isr.add(ahead + i), self.gss, &[], &[]);
            self.take(&bytes);
        }
    }

    /// From OPEN onwards.
    fn end(&mut self, state: State) {
        assert_eq!(self.state(), Open);
        // Two packets of its own, so that an older one may be acknowledged.
        for _ in 0..2 {
            let sync = forge(self.is_server, T::Sync, self.gsr.next(), self.gss, &[], &[]);
            assert_eq!(self.take(&sync).len(), 1);
        }
        let acked = forge(self.is_server, T::Ack, self.gsr.next(), self.gss, &[], &[]);
        self.take(&acked);
        match state {
            Open => {}
            CloseReq | Closing => {
                let now = self.now;
                self.connection().close(now);
                let sent = drain(self.connection(), now);
                self.note_sent(&sent);
            }
            TimeWait => {
                let reset = forge(self.is_server, T::Reset, self.gsr.next(), self.gss, &[], &[]);
                self.take(&reset);
            }
            Closed => {
                let close = forge(self.is_server, T::Close, self.gsr.next(), self.gss, &[], &[]);
                self.take(&close);
            }
            other => panic!("no way to {other:?}"),
        }
    }

    fn connection(&mut self) -> &mut Connection {
        let connection = if self.is_server { self.server.connection.as_mut() } else { self.client.as_mut() };
        connection.expect("a connection")
    }
    pub fn state(&self) -> State {
        match &self.client {
            Some(client) => client.state(),
            None => self.server.state(),
        }
    }
    fn note_sent(&mut self, sent: &[Vec<u8>]) {
        for packet in sent.iter().map(|b| seen(b)) {
            if packet.code != Some(ResetCode::NO_CONNECTION) && packet.code != Some(ResetCode::PACKET_ERROR) {
                self.gss = if self.gss == Seq48::default() { packet.sequence } else { self.gss.max(packet.sequence) };
            }
        }
    }
    /// The end processes a valid packet; returns what it sends.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let packet = seen(bytes);
        self.gsr = if self.gsr == Seq48::default() { packet.sequence } else { self.gsr.max(packet.sequence) };
        if let Some(ack) = packet.ack.filter(|_| packet.packet_type != T::Sync) {
            self.gar = self.gar.max(ack);
        }
        let sent = self.give(bytes);
        self.note_sent(&sent);
        sent
    }
    pub fn give(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        match &mut self.client {
            Some(client) => {
                client.handle_datagram(self.now, &datagram(bytes));
                drain(client, self.now)
            }
            None => self.server.take(self.now, bytes),
        }
    }

    // Section 7.5.1.
    fn swl(&self) -> Seq48 {
        let low = self.gsr.next().sub(WINDOW / 4);
        if self.isr.is_after(low) { self.isr } else { low }
    }
    fn swh(&self) -> Seq48 {
        self.gsr.add((WINDOW * 3).div_ceil(4))
    }
    pub fn awl(&self) -> Seq48 {
        let low = self.gss.next().sub(WINDOW);
        if self.iss.is_after(low) { self.iss } else { low }
    }

    pub fn sequence(&self, which: Sequence) -> Seq48 {
        match which {
            Sequence::Next => self.gsr.next(),
            Sequence::Highest => self.swh(),
            // In a state after opening, 13 to 17 after ISR are missing; before that 1 to 5, which is all there is.
            Sequence::Missed => self.isr.add(if self.gsr.since(self.isr) > 12 { 15 } else { 3 }),
            Sequence::MissedEarly => self.isr.add(if self.gsr.since(self.isr) > 12 { 9 } else { 4 }),
            Sequence::Below => self.swl().sub(1),
            Sequence::Above => self.swh().next(),
            Sequence::FarAhead => self.gsr.add(1 << 46),
        }
    }
    pub fn ack(&self, which: Ack) -> Seq48 {
        match which {
            Ack::Newest => self.gss,
            Ack::Older => self.gar.sub(1),
            Ack::Below => self.awl().sub(1),
            Ack::Above => self.gss.next(),
        }
    }

    /// Section 7.5.3. Syncs are checked more strictly if the connection is active.
    pub fn is_valid(&self, packet_type: T, sequence: Seq48, ack: Seq48, active: bool) -> bool {
        let ends = matches!(packet_type, T::CloseReq | T::Close | T::Reset);
        let is_sync = matches!(packet_type, T::Sync | T::SyncAck);
        let above_low = if ends { sequence.is_after(self.gsr) } else { sequence.since(self.swl()) >= 0 };
        let below_high = !sequence.is_after(self.swh()) || is_sync && !active;
        let low = if ends { self.gar } else { self.awl() };
        let ack_fits = !packet_type.has_acknowledgement() || !low.is_after(ack) && !ack.is_after(self.gss);
        above_low && below_high && ack_fits
    }
}

pub fn renumber(bytes: &mut [u8], sequence: Seq48) {
    bytes[10..16].copy_from_slice(&sequence.get().to_be_bytes()[2..]);
}
