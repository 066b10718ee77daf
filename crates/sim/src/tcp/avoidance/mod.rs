//! Congestion avoidance: how the window grows and shrinks. One file for each algorithm.

mod cubic;
mod newreno;

pub use cubic::Cubic;
pub use newreno::NewReno;

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
    /// Slow start (RFC 5681, equation 2): for each acknowledgement at most one segment more, and not beyond `ssthresh`.
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
    /// When it came.
    pub now: Timestamp,
    /// Bytes that it acknowledges for the first time.
    pub acked: u64,
    /// The round trip that it shows.
    pub rtt: Option<TimeDelta>,
    /// Smoothed round-trip time.
    pub srtt: TimeDelta,
}

/// Why the window must shrink.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Congestion {
    /// A loss that duplicate acknowledgements show.
    Loss,
    /// ECN-Echo.
    Ecn,
    /// The retransmission timer.
    Timeout,
}

/// An algorithm for the window beyond slow start. Loss detection and recovery are the sender's.
pub trait CongestionAvoidance {
    /// New data is acknowledged outside loss recovery, `cwnd` is not below `ssthresh`, and the window was in use.
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo);
    /// The sender had less to send than the window allows.
    fn on_application_limited(&mut self, now: Timestamp) {
        let _ = now;
    }
    /// Congestion: gives the new `ssthresh`, in bytes; the sender keeps it at 2 segments or more and sets `cwnd`.
    /// `flight` is what was sent and not acknowledged, without what limited transmit has added.
    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64;
}

/// Names an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
#[non_exhaustive]
pub enum Variant {
    /// NewReno (RFC 5681).
    #[default]
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
}

impl Variant {
    /// Every algorithm.
    pub const ALL: [Self; 2] = [Self::NewReno, Self::Cubic];

    /// The name that scenarios use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
        }
    }
    /// The algorithm of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.name() == name)
    }
}

/// Any algorithm.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Avoidance {
    NewReno(NewReno),
    Cubic(Cubic),
}

impl Avoidance {
    pub(crate) fn new(variant: Variant) -> Self {
        match variant {
            Variant::NewReno => Self::NewReno(NewReno::default()),
            Variant::Cubic => Self::Cubic(Cubic::default()),
        }
    }
}

macro_rules! each {
    ($self:ident, $a:ident => $call:expr) => {
        match $self {
            Self::NewReno($a) => $call,
            Self::Cubic($a) => $call,
        }
    };
}

impl CongestionAvoidance for Avoidance {
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
