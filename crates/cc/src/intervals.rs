//! Controllers that decide once an interval from what feedback said since the decision before: learned policies, and callers
//! that set the rate from outside.
//!
//! [`Meter`] sums up the packets of an interval, [`Observation`] turns the latest intervals into the numbers that a policy
//! reads, and [`IntervalController`] asks a [`Decide`] for the next rate. Training and use share all three, so that a policy
//! sees in a call what it saw in training.

mod controller;
mod meter;
mod observation;

pub use controller::{Decide, IntervalController, STEP, spec};
pub use meter::{Interval, Meter};
pub use observation::{Observation, RATE_RANGE, normalised, rate};
