//! Scenario files, runs of them, and the metrics of a run.

pub mod catalogue;
pub mod compare;
pub mod episode;
pub mod histogram;
pub mod metrics;
pub mod overlay;
pub mod results;
pub mod run;
pub mod scenario;
pub mod series;
