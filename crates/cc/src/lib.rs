//! Congestion controllers for real-time media: cues in, targets out.
//!
//! Every controller is a sans-IO state machine behind [`Controller`]: it takes sent packets and their feedback, and
//! sets the rates for encoding, pacing and probing. It never sees a packet's bytes, a clock, a socket or a thread, so
//! the same code runs in the simulator, in a call and in other programs.

mod base_delay;
pub mod bbr_rtc;
pub mod circuit_breaker;
pub mod cnadu;
mod controller;
pub mod coupled;
pub mod cubic;
pub mod cue;
pub mod dpfec;
pub mod drive;
mod families;
pub mod fbra;
pub mod fec_probing;
pub mod feedback_guard;
mod feedback_timeout;
pub mod fixed;
pub mod flow;
pub mod foreseen;
mod frames;
pub mod gcc;
pub mod gcc_remb;
pub mod gcc_scream2;
mod history;
mod incoming_rate;
pub mod intervals;
pub mod linphone;
pub mod map_guided;
mod mean_size;
pub mod nada;
pub mod nearest;
pub mod one_way_delay;
mod pacer;
mod receiver_estimate;
mod registry;
pub mod rrtcc;
pub mod rtcp_aimd;
pub mod rtcp_thresholds;
mod rtt;
pub mod scream;
pub mod sluice;
mod spec;
pub mod tfrc;
pub mod throughput;
pub mod tmmbr;
pub mod tunable;

pub use controller::{
    Controller, Coupled, Limits, ProbeCluster, ReceiverController, RepairPlan, Report, Target, TimeoutReason,
};
pub use cue::Cue;
pub use flow::Flow;
pub use history::{HistoryCounters, ReportedPacket, SentHistory};
pub use one_way_delay::OneWayDelayMeter;
pub use pacer::{Pacer, PacerDecision};
pub use registry::{Entry, Receiver, Registry, Sender};
pub use spec::{Algorithm, FeedbackFormat, FeedbackPlan, NoReceiver, Pair, ReportPlan, Setup, Spec, Start, Transport};
/// Times, rates, sizes and the ECN field, as used by controllers.
pub use weir_units as units;

#[cfg(test)]
mod testing;
