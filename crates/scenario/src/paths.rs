//! A flow's paths, ready to run.

use weir_session::multipath::PathPolicy;
use weir_units::DataRate;

/// The paths of a flow that has several.
#[derive(Clone, PartialEq, Debug)]
pub struct Multipath {
    /// The scheduler's name in [`SCHEDULERS`](weir_session::multipath::SCHEDULERS).
    pub scheduler: String,
    /// Coupling of the paths: a name in `weir_session::multipath::Coupling::NAMES`.
    pub coupling: String,
    /// Whether frames are played by the skew of the paths.
    pub skew_playout: bool,
    /// Preference of the application for each path, from the first on; the default for those left out.
    pub policies: Vec<PathPolicy>,
    /// Media rate that suffices.
    pub sufficient_rate: Option<DataRate>,
    /// Parts in which coupled paths share their group's rate, from the first path on; 1 for those left out.
    pub priorities: Vec<f64>,
    /// The paths; the first is the flow's own.
    pub paths: Vec<FlowPath>,
}

/// One path of a flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowPath {
    /// Its name in results: the first link that is its own.
    pub name: String,
    /// Indices into [`Scenario::links`](super::Scenario::links) that media cross, in order.
    pub forward: Vec<usize>,
    /// Links that feedback crosses, in order.
    pub reverse: Vec<usize>,
}
