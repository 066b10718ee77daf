//! Controllers by name.

use crate::controller::{Controller, Limits, ProbeCluster, ReceiverController, Report, Target, TimeoutReason};
use crate::cue::{CapacityNotice, Cue, FramePlayout, QueueState, ReceivedPacket, SentPacket};
use crate::fec_probing::FecProbing;
use crate::tunable::{ParamInfo, SetupError};
use std::sync::Arc;
use weir_units::{DataRate, TimeDelta, Timestamp};

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
    /// Whether they carry loss and discard run lengths and one-way delay, for [`Cue::IntervalReport`].
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
    /// [`Cue::TransportRate`] and [`Cue::SendRejected`].
    Dccp {
        /// Number of the congestion control of the media's direction (RFC 4340, section 10).
        ccid: u8,
    },
}

/// What a controller is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Media rate before the first cue; a controller brings it between the limits.
    pub start_rate: DataRate,
    /// Time of creation; nothing earlier is ever told.
    pub now: Timestamp,
    /// Seed for controllers that draw random numbers.
    pub seed: u64,
    /// Parameters by name, in the units of [`ParamInfo::unit`].
    pub params: Vec<(String, f64)>,
}

/// Both halves of a controller.
pub struct Pair {
    /// The half at the media sender.
    pub sender: Sender,
    /// The half at the media receiver, where the algorithm has one.
    pub receiver: Option<Receiver>,
}

type Make = Arc<dyn Fn(&Setup) -> Result<Pair, SetupError> + Send + Sync>;

/// A controller's entry in the registry.
#[derive(Clone)]
pub struct Spec {
    /// Name in scenario files and on the command line.
    pub name: String,
    /// One line for lists.
    pub summary: String,
    /// The document that it follows.
    pub source: String,
    /// Per-packet feedback wanted; `None` where receiver reports or the receiver half suffice.
    pub feedback: Option<FeedbackPlan>,
    /// Receiver reports wanted; `None` leaves them to RFC 3550's own timing.
    pub reports: Option<ReportPlan>,
    /// The transport that the session is to run it over.
    pub transport: Transport,
    /// Parameters that may be set.
    pub params: Vec<ParamInfo>,
    /// Makes both halves.
    pub make: Make,
}

impl Spec {
    /// Whether it controls plain datagrams itself and hears of the path more often than every five seconds, RTCP's classic
    /// interval. The others are there for comparison: they need their transport, or let queues fill for long.
    pub fn is_interactive(&self) -> bool {
        let slow = |plan: ReportPlan| plan.min_interval >= TimeDelta::from_secs(5);
        self.transport == Transport::Udp && !self.reports.is_some_and(slow)
    }
}

/// The controllers that can be asked for by name: the built-in ones and any that a program adds, each also with its
/// steps probed with forward error correction as `NAME+fec` ([`FecProbing`]).
#[derive(Clone)]
pub struct Registry {
    specs: Vec<Spec>,
    probing: Vec<Spec>,
}

impl Registry {
    /// A registry of the built-in controllers.
    pub fn builtin() -> Self {
        let specs = builtin_specs();
        let probing = specs.iter().map(FecProbing::spec).collect();
        Self { specs, probing }
    }
    /// Adds a controller, taking the place of one that has its name.
    pub fn register(&mut self, spec: Spec) {
        let probing = FecProbing::spec(&spec);
        self.specs.retain(|s| s.name != spec.name);
        self.probing.retain(|s| s.name != probing.name);
        self.specs.push(spec);
        self.probing.push(probing);
    }
    /// All entries, in the order of registration, without their `+fec` companions.
    pub fn specs(&self) -> &[Spec] {
        &self.specs
    }
    /// The `+fec` companion of each of [`Self::specs`].
    pub fn probing_specs(&self) -> &[Spec] {
        &self.probing
    }
    /// The entry of a name, `+fec` ones included.
    pub fn get(&self, name: &str) -> Option<&Spec> {
        self.specs.iter().chain(&self.probing).find(|s| s.name == name)
    }
    /// Makes a controller by name. Errors: an unknown name, an unknown parameter, a value outside its range.
    pub fn make(&self, name: &str, setup: &Setup) -> Result<Pair, SetupError> {
        let spec = self.get(name).ok_or_else(|| SetupError::UnknownController { name: name.into() })?;
        (spec.make)(setup)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::builtin()
    }
}

/// A controller that ships with Weir: it knows its own entry.
pub trait BuiltIn {
    /// The entry, or entries where the algorithm has variants by name.
    fn specs() -> Vec<Spec>;
}

macro_rules! dispatch {
    ($self:ident, $enum:ident { $($var:ident)* }, $c:ident => $call:expr) => {
        match $self { $($enum::$var($c) => $call,)* $enum::Custom($c) => $call }
    };
}

macro_rules! controllers {
    (senders { $($var:ident($ty:ty)),* $(,)? } receivers { $($rvar:ident($rty:ty)),* $(,)? }) => {
        /// A sender half: built-ins by enum, others boxed.
        #[non_exhaustive]
        pub enum Sender {
            $(#[doc = concat!("`", stringify!($ty), "`")] $var(Box<$ty>),)*
            /// A controller from outside this crate.
            Custom(Box<dyn Controller>),
        }
        $(impl From<$ty> for Sender {
            fn from(c: $ty) -> Self { Self::$var(Box::new(c)) }
        })*
        impl Controller for Sender {
            fn on_packet_sent(&mut self, p: &SentPacket) { dispatch!(self, Sender { $($var)* }, c => c.on_packet_sent(p)) }
            fn on_cue(&mut self, cue: &Cue<'_>) { dispatch!(self, Sender { $($var)* }, c => c.on_cue(cue)) }
            fn on_limits(&mut self, l: Limits, now: Timestamp) { dispatch!(self, Sender { $($var)* }, c => c.on_limits(l, now)) }
            fn on_queue(&mut self, q: &QueueState) { dispatch!(self, Sender { $($var)* }, c => c.on_queue(q)) }
            fn on_timeout(&mut self, now: Timestamp) { dispatch!(self, Sender { $($var)* }, c => c.on_timeout(now)) }
            fn target(&self) -> Target { dispatch!(self, Sender { $($var)* }, c => c.target()) }
            fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> { dispatch!(self, Sender { $($var)* }, c => c.poll_timeout()) }
            fn poll_probe(&mut self, now: Timestamp) -> Option<ProbeCluster> { dispatch!(self, Sender { $($var)* }, c => c.poll_probe(now)) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { dispatch!(self, Sender { $($var)* }, c => c.metrics(out)) }
        }
        /// A receiver half: built-ins by enum, others boxed.
        #[non_exhaustive]
        pub enum Receiver {
            $(#[doc = concat!("`", stringify!($rty), "`")] $rvar(Box<$rty>),)*
            /// A receiver half from outside this crate.
            Custom(Box<dyn ReceiverController>),
        }
        $(impl From<$rty> for Receiver {
            fn from(c: $rty) -> Self { Self::$rvar(Box::new(c)) }
        })*
        impl ReceiverController for Receiver {
            fn on_packet_received(&mut self, p: &ReceivedPacket) { dispatch!(self, Receiver { $($rvar)* }, c => c.on_packet_received(p)) }
            fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) { dispatch!(self, Receiver { $($rvar)* }, c => c.on_rtt(rtt, now)) }
            fn on_notice(&mut self, n: &CapacityNotice) { dispatch!(self, Receiver { $($rvar)* }, c => c.on_notice(n)) }
            fn on_playout(&mut self, f: &FramePlayout) { dispatch!(self, Receiver { $($rvar)* }, c => c.on_playout(f)) }
            fn poll_timeout(&self) -> Option<Timestamp> { dispatch!(self, Receiver { $($rvar)* }, c => c.poll_timeout()) }
            fn poll_report(&mut self, now: Timestamp) -> Option<Report> { dispatch!(self, Receiver { $($rvar)* }, c => c.poll_report(now)) }
            fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) { dispatch!(self, Receiver { $($rvar)* }, c => c.metrics(out)) }
        }
        fn builtin_specs() -> Vec<Spec> {
            let mut all = Vec::new();
            $(all.extend(<$ty as BuiltIn>::specs());)*
            all
        }
    };
}

controllers! {
    senders {
        Cnadu(crate::cnadu::Cnadu),
        DpFec(crate::dpfec::DpFec),
        Fbra(crate::fbra::Fbra),
        FecProbing(crate::fec_probing::FecProbing),
        Fixed(crate::fixed::Fixed),
        Gcc(crate::gcc::Gcc),
        GccRemb(crate::gcc_remb::GccRemb),
        Linphone(crate::linphone::Linphone),
        Nada(crate::nada::Nada),
        Rrtcc(crate::rrtcc::Rrtcc),
        RtcpAimd(crate::rtcp_aimd::RtcpAimd),
        RtcpThresholds(crate::rtcp_thresholds::RtcpThresholds),
        Scream(crate::scream::v1::Scream),
        Tfrc(crate::tfrc::Tfrc),
        Tmmbr(crate::tmmbr::Tmmbr),
        TmmbrA(crate::tmmbr::TmmbrA),
        TmmbrB(crate::tmmbr::TmmbrB),
    }
    receivers {
        CnaduReceiver(crate::cnadu::CnaduReceiver),
        GccRembReceiver(crate::gcc_remb::GccRembReceiver),
        NadaReceiver(crate::nada::NadaReceiver),
        AssistedReceiver(crate::tmmbr::AssistedReceiver),
        RrtccReceiver(crate::rrtcc::RrtccReceiver),
        TmmbrReceiver(crate::tmmbr::TmmbrReceiver),
    }
}
