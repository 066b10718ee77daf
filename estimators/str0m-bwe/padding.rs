//! The estimator of str0m before 0.16 as its `Session` drives it, as a module of that crate: `estimators/build` puts it there, for the
//! estimator is private. It makes no probes; the session fills up to the estimate with padding.

use super::*;

/// A probe that the estimator asks for.
pub struct Probe {
    pub id: u64,
    pub rate_bps: f64,
    pub min_packets: usize,
    pub min_bytes: u64,
}

pub struct Estimator {
    bwe: Bwe,
    register: TwccSendRegister,
    received: VecDeque<Rtcp>,
    /// The estimate that an application has been told.
    told: Bitrate,
}

impl Estimator {
    pub fn new(start_bps: u64, ceiling_bps: u64) -> Self {
        let start = Bitrate::bps(start_bps);
        #[cfg(weir_loss)]
        // Off in the library's own configuration too.
        let inner = SendSideBandwithEstimator::new(start, false);
        #[cfg(not(weir_loss))]
        let inner = SendSideBandwithEstimator::new(start);
        Self {
            bwe: Bwe {
                bwe: inner,
                desired_bitrate: Bitrate::bps(ceiling_bps),
                current_bitrate: start,
                last_emitted_estimate: Bitrate::ZERO,
            },
            register: TwccSendRegister::new(1000),
            received: VecDeque::new(),
            told: start,
        }
    }

    pub fn set_ceiling(&mut self, ceiling_bps: u64) {
        self.bwe.desired_bitrate = Bitrate::bps(ceiling_bps);
    }

    pub fn sent(&mut self, now: Instant, sequence: u64, payload: usize, _is_padding: bool, _probe: Option<u64>) {
        // The session's pacer lets a packet out in a call of handle_timeout.
        self.timeout(now);
        self.register.register_seq(sequence.into(), now, payload);
    }

    pub fn rtcp(&mut self, now: Instant, datagram: &[u8]) {
        Rtcp::read_packet(datagram, &mut self.received);
        for feedback in RtcpFb::from_rtcp(self.received.drain(..)) {
            let RtcpFb::Twcc(twcc) = feedback else { continue };
            let records = self.register.apply_report(twcc, now);
            #[cfg(weir_range)]
            let records = records.and_then(|range| self.register.send_records(range));
            if let Some(records) = records {
                self.bwe.update(records, now);
            }
        }
        if self.timeout_at().is_some_and(|t| t <= now) {
            self.timeout(now);
        }
    }

    pub fn timeout(&mut self, now: Instant) {
        self.bwe.handle_timeout(now);
    }

    pub fn timeout_at(&self) -> Option<Instant> {
        Some(self.bwe.poll_timeout())
    }

    /// What an application has been told.
    pub fn media_bps(&mut self) -> f64 {
        if let Some(estimate) = self.bwe.poll_estimate() {
            self.told = estimate;
        }
        self.told.as_f64()
    }

    /// The rates of the pacer and of padding, as `Session::configure_pacer` sets them.
    pub fn pacer(&self, media_bps: f64) -> Option<(f64, f64)> {
        let padding = self.bwe.last_estimate()?.min(self.bwe.desired_bitrate).as_f64();
        Some(((media_bps * PACING_FACTOR).max(padding), padding))
    }

    pub fn probes(&mut self) -> impl Iterator<Item = Probe> {
        std::iter::empty()
    }
}
