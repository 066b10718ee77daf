//! The circuit breaker for RTP sessions (RFC 8083): it stops a flow that congests its path persistently, independent of
//! rate control.
//!
//! A state machine beside the controller, one for each media stream: it takes sent packets and RTCP reports, and
//! requires the sender to reduce or to cease. [`Rules`] selects the RFC or its draft of 2013.
//!
//! Choices where the RFC is open:
//! - The sending rate is averaged over the same reporting intervals as the loss.
//! - "Packets of the last 4 G frames" are those sent in the last 4 G frame intervals.
//! - Without a round-trip time TCP's rate is unknown and the congestion rule does not apply; the others do.
//! - A sender that has sent nothing for twice the longest of frame interval, round-trip time and reporting interval has
//!   stopped; there is then no media timeout.
//! - A stretch with less than one packet per max(Tdr, Tr) is left out of the average.
//! - After a successful reduction to a tenth, the cap doubles with each CB_INTERVAL without another trigger, and is
//!   lifted once it exceeds the rate before the reduction; until then the next trigger is final.

mod config;
mod congestion;
mod connectivity;
mod sent;
mod trace;

pub use config::{Config, RtcpIntervals, Rules, Usability};
pub use trace::{TraceReport, first_trip};

use crate::cue::{ReportBlock, SentPacket};
use config::Timing;
use congestion::{Compared, Congestion};
use connectivity::{MediaTimeout, RtcpTimeout, is_sending, reports_last};
use sent::Sent;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

/// Weight of the previous round-trip time against a new sample (RFC 8083, section 3).
const RTT_MEMORY: f64 = 0.8;

/// The rule that has tripped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// No report was received (RFC 8083, section 4.1).
    RtcpTimeout,
    /// Reports cover no new media (RFC 8083, section 4.2).
    MediaTimeout,
    /// The rate is more than ten times TCP's (RFC 8083, section 4.3).
    Congestion,
    /// Received media is unusable (RFC 8083, section 4.4).
    MediaUsability,
}

/// Why and when sending had to cease.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Trip {
    /// The rule.
    pub reason: Reason,
    /// When.
    pub at: Timestamp,
    /// The sending rate compared at a congestion trip; for other rules the last one compared.
    pub sending_rate: Option<DataRate>,
    /// TCP's rate by the equation, as for `sending_rate`.
    pub tcp_rate: Option<DataRate>,
    /// Time during which sending must not restart automatically (RFC 8083, section 4.5: the triggering interval).
    pub pause: TimeDelta,
}

impl Trip {
    /// The earliest automatic restart.
    pub fn earliest_restart(&self) -> Timestamp {
        self.at + self.pause
    }
}

/// A reduction in force.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    cap: DataRate,
    before: DataRate,
    /// Reports since the reduction began or was last eased.
    reports: u32,
}

/// The circuit breaker of one media stream.
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    config: Config,
    timing: Timing,
    /// The last sample and the smoothed round-trip time.
    rtt: Option<(TimeDelta, TimeDelta)>,
    sent: Sent,
    rtcp: RtcpTimeout,
    media: MediaTimeout,
    congestion: Congestion,
    unusable_since: Option<Timestamp>,
    reduction: Option<Reduction>,
    trip: Option<Trip>,
}

impl CircuitBreaker {
    /// A breaker in its initial state; both reporting intervals default to 5 s.
    pub fn new(config: Config) -> Self {
        let timing = Timing::new(&config);
        Self {
            config,
            timing,
            rtt: None,
            sent: Sent::new(),
            rtcp: RtcpTimeout::default(),
            media: MediaTimeout::default(),
            congestion: Congestion::new(&timing),
            unusable_since: None,
            reduction: None,
            trip: None,
        }
    }

    /// A packet of the stream has been sent.
    pub fn on_packet_sent(&mut self, packet: &SentPacket) {
        let four_groups = self.timing.tf * 4 * i64::from(self.timing.group);
        self.sent.on_packet(packet, four_groups);
        self.rtcp.on_sent(packet.now);
        self.media.on_sent(&self.timing, &self.config);
    }

    /// The deterministic reporting intervals have been recomputed.
    pub fn on_rtcp_interval(&mut self, intervals: RtcpIntervals) {
        self.timing.set(intervals);
    }

    /// Sets Tf, the longest time between frames of the last 10 s.
    pub fn on_frame_interval(&mut self, interval: TimeDelta) {
        self.timing.tf = interval.max(TimeDelta::ZERO);
    }

    /// RTCP without a report block for the stream, which shows connectivity all the same: reduced-size feedback (RFC
    /// 8083, section 5), or a report on another stream of the same transport (section 4.1).
    pub fn on_feedback(&mut self) {
        self.rtcp.cancel();
    }

    /// Handles a report block for the stream. `marked` is the number of CE marks that the same RTCP packet reports for
    /// the interval, or 0. All values of the block are untrusted and bounded here.
    pub fn on_report_block(&mut self, block: &ReportBlock, marked: u64) {
        if self.trip.is_some() {
            return;
        }
        let now = block.now;
        self.rtcp.cancel();
        self.on_rtt(block.rtt);
        let sending = is_sending(now, self.sent.last(), &self.timing);
        if self.media.on_report(block.highest_sequence, sending, &self.timing, &self.config) {
            let reports = self.media.reports().unwrap_or(1);
            return self.cease(Reason::MediaTimeout, now, reports_last(reports, &self.timing));
        }
        let lost = block.loss();
        self.judge_congestion(lost, marked, block);
        self.judge_usability(lost, now);
        self.congestion.update(&self.timing);
    }

    fn on_rtt(&mut self, sample: Option<TimeDelta>) {
        let Some(sample) = sample.filter(|s| !s.is_negative()) else { return };
        let smoothed = match self.rtt {
            None => sample,
            Some((_, before)) => before.mul_f64(RTT_MEMORY) + sample.mul_f64(1.0 - RTT_MEMORY),
        };
        self.rtt = Some((sample, smoothed));
        self.timing.tr = smoothed;
    }

    fn judge_congestion(&mut self, lost: f64, marked: u64, block: &ReportBlock) {
        let marks = if self.config.count_marks { marked as f64 / block.expected.max(1) as f64 } else { 0.0 };
        let sent = self.sent.take(block.now);
        let rtt = self.rtt.map(|(last, smoothed)| match self.config.rules {
            Rules::Rfc8083 => smoothed,
            Rules::Thesis2013 => last,
        });
        let segment = self.sent.mean_size();
        let loss = (lost + marks).min(1.0);
        match self.congestion.on_report(loss, sent, segment, rtt, &self.timing, &self.config) {
            Compared::Unknown => self.count_report(),
            Compared::Within => {
                self.count_report();
                self.ease();
            }
            Compared::Exceeded if self.config.may_reduce && self.reduction.is_none() => {
                let before = self.congestion.rates().map_or(DataRate::ZERO, |r| r.sending);
                let tenth = Gain::new(1.0 / self.config.factor).unwrap_or(Gain::ONE);
                self.reduction = Some(Reduction { cap: before * tenth, before, reports: 0 });
                self.congestion.forget();
            }
            Compared::Exceeded => {
                let pause = match self.config.rules {
                    Rules::Rfc8083 => reports_last(self.congestion.cb_interval(), &self.timing),
                    Rules::Thesis2013 => reports_last(2, &self.timing),
                };
                self.cease(Reason::Congestion, block.now, pause);
            }
        }
    }

    fn count_report(&mut self) {
        if let Some(r) = &mut self.reduction {
            r.reports = r.reports.saturating_add(1);
        }
    }

    /// The congestion rule has not triggered: eases a reduction that has lasted for CB_INTERVAL.
    fn ease(&mut self) {
        let Some(r) = &mut self.reduction else { return };
        if r.reports < self.congestion.cb_interval() {
            return;
        }
        r.cap = r.cap + r.cap;
        r.reports = 0;
        if r.cap >= r.before {
            self.reduction = None;
        }
    }

    fn judge_usability(&mut self, lost: f64, now: Timestamp) {
        let Some(usable) = self.config.usability else { return };
        let late = self.rtt.is_some_and(|(_, smoothed)| smoothed > usable.max_rtt);
        if lost <= usable.max_loss && !late {
            self.unusable_since = None;
            return;
        }
        let since = *self.unusable_since.get_or_insert(now);
        if now - since >= usable.patience {
            self.cease(Reason::MediaUsability, now, usable.patience);
        }
    }

    fn cease(&mut self, reason: Reason, at: Timestamp, pause: TimeDelta) {
        if self.trip.is_none() {
            let rates = self.congestion.rates();
            let (sending_rate, tcp_rate) = (rates.map(|r| r.sending), rates.and_then(|r| r.tcp));
            self.trip = Some(Trip { reason, at, sending_rate, tcp_rate, pause });
        }
    }

    /// The sender has paused by itself: timeouts are cancelled until the next packet.
    pub fn on_stopped(&mut self) {
        self.rtcp.cancel();
        self.media.cancel();
        self.congestion.reset();
        self.sent = Sent::new();
        self.unusable_since = None;
    }

    /// When to call [`Self::on_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        if self.trip.is_some() {
            return None;
        }
        self.rtcp.deadline(&self.timing)
    }

    /// The time of [`Self::poll_timeout`] has come.
    pub fn on_timeout(&mut self, now: Timestamp) {
        if self.trip.is_none() && self.rtcp.expired(now, self.sent.last(), &self.timing) {
            self.cease(Reason::RtcpTimeout, now, self.timing.rtcp_timeout());
        }
    }

    /// Why sending must cease; `None` while it may go on.
    pub fn tripped(&self) -> Option<Trip> {
        self.trip
    }

    /// Upper bound of the stream's rate while a reduction is in force.
    pub fn rate_cap(&self) -> Option<DataRate> {
        self.reduction.map(|r| r.cap)
    }

    /// Restarts after a trip and returns whether that is allowed. It is not before [`Trip::earliest_restart`]; after it
    /// the caller should have reason to believe that the congestion has ended (RFC 8083, section 4.5).
    pub fn restart(&mut self, now: Timestamp) -> bool {
        let allowed = self.trip.is_none_or(|t| now >= t.earliest_restart());
        if allowed {
            let timing = self.timing;
            *self = Self::new(self.config);
            self.timing = Timing { tr: TimeDelta::ZERO, ..timing };
            self.congestion.update(&self.timing);
        }
        allowed
    }

    /// As [`crate::Controller::metrics`].
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let rates = self.congestion.rates();
        out("breaker_loss", rates.map_or(f64::NAN, |r| r.loss));
        out("breaker_sending_rate_bps", rates.map_or(f64::NAN, |r| r.sending.as_bps_f64()));
        out("breaker_tcp_rate_bps", rates.and_then(|r| r.tcp).map_or(f64::NAN, DataRate::as_bps_f64));
        out("breaker_cap_bps", self.rate_cap().map_or(f64::NAN, DataRate::as_bps_f64));
        out("breaker_interval", f64::from(self.congestion.cb_interval()));
    }
}

#[cfg(test)]
mod tests;
