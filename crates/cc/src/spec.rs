//! What a controller is made from, and what it asks of the session that runs it: the vocabulary of the registry.

use crate::controller::{Controller, Limits, ReceiverController, Report};
use crate::cue::ReceivedPacket;
use crate::tunable::{ParamInfo, SetupError};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};

/// Per-packet feedback that a controller asks the receiver's session for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FeedbackFormat {
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    TransportWide,
    /// RFC 8888.
    CongestionControl,
}

/// How often per-packet feedback is sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FeedbackPlan {
    /// The message.
    pub format: FeedbackFormat,
    /// Never more often than this ...
    pub min_interval: TimeDelta,
    /// ... nor less often while packets arrive.
    pub max_interval: TimeDelta,
    /// Share of the received media rate that the feedback may use; between the two bounds it sets the interval.
    pub bandwidth_share: f64,
}

/// Regular RTCP compound packets that a controller asks for, inside RTCP's bandwidth share (RFC 4585).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportPlan {
    /// Never closer together than this many round-trip times ...
    pub min_round_trips: f64,
    /// ... nor than this, ...
    pub min_interval: TimeDelta,
    /// ... and never further apart than this.
    pub max_interval: TimeDelta,
    /// Whether they carry loss and discard run lengths and one-way delay, for
    /// [`Cue::IntervalReport`](crate::Cue::IntervalReport).
    pub extended: bool,
    /// Whether the receiver may report losses and discards early (RFC 4585, section 3.5).
    pub early: bool,
}

impl ReportPlan {
    /// Plain reports, this far apart whatever the round trip is.
    pub const fn every(interval: TimeDelta) -> Self {
        let (min_interval, max_interval) = (interval, interval);
        Self { min_round_trips: 0.0, min_interval, max_interval, extended: false, early: false }
    }
}

/// The transport that the session is to run a controller over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Transport {
    /// Datagrams that leave as they are: all congestion control is the controller's.
    #[default]
    Udp,
    /// DCCP, whose congestion control decides when packets leave; the controller only makes media follow it, from
    /// [`Cue::TransportRate`](crate::Cue::TransportRate) and [`Cue::SendRejected`](crate::Cue::SendRejected).
    Dccp {
        /// Number of the congestion control of the media's direction (RFC 4340, section 10).
        ccid: u8,
    },
}

/// Where a controller starts. With a `Config` it makes a controller without a registry, as `Gcc::new(config, &start)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start {
    /// Bounds on the media rate. Where they cross, the floor holds.
    pub limits: Limits,
    /// Media rate before the first cue; a controller brings it between the limits.
    pub rate: DataRate,
    /// Time of creation. No later event carries an earlier time.
    pub now: Timestamp,
}

/// What a registry makes a controller from.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Media rate before the first cue; a controller brings it between the limits.
    pub start_rate: DataRate,
    /// Time of creation. No later event carries an earlier time.
    pub now: Timestamp,
    /// Seed for controllers that draw random numbers.
    pub seed: u64,
    /// Parameters by name, in the units of [`ParamInfo::unit`].
    pub params: Vec<(String, f64)>,
}

impl Setup {
    /// The part that needs no parameters by name.
    pub const fn start(&self) -> Start {
        Start { limits: self.limits, rate: self.start_rate, now: self.now }
    }
}

/// Both halves of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair<S, R> {
    /// The half at the media sender.
    pub sender: S,
    /// The half at the media receiver, where the algorithm has one.
    pub receiver: Option<R>,
}

impl<S, R> Pair<S, R> {
    /// A sender without a half at the receiver.
    pub const fn alone(sender: S) -> Self {
        Self { sender, receiver: None }
    }
    /// Both halves.
    pub const fn both(sender: S, receiver: R) -> Self {
        Self { sender, receiver: Some(receiver) }
    }
}

/// A controller's entry in the registry: what it is, and what it asks of the session.
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
    /// Whether what it sends, media and repair together, follows the path. A flow that does not adapt takes its rate, and
    /// the others share the rest.
    pub adapts: bool,
    /// ECN codepoint of the packets that it sends, where a call has ECN on: ECT(0), ECT(1) (RFC 9331) or none.
    pub ecn: Ecn,
    /// Per-packet feedback wanted; `None` where receiver reports or the receiver half suffice.
    pub feedback: Option<FeedbackPlan>,
    /// Receiver reports wanted; `None` leaves them to RFC 3550's own timing.
    pub reports: Option<ReportPlan>,
    /// The transport that the session is to run it over.
    pub transport: Transport,
    /// Parameters that may be set.
    pub params: Vec<ParamInfo>,
}

impl Spec {
    /// An entry that adapts, sends as ECT(0), runs over UDP, has no parameters, and asks for no feedback beyond RFC 3550's.
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
            params: Vec::new(),
        }
    }
    /// Whether it controls plain datagrams itself and hears of the path more often than every five seconds, RTCP's classic
    /// interval. The others are there for comparison: they need their transport, or let queues fill for long.
    pub fn is_interactive(&self) -> bool {
        let slow = |plan: ReportPlan| plan.min_interval >= TimeDelta::from_secs(5);
        self.transport == Transport::Udp && !self.reports.is_some_and(slow)
    }
    /// ECN codepoint of its packets in a call that has ECN on or off.
    pub fn ecn_where(&self, on: bool) -> Ecn {
        if on { self.ecn } else { Ecn::NotEct }
    }
}

/// A controller that a registry can make by name: it knows its entries.
pub trait Algorithm: Controller + Sized + 'static {
    /// The half at the media receiver; [`NoReceiver`] for an algorithm without one.
    type Receiver: ReceiverController + 'static;
    /// The entry, or entries where the algorithm has variants by name.
    fn specs() -> Vec<Spec>;
    /// Makes both halves under `name`, one of [`Self::specs`].
    ///
    /// # Errors
    /// An unknown parameter, or a value outside its range.
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, Self::Receiver>, SetupError>;
}

/// The receiver half of an algorithm that has none. It has no value.
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
