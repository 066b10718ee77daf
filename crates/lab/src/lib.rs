//! From a scenario to numbers: no part of it needs an operating system.
//!
//! [`scenario`] parses scenario files, [`run`] runs them and [`metrics`] measures the runs; [`compare`] runs controllers and
//! seeds, and [`results`] is what remains of them. The crate `weir-report` makes series, figures, pages and captures of
//! results, `weir-judge` compares them with goals and published numbers.

pub mod catalogue;
pub mod compare;
pub mod episode;
pub mod histogram;
pub mod layers;
pub mod metrics;
pub mod overlay;
pub mod plan;
pub mod results;
pub mod run;
pub mod series;

pub use weir_scenario as scenario;
pub use weir_scenario::embedded;
