//! Base stations that report their link's capacity to the ends of RTP flows.

use weir_path::Capacity;
use weir_session::Station;
use weir_sim::Packet;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Interval at which a base station measures its link: a transmission time interval of UMTS (3GPP TS 25.302: 10 to 80 ms).
const MEASURING_INTERVAL: TimeDelta = TimeDelta::from_millis(20);

/// A base station at a link, for one end of one flow.
pub(crate) struct StationAgent {
    station: Station,
    capacity: Capacity,
    /// Size of the queue in front of the link when it was last set.
    queue: DataSize,
    next_measurement: Timestamp,
    header_overhead: DataSize,
}

impl StationAgent {
    pub(crate) fn new(station: Station, capacity: Capacity, header_overhead: DataSize) -> Self {
        Self { station, capacity, queue: DataSize::ZERO, next_measurement: Timestamp::ZERO, header_overhead }
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
        self.next_measurement = now + MEASURING_INTERVAL;
    }
    fn poll_timeout(&mut self) -> Option<Timestamp> {
        Some(self.next_measurement)
    }
    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        if !self.station.poll_transmit(now, &mut packet.bytes) {
            return false;
        }
        packet.size = DataSize::from_bytes(packet.bytes.len() as u64) + self.header_overhead;
        true
    }
}
