//! Several paths between two ends: which packet goes on which of them, and when media that took all of them is played.
//!
//! | module | contents |
//! |---|---|
//! | `scheduler` | the interface of packet schedulers |
//! | `registry` | the schedulers by name |
//! | `coupling` | which paths share one flow's rate |
//! | `policy` | what the application wants of paths: metered ones, backups |
//! | `characterisation` | the condition of a path by its reports (thesis, section 6.1.1) |
//! | `skew` | playout delay over paths of unlike latency (thesis, section 6.1.1) |
//!
//! The others are one scheduler each. "Thesis" is V. Singh, "Protocols and Algorithms for Adaptive Multimedia Systems",
//! Aalto University, 2015.

mod best_path;
mod characterisation;
mod coupling;
mod credits;
mod delivery;
mod earliest;
mod fec_aware;
mod frame_aligned;
mod policy;
mod redundant;
mod registry;
mod round_robin;
mod scheduler;
mod skew;
mod thesis;

pub use characterisation::{Condition, PathReport};
pub use coupling::Coupling;
pub(crate) use policy::Policies;
pub use policy::{PathClass, PathPolicy};
pub use registry::{AnyScheduler, SCHEDULERS};
pub use scheduler::{MAX_PATHS, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};
pub use skew::{SkewPlayout, SkewPlayoutConfig};

#[cfg(test)]
mod tests;
