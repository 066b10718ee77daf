//! Transfers: how each begins on a connection, gets its data, and ends.

use super::{HyStart, Model, Phase, Sender};
use crate::tcp::avoidance::{Avoidance, CongestionAvoidance, Window};
use crate::tcp::rto::Rto;
use crate::tcp::{LossDetection, TcpConfig};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

impl Sender {
    /// Total time of transfers up to `now`, including the current one. Data divided by this time is the throughput
    /// while there was something to send.
    pub fn active_time(&self, now: Timestamp) -> TimeDelta {
        let present = if self.is_active() { now.saturating_since(self.began) } else { TimeDelta::ZERO };
        self.stats.transfer_time + present
    }

    /// Begins a transfer of `bytes` on a new connection.
    pub(in crate::tcp) fn begin(&mut self, now: Timestamp, bytes: u64) {
        self.coming = Some((now, bytes));
        self.begin_if_due(now);
    }

    /// Schedules the next transfer, if there is one.
    pub(super) fn plan(&mut self, now: Timestamp) {
        self.phase = Phase::Idle;
        self.timer = None;
        self.coming = self.transfers.next(now);
        self.begin_if_due(now);
    }

    pub(super) fn begin_if_due(&mut self, now: Timestamp) {
        let Some((_, bytes)) = self.coming.filter(|&(at, _)| at <= now) else { return };
        self.coming = None;
        let goes_on = self.stats.transfers > 0 && self.transfers.is_persistent();
        if goes_on {
            self.avoidance.on_application_limited(now);
            if let Some(model) = &mut self.model {
                model.restart();
            }
            if let Some(r) = &mut self.rack_tlp {
                r.restart();
            }
            // RFC 5681, section 4.1; the last acknowledgement was received no earlier than the segment that it answers
            // was sent.
            if self.model.is_none() && now.saturating_since(self.idle_since) > self.rto.rto() {
                self.window.cwnd = self.window.cwnd.min(initial_window(&self.config).cwnd);
            }
        } else {
            self.window = initial_window(&self.config);
            let seed = self.config.seed.wrapping_add(self.stats.transfers);
            self.avoidance = Avoidance::new(self.config.variant, &self.window, now, seed);
            self.model = self.config.variant.models_path().then(Box::<Model>::default);
            self.rto = Rto::new(self.config.min_rto);
            self.rack_tlp = (self.config.loss_detection == LossDetection::Rack).then(Box::default);
            self.signal_cwr = false;
            self.hystart = HyStart::default();
            self.next_send = now;
        }
        let opens = self.config.handshake && !goes_on;
        self.board.clear();
        self.dup_acks = 0;
        self.timed = None;
        self.syn_lost = false;
        self.resend_first = false;
        self.paced_until = None;
        self.pipe = 0;
        self.began = now;
        self.next = self.high;
        self.una = self.high;
        self.allowed = self.una + self.config.receive_window.as_bytes();
        self.phase = if opens { Phase::Opening } else { Phase::Open };
        self.first = self.una + u64::from(opens);
        self.limit = if self.stream.is_some() { self.first } else { self.first.saturating_add(bytes) };
        self.recovery_point = self.first;
        self.sample_at = self.una;
        self.ecn_point = self.first;
    }

    /// Adds the data that a live source has produced by now, in whole segments.
    #[inline]
    pub(super) fn refill(&mut self, now: Timestamp) {
        if let Some(rate) = self.stream
            && self.phase != Phase::Idle
        {
            let bits = u128::from(rate.as_bps()) * nanos(now.saturating_since(self.began)) / NANOS_A_SECOND;
            let made = u64::try_from(bits / 8).unwrap_or(u64::MAX / 2);
            self.limit = self.limit.max(self.first + made - made % self.window.mss);
        }
    }
    /// When a live source will have produced the next whole segment.
    pub(super) fn next_made(&self) -> Option<Timestamp> {
        let rate = self.stream.filter(|r| r.as_bps() > 0 && self.phase != Phase::Idle)?;
        let bits = u128::from(self.limit - self.first + self.window.mss) * 8;
        let after = i64::try_from((bits * NANOS_A_SECOND).div_ceil(u128::from(rate.as_bps()))).ok()?;
        Some(self.began + TimeDelta::from_nanos(after))
    }

    /// The handshake has completed.
    pub(super) fn open(&mut self, now: Timestamp) {
        self.phase = Phase::Open;
        self.open_model(now);
        if self.syn_lost {
            // RFC 5681, section 3.1: a lost SYN makes the initial window one segment.
            self.window.cwnd = self.window.mss;
            self.rto.after_lost_syn();
        }
    }

    pub(super) fn finish(&mut self, now: Timestamp) {
        let (size, time) = (DataSize::from_bytes(self.limit - self.first), now.saturating_since(self.began));
        self.stats.transfers += 1;
        self.stats.transferred += size;
        self.stats.transfer_time += time;
        self.stats.transfer_rates += rate(size, time);
        self.idle_since = now;
        self.plan(now);
    }
}

const NANOS_A_SECOND: u128 = 1_000_000_000;

fn nanos(t: TimeDelta) -> u128 {
    u128::from(t.as_nanos().max(0).unsigned_abs())
}

/// Data divided by time, at most 1 Tbit/s, so that a transfer without duration does not dominate a sum.
fn rate(size: DataSize, time: TimeDelta) -> DataRate {
    const MOST: DataRate = DataRate::from_mbps(1_000_000);
    DataRate::from_size_over(size, time).map_or(MOST, |r| r.min(MOST))
}

pub(super) fn initial_window(config: &TcpConfig) -> Window {
    let mss = u64::from(config.mss);
    let ssthresh = config.initial_ssthresh.map_or(u64::MAX, |s| s.as_bytes().max(2 * mss));
    Window { cwnd: u64::from(config.initial_window) * mss, ssthresh, mss }
}
