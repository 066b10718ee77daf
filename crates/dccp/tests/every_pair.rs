//! Every state with every packet type, each with every combination of valid and invalid numbers, against a table
//! written from RFC 4340, section 8.5, and section 7.5.3.

use crate::support;
use State::{CloseReq, Closed, Closing, Listen, Open, PartOpen, Request, Respond, TimeWait};
use support::bench::{ACKS, Ack, Bench, SEQUENCES, Sequence};
use support::{Seen, forge, seen};
use weir_dccp::connection::State;
use weir_dccp::packet::{PacketType, ResetCode};
use weir_units::{Seq48, TimeDelta};

/// The reply to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// None; a data packet may be acknowledged, by congestion control's rules.
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

/// The result of a packet with valid and new numbers: the next state, and the reply.
type Cell = (State, Answer);

/// The end, its state, and a cell for each type in the order of their numbers: Request, Response, Data, Ack, DataAck,
/// CloseReq, Close, Reset, Sync, SyncAck.
///
/// A server is never in REQUEST, PARTOPEN or CLOSING here (it closes by CloseReq), a client never in LISTEN, RESPOND or
/// CLOSEREQ.
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

/// One packet for an end in one state.
#[derive(Clone, Copy, Debug)]
struct Case {
    is_server: bool,
    state: State,
    packet_type: T,
    which_sequence: Sequence,
    which_ack: Ack,
    /// The end was silent for longer than three round trips.
    idle: bool,
}

/// Its numbers.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    sequence: Seq48,
    ack: Seq48,
}

impl Case {
    /// The result by the table and the rules of validity.
    fn expected(&self, bench: &Bench, cell: Cell, Numbers { sequence, ack }: Numbers) -> Cell {
        let Self { state, packet_type, .. } = *self;
        if matches!(state, Listen | TimeWait | Closed) {
            return cell; // No numbers are known there.
        }
        if state == Request {
            // Step 4: the other end's numbers are not known yet, its acknowledgements are.
            let fits = !bench.awl().is_after(ack) && !ack.is_after(bench.gss);
            return match packet_type {
                T::Response if !fits => (Request, PACKET_ERROR),
                // Step 4 requires a Reset for it. No Reset is answered by one, as in steps 2 and 3: two ends might
                // continue endlessly.
                T::Reset if !fits => (Request, Quiet),
                _ => cell,
            };
        }
        if !bench.is_valid(packet_type, sequence, ack, !self.idle) {
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

    /// Puts an end into the state and delivers the packet to it.
    fn check(&self, cell: Cell) {
        let Self { is_server, state, packet_type, .. } = *self;
        let mut bench = Bench::new(is_server, state);
        assert_eq!(bench.state(), state, "the way to {state:?}");
        if self.idle {
            // Longer than three round trips, shorter than any timer that changes the state.
            bench.now += TimeDelta::from_millis(900);
        }
        let numbers = Numbers { sequence: bench.sequence(self.which_sequence), ack: bench.ack(self.which_ack) };
        let (to, answer) = self.expected(&bench, cell, numbers);
        let bytes = forge(is_server, packet_type, numbers.sequence, numbers.ack, &[], &[]);
        let gss = bench.gss;
        let sent: Vec<Seen> = bench.give(&bytes).iter().map(|b| seen(b)).collect();
        assert_eq!(bench.state(), to, "{self:?}: {sent:?}");
        // Acks for features or data may be sent besides the reply.
        let answers: Vec<_> = sent.iter().filter(|s| !may_stand_beside(s, answer)).collect();
        match answer {
            Quiet => assert!(answers.is_empty(), "{self:?}: {sent:?}"),
            A(t) => assert!(answers.len() == 1 && answers[0].packet_type == t, "{self:?}: {sent:?}"),
            Reset(code) => assert!(answers.len() == 1 && answers[0].code == Some(code), "{self:?}: {sent:?}"),
        }
        if let Some(answer) = answers.first() {
            self.check_numbers(&bench, answer, gss, numbers);
        }
    }

    /// Sequence and acknowledgement numbers of a reply; `gss` is from before the packet.
    fn check_numbers(&self, bench: &Bench, answer: &Seen, gss: Seq48, Numbers { sequence, ack }: Numbers) {
        let is_new_request = self.state == Listen && self.packet_type == T::Request;
        match (answer.packet_type, answer.code) {
            // Section 8.3.1: taken from the packet.
            (T::Reset, Some(ResetCode::NO_CONNECTION | ResetCode::PACKET_ERROR)) => {
                let from = if self.packet_type.has_acknowledgement() { ack.next() } else { Seq48::default() };
                assert_eq!((answer.sequence, answer.ack), (from, Some(sequence)), "{self:?}");
            }
            (T::Sync, _) => {
                // Step 6: of a Reset GSR is acknowledged, of all else the packet's number.
                let about = if self.packet_type == T::Reset { bench.gsr } else { sequence };
                assert_eq!((answer.sequence, answer.ack), (gss.next(), Some(about)), "{self:?}");
            }
            (T::SyncAck, _) => assert_eq!((answer.sequence, answer.ack), (gss.next(), Some(sequence)), "{self:?}"),
            (T::Response, _) if is_new_request => assert_eq!(answer.ack, Some(sequence), "{self:?}"),
            // Section 7.4: all others acknowledge GSR.
            _ => {
                let gsr = if bench.state() == PartOpen && bench.gsr == Seq48::default() {
                    sequence
                } else {
                    bench.gsr.max(sequence)
                };
                assert_eq!((answer.sequence, answer.ack), (gss.next(), Some(gsr)), "{self:?}");
            }
        }
    }
}

fn may_stand_beside(sent: &Seen, answer: Answer) -> bool {
    matches!(sent.packet_type, T::Ack) && answer != A(T::Ack)
}

/// Every packet for an end in this state; returns the number of cases.
fn check_all(is_server: bool, state: State, cells: &[Cell; 10], idle: bool) -> usize {
    let mut cases = 0;
    for packet_type in T::ALL {
        for which_sequence in SEQUENCES {
            for which_ack in ACKS {
                let case = Case { is_server, state, packet_type, which_sequence, which_ack, idle };
                case.check(cells[usize::from(packet_type.number())]);
                cases += 1;
            }
        }
    }
    cases
}

#[test]
fn every_state_with_every_packet() {
    let mut cases = 0;
    for (is_server, state, cells) in &TABLE {
        cases += check_all(*is_server, *state, cells, false);
        cases += check_all(*is_server, *state, cells, true);
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
fn packets_for_other_ports_are_refused() {
    for state in [PartOpen, Open, Closing] {
        for packet_type in T::ALL {
            let mut bench = Bench::new(false, state);
            let mut bytes = forge(false, packet_type, bench.gsr.next(), bench.gss, &[], &[]);
            bytes[1] ^= 1;
            assert!(bench.give(&bytes).is_empty() && bench.state() == state, "{packet_type} in {state:?}");
        }
    }
}
