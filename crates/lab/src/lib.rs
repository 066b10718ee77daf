//! From a scenario to numbers, and from numbers to judgements and reports.
//!
//! [`scenario`] parses scenario files, [`run`] runs them and [`metrics`] measures the runs; these need no operating system.
//! `judge` compares results with goals and published numbers, `report` makes tables, figures, pages and captures of them.

pub mod catalogue;
pub mod compare;
pub mod episode;
pub mod histogram;
#[cfg(feature = "publish")]
pub mod judge;
pub mod metrics;
pub mod overlay;
#[cfg(feature = "publish")]
pub mod report;
pub mod results;
pub mod run;
pub mod scenario;
pub mod series;
