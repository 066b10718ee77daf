//! From a scenario to numbers: scenario files, runs, metrics, tables and reports.

pub mod metrics;
pub mod pcap;
pub mod results;
pub mod scenario;
pub mod series;
