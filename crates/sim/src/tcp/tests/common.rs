//! Networks of TCP flows, and what is measured on them.

use super::*;
use crate::LinkId;

pub(super) type Net = Simulator<Endpoint, StreamHash>;

/// A sender and its receiver.
pub(super) type Pair = (AgentId, AgentId);

/// A flow: its configuration, its data and when it starts, in ms.
pub(super) type Flow = (TcpConfig, Workload, i64);

/// Flows that share one link in each direction. Returns the network, the link that carries data, and the flows' ends.
pub(super) fn network(seed: u64, forward: LinkConfig, reverse: LinkConfig, flows: &[Flow]) -> (Net, LinkId, Vec<Pair>) {
    let mut sim = Simulator::with_observer(seed, StreamHash::default());
    let route = point_to_point(&mut sim, &DuplexConfig { forward, reverse }).expect("valid");
    let pairs = flows.iter().map(|&(config, workload, start_ms)| {
        let sender = Endpoint::TcpSender(Box::new(Sender::new(config, workload).expect("valid")));
        let a = sim.add_agent(sender, Timestamp::from_millis(start_ms));
        let b = sim.add_agent(Endpoint::TcpReceiver(Receiver::new(config).expect("valid")), Timestamp::ZERO);
        sim.connect(a, b, &route);
        (a, b)
    });
    let pairs = pairs.collect();
    (sim, route.forward[0], pairs)
}

/// Bytes delivered by a receiver.
pub(super) fn delivered(sim: &Net, id: AgentId) -> f64 {
    match sim.agent(id) {
        Endpoint::TcpReceiver(r) => r.delivered().as_bytes() as f64,
        other => unreachable!("{other:?}"),
    }
}
pub(super) fn sender(sim: &Net, id: AgentId) -> &Sender {
    match sim.agent(id) {
        Endpoint::TcpSender(s) => s,
        other => unreachable!("{other:?}"),
    }
}

/// Data bytes that a link of this rate can carry in a time: 1,448 of each 1,500.
pub(super) fn capacity(rate: DataRate, seconds: f64) -> f64 {
    rate.as_bps_f64() / 8.0 * seconds * 1_448.0 / 1_500.0
}

/// Events on a link in a minute, after 20 s to settle.
pub(super) struct Minute {
    /// Share of the capacity used by each flow's data.
    pub(super) shares: Vec<f64>,
    /// Queueing delay of an arriving packet in ms, sampled every 10 ms, in ascending order.
    pub(super) waits: Vec<f64>,
}

impl Minute {
    /// The queueing delay in ms below which this percentage of the samples is.
    pub(super) fn percentile(&self, percent: usize) -> f64 {
        self.waits[self.waits.len() * percent / 100]
    }
}

/// Runs a network from at most 20 s to 80 s.
pub(super) fn minute(sim: &mut Net, link: LinkId, rate: DataRate, pairs: &[Pair]) -> Minute {
    let all = |sim: &Net| -> Vec<f64> { pairs.iter().map(|p| delivered(sim, p.1)).collect() };
    assert_eq!(sim.run_until(Timestamp::from_secs(20)), Outcome::Reached);
    let before = all(sim);
    let mut waits = vec![];
    for tick in 2_001..=8_000 {
        let now = Timestamp::from_millis(10 * tick);
        assert_eq!(sim.run_until(now), Outcome::Reached);
        waits.push(sim.link(link).queue_delay(now).as_millis_f64());
    }
    waits.sort_by(f64::total_cmp);
    let data = capacity(rate, 60.0);
    let shares = all(sim).iter().zip(before).map(|(after, before)| (after - before) / data).collect();
    Minute { shares, waits }
}
