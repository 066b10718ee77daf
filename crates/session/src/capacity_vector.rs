//! Capacity vectors in band (`docs/wire/capacity-vector.md`): the end that receives media announces the capacity expected
//! on the way to it, the end that sends them follows.

mod announced;
mod followed;
mod proof;

pub(crate) use announced::Announced;
pub(crate) use followed::{Followed, Verdict};

/// The vector that an end announces, and the one that it follows.
#[derive(Debug, Default)]
pub(crate) struct CapacityVectors {
    pub announced: Announced,
    pub followed: Followed,
}

/// Counters of capacity vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CapacityVectorCounters {
    /// Sent, repetitions included.
    pub sent: u64,
    /// Received and passed to the controller.
    pub accepted: u64,
    /// Received again, with the serial number of the one that is followed.
    pub repeated: u64,
    /// With an older serial number: late, or replayed.
    pub stale: u64,
    /// Of a sender that is not the other end, or about a source that is not this end's.
    pub foreign: u64,
    /// With values that break the rules ([`weir_wire::rtcp::CapacityFault`]): ignored as a whole.
    pub faulty: u64,
    /// Received while the ends have not agreed on vectors.
    pub not_agreed: u64,
    /// Accepted, but without the stretch of the present, since feedback had just shown several times as much.
    pub contradicted: u64,
}
