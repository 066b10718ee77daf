use super::*;
use crate::observer::StreamHash;
use crate::topology::{Dumbbell, DuplexConfig, ParkingLot, point_to_point};
use crate::{Body, Endpoint, Packet, Place, udp};
use std::ops::ControlFlow;
use weir_path::Limit;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta};

fn link(mbps: u64, ms: i64, bytes: u64) -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(mbps), TimeDelta::from_millis(ms));
    c.limit = Limit::Size(DataSize::from_bytes(bytes));
    c
}
pub(super) fn source(kbps: u64) -> Endpoint {
    Endpoint::UdpSource(udp::Source::constant(DataRate::from_kbps(kbps), DataSize::from_bytes(1_000)))
}
pub(super) fn sink() -> Endpoint {
    Endpoint::UdpSink(udp::Sink::default())
}
fn received<O: Observer>(sim: &Simulator<Endpoint, O>, id: AgentId) -> udp::Sink {
    match sim.agent(id) {
        Endpoint::UdpSink(s) => *s,
        other => unreachable!("{other:?}"),
    }
}

/// Three sources, which together exceed the capacity, on a dumbbell.
fn overload<O: Observer>(seed: u64, observer: O) -> (Simulator<Endpoint, O>, Vec<AgentId>) {
    let mut sim = Simulator::with_observer(seed, observer);
    let access = || DuplexConfig::symmetric(link(100, 1, 1_000_000));
    let bottleneck = DuplexConfig { forward: link(2, 20, 20_000), reverse: link(1, 5, 20_000) };
    let bell = Dumbbell::build(&mut sim, &bottleneck, &vec![(access(), access()); 3]).expect("valid");
    let mut sinks = vec![];
    for (k, pair) in bell.pairs.iter().enumerate() {
        let a = sim.add_agent(source(1_000), Timestamp::from_millis(k as i64));
        let b = sim.add_agent(sink(), Timestamp::ZERO);
        sim.connect(a, b, pair);
        sinks.push(b);
    }
    (sim, sinks)
}

#[test]
fn the_same_run_twice_is_the_same_and_another_is_not() {
    let hash = |seed, cut: i64| {
        let (mut sim, _) = overload(seed, StreamHash::default());
        assert_eq!(sim.run_until(Timestamp::from_millis(cut)), Outcome::Reached);
        assert_eq!(sim.run_until(Timestamp::from_secs(20)), Outcome::Reached);
        (sim.observer().value(), sim.totals())
    };
    assert_eq!(hash(1, 5_000), hash(1, 7_123));
    let (mut shorter, _) = overload(1, StreamHash::default());
    assert_eq!(shorter.run_until(Timestamp::from_secs(19)), Outcome::Reached);
    assert_ne!(shorter.observer().value(), hash(1, 1).0);
}

#[test]
fn every_packet_is_delivered_dropped_or_inside() {
    let (mut sim, sinks) = overload(1, ());
    for s in 1..=20 {
        assert_eq!(sim.run_until(Timestamp::from_secs(s)), Outcome::Reached);
        let t = sim.totals();
        assert_eq!(t.sent, t.delivered + t.dropped + t.inside);
        assert_eq!(t.delivered, sinks.iter().map(|&k| received(&sim, k).packets()).sum::<u64>());
    }
    // 375 packets per second arrive, 250 fit, and the queue of 20 holds the rest.
    let t = sim.totals();
    assert!((20 * 375 - 1..=20 * 375 + 3).contains(&t.sent), "{t:?}");
    assert!((20 * 250 - 15..=20 * 250).contains(&t.delivered), "{t:?}");
    // Queue full: 20 packets of 4 ms, one in transmission, and its own; 22 ms of propagation, twice 80 us of access.
    let (low, high) = received(&sim, sinks[0]).delay_range().expect("packets");
    assert_eq!(low, TimeDelta::from_micros(22_000 + 4_000 + 160));
    assert!(high > TimeDelta::from_millis(22 + 80) && high <= TimeDelta::from_millis(22 + 88 + 1), "{high}");
}

#[test]
fn a_duplicated_packet_is_forwarded_twice() {
    let mut sim = Simulator::new(3);
    let mut twice = link(2, 10, 50_000);
    twice.duplication = 0.5;
    let first = point_to_point(&mut sim, &DuplexConfig::symmetric(twice)).expect("valid");
    let second = point_to_point(&mut sim, &DuplexConfig::symmetric(link(4, 10, 50_000))).expect("valid");
    let (a, b) = (sim.add_agent(source(800), Timestamp::ZERO), sim.add_agent(sink(), Timestamp::ZERO));
    sim.connect(a, b, &first.then(&second));
    let _ = sim.run_until(Timestamp::from_secs(100));
    let t = sim.totals();
    assert_eq!((t.sent, t.dropped), (10_001, 0));
    assert!((4_800..5_200).contains(&t.duplicated), "{t:?}");
    assert_eq!(t.sent + t.duplicated, t.delivered + t.inside);
    // A copy follows its original and waits for its transmission of 2 ms.
    let ms = TimeDelta::from_millis;
    assert_eq!(received(&sim, b).delay_range(), Some((ms(4 + 10 + 2 + 10), ms(4 + 10 + 4 + 10))));
}

#[test]
fn memory_does_not_grow_with_time() {
    let (mut sim, _) = overload(1, ());
    let _ = sim.run_until(Timestamp::from_secs(10));
    let (slots, routes) = (sim.packets.len(), sim.routes.len());
    let _ = sim.run_until(Timestamp::from_secs(200));
    assert_eq!((sim.packets.len(), sim.routes.len()), (slots, routes));
    assert!(slots < 60, "{slots}");
}

#[test]
fn one_event_a_hop_and_one_a_timer() {
    let (mut sim, _) = overload(1, ());
    let _ = sim.run_until(Timestamp::from_secs(10));
    let t = sim.totals();
    // A packet that arrives has passed three links; one dropped by the bottleneck, one.
    let hops = 3 * t.delivered + t.dropped;
    assert!((hops + t.sent..=hops + t.sent + 3 * t.inside + 6).contains(&t.events), "{t:?}");
}

#[test]
fn a_long_route_passes_all_bottlenecks_and_a_cross_route_its_own() {
    let mut sim = Simulator::new(1);
    let hop = |ms| DuplexConfig { forward: link(2, ms, 50_000), reverse: link(2, 1, 50_000) };
    let lot = ParkingLot::build(&mut sim, &[hop(10), hop(20), hop(30)]).expect("valid");
    let mut pairs = vec![];
    for route in [lot.long_route(), lot.cross_route(1, 1).expect("there"), lot.long_route().turned()] {
        let a = sim.add_agent(source(100), Timestamp::ZERO);
        let b = sim.add_agent(sink(), Timestamp::ZERO);
        sim.connect(a, b, &route);
        pairs.push(b);
    }
    assert_eq!(lot.cross_route(2, 3), None);
    assert_eq!(sim.run_until(Timestamp::from_millis(79)), Outcome::Reached);
    let low = |sim: &Simulator<_>, k: usize| received(sim, pairs[k]).delay_range().map(|r| r.0);
    // Both first packets enter the second hop 14 ms apart, so neither waits: 3 * 4 + 60, 4 + 20, 3 * 4 + 3 ms.
    assert_eq!(low(&sim, 0), Some(TimeDelta::from_millis(72)));
    assert_eq!(low(&sim, 1), Some(TimeDelta::from_millis(24)));
    assert_eq!(low(&sim, 2), Some(TimeDelta::from_millis(15)));
}

#[test]
fn a_link_without_capacity_holds_its_packets_and_nothing_hangs() {
    let mut sim = Simulator::new(1);
    let route = point_to_point(&mut sim, &DuplexConfig::symmetric(link(0, 10, 5_000))).expect("valid");
    let (a, b) = (sim.add_agent(source(80), Timestamp::ZERO), sim.add_agent(sink(), Timestamp::ZERO));
    sim.connect(a, b, &route);
    assert_eq!(sim.run_until(Timestamp::from_secs(60)), Outcome::Reached);
    let t = sim.totals();
    assert_eq!((t.sent, t.delivered), (601, 0));
    assert!((5..=6).contains(&t.inside), "{t:?}");
}

#[test]
fn an_agent_lives_from_start_to_stop() {
    let mut sim = Simulator::with_observer(1, (StreamHash::default(), Seen::default()));
    let route = point_to_point(&mut sim, &DuplexConfig::symmetric(link(8, 0, 50_000))).expect("valid");
    let a = sim.add_agent(source(800), Timestamp::from_secs(1));
    let b = sim.add_agent(sink(), Timestamp::from_millis(1_500));
    sim.connect(a, b, &route);
    sim.stop_agent(a, Timestamp::from_millis(3_005));
    sim.stop_agent(b, Timestamp::from_millis(2_500));
    assert_eq!(sim.run_until(Timestamp::from_secs(9)), Outcome::Reached);
    // One packet every 10 ms in 1,000..=3,000 ms; the sink receives those that arrive 1 ms later, in 1,500..2,500 ms.
    assert_eq!(sim.totals().sent, 201);
    assert_eq!(received(&sim, b).packets(), 100);
    assert_eq!(sim.observer().1, Seen { sent: 201, enqueued: 201, forwarded: 201, dropped: 101, delivered: 100 });
}

#[derive(Default, PartialEq, Debug)]
struct Seen {
    sent: u32,
    enqueued: u32,
    forwarded: u32,
    dropped: u32,
    delivered: u32,
}
impl Observer for Seen {
    fn on_sent(&mut self, _: Timestamp, _: AgentId, packet: &Packet) {
        self.sent += 1;
        assert_eq!((packet.body, packet.ecn), (Body::Raw, Ecn::NotEct));
    }
    fn on_enqueued(&mut self, _: Timestamp, _: LinkId, _: AgentId, _: &Packet) {
        self.enqueued += 1;
    }
    fn on_forwarded(&mut self, _: Timestamp, _: LinkId, _: AgentId, _: &Packet, waited: TimeDelta) {
        self.forwarded += 1;
        assert_eq!(waited, TimeDelta::ZERO);
    }
    fn on_dropped(&mut self, _: Timestamp, place: Place, _: AgentId, _: &Packet) {
        self.dropped += 1;
        assert!(matches!(place, Place::Agent(_)));
    }
    fn on_delivered(&mut self, _: Timestamp, _: AgentId, _: AgentId, _: &Packet) {
        self.delivered += 1;
    }
}

#[test]
fn the_hook_sees_time_pass_and_stops_the_run() {
    let (mut sim, _) = overload(1, ());
    let mut asked = 0;
    let outcome = sim.run_until_with(Timestamp::from_secs(100), 1_000, |now| {
        asked += 1;
        if now > Timestamp::from_secs(5) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(outcome, Outcome::Cancelled);
    assert!(sim.now() > Timestamp::from_secs(5) && sim.now() < Timestamp::from_secs(7), "{:?}", sim.now());
    assert_eq!(asked, sim.totals().events / 1_000);
    assert_eq!(sim.run_until(Timestamp::from_secs(100)), Outcome::Reached);
    assert_eq!(sim.now(), Timestamp::from_secs(100));
}

/// Answers every packet at once, and always wants to be woken at zero.
struct Echo(u32);
impl Agent for Echo {
    fn on_packet(&mut self, _: Timestamp, _: &Packet) {
        self.0 += 1;
    }
    fn on_timeout(&mut self, _: Timestamp) {}
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        None
    }
    fn poll_transmit(&mut self, _: Timestamp, packet: &mut Packet) -> bool {
        packet.size = DataSize::from_bytes(100);
        self.0 > 0 && {
            self.0 -= 1;
            true
        }
    }
}

#[test]
fn time_that_stands_still_is_reported() {
    let mut sim = Simulator::new(1);
    let mut wire = LinkConfig::constant(DataRate::ZERO, TimeDelta::ZERO);
    wire.capacity = weir_path::Capacity::Unlimited;
    let route = point_to_point(&mut sim, &DuplexConfig::symmetric(wire)).expect("valid");
    let (a, b) = (sim.add_agent(Echo(1), Timestamp::ZERO), sim.add_agent(Echo(0), Timestamp::ZERO));
    sim.connect(a, b, &route);
    assert_eq!(sim.run_until(Timestamp::from_secs(1)), Outcome::Stuck);
    assert_eq!(sim.now(), Timestamp::ZERO);
}

#[test]
fn an_agent_is_changed_from_outside_and_continues() {
    let mut sim = Simulator::new(1);
    let route = point_to_point(&mut sim, &DuplexConfig::symmetric(link(8, 5, 50_000))).expect("valid");
    let (a, b) = (sim.add_agent(Echo(0), Timestamp::ZERO), sim.add_agent(Echo(0), Timestamp::ZERO));
    sim.connect(a, b, &route);
    let _ = sim.run_until(Timestamp::from_secs(1));
    assert_eq!(sim.totals().sent, 0);
    sim.with_agent(a, |agent, now| {
        assert_eq!(now, Timestamp::from_secs(1));
        agent.0 = 1;
    });
    assert_eq!(sim.totals().sent, 1);
    let _ = sim.run_until(Timestamp::from_secs(2));
    // A round trip of 10.2 ms, for a second.
    assert_eq!(sim.totals().sent, 1 + 196);
}

/// Sends one packet on each of several paths at its start, and records the path and time of each packet received.
#[derive(Default)]
struct Multihomed {
    unsent: Vec<PathId>,
    received: Vec<(PathId, Timestamp)>,
}
impl Agent for Multihomed {
    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        self.received.push((packet.path, now));
        // The response uses the path of the packet.
        if packet.payload == 0 {
            self.unsent.push(packet.path);
        }
    }
    fn on_timeout(&mut self, _: Timestamp) {}
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        None
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        assert_eq!(packet.path, PathId::FIRST, "a blank packet takes the first path");
        let Some(path) = self.unsent.pop() else { return false };
        packet.size = DataSize::from_bytes(1_000);
        packet.path = path;
        packet.payload = u32::from(now > Timestamp::ZERO);
        true
    }
}

#[test]
fn each_path_of_an_agent_has_its_own_route() {
    let mut sim = Simulator::with_observer(1, StreamHash::default());
    let fast = point_to_point(&mut sim, &DuplexConfig::symmetric(link(8, 10, 50_000))).expect("valid");
    let slow = point_to_point(&mut sim, &DuplexConfig::symmetric(link(8, 30, 50_000))).expect("valid");
    let [first, without, third, beyond] = [0, 1, 2, 200].map(PathId::new);
    let a =
        sim.add_agent(Multihomed { unsent: vec![first, without, third, beyond], ..<_>::default() }, Timestamp::ZERO);
    let b = sim.add_agent(Multihomed::default(), Timestamp::ZERO);
    sim.connect(a, b, &fast);
    sim.connect_path(a, b, third, &slow);
    assert_eq!(sim.run_until(Timestamp::from_secs(1)), Outcome::Reached);
    let ms = Timestamp::from_millis;
    assert_eq!(sim.agent(b).received, [(first, ms(11)), (third, ms(31))]);
    assert_eq!(sim.agent(a).received, [(first, ms(22)), (third, ms(62))]);
    // Paths 1 and 200 have no route: packets on them are lost and counted.
    let t = sim.totals();
    assert_eq!((t.sent, t.delivered, t.dropped, t.inside), (6, 4, 2, 0));
}

#[test]
fn a_packet_on_another_path_is_another_packet_to_the_digest() {
    let digest = |path: u8| {
        let mut hash = StreamHash::default();
        let mut packet = Packet::blank();
        packet.path = PathId::new(path);
        packet.size = DataSize::from_bytes(1_200);
        hash.on_sent(Timestamp::ZERO, AgentId(0), &packet);
        hash.value()
    };
    assert_ne!(digest(0), digest(1));
    assert_ne!(digest(1), digest(255));
}
