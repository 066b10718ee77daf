//! Limits of the media independent of the controller: the circuit breaker (RFC 8083), and the cap without feedback.

use weir_cc::Target;
use weir_cc::circuit_breaker::{CircuitBreaker, Config, RtcpIntervals, Trip};
use weir_cc::cue::{ReportBlock, SentPacket};
use weir_cc::feedback_guard::{self, FeedbackGuard};
use weir_units::cold_path;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Half of the window over which the longest frame interval is taken (RFC 8083, section 3: 10 s).
const HALF_WINDOW: TimeDelta = TimeDelta::from_secs(5);

/// The limits of a path's media, if it has any. Without them nothing is kept, and each call costs one comparison.
#[derive(Debug)]
pub(crate) struct Breaker(Option<Box<Limits>>);

/// An optional circuit breaker with its knowledge of frames, and an optional cap without feedback.
#[derive(Debug)]
struct Limits {
    breaker: Option<CircuitBreaker>,
    guard: Option<FeedbackGuard>,
    last_frame: Option<Timestamp>,
    /// Longest frame interval in this half of the window and in the previous one, and the start of this one.
    longest: (TimeDelta, TimeDelta),
    since: Timestamp,
}

impl Breaker {
    pub(crate) fn new(config: Option<Config>, guard: Option<feedback_guard::Config>) -> Self {
        if config.is_none() && guard.is_none() {
            return Self(None);
        }
        Self(Some(Box::new(Limits {
            breaker: config.map(CircuitBreaker::new),
            guard: guard.map(FeedbackGuard::new),
            last_frame: None,
            longest: (TimeDelta::ZERO, TimeDelta::ZERO),
            since: Timestamp::ZERO,
        })))
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.0.is_some()
    }

    #[inline]
    fn breaker(&mut self) -> Option<&mut CircuitBreaker> {
        self.0.as_mut()?.breaker.as_mut()
    }
    #[inline]
    fn guard(&mut self) -> Option<&mut FeedbackGuard> {
        self.0.as_mut()?.guard.as_mut()
    }

    #[inline]
    pub(crate) fn tripped(&self) -> Option<Trip> {
        self.0.as_ref()?.breaker.as_ref()?.tripped()
    }

    /// The target brought below the rate that a reduction, or the want of feedback, leaves.
    #[inline]
    pub(crate) fn within_cap(&self, target: Target) -> Target {
        match &self.0 {
            Some(limits) => limits.within_cap(target),
            None => target,
        }
    }

    #[inline]
    pub(crate) fn on_packet_sent(&mut self, packet: &SentPacket, media_rate: DataRate) {
        let Some(limits) = &mut self.0 else { return };
        cold_path();
        if let Some(g) = &mut limits.guard {
            g.on_packet_sent(packet.now, media_rate);
        }
        if let Some(b) = limits.breaker.as_mut().filter(|_| !packet.is_repair && !packet.is_retransmission) {
            b.on_packet_sent(packet);
        }
    }

    #[inline]
    pub(crate) fn on_frame(&mut self, now: Timestamp) {
        if let Some(limits) = &mut self.0 {
            cold_path();
            limits.on_frame(now);
        }
    }

    /// A report block on the media stream. It has no ECN marks, which RFC 8888 reports separately.
    pub(crate) fn on_block(&mut self, block: &ReportBlock) {
        if let Some(g) = self.guard() {
            g.on_feedback(block.now);
        }
        if let Some(b) = self.breaker() {
            b.on_report_block(block, 0);
        }
    }

    /// RTCP without such a block that shows the receiver to be there.
    pub(crate) fn on_feedback(&mut self, now: Timestamp) {
        if let Some(g) = self.guard() {
            g.on_feedback(now);
        }
        if let Some(b) = self.breaker() {
            b.on_feedback();
        }
    }

    /// The receiver's own estimate, which answers what was sent.
    pub(crate) fn on_estimate(&mut self, now: Timestamp) {
        if let Some(g) = self.guard() {
            g.on_feedback(now);
        }
    }

    /// Reporting intervals as RTCP's share has them now.
    pub(crate) fn on_rtcp_interval(&mut self, interval: TimeDelta) {
        if let Some(g) = self.guard() {
            g.on_rtcp_interval(interval);
        }
        if let Some(b) = self.breaker() {
            b.on_rtcp_interval(RtcpIntervals { own: interval, receiver: interval });
        }
    }

    /// The source has stopped, for reasons other than congestion.
    pub(crate) fn on_stopped(&mut self) {
        if let Some(limits) = &mut self.0 {
            limits.last_frame = None;
        }
        if let Some(b) = self.breaker() {
            b.on_stopped();
        }
    }

    /// Handles what is due; returns whether this has tripped the breaker.
    #[inline]
    pub(crate) fn on_timeout(&mut self, now: Timestamp) -> bool {
        let Some(b) = self.breaker().filter(|b| b.tripped().is_none()) else { return false };
        if b.poll_timeout().is_some_and(|at| at <= now) {
            b.on_timeout(now);
        }
        b.tripped().is_some()
    }

    /// Takes the steps of a rate without feedback whose time has come; whether the target may change by it.
    #[inline]
    pub(crate) fn run_guard(&mut self, now: Timestamp) -> bool {
        self.guard().is_some_and(|g| g.on_timeout(now))
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Timestamp> {
        self.0.as_ref()?.poll_timeout()
    }

    pub(crate) fn restart(&mut self, now: Timestamp) -> bool {
        self.breaker().is_some_and(|b| b.restart(now))
    }
}

impl Limits {
    fn within_cap(&self, target: Target) -> Target {
        let reduced = self.breaker.as_ref().and_then(CircuitBreaker::rate_cap);
        let unheard = self.guard.as_ref().and_then(FeedbackGuard::cap);
        let Some(cap) = [reduced, unheard].into_iter().flatten().min() else { return target };
        Target {
            media_rate: target.media_rate.min(cap),
            pacing_rate: target.pacing_rate.min(cap),
            padding_rate: target.padding_rate.min(cap),
            ..target
        }
    }

    fn on_frame(&mut self, now: Timestamp) {
        let Some(b) = &mut self.breaker else { return };
        if now - self.since >= HALF_WINDOW {
            (self.longest, self.since) = ((TimeDelta::ZERO, self.longest.0), now);
        }
        if let Some(last) = self.last_frame.replace(now) {
            self.longest.0 = self.longest.0.max(now - last);
            b.on_frame_interval(self.longest.0.max(self.longest.1));
        }
    }

    fn poll_timeout(&self) -> Option<Timestamp> {
        let breaker = self.breaker.as_ref().and_then(CircuitBreaker::poll_timeout);
        let guard = self.guard.as_ref().and_then(FeedbackGuard::poll_timeout);
        [breaker, guard].into_iter().flatten().min()
    }
}
