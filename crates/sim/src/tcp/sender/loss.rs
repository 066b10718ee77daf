//! Loss recovery: the window's reduction, fast recovery, the timeout, and the choice of the next segment.

use super::prr::Prr;
use super::{Phase, Sender};
use crate::tcp::SackBlock;
use crate::tcp::avoidance::{Congestion, CongestionAvoidance};
use crate::tcp::scoreboard::DUP_THRESH;
use weir_units::Timestamp;

/// The kind of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Data never sent before.
    New,
    /// Retransmitted data.
    Again,
    /// The rescue retransmission (RFC 6675, section 4, NextSeg rule 4).
    Rescue,
}

impl Sender {
    /// The window after congestion (RFC 5681, equation 4). Data added by limited transmit does not count.
    pub(super) fn reduce(&mut self, why: Congestion) {
        let flight = (self.high - self.una).min(self.window.cwnd);
        let ssthresh = self.avoidance.on_congestion(&self.window, flight, why);
        self.window.ssthresh = ssthresh.max(2 * self.window.mss);
    }

    pub(super) fn on_ecn_echo(&mut self) {
        self.stats.ecn_reductions += 1;
        self.reduce(Congestion::Ecn);
        self.window.cwnd = self.window.ssthresh;
        self.ecn_point = self.high;
        self.signal_cwr = true;
    }

    /// RFC 6675, section 5, step 4; RFC 6582, section 3.2, steps 2 and 3.
    pub(super) fn enter_recovery(&mut self, now: Timestamp) {
        self.start_recovery(now);
        self.reduce(Congestion::Loss);
        self.window.cwnd = self.window.ssthresh;
        if !self.config.sack {
            self.window.cwnd += DUP_THRESH as u64 * self.window.mss;
        }
        self.prr = Prr::begin(self.high - self.una);
    }

    /// Fast recovery without a change of the window.
    pub(super) fn start_recovery(&mut self, now: Timestamp) {
        self.stats.recoveries += 1;
        self.phase = Phase::Recovery;
        self.recovery_point = self.high;
        self.ecn_point = self.high;
        self.high_rxt = self.una;
        self.rescued = false;
        self.resend_first = true;
        if let Some(r) = &mut self.rack_tlp {
            r.on_recovery(now);
        }
    }

    pub(super) fn recover(&mut self, acked: u64) {
        if self.una >= self.recovery_point {
            self.phase = Phase::Open;
            self.resend_first = false;
            if self.config.prr {
                self.window.cwnd = self.window.ssthresh;
            }
            if !self.config.sack {
                // RFC 6582, section 3.2, step 3, option 1.
                let flight = self.high - self.una;
                self.window.cwnd = self.window.ssthresh.min(flight.max(self.window.mss) + self.window.mss);
            }
        } else if !self.config.sack {
            if acked == 0 {
                self.window.cwnd += self.window.mss;
            } else {
                // A partial acknowledgement: the next hole begins there.
                let kept = self.window.cwnd.saturating_sub(acked).max(self.window.mss);
                self.window.cwnd = kept + if acked >= self.window.mss { self.window.mss } else { 0 };
                self.high_rxt = self.una;
                self.resend_first = true;
            }
        }
        self.high_rxt = self.high_rxt.max(self.una);
    }

    /// RFC 6675's SetPipe, or its equivalent in the other phases.
    #[inline]
    pub(super) fn count_pipe(&mut self) {
        if let Some(r) = &self.rack_tlp {
            self.pipe = r.in_flight();
            return;
        }
        let outstanding = self.next - self.una;
        self.pipe = match self.phase {
            Phase::Recovery if self.config.sack => {
                let lost = self.board.lost_below(self.window.mss).max(self.una);
                self.board.missing(lost, self.high) + self.board.missing(self.una, self.high_rxt)
            }
            Phase::Loss if !self.board.is_empty() => self.board.missing(self.una, self.next),
            Phase::Open => outstanding - self.board.sacked().min(outstanding),
            _ => outstanding,
        };
    }

    pub(super) fn on_retransmission_timeout(&mut self, now: Timestamp) {
        self.stats.timeouts += 1;
        self.timer = None;
        self.timed = None;
        if self.phase == Phase::Opening {
            self.syn_lost = true;
            self.next = self.una;
            self.rto.back_off();
            return;
        }
        self.mark_on_timeout(now);
        // RFC 5681, section 3.1: the threshold stays if the same segment times out again.
        let is_first = self.rto.backoffs() == 0 || self.phase != Phase::Loss;
        if !self.time_out_model(now) {
            if is_first {
                self.reduce(Congestion::Timeout);
            }
            self.window.cwnd = self.window.mss;
        }
        self.rto.back_off();
        self.phase = Phase::Loss;
        self.recovery_point = self.high;
        self.ecn_point = self.high;
        self.dup_acks = 0;
        self.resend_first = false;
        if self.rack_tlp.is_some() {
            return self.arm_after_timeout(now);
        }
        // SACK information is kept (RFC 6675, section 5.1): a receiver that reneges is detected.
        self.next = self.una;
        self.pipe = 0;
    }

    /// The next segment to send: first byte, length and kind.
    pub(super) fn choose(&mut self) -> Option<(u64, u64, Kind)> {
        if self.rack_tlp.is_some() {
            return self.choose_by_rack();
        }
        let mss = self.window.mss;
        if self.phase == Phase::Recovery {
            if self.resend_first {
                let hole = self.board.hole(self.una, self.high)?;
                return Some((hole.start, (hole.end - hole.start).min(mss), Kind::Again));
            }
            if self.config.sack {
                return if self.pipe + mss <= self.window.cwnd { self.next_segment() } else { None };
            }
        }
        let mut start = self.next;
        let mut end = self.limit;
        if start < self.high {
            // After a timeout: fills the holes in order.
            match self.board.hole(start, self.high) {
                Some(hole) => (start, end) = (hole.start, hole.end),
                None => start = self.high,
            }
            self.next = start;
        }
        let len = mss.min(end - start.min(end));
        // RFC 3042 without SACK: each of the first two duplicates allows one new segment.
        let extra =
            if self.config.sack || self.phase != Phase::Open { 0 } else { u64::from(self.dup_acks.min(2)) * mss };
        let fits = self.pipe + len <= self.window.cwnd + extra && start + len <= self.allowed;
        let kind = if start >= self.high { Kind::New } else { Kind::Again };
        (len > 0 && fits).then_some((start, len, kind))
    }

    /// Whether the window surely has no room for what [`Self::choose`] would return; `false` where that takes a longer look.
    #[inline]
    pub(super) fn is_window_full(&self) -> bool {
        let mss = self.window.mss;
        self.pipe + mss > self.window.cwnd
            && self.config.sack
            && self.next == self.high
            && self.limit.saturating_sub(self.next) >= mss
            && self.phase != Phase::Loss
            && self.rack_tlp.is_none()
    }

    /// NextSeg() of RFC 6675, section 4.
    fn next_segment(&self) -> Option<(u64, u64, Kind)> {
        let mss = self.window.mss;
        let from = self.high_rxt.max(self.una);
        let cut = |hole: SackBlock| (hole.start, (hole.end - hole.start).min(mss), Kind::Again);
        let lost = self.board.lost_below(mss);
        // (1) What is lost.
        if let Some(hole) = self.board.hole(from, lost) {
            return Some(cut(hole));
        }
        // (2) New data.
        let len = mss.min(self.limit - self.high);
        if len > 0 && self.high + len <= self.allowed {
            return Some((self.high, len, Kind::New));
        }
        // (3) What may be lost.
        if let Some(hole) = self.board.highest().and_then(|top| self.board.hole(from, top)) {
            return Some(cut(hole));
        }
        // (4) Rescue: the end of what was sent, once per recovery.
        if !self.rescued && self.una < self.recovery_point {
            let start = self.recovery_point.saturating_sub(mss).max(self.una).max(self.board.highest().unwrap_or(0));
            if start < self.recovery_point {
                return Some((start, self.recovery_point - start, Kind::Rescue));
            }
        }
        None
    }

    /// Records a segment as sent.
    pub(super) fn sent(&mut self, now: Timestamp, start: u64, len: u64, kind: Kind) {
        let end = start + len;
        self.stats.segments += 1;
        if kind == Kind::New {
            if !self.config.timestamps && self.timed.is_none() {
                self.timed = Some((end, now));
            }
            (self.high, self.next) = (end, end);
        } else {
            self.stats.retransmits += 1;
            // Karn: a retransmitted segment gives no RTT sample (RFC 6298, section 3).
            self.timed = None;
            match (kind, self.phase) {
                _ if self.rack_tlp.is_some() => {}
                (Kind::Rescue, _) => self.rescued = true,
                (_, Phase::Recovery) => self.high_rxt = self.high_rxt.max(end),
                _ => self.next = end,
            }
        }
        if self.model.is_some() {
            self.sent_by_model(now, start, len);
        }
        self.prr.on_sent(len);
        self.resend_first = false;
        if self.rack_tlp.is_some() {
            return self.sent_by_rack(now, start, len, kind);
        }
        self.pipe += len;
        if self.timer.is_none() {
            self.timer = Some(now + self.rto.rto());
        }
    }
}
