//! Every state with every packet type, and in each every combination of valid and invalid numbers, against a table written from
//! RFC 4340, section 8.5, and section 7.5.3.

mod support;

use State::{CloseReq, Closed, Closing, Listen, Open, PartOpen, Request, Respond, TimeWait};
use support::{Seen, Server, client_config, datagram, drain, forge, seen};
use weir_dccp::connection::{Connection, State};
use weir_dccp::listener::Cookies;
use weir_dccp::packet::{PacketType, ResetCode};
use weir_units::{Seq48, TimeDelta, Timestamp};

/// The answer to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// None; a data packet may be acknowledged, as congestion control has it.
    None,
    /// A packet of this type.
    A(PacketType),
    /// A Reset of this code.
    Reset(ResetCode),
}

use Answer::{A, None as Quiet, Reset};
use PacketType as T;

const NO_CONNECTION: Answer = Reset(ResetCode::NO_CONNECTION);
const PACKET_ERROR: Answer = Reset(ResetCode::PACKET_ERROR);
const CLOSED: Answer = Reset(ResetCode::CLOSED);
const SYNC: Answer = A(T::Sync);

/// What becomes of a packet whose numbers are valid and new: the state behind it, and the answer.
type Cell = (State, Answer);

/// Which end, in which state, and a cell for each type in the order of their numbers: Request, Response, Data, Ack, DataAck,
/// CloseReq, Close, Reset, Sync, SyncAck.
///
/// A server is never in REQUEST, PARTOPEN or CLOSING here (it closes by CloseReq), a client never in LISTEN, RESPOND or CLOSEREQ.
const TABLE: [(bool, State, [Cell; 10]); 12] = [
    // Step 3: a Request makes a socket, everything else gets No Connection, a Reset nothing.
    (
        true,
        Listen,
        [
            (Respond, A(T::Response)),
            (Listen, NO_CONNECTION),
            (Listen, NO_CONNECTION),
            (Listen, NO_CONNECTION),
            (Listen, NO_CONNECTION),
            (Listen, NO_CONNECTION),
            (Listen, NO_CONNECTION),
            (Listen, Quiet),
            (Listen, NO_CONNECTION),
            (Listen, NO_CONNECTION),
        ],
    ),
    (
        true,
        Respond,
        [
            (Respond, A(T::Response)), // step 11
            (Respond, SYNC),           // step 7: the end is a server
            (Respond, SYNC),           // step 7: Data in RESPOND
            (Open, Quiet),             // step 11
            (Open, Quiet),
            (Respond, SYNC),       // step 7: a CloseReq to a server
            (Listen, CLOSED),      // steps 11 and 14; what was half open is forgotten
            (Listen, Quiet),       // step 9
            (Open, A(T::SyncAck)), // steps 11 and 15
            (Open, Quiet),
        ],
    ),
    (
        true,
        Open,
        [
            (Open, SYNC), // step 7
            (Open, SYNC),
            (Open, Quiet),
            (Open, Quiet),
            (Open, Quiet),
            (Open, SYNC),
            (Closed, CLOSED),
            (TimeWait, Quiet),
            (Open, A(T::SyncAck)),
            (Open, Quiet),
        ],
    ),
    (
        true,
        CloseReq,
        [
            (CloseReq, SYNC),
            (CloseReq, SYNC),
            (CloseReq, Quiet), // section 8.3: processed or ignored
            (CloseReq, Quiet),
            (CloseReq, Quiet),
            (CloseReq, SYNC),
            (Closed, CLOSED),
            (TimeWait, Quiet),
            (CloseReq, A(T::SyncAck)),
            (CloseReq, Quiet),
        ],
    ),
    (true, TimeWait, no_connection(TimeWait)), // step 2
    (true, Closed, no_connection(Closed)),
    // Step 4: only Response and Reset are expected in REQUEST.
    (
        false,
        Request,
        [
            (Request, PACKET_ERROR),
            (PartOpen, A(T::Ack)), // steps 10 and 12
            (Request, PACKET_ERROR),
            (Request, PACKET_ERROR),
            (Request, PACKET_ERROR),
            (Request, PACKET_ERROR),
            (Request, PACKET_ERROR),
            (TimeWait, Quiet),
            (Request, PACKET_ERROR),
            (Request, PACKET_ERROR),
        ],
    ),
    (
        false,
        PartOpen,
        [
            (PartOpen, SYNC),      // step 7: the end is a client
            (PartOpen, A(T::Ack)), // step 12
            (Open, Quiet),         // step 12
            (Open, Quiet),
            (Open, Quiet),
            (Closing, A(T::Close)), // steps 12 and 13
            (Closed, CLOSED),
            (TimeWait, Quiet),
            (PartOpen, A(T::SyncAck)), // step 12 leaves Syncs out
            (Open, Quiet),
        ],
    ),
    (
        false,
        Open,
        [
            (Open, SYNC),
            (Open, SYNC), // step 7: not before OSR
            (Open, Quiet),
            (Open, Quiet),
            (Open, Quiet),
            (Closing, A(T::Close)),
            (Closed, CLOSED),
            (TimeWait, Quiet),
            (Open, A(T::SyncAck)),
            (Open, Quiet),
        ],
    ),
    (
        false,
        Closing,
        [
            (Closing, SYNC),
            (Closing, SYNC),
            (Closing, Quiet),
            (Closing, Quiet),
            (Closing, Quiet),
            (Closing, Quiet), // step 13 is for states before CLOSEREQ
            (Closed, CLOSED),
            (TimeWait, Quiet),
            (Closing, A(T::SyncAck)),
            (Closing, Quiet),
        ],
    ),
    (false, TimeWait, no_connection(TimeWait)),
    (false, Closed, no_connection(Closed)),
];

/// Step 2: No Connection for all but Resets.
const fn no_connection(state: State) -> [Cell; 10] {
    let mut cells = [(state, NO_CONNECTION); 10];
    cells[T::Reset as usize] = (state, Quiet);
    cells
}

/// Sequence numbers by where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sequence {
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

/// Acknowledgement numbers by where they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ack {
    /// GSS.
    Newest,
    /// GAR - 1, in the window.
    Older,
    /// AWL - 1.
    Below,
    /// GSS + 1.
    Above,
}

const SEQUENCES: [Sequence; 7] = [
    Sequence::Next,
    Sequence::Highest,
    Sequence::Missed,
    Sequence::MissedEarly,
    Sequence::Below,
    Sequence::Above,
    Sequence::FarAhead,
];
const ACKS: [Ack; 4] = [Ack::Newest, Ack::Older, Ack::Below, Ack::Above];

/// Sequence Window of both ends: the initial one.
const WINDOW: u64 = 100;

/// The end under test, and what the other end and the network have done so far.
struct Bench {
    now: Timestamp,
    is_server: bool,
    client: Option<Connection>,
    server: Server,
    /// Of the end under test: greatest number sent, the first, greatest received and the first, greatest acknowledged.
    gss: Seq48,
    iss: Seq48,
    gsr: Seq48,
    isr: Seq48,
    gar: Seq48,
}

impl Bench {
    /// Puts an end into a state by what a network can do: real packets of the other end, some with numbers moved on as if others
    /// had been lost before them.
    fn new(is_server: bool, state: State) -> Self {
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
        // Another Request, with numbers missing between: so there are some to come late.
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
        // The server's end is real, so that features are agreed on.
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

    /// Lets what the handshake has left come to rest, the other end's numbers from here on being moved on by some more.
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
    fn state(&self) -> State {
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
    /// The end takes a packet that is valid; what it sends.
    fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let packet = seen(bytes);
        self.gsr = if self.gsr == Seq48::default() { packet.sequence } else { self.gsr.max(packet.sequence) };
        if let Some(ack) = packet.ack.filter(|_| packet.packet_type != T::Sync) {
            self.gar = self.gar.max(ack);
        }
        let sent = self.give(bytes);
        self.note_sent(&sent);
        sent
    }
    fn give(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
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
    fn awl(&self) -> Seq48 {
        let low = self.gss.next().sub(WINDOW);
        if self.iss.is_after(low) { self.iss } else { low }
    }

    fn sequence(&self, which: Sequence) -> Seq48 {
        match which {
            Sequence::Next => self.gsr.next(),
            Sequence::Highest => self.swh(),
            // In a state that has been opened, 13 to 17 after ISR are missing; before that 1 to 5, which is all there is.
            Sequence::Missed => self.isr.add(if self.gsr.since(self.isr) > 12 { 15 } else { 3 }),
            Sequence::MissedEarly => self.isr.add(if self.gsr.since(self.isr) > 12 { 9 } else { 4 }),
            Sequence::Below => self.swl().sub(1),
            Sequence::Above => self.swh().next(),
            Sequence::FarAhead => self.gsr.add(1 << 46),
        }
    }
    fn ack(&self, which: Ack) -> Seq48 {
        match which {
            Ack::Newest => self.gss,
            Ack::Older => self.gar.sub(1),
            Ack::Below => self.awl().sub(1),
            Ack::Above => self.gss.next(),
        }
    }

    /// Section 7.5.3. Syncs are checked more strictly where the connection is active.
    fn is_valid(&self, packet_type: T, sequence: Seq48, ack: Seq48, active: bool) -> bool {
        let ends = matches!(packet_type, T::CloseReq | T::Close | T::Reset);
        let is_sync = matches!(packet_type, T::Sync | T::SyncAck);
        let above_low = if ends { sequence.is_after(self.gsr) } else { sequence.since(self.swl()) >= 0 };
        let below_high = !sequence.is_after(self.swh()) || is_sync && !active;
        let low = if ends { self.gar } else { self.awl() };
        let ack_fits = !packet_type.has_acknowledgement() || !low.is_after(ack) && !ack.is_after(self.gss);
        above_low && below_high && ack_fits
    }
}

fn renumber(bytes: &mut [u8], sequence: Seq48) {
    bytes[10..16].copy_from_slice(&sequence.get().to_be_bytes()[2..]);
}

/// What the table and the rules of validity say of a packet.
fn expected(
    bench: &Bench,
    state: State,
    cell: Cell,
    packet_type: T,
    sequence: Seq48,
    ack: Seq48,
    active: bool,
) -> Cell {
    if matches!(state, Listen | TimeWait | Closed) {
        return cell; // No numbers are known there.
    }
    if state == Request {
        // Step 4: the other end's numbers are not known yet, its acknowledgements are.
        let fits = !bench.awl().is_after(ack) && !ack.is_after(bench.gss);
        return match packet_type {
            T::Response if !fits => (Request, PACKET_ERROR),
            // Step 4 has a Reset for it. No Reset is answered by one, as in steps 2 and 3: two ends might go on for ever.
            T::Reset if !fits => (Request, Quiet),
            _ => cell,
        };
    }
    if !bench.is_valid(packet_type, sequence, ack, active) {
        let answer = if matches!(packet_type, T::Sync | T::SyncAck) { Quiet } else { SYNC };
        return (state, answer);
    }
    // Step 7: Requests and Responses from before the connection opened are late, not unexpected.
    let opened = matches!(state, Open | CloseReq | Closing);
    let late = opened && sequence.since(bench.isr) < 12;
    match packet_type {
        T::Request if bench.is_server && late => (state, Quiet),
        T::Response if !bench.is_server && late => (state, Quiet),
        _ => cell,
    }
}

fn check(is_server: bool, state: State, cells: &[Cell; 10], idle: bool) -> usize {
    let mut cases = 0;
    for packet_type in T::ALL {
        for which_sequence in SEQUENCES {
            for which_ack in ACKS {
                let mut bench = Bench::new(is_server, state);
                assert_eq!(bench.state(), state, "the way to {state:?}");
                if idle {
                    // Longer than three round trips, shorter than any timer that changes the state.
                    bench.now += TimeDelta::from_millis(900);
                }
                let (sequence, ack) = (bench.sequence(which_sequence), bench.ack(which_ack));
                let cell = cells[usize::from(packet_type.number())];
                let (to, answer) = expected(&bench, state, cell, packet_type, sequence, ack, !idle);
                let case = format!(
                    "{} in {state:?}, {packet_type}, {which_sequence:?}, {which_ack:?}, idle {idle}",
                    if is_server { "server" } else { "client" }
                );
                let is_new_request = state == Listen && packet_type == T::Request;
                let bytes = forge(is_server, packet_type, sequence, ack, &[], &[]);
                let gss = bench.gss;
                let sent: Vec<Seen> = bench.give(&bytes).iter().map(|b| seen(b)).collect();
                assert_eq!(bench.state(), to, "{case}: {sent:?}");
                // Acks for the sake of features or of data may leave beside the answer.
                let answers: Vec<_> = sent.iter().filter(|s| !may_stand_beside(s, answer)).collect();
                match answer {
                    Quiet => assert!(answers.is_empty(), "{case}: {sent:?}"),
                    A(t) => assert!(answers.len() == 1 && answers[0].packet_type == t, "{case}: {sent:?}"),
                    Reset(code) => assert!(answers.len() == 1 && answers[0].code == Some(code), "{case}: {sent:?}"),
                }
                if let Some(answer) = answers.first() {
                    numbers_are_right(answer, packet_type, sequence, ack, gss, &bench, is_new_request, &case);
                }
                cases += 1;
            }
        }
    }
    cases
}

fn may_stand_beside(sent: &Seen, answer: Answer) -> bool {
    matches!(sent.packet_type, T::Ack) && answer != A(T::Ack)
}

/// Sequence and acknowledgement numbers of answers.
#[expect(clippy::too_many_arguments, reason = "all of a case, for one check")]
fn numbers_are_right(
    answer: &Seen,
    packet_type: T,
    sequence: Seq48,
    ack: Seq48,
    gss: Seq48,
    bench: &Bench,
    is_new_request: bool,
    case: &str,
) {
    match (answer.packet_type, answer.code) {
        // Section 8.3.1: taken from the packet.
        (T::Reset, Some(ResetCode::NO_CONNECTION | ResetCode::PACKET_ERROR)) => {
            let from = if packet_type.has_acknowledgement() { ack.next() } else { Seq48::default() };
            assert_eq!((answer.sequence, answer.ack), (from, Some(sequence)), "{case}");
        }
        (T::Sync, _) => {
            // Step 6: of a Reset GSR is acknowledged, of all else the packet's number.
            let about = if packet_type == T::Reset { bench.gsr } else { sequence };
            assert_eq!((answer.sequence, answer.ack), (gss.next(), Some(about)), "{case}");
        }
        (T::SyncAck, _) => assert_eq!((answer.sequence, answer.ack), (gss.next(), Some(sequence)), "{case}"),
        (T::Response, _) if is_new_request => assert_eq!(answer.ack, Some(sequence), "{case}"),
        // Section 7.4: all others acknowledge GSR.
        _ => {
            let gsr = if bench.state() == PartOpen && bench.gsr == Seq48::default() {
                sequence
            } else {
                bench.gsr.max(sequence)
            };
            assert_eq!((answer.sequence, answer.ack), (gss.next(), Some(gsr)), "{case}");
        }
    }
}

#[test]
fn every_state_with_every_packet() {
    let mut cases = 0;
    for (is_server, state, cells) in &TABLE {
        cases += check(*is_server, *state, cells, false);
        cases += check(*is_server, *state, cells, true);
    }
    // 12 states of ends, 10 types, 7 sequence numbers, 4 acknowledgement numbers, active and not.
    assert_eq!(cases, 12 * 10 * 7 * 4 * 2);
    println!("{cases} cases");
}

#[test]
fn short_numbers_are_dropped_where_they_are_not_allowed() {
    for (is_server, state) in [(true, Open), (false, Open), (true, CloseReq), (false, Closing)] {
        for packet_type in T::ALL {
            let mut bench = Bench::new(is_server, state);
            let mut bytes = forge(is_server, packet_type, bench.gsr.next(), bench.gss, &[], &[]);
            // X to zero: types that must have long numbers are malformed (step 1), the others not allowed (step 6).
            bytes[8] &= !1;
            let sent = bench.give(&bytes);
            assert!(sent.is_empty() && bench.state() == state, "{packet_type} in {state:?}: {sent:?}");
        }
    }
}

#[test]
fn copies_change_nothing() {
    for (is_server, state) in
        [(true, Respond), (true, Open), (false, PartOpen), (false, Open), (true, CloseReq), (false, Closing)]
    {
        for packet_type in T::ALL {
            let mut bench = Bench::new(is_server, state);
            let bytes = forge(is_server, packet_type, bench.gsr.next(), bench.gss, &[], &[]);
            bench.take(&bytes);
            let after = bench.state();
            let again = bench.give(&bytes);
            assert_eq!(bench.state(), after, "{packet_type} twice in {state:?}");
            assert!(again.len() <= 1, "{packet_type} twice in {state:?}");
        }
    }
}

#[test]
fn other_ports_are_nobodys() {
    for state in [PartOpen, Open, Closing] {
        for packet_type in T::ALL {
            let mut bench = Bench::new(false, state);
            let mut bytes = forge(false, packet_type, bench.gsr.next(), bench.gss, &[], &[]);
            bytes[1] ^= 1;
            assert!(bench.give(&bytes).is_empty() && bench.state() == state, "{packet_type} in {state:?}");
        }
    }
}
