//! Congestion controllers for real-time media: cues in, targets out.
//!
//! Every controller is a sans-IO state machine behind [`Controller`]: it takes sent packets and their feedback, and
//! sets the rates for encoding, pacing and probing. It never sees a packet's bytes, a clock, a socket or a thread, so
//! the same code runs in the simulator, in a call and in other programs.
//!
//! | to | take |
//! |---|---|
//! | control the rate of packets and feedback of your own | [`Flow`], with a [`Pacer`] |
//! | make a controller by name | [`Registry`]; by its configuration: [`algorithms`], [`papers`] |
//! | write a controller | [`Controller`], [`Algorithm`], [`tunables!`]; its inputs are [`cue`], its output [`Target`] |
//! | probe by repair packets, or follow a forecast | [`wrappers`] |
//! | share a bottleneck among flows | [`coupled`] |
//! | stop media that harms the path or goes unanswered | [`circuit_breaker`], [`feedback_guard`] |
//! | decide a rate once an interval, as learned policies do | [`intervals`] |
//! | use TCP's throughput equation, TFRC's rates or CUBIC's window | [`tcp`] |

pub mod algorithms;
pub mod circuit_breaker;
mod controller;
pub mod coupled;
pub mod cue;
#[doc(hidden)]
pub mod drive;
pub mod feedback_guard;
pub mod flow;
pub mod intervals;
pub mod papers;
mod parts;
mod registry;
mod spec;
pub mod tcp;
pub mod tunable;
pub mod wrappers;

pub use controller::{
    Controller, Coupled, Limits, ProbeCluster, ReceiverController, RepairPlan, Report, Target, TimeoutReason,
};
pub use cue::Cue;
pub use flow::Flow;
pub use flow::history::{HistoryCounters, ReportedPacket, SentHistory};
pub use flow::one_way_delay::OneWayDelayMeter;
pub use flow::pacer::{Bursts, Pacer, PacerDecision};
pub use registry::{DEFAULT_CONTROLLER, Entry, Receiver, Registry, Sender};
pub use spec::{
    Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, ReportPlan, Setup, Shelf, Spec, Start, Transport,
};
/// Times, rates, sizes and the ECN field, as used by controllers.
pub use weir_units as units;

#[cfg(test)]
mod testing;

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
