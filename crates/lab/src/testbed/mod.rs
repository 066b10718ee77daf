//! Scenarios in real time: the same network between two namespaces, the same calls on real sockets, kernel TCP in place
//! of simulated TCP, and the same measurements as of a simulated run.

mod capture;
mod dccp;
mod difference;
mod ends;
mod flows;
mod network;
mod run;
#[cfg(test)]
mod tests;
mod watch;

pub use difference::{Difference, FlowDifference};
pub use network::{emulated, emulated_link, emulated_path};
pub use run::{LiveError, LiveOptions, LiveRun, run_live};
