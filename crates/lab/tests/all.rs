//! The tests of weir-lab from outside, in one program: each file or folder is a module of it.

#[cfg(feature = "publish")]
mod capture_dccp;
#[cfg(feature = "publish")]
mod capture_points;
mod determinism;
#[cfg(feature = "publish")]
mod embedded;
mod forecast;
mod multipath;
mod queues;
mod runs;
mod stepped;
