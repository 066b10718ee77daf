//! The workloads whose speed `weir bench` measures. Each does a fixed amount of work and returns its totals; the caller
//! supplies the clock, except for [`loopback`], which runs in real time.

pub mod call;
#[cfg(target_os = "linux")]
pub mod loopback;
pub mod many;
pub mod simulator;
