//! Capacity vectors in band (`docs/wire/capacity-vector.md`): the end that receives media announces the capacity expected
//! on each path to it, the end that sends them follows.

mod announced;
mod followed;
mod proof;

pub(crate) use announced::Announced;
pub(crate) use followed::{Followed, Verdict};

use crate::multipath::MAX_PATHS;
use weir_units::Timestamp;

/// The vectors of a call's paths.
#[derive(Debug)]
pub(crate) struct CapacityVectors {
    /// By the paths' numbers. A call over one path has one; further ones are made when they are needed.
    paths: Vec<PathVectors>,
}

/// The vector of a path that an end announces, and the one that it follows.
#[derive(Debug, Default)]
pub(crate) struct PathVectors {
    pub announced: Announced,
    pub followed: Followed,
}

impl Default for CapacityVectors {
    fn default() -> Self {
        Self { paths: vec![PathVectors::default()] }
    }
}

impl CapacityVectors {
    /// Those of the path with this number, one of the call's.
    pub(crate) fn of(&mut self, path: usize) -> &mut PathVectors {
        let path = path.min(MAX_PATHS - 1);
        if path >= self.paths.len() {
            self.paths.resize_with(path + 1, PathVectors::default);
        }
        &mut self.paths[path]
    }
    /// Of all paths that have had any.
    pub(crate) fn all(&mut self) -> &mut [PathVectors] {
        &mut self.paths
    }
    /// Whether one has to be sent, for the first time or again.
    pub(crate) fn are_due(&self, now: Timestamp) -> bool {
        self.paths.iter().any(|p| p.announced.is_due(now))
    }
    /// The source whose vectors are followed, as far as it is known.
    pub(crate) fn sender(&self) -> Option<u32> {
        self.paths.iter().find_map(|p| p.followed.sender())
    }
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
    /// In a call over several paths without naming one, or of a path on which this end does not send.
    pub of_no_path: u64,
    /// Accepted, but without the stretch of the present, since feedback had just shown several times as much.
    pub contradicted: u64,
}
