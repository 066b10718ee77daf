//! Input of congestion avoidance from an acknowledgement: round-trip time, marks, and growth of the window.

use super::{Phase, Sender};
use crate::tcp::avoidance::{AckInfo, CongestionAvoidance, Marks};
use crate::tcp_segment::TcpSegment;
use weir_units::{TimeDelta, Timestamp};

impl Sender {
    /// Passes the marks of `delivered` bytes to the algorithm; returns whether it has reduced the window.
    #[cold]
    pub(super) fn count_marks(&mut self, s: &TcpSegment, delivered: u64, ack: &AckInfo) -> bool {
        let mss = self.window.mss;
        let marked = self.marks.on_ack(self.config.ecn, s, delivered.div_ceil(mss)) * mss;
        if self.phase != Phase::Open || delivered == 0 {
            return false;
        }
        let marks = Marks { delivered, marked: marked.min(delivered) };
        let reduces = self.avoidance.on_marks(&mut self.window, ack, &marks);
        self.stats.ecn_reductions += u64::from(reduces);
        reduces
    }

    /// The round-trip time sample in an acknowledgement of new data; one per round trip is passed to the timer.
    pub(super) fn take_rtt(&mut self, now: Timestamp, s: &TcpSegment) -> Option<TimeDelta> {
        let rtt = if self.config.timestamps {
            Some(now.saturating_since(s.echo))
        } else {
            self.timed.filter(|&(end, _)| s.ack >= end).map(|(_, sent)| now.saturating_since(sent))
        };
        if !self.config.timestamps && rtt.is_some() {
            self.timed = None;
        }
        if let Some(rtt) = rtt
            && s.ack >= self.sample_at
        {
            self.rto.on_sample(rtt);
            self.sample_at = self.high + 1;
        }
        if let Some(rtt) = rtt
            && let Some(r) = &mut self.rack_tlp
        {
            r.on_rtt(now, rtt);
        }
        rtt
    }

    #[inline]
    pub(super) fn ack_info(&self, now: Timestamp, acked: u64, rtt: Option<TimeDelta>, was_limited: bool) -> AckInfo {
        let srtt = self.rto.srtt().unwrap_or_default();
        AckInfo { now, acked, rtt, srtt, una: self.una, high: self.high, was_limited }
    }

    #[inline]
    pub(super) fn grow(&mut self, ack: &AckInfo) {
        if !ack.was_limited {
            self.avoidance.on_application_limited(ack.now);
        } else if self.window.cwnd < self.window.ssthresh {
            if self.config.hystart {
                return self.hystart.on_ack(&mut self.window, ack, self.config.variant.paces());
            }
            self.avoidance.slow_start(&mut self.window, ack);
        } else {
            self.avoidance.on_ack(&mut self.window, ack);
        }
    }
}
