//! From a scenario to numbers: scenario files, runs, metrics, tables and reports.

pub mod capture;
pub mod compare;
pub mod figures;
pub mod metrics;
pub mod papers;
pub mod pcap;
pub mod report;
pub mod reproduce;
pub mod results;
pub mod run;
pub mod scenario;
pub mod series;
#[cfg(target_os = "linux")]
pub mod testbed;
