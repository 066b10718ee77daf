//! The workloads whose speed `weir bench` measures. Each does a fixed amount of work and says what it did; the caller
//! brings the clock, but for [`loopback`], which runs in real time.

pub mod call;
#[cfg(target_os = "linux")]
pub mod loopback;
pub mod many;
pub mod simulator;
