//! From a scenario to numbers: scenario files, runs, metrics, tables and reports.

pub mod scenario;
