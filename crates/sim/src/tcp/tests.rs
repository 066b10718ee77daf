use super::avoidance::Window;
use super::*;
use crate::topology::{DuplexConfig, point_to_point};
use crate::{Agent, AgentId, Body, Distribution, Endpoint, Outcome, Packet, Simulator, StreamHash};
use proptest::prelude::*;
use weir_path::queue::{codel, drop_tail, dualpi2, fq_codel, pie, red};
use weir_path::{Discipline, Limit, LinkConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

mod common;
mod models;
mod network;
mod queue_disciplines;
mod rack;
mod random;
mod scalable;

const MSS: u64 = 1_000;

fn config() -> TcpConfig {
    TcpConfig { mss: MSS as u32, handshake: false, ack_every: 1, ..TcpConfig::default() }
}

/// A sender and a receiver with a constant round-trip time and without a capacity limit; losses are selected by the
/// segment's number on the wire, from 0, and so are late segments.
struct Wire {
    sender: Sender,
    receiver: Receiver,
    rtt: TimeDelta,
    now: Timestamp,
    lose: Vec<u64>,
    /// Segments that take longer, and by how much.
    late: Vec<(u64, TimeDelta)>,
    lose_acks_from: Option<Timestamp>,
    sent: u64,
    /// Arrival, and the packet; the forward path has the whole round-trip time, the reverse path none.
    flight: std::collections::VecDeque<(Timestamp, Packet)>,
    /// When a segment was sent, the segment, and the window then.
    log: Vec<(Timestamp, TcpSegment, Window)>,
    acks: Vec<(Timestamp, TcpSegment)>,
}

impl Wire {
    fn new(config: TcpConfig, workload: Workload, lose: &[u64]) -> Self {
        let mut wire = Self {
            sender: Sender::new(config, workload).expect("valid"),
            receiver: Receiver::new(config).expect("valid"),
            rtt: TimeDelta::from_millis(100),
            now: Timestamp::ZERO,
            lose: lose.to_vec(),
            late: vec![],
            lose_acks_from: None,
            sent: 0,
            flight: Default::default(),
            log: vec![],
            acks: vec![],
        };
        wire.sender.on_start(Timestamp::ZERO);
        wire.send();
        wire
    }
    fn send(&mut self) {
        let mut packet = Packet::blank();
        packet.reset(self.now);
        while self.sender.poll_transmit(self.now, &mut packet) {
            let Body::Tcp(s) = packet.body else { unreachable!("a TCP sender sends segments") };
            self.log.push((self.now, s, self.sender.window()));
            if !self.lose.contains(&self.sent) {
                let more = self.late.iter().find(|l| l.0 == self.sent).map_or(TimeDelta::ZERO, |l| l.1);
                let arrival = self.now + self.rtt + more;
                let place = self.flight.partition_point(|f| f.0 <= arrival);
                self.flight.insert(place, (arrival, packet.clone()));
            }
            self.sent += 1;
            packet.reset(self.now);
        }
    }
    fn answer(&mut self) {
        let mut packet = Packet::blank();
        while self.receiver.poll_transmit(self.now, &mut packet) {
            let Body::Tcp(s) = packet.body else { unreachable!("a TCP receiver sends segments") };
            self.acks.push((self.now, s));
            if self.lose_acks_from.is_none_or(|t| self.now < t) {
                self.sender.on_packet(self.now, &packet);
                self.send();
            }
        }
    }
    fn run(&mut self, end: Timestamp) {
        loop {
            let arrival = self.flight.front().map(|f| f.0);
            let next = [arrival, self.sender.poll_timeout(), self.receiver.poll_timeout()].into_iter().flatten().min();
            let Some(at) = next.filter(|&t| t <= end) else { break };
            self.now = at.max(self.now);
            if arrival == Some(at) {
                let (_, packet) = self.flight.pop_front().expect("there is one");
                self.receiver.on_packet(self.now, &packet);
                self.answer();
            } else if self.receiver.poll_timeout() == Some(at) {
                self.receiver.on_timeout(self.now);
                self.answer();
            } else {
                self.sender.on_timeout(self.now);
                self.send();
            }
        }
        self.now = end;
    }
    /// Segments sent in `[from, to)` milliseconds, by first byte in segments.
    fn numbers(&self, from: i64, to: i64) -> Vec<u64> {
        let (from, to) = (Timestamp::from_millis(from), Timestamp::from_millis(to));
        self.log.iter().filter(|l| l.0 >= from && l.0 < to).map(|l| l.1.seq / MSS).collect()
    }
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let mut w = Wire::new(TcpConfig { initial_window: 2, ..config() }, Workload::Bulk, &[]);
    w.run(Timestamp::from_millis(699));
    for round in 0..7 {
        assert_eq!(w.numbers(round * 100, round * 100 + 100).len(), 2 << round, "{round}");
    }
}

#[test]
fn delayed_acknowledgements_slow_the_start_to_half_as_much_again() {
    let mut w = Wire::new(TcpConfig { initial_window: 4, ack_every: 2, ..config() }, Workload::Bulk, &[]);
    w.run(Timestamp::from_millis(499));
    let rounds: Vec<_> = (0..5).map(|r| w.numbers(r * 100, r * 100 + 100).len()).collect();
    // Each acknowledgement covers two and releases three; an odd segment waits for the next round.
    assert_eq!(rounds, [4, 6, 9, 12, 18]);
}

#[test]
fn a_lone_segment_is_acknowledged_after_the_delay() {
    let mut w = Wire::new(TcpConfig { initial_window: 1, ack_every: 2, ..config() }, Workload::Bulk, &[]);
    w.run(Timestamp::from_millis(299));
    assert_eq!(w.acks.len(), 0);
    w.run(Timestamp::from_millis(300));
    assert_eq!(w.acks.iter().map(|a| (a.0, a.1.ack)).collect::<Vec<_>>(), [(Timestamp::from_millis(300), MSS)]);
}

#[test]
fn one_loss_in_a_window_halves_it_and_costs_no_timeout() {
    for sack in [true, false] {
        // 20 segments per round trip; number 25 is lost.
        let limits =
            TcpConfig { initial_window: 20, initial_ssthresh: Some(DataSize::from_bytes(20 * MSS)), sack, ..config() };
        let mut w = Wire::new(limits, Workload::Bulk, &[25]);
        w.run(Timestamp::from_millis(2_000));
        let s = w.sender.stats();
        assert_eq!((s.recoveries, s.timeouts, s.retransmits), (1, 0, 1), "sack {sack}");
        // Congestion avoidance had made it 20 or 21 segments.
        let after = w.log.iter().rfind(|l| l.0 == Timestamp::from_millis(400)).expect("sent").2;
        assert!((10 * MSS..=10 * MSS + MSS).contains(&after.ssthresh), "sack {sack}: {after:?}");
        // The retransmission was sent at the third duplicate, at 200 ms, and recovery ended at 300 ms.
        let repeat = w.log.iter().filter(|l| l.1.seq == 25 * MSS).nth(1).expect("sent again");
        assert_eq!(repeat.0, Timestamp::from_millis(200), "sack {sack}");
        assert!(w.receiver.delivered().as_bytes() > 150 * MSS, "sack {sack}: {:?}", w.receiver.stats());
        // Half the window is sent in the round trip after recovery.
        let round = w.numbers(400, 500).len();
        assert!((10..=12).contains(&round), "sack {sack}: {round}");
    }
}

#[test]
fn sack_repairs_many_losses_in_two_round_trips() {
    let limits = TcpConfig { initial_window: 40, initial_ssthresh: Some(DataSize::from_bytes(40 * MSS)), ..config() };
    let lost = [40, 44, 45, 46, 50, 53, 58, 60];
    let mut w = Wire::new(limits, Workload::Bulk, &lost);
    w.run(Timestamp::from_millis(3_000));
    let s = w.sender.stats();
    assert_eq!((s.recoveries, s.timeouts, s.retransmits), (1, 0, lost.len() as u64), "{s:?}");
    let repeats: Vec<_> =
        lost.iter().map(|k| w.log.iter().filter(|l| l.1.seq == k * MSS).nth(1).expect("again").0).collect();
    assert!(repeats.iter().all(|&t| t <= Timestamp::from_millis(300)), "{repeats:?}");
    assert_eq!(w.receiver.out_of_order(), 0);
    assert!((19..=21).contains(&(w.sender.window().ssthresh / MSS)));
}

#[test]
fn without_sack_a_partial_acknowledgement_repairs_one_loss_a_round_trip() {
    let limits = TcpConfig {
        initial_window: 20,
        initial_ssthresh: Some(DataSize::from_bytes(20 * MSS)),
        sack: false,
        ..config()
    };
    let mut w = Wire::new(limits, Workload::Bulk, &[25, 28, 31]);
    w.run(Timestamp::from_millis(3_000));
    let s = w.sender.stats();
    assert_eq!((s.recoveries, s.timeouts, s.retransmits), (1, 0, 3), "{s:?}");
    let again = |k: u64| w.log.iter().filter(|l| l.1.seq == k * MSS).nth(1).expect("again").0.as_millis();
    assert_eq!([again(25), again(28), again(31)], [200, 300, 400]);
}

#[test]
fn the_last_segments_of_a_transfer_are_rescued_or_time_out() {
    // The first and the last of ten: SACK shows the first hole; nothing is above the last.
    let mut w = Wire::new(config(), Workload::Transfer { size: DataSize::from_bytes(10 * MSS) }, &[0, 9]);
    w.run(Timestamp::from_secs(10));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.retransmits, s.transfers), (0, 2, 1), "{s:?}");
    // The very last only: just the timer helps, one second after the last acknowledgement.
    let mut w = Wire::new(config(), Workload::Transfer { size: DataSize::from_bytes(10 * MSS) }, &[9]);
    w.run(Timestamp::from_secs(10));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.retransmits, s.transfers), (1, 1, 1), "{s:?}");
    assert_eq!(s.transfer_time, TimeDelta::from_millis(100 + 1_000 + 100));
}

#[test]
fn limited_transmit_sends_new_data_on_the_first_two_duplicates() {
    for sack in [true, false] {
        // Three segments in flight, the first lost: two duplicates, two new segments, whose duplicates repair it.
        let limits =
            TcpConfig { initial_window: 3, initial_ssthresh: Some(DataSize::from_bytes(2 * MSS)), sack, ..config() };
        let mut w = Wire::new(limits, Workload::Bulk, &[0]);
        w.run(Timestamp::from_millis(250));
        assert_eq!(w.numbers(100, 101), [3, 4], "sack {sack}");
        assert_eq!(w.numbers(200, 201)[0], 0, "sack {sack}");
        let s = w.sender.stats();
        assert_eq!((s.recoveries, s.timeouts), (1, 0), "sack {sack}");
        assert_eq!(w.sender.window().ssthresh, 2 * MSS, "sack {sack}");
    }
}

#[test]
fn a_dead_path_makes_the_timer_back_off() {
    let mut w = Wire::new(TcpConfig { initial_window: 4, ..config() }, Workload::Bulk, &[]);
    w.run(Timestamp::from_millis(100));
    let ssthresh_before = w.sender.window().ssthresh;
    assert_eq!(ssthresh_before, u64::MAX);
    w.lose_acks_from = Some(Timestamp::from_millis(101));
    w.run(Timestamp::from_secs(400));
    let times: Vec<_> = w.log.iter().filter(|l| l.0 > Timestamp::from_millis(100)).map(|l| l.0).collect();
    // RTT 100 ms: RTO 1 s, doubled up to 60 s.
    let gaps: Vec<_> = times.windows(2).map(|g| (g[1] - g[0]).as_millis()).collect();
    assert_eq!(times[0], Timestamp::from_millis(1_100));
    assert_eq!(gaps[..7], [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    // One segment each time, and the threshold is half of the eight that were in flight.
    assert_eq!(w.sender.window(), Window { cwnd: MSS, ssthresh: 4 * MSS, mss: MSS });
}

#[test]
fn after_a_timeout_received_data_is_not_retransmitted() {
    // Two in three of 30..60 are lost, and so are the retransmissions of the first: a timeout, then slow start.
    let limits = TcpConfig { initial_window: 30, initial_ssthresh: Some(DataSize::from_bytes(30 * MSS)), ..config() };
    let lost: Vec<_> = (30..60).filter(|k| k % 3 != 0 || *k == 30).chain(60..66).collect();
    let mut w = Wire::new(limits, Workload::Bulk, &lost);
    w.run(Timestamp::from_secs(20));
    let s = w.sender.stats();
    assert!(s.timeouts >= 1, "{s:?}");
    assert!(w.receiver.stats().useless <= 2, "{:?}", w.receiver.stats());
    assert!(w.receiver.delivered().as_bytes() > 1_000 * MSS, "{s:?} {:?} {:?}", w.receiver.stats(), w.sender.window());
}

#[test]
fn a_lost_syn_waits_and_starts_with_one_segment() {
    let c = TcpConfig { handshake: true, ..config() };
    let mut w = Wire::new(c, Workload::Bulk, &[]);
    w.run(Timestamp::from_millis(150));
    assert_eq!(w.log.iter().filter(|l| l.1.is_syn).count(), 1);
    assert_eq!(w.log[0].1.wire_size(), DataSize::from_bytes(60));
    assert_eq!(w.numbers(100, 150).len(), 10);
    let mut w = Wire::new(c, Workload::Bulk, &[0, 1]);
    w.run(Timestamp::from_millis(3_150));
    let syns: Vec<_> = w.log.iter().filter(|l| l.1.is_syn).map(|l| l.0.as_millis()).collect();
    assert_eq!(syns, [0, 1_000, 3_000]);
    assert_eq!(w.numbers(3_100, 3_150).len(), 1);
}

#[test]
fn the_receiver_reports_the_latest_block_first() {
    let mut r = Receiver::new(config()).expect("valid");
    let mut ack = |first: u64| {
        let mut p = Packet::blank();
        p.body = Body::Tcp(TcpSegment { seq: first * MSS, len: MSS as u32, ..TcpSegment::default() });
        r.on_packet(Timestamp::ZERO, &p);
        assert!(r.poll_transmit(Timestamp::ZERO, &mut p));
        let Body::Tcp(s) = p.body else { unreachable!("a segment") };
        (s.ack / MSS, s.sack_blocks().iter().map(|b| (b.start / MSS, b.end / MSS)).collect::<Vec<_>>())
    };
    assert_eq!(ack(0), (1, vec![]));
    assert_eq!(ack(2), (1, vec![(2, 3)]));
    assert_eq!(ack(4), (1, vec![(4, 5), (2, 3)]));
    assert_eq!(ack(6), (1, vec![(6, 7), (4, 5), (2, 3)]));
    assert_eq!(ack(8), (1, vec![(8, 9), (6, 7), (4, 5)]));
    assert_eq!(ack(3), (1, vec![(2, 5), (8, 9), (6, 7)]));
    assert_eq!(ack(1), (5, vec![(8, 9), (6, 7)]));
    assert_eq!(ack(7), (5, vec![(6, 9)]));
    assert_eq!(ack(5), (9, vec![]));
}

#[test]
fn wire_sizes_count_the_options() {
    let bytes = |c: TcpSegment| c.wire_size().as_bytes();
    let plain = TcpSegment { len: 1_460, ..TcpSegment::default() };
    assert_eq!(bytes(plain), 1_500);
    assert_eq!(bytes(TcpSegment { len: 1_448, has_timestamps: true, ..plain }), 1_500);
    assert_eq!(bytes(TcpSegment { len: 0, has_timestamps: true, sack_count: 3, ..plain }), 80);
    assert_eq!(bytes(TcpSegment { len: 0, is_syn: true, ..plain }), 60);
}

#[test]
fn bad_fields_are_named() {
    let field = |c: TcpConfig| c.check().map_err(|e| e.field);
    assert_eq!(field(TcpConfig::default()), Ok(()));
    assert_eq!(field(TcpConfig { mss: 0, ..config() }), Err("mss"));
    let rack = TcpConfig { loss_detection: LossDetection::Rack, ..config() };
    assert_eq!(field(TcpConfig { sack: false, ..rack }), Err("loss_detection"));
    assert_eq!(field(TcpConfig { sack: false, dsack: true, ..config() }), Err("dsack"));
    assert_eq!(field(TcpConfig { ack_delay: TimeDelta::from_secs(1), ..config() }), Err("ack_delay"));
    assert_eq!(field(TcpConfig { min_rto: TimeDelta::ZERO, ..config() }), Err("min_rto"));
    assert_eq!(field(TcpConfig { receive_window: DataSize::ZERO, ..config() }), Err("receive_window"));
    assert_eq!(Variant::from_name("cubic"), Some(Variant::Cubic));
    assert_eq!(Variant::from_name("cubical"), None);
}
