//! The workloads whose speed `weir bench` measures, and their measurement.
//!
//! [`call`], [`many`], [`simulator`] and [`loopback`] do a fixed amount of work each and return its totals. [`suite`] times all
//! of them into a [`report`], [`ns3`] runs the same traffic in ns-3, [`against`] pairs this build with another commit's, and
//! [`document`] writes the tables of docs/performance.md.

pub mod against;
pub mod call;
pub mod document;
#[cfg(target_os = "linux")]
pub mod loopback;
pub mod many;
pub mod ns3;
pub mod report;
pub mod repository;
pub mod simulator;
pub mod suite;
