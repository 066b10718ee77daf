//! Measures the rate of probe clusters (libwebrtc, as of 2024: `ProbeBitrateEstimator`).

use crate::controller::ProbeCluster;
use crate::cue::PacketResult;
use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// Share of a cluster's packets and bytes that must have arrived.
const MIN_SHARE: f64 = 0.8;
/// A cluster received faster than this multiple of its sending rate is discarded.
const MAX_RATIO: f64 = 2.0;
/// Below this ratio of receiving to sending rate the link was saturated ...
const SATURATED_RATIO: f64 = 0.9;
/// ... and then this share of the receiving rate is the estimate.
const UTILISATION: f64 = 0.95;
/// Longest duration of a cluster, at either end, and of keeping its state.
const MAX_DURATION: TimeDelta = TimeDelta::from_secs(1);
/// Clusters kept.
const CLUSTERS: u32 = 8;

#[derive(Clone, Copy, Debug)]
struct Measured {
    first_sent: Timestamp,
    last_sent: Timestamp,
    first_arrival: RemoteTimestamp,
    last_arrival: RemoteTimestamp,
    size_last_sent: DataSize,
    size_first_arrival: DataSize,
    size: DataSize,
    packets: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cluster {
    asked: ProbeCluster,
    measured: Option<Measured>,
}

/// Accumulates clusters in flight.
#[derive(Clone, Debug)]
pub(super) struct ProbeRate {
    /// At most one of each remainder of its number by [`CLUSTERS`].
    clusters: Vec<Cluster>,
}

impl ProbeRate {
    pub(super) fn new() -> Self {
        Self { clusters: Vec::new() }
    }

    /// A cluster is about to be sent.
    pub(super) fn expect(&mut self, asked: ProbeCluster) {
        self.clusters.retain(|c| c.asked.id % CLUSTERS != asked.id % CLUSTERS);
        self.clusters.push(Cluster { asked, measured: None });
    }

    /// Takes a packet of a cluster, `size` as counted by the estimate; returns a rate each time the cluster is complete enough.
    pub(super) fn on_packet(
        &mut self,
        packet: &PacketResult,
        size: DataSize,
        arrival: RemoteTimestamp,
    ) -> Option<DataRate> {
        let cluster = self.clusters.iter_mut().find(|c| c.asked.id == packet.probe)?;
        let fresh = Measured {
            first_sent: packet.departure,
            last_sent: packet.departure,
            first_arrival: arrival,
            last_arrival: arrival,
            size_last_sent: size,
            size_first_arrival: size,
            size: DataSize::ZERO,
            packets: 0,
        };
        let m = cluster.measured.get_or_insert(fresh);
        if arrival - m.last_arrival > MAX_DURATION {
            *m = fresh;
        }
        m.first_sent = m.first_sent.min(packet.departure);
        if packet.departure > m.last_sent {
            (m.last_sent, m.size_last_sent) = (packet.departure, size);
        }
        if arrival < m.first_arrival {
            (m.first_arrival, m.size_first_arrival) = (arrival, size);
        }
        m.last_arrival = m.last_arrival.max(arrival);
        m.size += size;
        m.packets += 1;
        let enough = f64::from(m.packets) >= (f64::from(cluster.asked.min_packets) * MIN_SHARE).floor()
            && m.size.as_bytes() as f64 >= cluster.asked.min_size.as_bytes() as f64 * MIN_SHARE;
        if enough { m.rate() } else { None }
    }
}

impl Measured {
    fn rate(&self) -> Option<DataRate> {
        let (sending, receiving) = (self.last_sent - self.first_sent, self.last_arrival - self.first_arrival);
        if sending > MAX_DURATION || receiving > MAX_DURATION {
            return None;
        }
        // The interval excludes the transmission time of the last packet sent, and of the first received.
        let sent = DataRate::from_size_over(self.size.saturating_sub(self.size_last_sent), sending)?;
        let received = DataRate::from_size_over(self.size.saturating_sub(self.size_first_arrival), receiving)?;
        let ratio = received.ratio(sent)?;
        if ratio > MAX_RATIO {
            None
        } else if ratio < SATURATED_RATIO {
            Some(DataRate::from_bps_f64(UTILISATION * received.as_bps_f64()))
        } else {
            Some(received.min(sent))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Ecn;

    fn cluster(id: u32) -> ProbeCluster {
        ProbeCluster { id, rate: DataRate::from_mbps(1), min_packets: 5, min_size: DataSize::from_bytes(5_000) }
    }
    /// Five packets of 1,000 bytes sent 8 ms apart (1 Mbit/s) and received `gap_us` apart.
    fn run(e: &mut ProbeRate, id: u32, gap_us: i64) -> Option<f64> {
        e.expect(cluster(id));
        let mut last = None;
        for i in 0..5 {
            let arrival = RemoteTimestamp::from_micros(500_000 + i * gap_us);
            let p = PacketResult {
                sequence: i as u64,
                departure: Timestamp::from_millis(8 * i),
                arrival: Some(arrival),
                size: DataSize::from_bytes(1_000),
                ecn: Ecn::NotEct,
                probe: id,
                was_lost: false,
            };
            last = e.on_packet(&p, p.size, arrival);
        }
        last.map(|r| r.as_kbps_f64())
    }

    #[test]
    fn an_open_link_gives_the_lower_rate() {
        let mut e = ProbeRate::new();
        assert_eq!(run(&mut e, 1, 8_000), Some(1_000.0));
        assert_eq!(run(&mut e, 2, 5_000), Some(1_000.0));
        // 8,000 bits in 8.4 ms: 952 kbit/s, more than 0.9.
        let got = run(&mut e, 3, 8_400).expect("valid");
        assert!((got - 952.381).abs() < 0.01, "{got}");
    }

    #[test]
    fn a_full_link_gives_a_little_less_than_what_came() {
        // 8,000 bits in 16 ms: 500 kbit/s, of which 0.95.
        let got = run(&mut ProbeRate::new(), 1, 16_000).expect("valid");
        assert!((got - 475.0).abs() < 0.01, "{got}");
    }

    #[test]
    fn impossible_measurements_are_dropped() {
        let mut e = ProbeRate::new();
        assert_eq!(run(&mut e, 1, 3_000), None, "faster than twice the sending rate");
        assert_eq!(run(&mut e, 2, 0), None, "no time at all");
        assert_eq!(run(&mut e, 3, 400_000), None, "longer than a second");
        let p = cluster(3);
        e.expect(p);
        assert!(e.clusters.iter().filter(|c| c.asked.id == 3).all(|c| c.measured.is_none()));
        assert_eq!(e.clusters.len(), 3);
    }
}
