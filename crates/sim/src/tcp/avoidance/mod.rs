//! Congestion avoidance: growth and reduction of the window. One file per algorithm.

mod cubic;
mod highspeed;
mod newreno;
mod scalable;
mod vegas;

pub use cubic::Cubic;
pub use highspeed::{HighSpeed, decrease as highspeed_decrease, increase as highspeed_increase};
pub use newreno::NewReno;
pub use scalable::Scalable;
pub use vegas::Vegas;

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
}

impl Variant {
    /// Every algorithm.
    pub const ALL: [Self; 5] = [Self::NewReno, Self::Cubic, Self::Vegas, Self::HighSpeed, Self::Scalable];

    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Vegas => "vegas",
            Self::HighSpeed => "highspeed",
            Self::Scalable => "scalable",
        }
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
}

impl Avoidance {
    pub(crate) fn new(variant: Variant) -> Self {
        match variant {
            Variant::NewReno => Self::NewReno(NewReno::default()),
            Variant::Cubic => Self::Cubic(Cubic::default()),
            Variant::Vegas => Self::Vegas(Vegas::default()),
            Variant::HighSpeed => Self::HighSpeed(HighSpeed::default()),
            Variant::Scalable => Self::Scalable(Scalable::default()),
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
}
