//! Base stations that report their link's capacity to the ends of RTP flows.

use super::call::{Ssrcs, flow_seed};
use crate::scenario::Scenario;
use weir_path::Capacity;
use weir_session::{Station, StationConfig};
use weir_sim::Packet;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Interval at which a base station measures its link: a transmission time interval of UMTS (3GPP TS 25.302: 10 to 80 ms).
const MEASURING_INTERVAL: TimeDelta = TimeDelta::from_millis(20);

/// A base station at a link, for one end of one flow.
#[derive(Clone, Debug)]
pub struct LinkStation {
    /// Index of the flow.
    pub flow: usize,
    /// Index of the link.
    pub link: usize,
    /// Whether it reports to the flow's receiver rather than to its sender.
    pub to_receiver: bool,
    /// From its notice to the end that gets it.
    pub delay: TimeDelta,
    station: Station,
    capacity: Capacity,
    /// UDP and IP headers of the flow's packets.
    header_overhead: DataSize,
    next_measurement: Timestamp,
}

impl LinkStation {
    /// The base stations of a scenario: one for each RTP flow over their link and each end to which they report.
    pub fn all(s: &Scenario, seed: u64) -> Vec<Self> {
        let crossing = |link: usize| s.flows.iter().filter(|f| f.rtp().is_some() && f.forward.contains(&link)).count();
        let mut stations = Vec::new();
        for (i, flow) in s.flows.iter().enumerate() {
            let Some(rtp) = flow.rtp() else { continue };
            let ssrcs = Ssrcs::of(flow_seed(seed, i));
            for (&l, assist) in flow.forward.iter().filter_map(|l| Some((l, s.links[*l].assist?))) {
                let reports_to = [(false, assist.to_sender), (true, assist.to_receiver)];
                for (to_receiver, _) in reports_to.into_iter().filter(|(_, reports)| *reports) {
                    let config = StationConfig {
                        ssrc: ssrcs.stations[usize::from(to_receiver)],
                        media_ssrc: ssrcs.sender,
                        cname: format!("{}@station.weir", s.links[l].name),
                        share: 1.0 / crossing(l).max(1) as f64,
                        threshold: assist.threshold,
                        interval: assist.interval,
                        drain: assist.drain,
                        header_overhead: rtp.header_overhead.as_bytes() as u16,
                    };
                    stations.push(Self {
                        flow: i,
                        link: l,
                        to_receiver,
                        delay: assist.delay,
                        station: Station::new(config),
                        capacity: s.links[l].config.sustained(),
                        header_overhead: rtp.header_overhead,
                        next_measurement: Timestamp::ZERO,
                    });
                }
            }
        }
        stations
    }

    /// When it measures its link next.
    pub fn next_measurement(&self) -> Timestamp {
        self.next_measurement
    }

    /// Measures the link, whose queue has this size.
    pub fn measure(&mut self, now: Timestamp, queue: DataSize) {
        self.station.observe(self.capacity.rate_at(now), queue);
        self.next_measurement = now + MEASURING_INTERVAL;
    }

    /// Writes the notice due at `now`, an RTCP compound, into `out`; returns whether there is one.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> bool {
        self.station.poll_transmit(now, out)
    }
}

/// A base station in the simulator.
pub(crate) struct StationAgent {
    station: LinkStation,
    /// Size of the queue in front of the link when it was last set.
    queue: DataSize,
}

impl StationAgent {
    pub(crate) fn new(station: LinkStation) -> Self {
        Self { station, queue: DataSize::ZERO }
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
        self.station.measure(now, self.queue);
    }
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        Some(self.station.next_measurement)
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if !self.station.poll_transmit(now, &mut packet.bytes) {
            return false;
        }
        packet.size = DataSize::from_bytes(packet.bytes.len() as u64) + self.station.header_overhead;
        true
    }
}
