//! Base stations that tell the ends of RTP flows what their link can carry.

use super::RunError;
use super::agent::Agent;
use super::build::at;
use super::watch::Watching;
use crate::measure::scenario::Scenario;
use weir_path as path;
use weir_session::{Station, StationConfig};
use weir_sim::{AgentId, Packet, Simulator, mix};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The synchronisation sources of a flow's ends and of the base stations that tell them.
pub(super) struct Sources {
    pub sender: u32,
    pub receiver: u32,
    /// At the sender and at the receiver.
    pub stations: [u32; 2],
}

impl Sources {
    /// Of the flow with this seed.
    pub(super) fn of(seed: u64) -> Self {
        let [sender, receiver, at_sender, at_receiver] = [1, 2, 6, 7].map(|k| mix(seed, k) as u32);
        Self { sender, receiver, stations: [at_sender, at_receiver] }
    }
}

/// An agent for each end that a base station tells; with the index of its link.
pub(super) fn add_stations<O: Watching>(
    sim: &mut Simulator<Agent, O>,
    s: &Scenario,
    flows: &[(AgentId, AgentId)],
    seed: u64,
) -> Result<Vec<(AgentId, usize)>, RunError> {
    let crossing = |link: usize| s.flows.iter().filter(|f| f.rtp().is_some() && f.forward.contains(&link)).count();
    let mut stations = Vec::new();
    for (i, (flow, ends)) in s.flows.iter().zip(flows).enumerate() {
        let Some(rtp) = flow.rtp() else { continue };
        let sources = Sources::of(mix(seed, 1_000 + i as u64));
        for (&l, assist) in flow.forward.iter().filter_map(|l| Some((l, s.links[*l].assist?))) {
            let told = [(assist.tells_sender, ends.0), (assist.tells_receiver, ends.1)];
            for (end, (_, to)) in told.into_iter().enumerate().filter(|(_, t)| t.0) {
                let station = Station::new(StationConfig {
                    ssrc: sources.stations[end],
                    media_ssrc: sources.sender,
                    cname: format!("{}@station.weir", s.links[l].name),
                    share: 1.0 / crossing(l).max(1) as f64,
                    threshold: assist.threshold,
                    interval: assist.interval,
                    drain: assist.drain,
                    header_overhead: rtp.header_overhead.as_bytes() as u16,
                });
                let way = path::LinkConfig { capacity: path::Capacity::Unlimited, ..constant(assist.delay) };
                let link = format!("notices of {}", s.links[l].name);
                let way = sim.add_link(&way).map_err(|source| RunError::Link { link, source })?;
                let agent = StationAgent::new(station, s.links[l].config.capacity.clone(), rtp.header_overhead);
                let id = sim.add_agent(Agent::Station(Box::new(agent)), at(flow.start));
                sim.observer_mut().add_agent(i, end == 1);
                sim.stop_agent(id, at(flow.stop));
                sim.set_route(id, &[way], to);
                stations.push((id, l));
            }
        }
    }
    Ok(stations)
}

fn constant(delay: TimeDelta) -> path::LinkConfig {
    path::LinkConfig::constant(DataRate::ZERO, delay)
}

/// A base station looks at its link this often: a transmission time interval of UMTS (3GPP TS 25.302: 10 to 80 ms).
const STATION_LOOK: TimeDelta = TimeDelta::from_millis(20);

/// A base station at a link, for one end of one flow.
pub(crate) struct StationAgent {
    station: Station,
    capacity: weir_path::Capacity,
    /// What waits in front of the link, as told last.
    queue: DataSize,
    next_look: Timestamp,
    header_overhead: DataSize,
}

impl StationAgent {
    pub(crate) fn new(station: Station, capacity: weir_path::Capacity, header_overhead: DataSize) -> Self {
        Self { station, capacity, queue: DataSize::ZERO, next_look: Timestamp::ZERO, header_overhead }
    }
    pub(super) fn set_queue(&mut self, queue: DataSize) {
        self.queue = queue;
    }
}

impl weir_sim::Agent for StationAgent {
    fn on_start(&mut self, now: Timestamp) {
        self.on_timeout(now);
    }
    fn on_packet(&mut self, _: Timestamp, _: &Packet) {}
    fn on_timeout(&mut self, now: Timestamp) {
        self.station.observe(self.capacity.rate_at(now), self.queue);
        self.next_look = now + STATION_LOOK;
    }
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        Some(self.next_look)
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if !self.station.poll_transmit(now, &mut packet.bytes) {
            return false;
        }
        packet.size = DataSize::from_bytes(packet.bytes.len() as u64) + self.header_overhead;
        true
    }
}
