//! Types of the registry's entries: a controller's configuration at construction, and its requirements on the session.
//!
//! Entries and their list are separate modules. `cc::spec` has the vocabulary of an entry (`Spec`, `Algorithm`);
//! `cc::registry` has the list and the dispatch. Controllers import the first and never the second.
//!
//! A controller states its transport (`Spec::transport`): `ccid2`, `ccid3` and their relatives are the application's
//! rules over that CCID, so that any scenario compares them with controllers over UDP.

use crate::controller::{Controller, Limits, ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::tunable::{ParamInfo, SetupError};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};

/// Per-packet feedback that a controller requires from the receiver's session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeedbackFormat {
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    TransportWide,
    /// RFC 8888.
    CongestionControl,
}

/// Interval of per-packet feedback.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FeedbackPlan {
    /// The message.
    pub format: FeedbackFormat,
    /// Least interval ...
    pub min_interval: TimeDelta,
    /// ... and greatest interval while packets arrive.
    pub max_interval: TimeDelta,
    /// Share of the received media rate that feedback may use; it determines the interval within the bounds.
    pub bandwidth_share: f64,
}

impl FeedbackPlan {
    /// libwebrtc's, as of 2025: `kMinInterval`, `kMaxInterval` and `kBandwidthFraction` of transport-wide feedback.
    pub const LIBWEBRTC: Self = Self {
        format: FeedbackFormat::TransportWide,
        min_interval: TimeDelta::from_millis(50),
        max_interval: TimeDelta::from_millis(250),
        bandwidth_share: 0.05,
    };
}

/// Regular RTCP compound packets required by a controller, within RTCP's bandwidth share (RFC 4585).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportPlan {
    /// Least interval in round-trip times ...
    pub min_round_trips: f64,
    /// ... and as a time ...
    pub min_interval: TimeDelta,
    /// ... and greatest interval.
    pub max_interval: TimeDelta,
    /// Whether they carry loss and discard run lengths and one-way delay, for
    /// [`Cue::IntervalReport`](crate::Cue::IntervalReport).
    pub extended: bool,
    /// Whether the receiver may report losses and discards early (RFC 4585, section 3.5).
    pub early: bool,
}

impl ReportPlan {
    /// Plain reports at this interval, regardless of the round-trip time.
    pub const fn every(interval: TimeDelta) -> Self {
        let (min_interval, max_interval) = (interval, interval);
        Self { min_round_trips: 0.0, min_interval, max_interval, extended: false, early: false }
    }
}

/// The transport that the session must use for a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Transport {
    /// Plain datagrams: all congestion control is the controller's.
    #[default]
    Udp,
    /// DCCP, whose congestion control decides when packets are sent; the controller only adapts the media to it, by
    /// [`Cue::TransportRate`](crate::Cue::TransportRate) and [`Cue::SendRejected`](crate::Cue::SendRejected).
    Dccp {
        /// Number of the congestion control of the media's direction (RFC 4340, section 10).
        ccid: u8,
    },
}

/// A controller's initial conditions. With a `Config` it makes a controller without a registry, as in `Gcc::new(config,
/// &start)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Bounds on the media rate. If they cross, the floor wins.
    pub limits: Limits,
    /// Media rate before the first cue; controllers limit it to the bounds.
    pub rate: DataRate,
    /// Time of creation. No event is earlier.
    pub now: Timestamp,
}

/// The inputs from which a registry makes a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Media rate before the first cue; controllers limit it to the bounds.
    pub start_rate: DataRate,
    /// Time of creation. No event is earlier.
    pub now: Timestamp,
    /// Seed for controllers that use random numbers.
    pub seed: u64,
    /// Parameters by name, in the units of [`ParamInfo::unit`].
    pub params: Vec<(String, f64)>,
}

impl Setup {
    /// The initial conditions, without the parameters by name.
    pub const fn start(&self) -> Start {
        Start { limits: self.limits, rate: self.start_rate, now: self.now }
    }
    /// Separates the parameters of a wrapper from the setup of the controller inside.
    pub(crate) fn split(&self, wrapper: &[ParamInfo]) -> (Vec<(String, f64)>, Self) {
        let (own, params) = self.params.iter().cloned().partition(|p| wrapper.iter().any(|o| o.name == p.0));
        (own, Self { params, ..*self })
    }
}

/// Both halves of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair<S, R> {
    /// The half at the media sender.
    pub sender: S,
    /// The half at the media receiver, if the algorithm has one.
    pub receiver: Option<R>,
}

impl<S, R> Pair<S, R> {
    /// A sender without a receiver half.
    pub const fn alone(sender: S) -> Self {
        Self { sender, receiver: None }
    }
    /// Both halves.
    pub const fn both(sender: S, receiver: R) -> Self {
        Self { sender, receiver: Some(receiver) }
    }
}

/// Place of a controller in lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shelf {
    /// For general use: [`crate::algorithms`].
    Algorithms,
    /// For the results of one paper: [`crate::papers`].
    Papers,
    /// From outside this crate.
    #[default]
    Added,
}

/// A controller's entry in the registry: its description, and its requirements on the session.
///
/// ```
/// use weir_cc::{FeedbackFormat, FeedbackPlan, Spec, units::TimeDelta};
///
/// let every = TimeDelta::from_millis(100);
/// let plan = FeedbackPlan {
///     format: FeedbackFormat::TransportWide, min_interval: every, max_interval: every, bandwidth_share: 1.0,
/// };
/// let spec = Spec { feedback: Some(plan), ..Spec::new("mine", "one line for lists", "the document that it follows") };
/// assert!(spec.adapts && spec.is_interactive());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Spec {
    /// Name in scenario files and on the command line.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// The document that it follows.
    pub source: String,
    /// Whether the rate of media and repair together adapts to the path. A flow that does not adapt takes its rate, and
    /// the others share the rest.
    pub adapts: bool,
    /// ECN codepoint of its packets in calls with ECN: ECT(0), ECT(1) (RFC 9331) or none.
    pub ecn: Ecn,
    /// Per-packet feedback required; `None` if receiver reports or the receiver half suffice.
    pub feedback: Option<FeedbackPlan>,
    /// Receiver reports required; `None` leaves them to RFC 3550's timing.
    pub reports: Option<ReportPlan>,
    /// The transport required.
    pub transport: Transport,
    /// Whether it follows a forecast of capacity, which not every call gets.
    pub foresees: bool,
    /// Whether name and source determine it: not those of a program of the user's, which may be another at the next run.
    pub is_fixed: bool,
    /// Parameters that can be set.
    pub params: Vec<ParamInfo>,
    /// Place in lists; a registry sets it for built-in controllers.
    pub shelf: Shelf,
}

impl Spec {
    /// An entry that adapts, sends ECT(0), runs over UDP, has no parameters, and requires no feedback beyond
    /// RFC 3550's.
    pub fn new(name: &str, summary: &str, source: &str) -> Self {
        Self {
            name: name.into(),
            summary: summary.into(),
            source: source.into(),
            adapts: true,
            ecn: Ecn::Ect0,
            feedback: None,
            reports: None,
            transport: Transport::Udp,
            foresees: false,
            is_fixed: true,
            params: Vec::new(),
            shelf: Shelf::Added,
        }
    }
    /// The entry of a wrapper around this controller: what it appends to name, summary and source, and its parameters.
    pub(crate) fn wrapped(&self, suffix: &str, summary: &str, source: &str, params: Vec<ParamInfo>) -> Self {
        let mut spec = self.clone();
        spec.name.push_str(suffix);
        spec.summary = format!("{}; {summary}", self.summary);
        spec.source = format!("{}; {source}", self.source);
        spec.params.extend(params);
        spec
    }
    /// Whether it controls plain datagrams itself, with feedback more often than every two seconds (a choice; RTCP's classic
    /// interval is five). The others are for comparison: they need their transport, or let queues fill for long.
    pub fn is_interactive(&self) -> bool {
        let slow = |plan: ReportPlan| plan.min_interval >= TimeDelta::from_secs(2);
        self.transport == Transport::Udp && !self.reports.is_some_and(slow)
    }
    /// ECN codepoint of its packets in a call with ECN on or off.
    pub fn ecn_where(&self, on: bool) -> Ecn {
        if on { self.ecn } else { Ecn::NotEct }
    }
}

/// A controller that a registry can make by name.
pub trait Algorithm: Controller + Sized + 'static {
    /// The half at the media receiver; [`NoReceiver`] for an algorithm without one.
    type Receiver: ReceiverController + 'static;
    /// The entry, or entries if the algorithm has variants by name.
    fn specs() -> Vec<Spec>;
    /// Makes both halves under `name`, one of [`Self::specs`].
    ///
    /// # Errors
    /// An unknown parameter, or a value outside its range.
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, Self::Receiver>, SetupError>;
}

/// The receiver half of an algorithm without one. It has no values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoReceiver {}

impl ReceiverController for NoReceiver {
    fn on_packet_received(&mut self, _: &ReceivedPacket) {
        match *self {}
    }
    fn poll_timeout(&self) -> Option<Timestamp> {
        match *self {}
    }
    fn poll_report(&mut self, _: Timestamp) -> Option<Report> {
        match *self {}
    }
}
