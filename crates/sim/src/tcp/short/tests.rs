use super::*;
use crate::topology::{DuplexConfig, point_to_point};
use crate::{AgentId, Endpoint, Outcome, Simulator, StreamHash};
use weir_path::{Limit, LinkConfig};

type Net = Simulator<Endpoint, StreamHash>;

fn net(link: LinkConfig, config: TcpConfig, flows: ShortFlows) -> (Net, AgentId, AgentId) {
    let mut sim = Simulator::with_observer(5, StreamHash::default());
    let reverse = LinkConfig { limit: Limit::Unlimited, ..link.clone() };
    let route = point_to_point(&mut sim, &DuplexConfig { forward: link, reverse }).expect("valid");
    let sender = ShortSender::new(config, flows).expect("valid");
    let receiver = ShortReceiver::new(config).expect("valid");
    let a = sim.add_agent(Endpoint::ShortSender(Box::new(sender)), Timestamp::ZERO);
    let b = sim.add_agent(Endpoint::ShortReceiver(Box::new(receiver)), Timestamp::ZERO);
    sim.connect(a, b, &route);
    (sim, a, b)
}
fn sender(sim: &Net, id: AgentId) -> &ShortSender {
    match sim.agent(id) {
        Endpoint::ShortSender(s) => s,
        other => unreachable!("{other:?}"),
    }
}
fn delivered(sim: &Net, id: AgentId) -> u64 {
    match sim.agent(id) {
        Endpoint::ShortReceiver(r) => r.delivered().as_bytes(),
        other => unreachable!("{other:?}"),
    }
}
fn link(mbps: u64, ms: i64, packets: u32) -> LinkConfig {
    let mut c = LinkConfig::constant(DataRate::from_mbps(mbps), TimeDelta::from_millis(ms));
    c.limit = Limit::Packets(packets);
    c
}
/// The flows of dp-fec's section 2.1: 30 a second, with Pareto sizes of 180 packets on average.
fn paper_flows(seed: u64) -> ShortFlows {
    let size = Distribution::pareto_with_mean(180.0 * 1_448.0, 1.5).expect("valid");
    ShortFlows { arrivals_per_s: 30.0, size, seed }
}

#[test]
fn arrivals_are_poisson_and_the_load_is_rate_times_size() {
    let flows = ShortFlows { size: Distribution::Exponential { mean: 20_000.0 }, ..paper_flows(3) };
    let (mut sim, a, b) = net(link(1_000, 5, 10_000), TcpConfig::default(), flows);
    assert_eq!(sim.run_until(Timestamp::from_secs(400)), Outcome::Reached);
    let s = sender(&sim, a).stats();
    // 12,000 on average, with a standard deviation of 110.
    assert!((11_600..12_400).contains(&s.begun), "{s:?}");
    assert_eq!((s.begun, s.refused), (s.completed + s.alive, 0));
    let load = s.acked.as_bytes() as f64 / 400.0;
    assert!((0.95..1.05).contains(&(load / 600_000.0)), "{load}");
    assert!(delivered(&sim, b) >= s.acked.as_bytes());
    assert_eq!((s.retransmits, s.timeouts), (0, 0));
    // Without queueing: a handshake of one round trip of 10 ms and at least one more for the data.
    let (low, high) = s.completion_times.range().expect("flows");
    assert!(low >= TimeDelta::from_millis(20) && high < TimeDelta::from_millis(100), "{low} {high}");
    assert_eq!(s.completion_times.count(), s.completed);
    let mean = s.mean_throughput.expect("flows").as_bps_f64();
    // Between the throughputs of one segment and of the mean size in its own time.
    assert!((1e6..8e6).contains(&mean), "{mean}");
}

#[test]
fn a_flow_takes_the_round_trips_of_its_slow_start() {
    // 70 segments from a window of 10 without delayed acknowledgements: 10, 20, 40, and the SYN: 4 round trips.
    let size = Distribution::Constant { value: 70.0 * 1_448.0 };
    let flows = ShortFlows { arrivals_per_s: 0.5, size, seed: 1 };
    let config = TcpConfig { ack_every: 1, ..TcpConfig::default() };
    let (mut sim, a, _) = net(link(10_000, 50, 10_000), config, flows);
    let _ = sim.run_until(Timestamp::from_secs(200));
    let s = sender(&sim, a).stats();
    let (low, high) = s.completion_times.range().expect("flows");
    assert!(low >= TimeDelta::from_millis(400) && high < TimeDelta::from_millis(401), "{low} {high}");
    // The time since the previous flow does not matter although slots are reused: each flow starts afresh.
    assert!(s.completed > 50 && sender(&sim, a).places() <= 5, "{s:?}");
    let mean = s.mean_throughput.expect("flows").as_bps_f64();
    assert!((mean / (70.0 * 1_448.0 * 8.0 / 0.4) - 1.0).abs() < 0.005, "{mean}");
    assert_eq!(s.active_time.as_millis() / s.completed as i64, 400);
}

#[test]
fn memory_follows_the_flows_alive() {
    let (mut sim, a, _) = net(link(100, 10, 100), TcpConfig::default(), paper_flows(7));
    let _ = sim.run_until(Timestamp::from_secs(200));
    let (s, places) = (sender(&sim, a).stats(), sender(&sim, a).places());
    assert!(s.begun > 5_500, "{s:?}");
    assert!(places < 300, "{places}");
    assert!(s.completed as f64 > 0.98 * s.begun as f64, "{s:?}");
    assert!(s.retransmits > 100, "the queue overflows: {s:?}");
    // 62.5 Mbit/s of data are offered; a Pareto shape of 1.5 has infinite variance, hence the wide bounds.
    let goodput = s.acked.as_bits() as f64 / 200.0;
    assert!((40e6..90e6).contains(&goodput), "{goodput}");
    assert_eq!(sender(&sim, a).unknown(), 0);
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = |seed| {
        let (mut sim, a, _) = net(link(100, 10, 100), TcpConfig::default(), paper_flows(seed));
        let _ = sim.run_until(Timestamp::from_secs(20));
        (sim.observer().value(), sender(&sim, a).stats())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

#[test]
fn a_dead_link_turns_flows_away_at_the_bound() {
    let flows = ShortFlows { arrivals_per_s: 100_000.0, ..paper_flows(1) };
    let (mut sim, a, _) = net(link(0, 1, 10), TcpConfig::default(), flows);
    assert_eq!(sim.run_until(Timestamp::from_secs(1)), Outcome::Reached);
    let s = sender(&sim, a).stats();
    assert_eq!((s.alive, s.completed), (MAX_ALIVE as u64, 0));
    assert!(s.refused > 30_000, "{s:?}");
}

#[test]
fn forged_connections_make_no_memory() {
    let mut r = ShortReceiver::new(TcpConfig::default()).expect("valid");
    let mut s = ShortSender::new(TcpConfig::default(), paper_flows(1)).expect("valid");
    let mut packet = Packet::blank();
    for connection in [u32::MAX, MAX_ALIVE as u32, 70_000] {
        packet.body = Body::Tcp(crate::tcp::TcpSegment { connection, len: 100, ..Default::default() });
        r.on_packet(Timestamp::ZERO, &packet);
        s.on_packet(Timestamp::ZERO, &packet);
    }
    packet.body = Body::Raw;
    r.on_packet(Timestamp::ZERO, &packet);
    assert_eq!((r.unknown(), s.unknown(), s.places()), (4, 3, 0));
    assert!(r.pool.len() <= MAX_ALIVE);
}

#[test]
fn bad_fields_are_named() {
    let field = |f: ShortFlows| ShortSender::new(TcpConfig::default(), f).map_err(|e| e.field).err();
    assert_eq!(field(ShortFlows { arrivals_per_s: 0.0, ..paper_flows(1) }), Some("arrivals_per_s"));
    assert_eq!(field(ShortFlows { arrivals_per_s: f64::NAN, ..paper_flows(1) }), Some("arrivals_per_s"));
    assert_eq!(field(ShortFlows { size: Distribution::Exponential { mean: 0.0 }, ..paper_flows(1) }), Some("size"));
}
