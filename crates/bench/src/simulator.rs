//! Fixed scenarios whose speed is tracked. Each is built and run here and timed by the caller; the programs in
//! `benches/compare` run the same ones in ns-3.

use weir_path::{Limit, LinkConfig};
use weir_sim::topology::{DuplexConfig, point_to_point};
use weir_sim::{AgentId, Endpoint, LinkId, Route, Simulator, tcp, udp};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Size on the wire of a full packet, UDP or TCP.
const PACKET: DataSize = DataSize::from_bytes(1_500);

/// Totals of a scenario.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// Simulated time.
    pub simulated: TimeDelta,
    /// Packets that have passed the bottleneck in the forward direction.
    pub packets: u64,
    /// Events handled.
    pub events: u64,
}

/// A named scenario.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The name, as printed by the ns-3 programs.
    pub name: &'static str,
    /// One-line description.
    pub summary: &'static str,
    /// Runs it for this simulated time.
    pub run: fn(TimeDelta) -> Work,
}

/// All scenarios.
pub const SCENARIOS: [Scenario; 3] = [
    Scenario { name: "udp", summary: "one 2 Mbit/s UDP flow over 2 Mbit/s and 100 ms", run: udp_flow },
    Scenario {
        name: "udp-newreno",
        summary: "one 1 Mbit/s UDP flow beside one NewReno flow over 2 Mbit/s and 100 ms",
        run: udp_beside_newreno,
    },
    Scenario {
        name: "gigabit",
        summary: "ten 30 Mbit/s UDP flows and fifty NewReno flows over 1 Gbit/s and 10 ms, 128 packets of queue",
        run: gigabit,
    },
];

/// One 2 Mbit/s UDP flow over a link of 2 Mbit/s, 100 ms and 75 kB of queue.
pub fn udp_flow(duration: TimeDelta) -> Work {
    let mut bench = Bench::new(2, 100, Limit::Size(DataSize::from_bytes(75_000)));
    bench.add_udp(2, 0);
    bench.run(duration)
}

/// One 1 Mbit/s UDP flow beside one NewReno flow over a link of 2 Mbit/s, 100 ms and 75 kB of queue.
pub fn udp_beside_newreno(duration: TimeDelta) -> Work {
    let mut bench = Bench::new(2, 100, Limit::Size(DataSize::from_bytes(75_000)));
    bench.add_udp(1, 0);
    bench.add_newreno(0);
    bench.run(duration)
}

/// Ten 30 Mbit/s UDP flows and fifty NewReno flows over a link of 1 Gbit/s, 10 ms and 128 packets of queue.
pub fn gigabit(duration: TimeDelta) -> Work {
    let mut bench = Bench::new(1_000, 10, Limit::Packets(128));
    for k in 0..10 {
        bench.add_udp(30, 37 * k);
    }
    for k in 0..50 {
        bench.add_newreno(1_000 * k);
    }
    bench.run(duration)
}

/// `flows` flows of 50 kbit/s, each with 100-byte packets like a voice call's, over one link with room for all.
pub fn many_calls(flows: u32, duration: TimeDelta) -> Work {
    let rate = DataRate::from_kbps(u64::from(flows) * 55);
    let mut bench = Bench::over(LinkConfig::constant(rate, TimeDelta::from_millis(20)));
    for k in 0..flows {
        let source = udp::Source::constant(DataRate::from_kbps(50), DataSize::from_bytes(100));
        let start = Timestamp::from_nanos(i64::from(k) * 16_000_000 / i64::from(flows.max(1)));
        bench.pair(Endpoint::UdpSource(source), Endpoint::UdpSink(udp::Sink::default()), start);
    }
    bench.run(duration)
}

struct Bench {
    sim: Simulator<Endpoint>,
    route: Route,
    bottleneck: LinkId,
}

impl Bench {
    fn new(mbps: u64, delay_ms: i64, limit: Limit) -> Self {
        let link = LinkConfig::constant(DataRate::from_mbps(mbps), TimeDelta::from_millis(delay_ms));
        Self::over(LinkConfig { limit, ..link })
    }
    fn over(link: LinkConfig) -> Self {
        let mut sim = Simulator::new(1);
        let route = point_to_point(&mut sim, &DuplexConfig::symmetric(link)).expect("the link is in order");
        let bottleneck = route.forward[0];
        Self { sim, route, bottleneck }
    }
    fn pair(&mut self, a: Endpoint, b: Endpoint, start: Timestamp) -> AgentId {
        let (a, b) = (self.sim.add_agent(a, start), self.sim.add_agent(b, Timestamp::ZERO));
        self.sim.connect(a, b, &self.route);
        a
    }
    fn add_udp(&mut self, mbps: u64, start_us: i64) {
        let source = udp::Source::constant(DataRate::from_mbps(mbps), PACKET);
        let sink = Endpoint::UdpSink(udp::Sink::default());
        self.pair(Endpoint::UdpSource(source), sink, Timestamp::from_micros(start_us));
    }
    fn add_newreno(&mut self, start_us: i64) {
        let config = tcp::TcpConfig::default();
        let sender = tcp::Sender::new(config, tcp::Workload::Bulk).expect("the defaults are in order");
        let receiver = tcp::Receiver::new(config).expect("the defaults are in order");
        let start = Timestamp::from_micros(start_us);
        self.pair(Endpoint::TcpSender(Box::new(sender)), Endpoint::TcpReceiver(receiver), start);
    }
    fn run(mut self, duration: TimeDelta) -> Work {
        let _ = self.sim.run_until(Timestamp::ZERO + duration);
        let packets = self.sim.link(self.bottleneck).stats().delivered.packets;
        Work { simulated: duration, packets, events: self.sim.totals().events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scenario_fills_its_bottleneck() {
        for (scenario, seconds, capacity) in [(0, 100, 166.67), (1, 100, 166.67), (2, 3, 83_333.3)] {
            let work = (SCENARIOS[scenario].run)(TimeDelta::from_secs(seconds));
            let share = work.packets as f64 / (capacity * seconds as f64);
            assert!((0.88..=1.0).contains(&share), "{}: {share}", SCENARIOS[scenario].name);
            assert_eq!(work, (SCENARIOS[scenario].run)(TimeDelta::from_secs(seconds)));
        }
    }

    #[test]
    fn ten_thousand_calls_run_in_one_process() {
        let work = many_calls(10_000, TimeDelta::from_secs(2));
        // 62.5 packets per second each, except for those in flight at the end.
        assert!((1_230_000..=1_250_000).contains(&work.packets), "{work:?}");
        assert!((2 * work.packets..2 * work.packets + 60_000).contains(&work.events), "{work:?}");
    }
}
