//! The tests of weir-lab from outside, in one program: each file or folder is a module of it.

mod determinism;
mod forecast;
mod multipath;
mod preference;
mod queues;
mod recorder;
mod resilience;
mod runs;
mod stepped;
