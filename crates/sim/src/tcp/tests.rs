use super::avoidance::Window;
use super::*;
use crate::topology::{DuplexConfig, point_to_point};
use crate::{Agent, AgentId, Body, Distribution, Endpoint, Outcome, Packet, Simulator, StreamHash};
use proptest::prelude::*;
use weir_path::{Limit, LinkConfig};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const MSS: u64 = 1_000;

fn config() -> TcpConfig {
    TcpConfig { mss: MSS as u32, handshake: false, ack_every: 1, ..TcpConfig::default() }
}

/// A sender and a receiver with a constant round trip between them and no capacity limit; what is lost is chosen by
/// the segment's number on the wire, from 0.
struct Wire {
    sender: Sender,
    receiver: Receiver,
    rtt: TimeDelta,
    now: Timestamp,
    lose: Vec<u64>,
    lose_acks_from: Option<Timestamp>,
    sent: u64,
    /// Arrival, and the packet; the way there takes the whole round trip, the way back nothing.
    flight: std::collections::VecDeque<(Timestamp, Packet)>,
    /// When a segment left, its first byte, and the window then.
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
                self.flight.push_back((self.now + self.rtt, packet.clone()));
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
    /// Segments that left in `[from, to)` milliseconds, by number of their first byte in segments.
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
    // Each acknowledgement answers two and lets three go; an odd segment waits for the next round.
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
        // 20 segments a round trip; number 25 is lost.
        let limits =
            TcpConfig { initial_window: 20, initial_ssthresh: Some(DataSize::from_bytes(20 * MSS)), sack, ..config() };
        let mut w = Wire::new(limits, Workload::Bulk, &[25]);
        w.run(Timestamp::from_millis(2_000));
        let s = w.sender.stats();
        assert_eq!((s.recoveries, s.timeouts, s.retransmits), (1, 0, 1), "sack {sack}");
        // Congestion avoidance made it 20 or 21 segments before.
        let after = w.log.iter().rfind(|l| l.0 == Timestamp::from_millis(400)).expect("sent").2;
        assert!((10 * MSS..=10 * MSS + MSS).contains(&after.ssthresh), "sack {sack}: {after:?}");
        // The repeat left when the third duplicate came, at 200 ms, and recovery ended at 300 ms.
        let repeat = w.log.iter().filter(|l| l.1.seq == 25 * MSS).nth(1).expect("sent again");
        assert_eq!(repeat.0, Timestamp::from_millis(200), "sack {sack}");
        assert!(w.receiver.delivered().as_bytes() > 150 * MSS, "sack {sack}: {:?}", w.receiver.stats());
        // Half the window goes out in the round trip after the end of recovery.
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
    // The first and the last of ten: SACK shows the first hole; the last has nothing above it.
    let mut w = Wire::new(config(), Workload::Transfer { size: DataSize::from_bytes(10 * MSS) }, &[0, 9]);
    w.run(Timestamp::from_secs(10));
    let s = w.sender.stats();
    assert_eq!((s.timeouts, s.retransmits, s.transfers), (0, 2, 1), "{s:?}");
    // The very last alone: only the timer helps, one second after the last acknowledgement.
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
fn after_a_timeout_what_arrived_is_not_sent_again() {
    // All of 30..60 but one in three is lost, and so are the repeats of the first: a timeout, then slow start.
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
fn the_receiver_reports_what_changed_last_first() {
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
    assert_eq!(field(TcpConfig { ack_delay: TimeDelta::from_secs(1), ..config() }), Err("ack_delay"));
    assert_eq!(field(TcpConfig { min_rto: TimeDelta::ZERO, ..config() }), Err("min_rto"));
    assert_eq!(field(TcpConfig { receive_window: DataSize::ZERO, ..config() }), Err("receive_window"));
    assert_eq!(Variant::from_name("cubic"), Some(Variant::Cubic));
    assert_eq!(Variant::from_name("cubical"), None);
}

// Over links.

type Net = Simulator<Endpoint, StreamHash>;

fn link(bps: u64, ms: i64, queue: Limit) -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_bps(bps), TimeDelta::from_millis(ms));
    c.limit = queue;
    c
}
/// 2 Mbit/s, 100 ms there and back, 75 kB of queue.
fn paper_path() -> LinkConfig {
    link(2_000_000, 50, Limit::Size(DataSize::from_bytes(75_000)))
}
fn net(forward: LinkConfig, flows: &[(TcpConfig, Workload, i64)]) -> (Net, Vec<(AgentId, AgentId)>) {
    let mut sim = Simulator::with_observer(5, StreamHash::default());
    let reverse = LinkConfig { limit: Limit::Unlimited, mark_above: None, ..forward.clone() };
    let route = point_to_point(&mut sim, &DuplexConfig { forward, reverse }).expect("valid");
    let pairs = flows.iter().map(|&(config, workload, start_ms)| {
        let sender = Endpoint::TcpSender(Box::new(Sender::new(config, workload).expect("valid")));
        let a = sim.add_agent(sender, Timestamp::from_millis(start_ms));
        let b = sim.add_agent(Endpoint::TcpReceiver(Receiver::new(config).expect("valid")), Timestamp::ZERO);
        sim.connect(a, b, &route);
        (a, b)
    });
    let pairs = pairs.collect();
    (sim, pairs)
}
fn delivered(sim: &Net, id: AgentId) -> f64 {
    match sim.agent(id) {
        Endpoint::TcpReceiver(r) => r.delivered().as_bytes() as f64,
        other => unreachable!("{other:?}"),
    }
}
fn sender(sim: &Net, id: AgentId) -> &Sender {
    match sim.agent(id) {
        Endpoint::TcpSender(s) => s,
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_bulk_flow_fills_the_link() {
    for variant in Variant::ALL {
        for ecn in [false, true] {
            let mut path = paper_path();
            path.mark_above = ecn.then_some(Limit::Size(DataSize::from_bytes(40_000)));
            let (mut sim, pairs) = net(path, &[(TcpConfig { ecn, ..TcpConfig::of(variant) }, Workload::Bulk, 0)]);
            assert_eq!(sim.run_until(Timestamp::from_secs(120)), Outcome::Reached);
            // The data's part of 2 Mbit/s is 1448/1500.
            let share = delivered(&sim, pairs[0].1) * 8.0 / (120.0 * 2e6 * 1_448.0 / 1_500.0);
            let s = sender(&sim, pairs[0].0).stats();
            assert!((0.97..=1.0).contains(&share), "{variant:?} ecn {ecn}: {share} {s:?}");
            assert!(s.timeouts <= 1, "{variant:?} ecn {ecn}: {s:?}");
            if variant == Variant::Vegas {
                assert_eq!((s.recoveries, s.ecn_reductions), (0, 0), "it leaves the queue almost empty");
            } else if ecn {
                assert!(s.ecn_reductions > 3, "{variant:?}: {s:?}");
            } else {
                assert!(s.recoveries > 3, "{variant:?}: {s:?}");
            }
        }
    }
}

#[test]
fn two_alike_share_alike() {
    for variant in Variant::ALL {
        let c = TcpConfig::of(variant);
        let (mut sim, pairs) = net(paper_path(), &[(c, Workload::Bulk, 0), (c, Workload::Bulk, 1_730)]);
        let _ = sim.run_until(Timestamp::from_secs(60));
        let early: Vec<_> = pairs.iter().map(|p| delivered(&sim, p.1)).collect();
        let _ = sim.run_until(Timestamp::from_secs(660));
        let rates: Vec<_> = pairs.iter().zip(early).map(|(p, e)| (delivered(&sim, p.1) - e) * 8.0 / 600.0).collect();
        let share = rates[0] / (rates[0] + rates[1]);
        assert!((0.35..0.65).contains(&share), "{variant:?}: {rates:?}");
        assert!((1.85e6..1.94e6).contains(&(rates[0] + rates[1])), "{variant:?}: {rates:?}");
    }
}

/// Rate of one flow in segments a round trip, at random loss `p` and a round trip of 100 ms on a link that never fills.
fn segments_a_round_trip(variant: Variant, ack_every: u32, p: f64) -> f64 {
    let mut path = link(1_000_000_000, 50, Limit::Unlimited);
    path.loss = weir_path::Loss::Independent { share: p };
    let c = TcpConfig { ack_every, ..TcpConfig::of(variant) };
    let (mut sim, pairs) = net(path, &[(c, Workload::Bulk, 0)]);
    let _ = sim.run_until(Timestamp::from_secs(800));
    delivered(&sim, pairs[0].1) / 1_448.0 / 8_000.0
}

#[test]
fn random_loss_gives_the_rate_of_the_square_root_law() {
    // Mathis et al. (1997): sqrt(3/2) / sqrt(p) segments a round trip where the window grows by one segment in it.
    for p in [0.000_5, 0.002] {
        for ack_every in [1, 2] {
            let got = segments_a_round_trip(Variant::NewReno, ack_every, p);
            let want = libm::sqrt(1.5 / p);
            assert!((0.8..1.15).contains(&(got / want)), "p {p}, one for {ack_every}: {got}, expected {want}");
        }
    }
}

#[test]
fn regular_loss_gives_the_window_of_each_response_function() {
    // One segment in 10,000 lost, at a round trip of 100 ms: RFC 9438, section 5.1, gives CUBIC
    // 1.054 (RTT / p)^(3/4) segments, and RFC 5681's rules give NewReno sqrt(3/2 / p) = 122.
    let lose: Vec<_> = (1..60).map(|k| k * 10_000).collect();
    for (variant, want) in [(Variant::Cubic, 1.054 * libm::pow(0.1 * 1e4, 0.75)), (Variant::NewReno, libm::sqrt(1.5e4))]
    {
        let limits = TcpConfig { variant, initial_ssthresh: Some(DataSize::from_bytes(150 * MSS)), ..config() };
        let mut w = Wire::new(limits, Workload::Bulk, &lose);
        w.run(Timestamp::from_secs(200));
        let from = w.log.iter().position(|l| l.0 >= Timestamp::from_secs(50)).expect("it sends all the time");
        let got = (w.log.len() - from) as f64 / 1_500.0;
        assert_eq!(w.sender.stats().timeouts, 0);
        // Fast convergence, which the formula leaves out, takes a little whenever a cycle ends below the one before.
        assert!((0.88..1.05).contains(&(got / want)), "{variant:?}: {got}, expected {want}");
    }
}

#[test]
fn the_same_run_twice_is_the_same() {
    let hash = || {
        let off = Distribution::Exponential { mean: 0.3 };
        let short = Workload::OnOff {
            size: Distribution::pareto_with_mean(30_000.0, 1.5).expect("valid"),
            off,
            starts_on: false,
            persistent: false,
            seed: 4,
        };
        let flows = [(TcpConfig::default(), Workload::Bulk, 0), (TcpConfig::of(Variant::Cubic), short, 500)];
        let (mut sim, _) = net(paper_path(), &flows);
        let _ = sim.run_until(Timestamp::from_secs(60));
        let t = sim.totals();
        assert_eq!(t.sent, t.delivered + t.dropped + t.inside);
        (sim.observer().value(), t)
    };
    assert_eq!(hash(), hash());
}

#[test]
fn short_flows_offer_the_load_of_their_distributions() {
    // 10 kB in about 3 round trips with handshake, then 1 s of pause, far below capacity.
    let workload = Workload::OnOff {
        size: Distribution::Exponential { mean: 10_000.0 },
        off: Distribution::Exponential { mean: 1.0 },
        starts_on: false,
        persistent: false,
        seed: 9,
    };
    let path = link(100_000_000, 5, Limit::Unlimited);
    let (mut sim, pairs) = net(path, &[(TcpConfig::default(), workload, 0)]);
    let _ = sim.run_until(Timestamp::from_secs(2_000));
    let s = sender(&sim, pairs[0].0).stats();
    // A transfer of up to 10 segments takes two round trips of 10 ms.
    let cycle = 1.0 + s.transfer_time.as_secs_f64() / s.transfers as f64;
    assert!((1.02..1.03).contains(&cycle), "{cycle}");
    assert!((s.transfers as f64 * cycle / 2_000.0 - 1.0).abs() < 0.06, "{s:?}");
    assert!((s.transferred.as_bytes() as f64 / s.transfers as f64 / 10_000.0 - 1.0).abs() < 0.06, "{s:?}");
    assert_eq!((s.timeouts, s.retransmits), (0, 0));
    assert!((delivered(&sim, pairs[0].1) - s.transferred.as_bytes() as f64).abs() < 200_000.0);
}

#[test]
fn zero_capacity_hangs_nothing() {
    let (mut sim, pairs) = net(link(0, 10, Limit::Packets(50)), &[(TcpConfig::default(), Workload::Bulk, 0)]);
    assert_eq!(sim.run_until(Timestamp::from_secs(3_600)), Outcome::Reached);
    assert_eq!(delivered(&sim, pairs[0].1), 0.0);
    assert!((50..100).contains(&sim.totals().events), "{:?}", sim.totals());
}

#[test]
fn without_loss_the_receive_window_bounds_the_flow() {
    let c = TcpConfig { receive_window: DataSize::from_bytes(100_000), ..TcpConfig::default() };
    let (mut sim, pairs) = net(link(1_000_000_000, 50, Limit::Unlimited), &[(c, Workload::Bulk, 0)]);
    let _ = sim.run_until(Timestamp::from_secs(100));
    let rate = delivered(&sim, pairs[0].1) / 100.0;
    // 69 whole segments of 1,448 bytes a round trip of 100 ms.
    assert!((960_000.0..1_000_000.0).contains(&rate), "{rate}");
    assert!(sender(&sim, pairs[0].0).window().cwnd < 110_000);
}

#[test]
fn vegas_keeps_one_to_three_segments_in_the_queue() {
    // 10 Mbit/s and 40 ms there and back: 33.3 packets of 1,500 bytes fill the path.
    let c = TcpConfig { ack_every: 1, ..TcpConfig::of(Variant::Vegas) };
    let (mut sim, pairs) = net(link(10_000_000, 20, Limit::Packets(100)), &[(c, Workload::Bulk, 0)]);
    let _ = sim.run_until(Timestamp::from_secs(20));
    let early = delivered(&sim, pairs[0].1);
    let mut queues = vec![];
    for ms in 0..4_000 {
        let at = Timestamp::from_secs(20) + TimeDelta::from_millis(10 * ms);
        let _ = sim.run_until(at);
        queues.push(sim.link(crate::LinkId(0)).queue_size(at).as_bytes() as f64 / 1_500.0);
    }
    let mean = queues.iter().sum::<f64>() / queues.len() as f64;
    assert!((0.5..3.5).contains(&mean), "{mean}");
    assert!(queues.iter().all(|&q| q <= 6.0));
    let s = sender(&sim, pairs[0].0);
    assert!((33.5..37.5).contains(&s.window().segments()), "{:?}", s.window());
    assert_eq!(s.stats().retransmits, 0, "it never fills the queue");
    let share = (delivered(&sim, pairs[0].1) - early) * 8.0 / (40.0 * 1e7 * 1_448.0 / 1_500.0);
    assert!((0.99..=1.001).contains(&share), "{share}");
}

#[test]
fn a_stream_goes_at_its_rate_and_catches_up_after_a_gap() {
    // Full segments of 1,000 bytes at 80 kbit/s: one each 100 ms.
    let mut w = Wire::new(config(), Workload::Stream { rate: DataRate::from_kbps(80) }, &[]);
    w.run(Timestamp::from_millis(10_050));
    let times: Vec<_> = w.log.iter().map(|l| l.0.as_millis()).collect();
    assert_eq!(times, (1..=100).map(|k| 100 * k).collect::<Vec<_>>());
    assert_eq!(w.sender.window().cwnd, 10 * MSS, "the window is not in use and does not grow");
    // Acknowledgements stay away for 2 s: the data that came meanwhile goes out as soon as it may.
    w.lose_acks_from = Some(Timestamp::from_millis(10_050));
    w.run(Timestamp::from_millis(12_050));
    w.lose_acks_from = None;
    w.run(Timestamp::from_millis(20_050));
    assert_eq!(w.receiver.delivered().as_bytes(), 199 * MSS);
    assert!(w.sender.is_active());
    let none = Workload::Stream { rate: DataRate::ZERO };
    assert_eq!(Sender::new(config(), none).map_err(|e| e.field).err(), Some("rate"));
}

#[test]
fn a_persistent_connection_keeps_its_window_until_it_is_idle_for_long() {
    let transfers = |persistent, off_ms: i64| {
        let workload = Workload::OnOff {
            size: Distribution::Constant { value: 12_000.0 },
            off: Distribution::Constant { value: off_ms as f64 / 1e3 },
            starts_on: true,
            persistent,
            seed: 1,
        };
        let mut w = Wire::new(TcpConfig { handshake: true, ..config() }, workload, &[]);
        w.run(Timestamp::from_millis(50));
        while w.sender.stats().transfers < 4 {
            let next = w.now + TimeDelta::from_millis(10);
            w.run(next);
        }
        let s = w.sender.stats();
        assert_eq!(s.transferred.as_bytes(), s.transfers * 12_000);
        (s.transfer_time.as_millis(), w.log.iter().filter(|l| l.1.is_syn).count(), s)
    };
    // A handshake, 10 and 2 segments: three round trips of 100 ms each time.
    let (time, syns, s) = transfers(false, 200);
    assert_eq!((time, syns), (1_200, 4));
    assert_eq!(s.transfer_rates.as_bps(), 4 * 320_000); // 96,000 bits in 300 ms
    // One handshake; the two acknowledgements that found the window in use let all 12 segments go at once.
    let (time, syns, _) = transfers(true, 200);
    assert_eq!((time, syns), (300 + 3 * 100, 1));
    // Idle for more than the timeout of 1 s: 10 segments again, but no handshake.
    let (time, syns, _) = transfers(true, 2_000);
    assert_eq!((time, syns), (300 + 3 * 200, 1));
}

#[test]
fn data_over_the_active_time_tells_what_a_source_gets_while_it_sends() {
    // 125 kB a second for a second at most, then 9 s of silence.
    let workload = Workload::OnOff {
        size: Distribution::Constant { value: 125_000.0 },
        off: Distribution::Constant { value: 9.0 },
        starts_on: true,
        persistent: false,
        seed: 1,
    };
    let (mut sim, pairs) = net(link(1_000_000, 5, Limit::Packets(200)), &[(TcpConfig::default(), workload, 0)]);
    let end = Timestamp::from_millis(100_500);
    let _ = sim.run_until(end);
    let s = sender(&sim, pairs[0].0);
    let active = s.active_time(end).as_secs_f64();
    assert!((10.0..12.0).contains(&active), "{active}");
    let busy = s.stats().acked.as_bits() as f64 / active;
    assert!((0.85e6..0.97e6).contains(&busy), "{busy}");
    let whole = s.stats().acked.as_bits() as f64 / end.as_secs_f64();
    assert!((0.09e6..0.11e6).contains(&whole), "{whole}");
}

#[test]
fn highspeed_and_scalable_recover_in_fewer_round_trips() {
    // One segment in 10,000 lost at windows of hundreds: RFC 3649, table 3, gives 263 segments; a scalable cycle is
    // 13.4 round trips of w (1 - b / 2) segments between losses, so w = 1e4 / 13.4 = 749 on average.
    let lose: Vec<_> = (1..120).map(|k| k * 10_000).collect();
    for (variant, want) in [(Variant::HighSpeed, 263.0), (Variant::Scalable, 749.0)] {
        let limits = TcpConfig { variant, initial_ssthresh: Some(DataSize::from_bytes(150 * MSS)), ..config() };
        let mut w = Wire::new(limits, Workload::Bulk, &lose);
        w.run(Timestamp::from_secs(150));
        let from = w.log.iter().position(|l| l.0 >= Timestamp::from_secs(50)).expect("it sends all the time");
        let got = (w.log.len() - from) as f64 / 1_000.0;
        assert_eq!(w.sender.stats().timeouts, 0);
        assert!((0.9..1.15).contains(&(got / want)), "{variant:?}: {got}, expected {want}");
    }
}

fn any_segment() -> impl Strategy<Value = (TcpSegment, u8, i64)> {
    let number = || prop_oneof![0u64..30_000, any::<u64>()];
    let block = (number(), number()).prop_map(|(start, end)| SackBlock { start, end });
    let header = (number(), number(), number(), any::<u32>(), any::<u8>(), any::<[bool; 7]>());
    (header, [block.clone(), block.clone(), block], any::<i64>(), any::<u8>(), 0i64..2_000).prop_map(
        |((seq, ack, window, len, sack_count, f), sack, echo, ecn, ms)| {
            let len = if len % 4 == 0 { len } else { len % 3_000 };
            let s = TcpSegment {
                seq,
                ack,
                window,
                len,
                connection: 0,
                sack_count,
                sack,
                timestamp: Timestamp::from_nanos(echo),
                echo: Timestamp::from_nanos(echo),
                is_syn: f[0],
                is_ack: f[1] || f[2],
                is_push: f[3],
                is_ece: f[4],
                is_cwr: f[5],
                has_timestamps: f[6],
            };
            (s, ecn, ms)
        },
    )
}

fn any_variant() -> impl Strategy<Value = Variant> {
    prop::sample::select(Variant::ALL.to_vec())
}

/// Drives an agent as the engine does; gives how many packets it sent.
fn stimulate(agent: &mut impl Agent, now: Timestamp, packet: &Packet) -> u32 {
    let mut sent = 0;
    let mut out = Packet::blank();
    let mut drain = |agent: &mut dyn FnMut(&mut Packet) -> bool| {
        while agent(&mut out) {
            sent += 1;
            assert!(sent < 20_000, "it sends without end");
        }
    };
    agent.on_packet(now, packet);
    drain(&mut |p| agent.poll_transmit(now, p));
    for _ in 0..100 {
        let Some(at) = agent.poll_timeout().filter(|&t| t <= now) else { return sent };
        assert!(at <= now);
        agent.on_timeout(now);
        drain(&mut |p| agent.poll_transmit(now, p));
    }
    panic!("its timer stands still");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn random_segments_neither_panic_nor_loop(
        segments in prop::collection::vec(any_segment(), 1..200), sack: bool, ecn: bool, timestamps: bool, handshake: bool, variant in any_variant(),
    ) {
        let c = TcpConfig { variant, sack, ecn, timestamps, handshake, receive_window: DataSize::from_bytes(200_000), ..config() };
        let size = Distribution::Constant { value: 20_000.0 };
        let workload = Workload::OnOff { size, off: Distribution::Constant { value: 0.0 }, starts_on: false, persistent: false, seed: 1 };
        let mut s = Sender::new(c, workload).expect("valid");
        let mut r = Receiver::new(c).expect("valid");
        let mut now = Timestamp::ZERO;
        s.on_start(now);
        let mut packet = Packet::blank();
        while s.poll_transmit(now, &mut packet) {}
        for (segment, ecn, ms) in segments {
            now += TimeDelta::from_millis(ms);
            packet.body = Body::Tcp(segment);
            packet.ecn = Ecn::from_bits(ecn);
            stimulate(&mut s, now, &packet);
            stimulate(&mut r, now, &packet);
            prop_assert!(s.window().cwnd >= MSS && s.window().ssthresh >= 2 * MSS);
            prop_assert!(r.out_of_order() <= 300);
            prop_assert!(s.bytes_in_flight().as_bytes() <= 2 * 200_000);
        }
    }

    #[test]
    fn any_pattern_of_loss_is_repaired(lose in prop::collection::vec(0u64..150, 0..60), sack: bool, variant in any_variant(), timestamps: bool, every in 1u32..3) {
        let c = TcpConfig { variant, sack, timestamps, ack_every: every, handshake: true, ..config() };
        let size = DataSize::from_bytes(120 * MSS + 17);
        let mut w = Wire::new(c, Workload::Transfer { size }, &lose);
        w.run(Timestamp::from_secs(20_000));
        prop_assert_eq!(w.receiver.delivered(), size);
        prop_assert_eq!(w.sender.stats().transfers, 1);
        prop_assert!(w.sender.poll_timeout().is_none());
    }
}
