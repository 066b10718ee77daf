//! The estimator of str0m 0.16 and newer as its `Session` drives it, as a module of that crate: `estimators/build` puts it there, for the
//! estimator is private.

use super::*;
use crate::bwe_::ProbeClusterState;
use crate::pacer::PacerControl;
use crate::rtp_::{RtcpFb, TwccClusterId, TwccPacketId};

/// A probe that the estimator asks for. Its id is that of the cluster.
pub struct Probe {
    pub id: u64,
    pub rate_bps: f64,
    pub min_packets: usize,
    pub min_bytes: u64,
}

pub struct Estimator {
    bwe: crate::bwe_::Bwe,
    register: TwccSendRegister,
    pacer: PacerControl,
    clusters: VecDeque<ProbeClusterState>,
    probes: Vec<Probe>,
    received: VecDeque<Rtcp>,
    /// The estimate that an application has been told.
    told: Bitrate,
}

impl Estimator {
    pub fn new(start_bps: u64, ceiling_bps: u64) -> Self {
        let start = Bitrate::bps(start_bps);
        let mut estimator = Self {
            bwe: crate::bwe_::Bwe::new(start),
            register: TwccSendRegister::new(1000),
            pacer: PacerControl::new(),
            clusters: VecDeque::new(),
            probes: Vec::new(),
            received: VecDeque::new(),
            told: start,
        };
        estimator.set_ceiling(ceiling_bps);
        estimator
    }

    pub fn set_ceiling(&mut self, ceiling_bps: u64) {
        #[cfg(weir_minimum)]
        self.bwe.set_bitrate(Bitrate::ZERO, Bitrate::bps(ceiling_bps));
        #[cfg(not(weir_minimum))]
        self.bwe.set_desired_bitrate(Bitrate::bps(ceiling_bps));
    }

    pub fn sent(&mut self, now: Instant, sequence: u64, payload: usize, is_padding: bool, probe: Option<u64>) {
        // The session's pacer lets a packet out in a call of handle_timeout.
        self.timeout(now);
        let id = match probe {
            Some(cluster) => TwccPacketId::with_cluster(sequence, cluster),
            None => TwccPacketId::new(sequence),
        };
        self.register.register_seq(id, now, payload);
        self.bwe.on_media_sent(payload.into(), is_padding, now);
        let Some(cluster) = probe.map(TwccClusterId::from) else { return };
        let Some(at) = self.clusters.iter().position(|c| c.config().cluster() == cluster) else { return };
        self.clusters[at].record_packet(now, payload.into());
        if self.clusters[at].is_complete(now) {
            self.clusters.remove(at);
            self.bwe.end_probe(now, cluster);
        }
    }

    pub fn rtcp(&mut self, now: Instant, datagram: &[u8]) {
        Rtcp::read_packet(datagram, &mut self.received);
        for feedback in RtcpFb::from_rtcp(self.received.drain(..)) {
            let RtcpFb::Twcc(twcc) = feedback else { continue };
            if let Some(records) = self.register.apply_report(twcc, now) {
                self.bwe.update(records, now);
            }
        }
        if self.timeout_at().is_some_and(|t| t <= now) {
            self.timeout(now);
        }
    }

    pub fn timeout(&mut self, now: Instant) {
        let Some(config) = self.bwe.handle_timeout(now, true) else { return };
        #[cfg(weir_refuses)]
        let accepted = self.bwe.start_probe(config, now);
        #[cfg(not(weir_refuses))]
        let accepted = {
            self.bwe.start_probe(config);
            true
        };
        if accepted {
            self.probes.push(Probe {
                id: *config.cluster(),
                rate_bps: config.target_bitrate().as_f64(),
                min_packets: config.min_packet_count(),
                min_bytes: config.target_bytes().as_bytes_usize() as u64,
            });
            self.clusters.push_back(ProbeClusterState::new(config));
        }
    }

    pub fn timeout_at(&self) -> Option<Instant> {
        self.bwe.poll_timeout().0
    }

    /// What an application has been told.
    pub fn media_bps(&mut self) -> f64 {
        if let Some(estimate) = self.bwe.poll_estimate() {
            self.told = estimate;
        }
        self.told.as_f64()
    }

    /// The rates of the pacer and of padding, as `Session::configure_pacer` sets them.
    pub fn pacer(&self, _media_bps: f64) -> Option<(f64, f64)> {
        let estimate = self.bwe.last_estimate()?;
        #[cfg(weir_minimum)]
        let result = self.pacer.calculate(true, estimate, self.bwe.is_overusing(), self.bwe.minimum_bitrate());
        #[cfg(not(weir_minimum))]
        let result = self.pacer.calculate(true, estimate, self.bwe.is_overusing());
        Some((result.pacing_rate.as_f64(), result.padding_rate.as_f64()))
    }

    pub fn probes(&mut self) -> impl Iterator<Item = Probe> + '_ {
        self.probes.drain(..)
    }
}
