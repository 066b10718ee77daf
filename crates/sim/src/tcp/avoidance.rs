//! Congestion avoidance: growth and reduction of the window. One file per algorithm.

mod bbr;
mod bbr1;
mod cubic;
mod dctcp;
mod highspeed;
mod newreno;
mod prague;
mod scalable;
mod vegas;

pub use super::delivery::{LostSegment, RateSample};
pub use bbr::Bbr;
pub use bbr1::Bbr1;
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use highspeed::{HighSpeed, decrease as highspeed_decrease, increase as highspeed_increase};
pub use newreno::NewReno;
pub use prague::Prague;
pub use scalable::Scalable;
pub use vegas::Vegas;

use super::ecn::EcnFeedback;
use weir_units::{TimeDelta, Timestamp};

/// Congestion window and slow-start threshold, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold; `u64::MAX` until the first congestion.
    pub ssthresh: u64,
    /// Sender's maximum segment size, data only.
    pub mss: u64,
}

impl Window {
    /// Slow start (RFC 5681, equation 2): at most one segment more per acknowledgement, up to `ssthresh`.
    pub(crate) fn slow_start(&mut self, acked: u64) {
        self.cwnd = self.cwnd.saturating_add(acked.min(self.mss)).min(self.ssthresh.max(self.cwnd));
    }
    /// The window in segments.
    pub fn segments(&self) -> f64 {
        self.cwnd as f64 / self.mss as f64
    }
}

/// An acknowledgement of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AckInfo {
    /// When it was received.
    pub now: Timestamp,
    /// Newly acknowledged bytes.
    pub acked: u64,
    /// Round-trip time sample, if any.
    pub rtt: Option<TimeDelta>,
    /// Smoothed round-trip time.
    pub srtt: TimeDelta,
    /// First byte not acknowledged.
    pub una: u64,
    /// End of what has been sent.
    pub high: u64,
    /// Whether the sender was limited by the window rather than by its data.
    pub was_limited: bool,
}

#[cfg(test)]
impl AckInfo {
    /// An acknowledgement of nothing, as a base for tests.
    pub(crate) fn at(now: Timestamp, rtt: TimeDelta) -> Self {
        Self { now, acked: 0, rtt: Some(rtt), srtt: rtt, una: 0, high: 0, was_limited: true }
    }
}

/// Why the window must be reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// A loss detected by duplicate acknowledgements.
    Loss,
    /// ECN-Echo.
    Ecn,
    /// The retransmission timer.
    Timeout,
}

/// Bytes delivered by an acknowledgement, cumulatively or selectively, and those of them with a CE mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Marks {
    /// Bytes delivered.
    pub delivered: u64,
    /// Bytes of them in marked segments.
    pub marked: u64,
}

/// The state of the connection, for algorithms that model the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Connection {
    /// The time.
    pub now: Timestamp,
    /// Bytes delivered so far.
    pub delivered: u64,
    /// Estimate of bytes in the network.
    pub in_flight: u64,
    /// Whether the sender was limited by the window.
    pub is_window_limited: bool,
    /// Whether losses are being repaired.
    pub in_recovery: bool,
    /// Smoothed round-trip time.
    pub srtt: Option<TimeDelta>,
}

/// Events of a connection beside acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathEvent {
    /// The connection has been opened.
    Open,
    /// Fast recovery begins.
    FastRecovery,
    /// The retransmission timer expired.
    Timeout,
    /// All losses are repaired.
    Recovered,
    /// Data is sent after an idle time.
    Restart,
}

/// An algorithm for the window. Loss detection and recovery are handled by the sender.
pub trait CongestionAvoidance {
    /// New data was acknowledged while nothing is missing; called before the other methods, for any window.
    fn measure(&mut self, window: &mut Window, ack: &AckInfo) {
        let _ = (window, ack);
    }
    /// New data was acknowledged outside loss recovery, `cwnd` is below `ssthresh`, and the window was in use.
    fn slow_start(&mut self, window: &mut Window, ack: &AckInfo) {
        window.slow_start(ack.acked);
    }
    /// New data was acknowledged outside loss recovery, `cwnd` is not below `ssthresh`, and the window was in use.
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo);
    /// The sender had less to send than the window allows.
    fn on_application_limited(&mut self, now: Timestamp) {
        let _ = now;
    }
    /// Congestion: returns the new `ssthresh` in bytes; the sender limits it to at least 2 segments and sets `cwnd`.
    /// `flight` is what was sent and not acknowledged, excluding additions by limited transmit.
    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64;
    /// Counts of marks, if the receiver counts them ([`Variant::ecn`]); called for each acknowledgement with data in
    /// flight. Returns whether the window was reduced.
    fn on_marks(&mut self, window: &mut Window, ack: &AckInfo, marks: &Marks) -> bool {
        let _ = (window, ack, marks);
        false
    }
    /// A rate sample, if the algorithm models the path ([`Variant::models_path`]). It then sets the window itself, and
    /// of the methods above none is called.
    fn on_sample(&mut self, window: &mut Window, connection: &Connection, sample: &RateSample) {
        let _ = (window, connection, sample);
    }
    /// A segment was detected as lost; called before [`Self::on_sample`] of the same acknowledgement.
    fn on_lost(&mut self, window: &mut Window, connection: &Connection, lost: &LostSegment) {
        let _ = (window, connection, lost);
    }
    /// Something else happened.
    fn on_event(&mut self, window: &mut Window, connection: &Connection, event: PathEvent) {
        let _ = (window, connection, event);
    }
    /// The pacing rate in bytes a second; `None` to send at once what the window allows.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }
    /// Whether rate samples are to be marked as limited by the application, since the algorithm itself holds back.
    fn hides_samples(&self) -> bool {
        false
    }
}

/// The algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub enum Variant {
    /// NewReno (RFC 5681).
    #[default]
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// Vegas (Brakmo and Peterson, 1995).
    Vegas,
    /// HighSpeed TCP (RFC 3649).
    HighSpeed,
    /// Scalable TCP (Kelly, 2003).
    Scalable,
    /// DCTCP (RFC 8257).
    Dctcp,
    /// TCP Prague, for L4S (RFC 9331).
    Prague,
    /// BBR version 1, as in Linux.
    Bbr1,
    /// BBR version 3 (draft-ietf-ccwg-bbr).
    Bbr,
}

impl Variant {
    /// Every algorithm.
    pub const ALL: [Self; 9] = [
        Self::NewReno,
        Self::Cubic,
        Self::Vegas,
        Self::HighSpeed,
        Self::Scalable,
        Self::Dctcp,
        Self::Prague,
        Self::Bbr1,
        Self::Bbr,
    ];

    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Vegas => "vegas",
            Self::HighSpeed => "highspeed",
            Self::Scalable => "scalable",
            Self::Dctcp => "dctcp",
            Self::Prague => "prague",
            Self::Bbr1 => "bbr1",
            Self::Bbr => "bbr",
        }
    }
    /// The ECN feedback that it needs; off for those that can do without.
    pub const fn ecn(self) -> EcnFeedback {
        match self {
            Self::Dctcp => EcnFeedback::Dctcp,
            Self::Prague => EcnFeedback::Accurate,
            _ => EcnFeedback::Off,
        }
    }
    /// The ECN feedback with ECN enabled.
    pub const fn with_ecn(self) -> EcnFeedback {
        match self.ecn() {
            // The draft of BBR has no response to marks.
            EcnFeedback::Off if self.models_path() => EcnFeedback::Off,
            EcnFeedback::Off => EcnFeedback::Classic,
            own => own,
        }
    }
    /// Whether it sets window and pacing rate by a model of the path, made of rate samples.
    pub const fn models_path(self) -> bool {
        matches!(self, Self::Bbr1 | Self::Bbr)
    }
    /// Whether it sends at a pacing rate.
    pub const fn paces(self) -> bool {
        matches!(self, Self::Prague | Self::Bbr1 | Self::Bbr)
    }
    /// The algorithm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.name() == name)
    }
}

/// Any algorithm.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Avoidance {
    NewReno(NewReno),
    Cubic(Cubic),
    Vegas(Vegas),
    HighSpeed(HighSpeed),
    Scalable(Scalable),
    Dctcp(Dctcp),
    Prague(Prague),
    Bbr1(Box<Bbr1>),
    Bbr(Box<Bbr>),
}

impl Avoidance {
    /// An algorithm for a connection that begins at `now`. `seed` is for those that draw random numbers.
    pub(crate) fn new(variant: Variant, window: &Window, now: Timestamp, seed: u64) -> Self {
        match variant {
            Variant::NewReno => Self::NewReno(NewReno::default()),
            Variant::Cubic => Self::Cubic(Cubic::default()),
            Variant::Vegas => Self::Vegas(Vegas::default()),
            Variant::HighSpeed => Self::HighSpeed(HighSpeed::default()),
            Variant::Scalable => Self::Scalable(Scalable::default()),
            Variant::Dctcp => Self::Dctcp(Dctcp::default()),
            Variant::Prague => Self::Prague(Prague::default()),
            Variant::Bbr1 => Self::Bbr1(Box::new(Bbr1::new(window, now, seed))),
            Variant::Bbr => Self::Bbr(Box::new(Bbr::new(window, now, seed))),
        }
    }
}

macro_rules! each {
    ($self:ident, $a:ident => $call:expr) => {
        match $self {
            Self::NewReno($a) => $call,
            Self::Cubic($a) => $call,
            Self::Vegas($a) => $call,
            Self::HighSpeed($a) => $call,
            Self::Scalable($a) => $call,
            Self::Dctcp($a) => $call,
            Self::Prague($a) => $call,
            Self::Bbr1($a) => $call,
            Self::Bbr($a) => $call,
        }
    };
}

impl CongestionAvoidance for Avoidance {
    #[inline]
    fn measure(&mut self, window: &mut Window, ack: &AckInfo) {
        each!(self, a => a.measure(window, ack));
    }
    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &AckInfo) {
        each!(self, a => a.slow_start(window, ack));
    }
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        each!(self, a => a.on_ack(window, ack));
    }
    fn on_application_limited(&mut self, now: Timestamp) {
        each!(self, a => a.on_application_limited(now));
    }
    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64 {
        each!(self, a => a.on_congestion(window, flight, why))
    }
    fn on_marks(&mut self, window: &mut Window, ack: &AckInfo, marks: &Marks) -> bool {
        each!(self, a => a.on_marks(window, ack, marks))
    }
    fn on_sample(&mut self, window: &mut Window, connection: &Connection, sample: &RateSample) {
        each!(self, a => a.on_sample(window, connection, sample));
    }
    fn on_lost(&mut self, window: &mut Window, connection: &Connection, lost: &LostSegment) {
        each!(self, a => a.on_lost(window, connection, lost));
    }
    fn on_event(&mut self, window: &mut Window, connection: &Connection, event: PathEvent) {
        each!(self, a => a.on_event(window, connection, event));
    }
    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        each!(self, a => a.pacing_rate())
    }
    fn hides_samples(&self) -> bool {
        each!(self, a => a.hides_samples())
    }
}
