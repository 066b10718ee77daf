//! Scenarios in real time: the same network between two namespaces, the same calls on real sockets, kernel TCP instead
//! of simulated TCP, and the same measurements as in a simulated run.
//!
//! It requires Linux: TUN devices, network namespaces and a selectable TCP congestion control. On other systems this
//! crate is empty.
//!
//! Testbeds leave nothing behind. Namespaces have no name and are held by threads; programs run in PID namespaces tied
//! to them: however the process ends, the kernel removes the rest.

#![cfg(target_os = "linux")]

mod capture;
mod dccp;
mod difference;
mod end_sampler;
mod error;
mod flow_run;
mod flows;
mod iperf;
mod kernel_tcp;
mod network;
mod observer;
mod run;
mod samples;
mod start;
mod station;
#[cfg(test)]
mod tests;
mod udp;

pub use capture::{CaptureFile, CapturePoint};
pub use difference::{Difference, FlowDifference};
pub use error::LiveError;
pub use network::{emulated, emulated_link, emulated_path};
pub use run::{LiveOptions, LiveRun, run_live};
