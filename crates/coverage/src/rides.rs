//! Rides: reports of devices on their way, drawn from a city that is a function of a seed, or read from logs; and rides foretold
//! from others.

mod city;
mod foretold;
mod logs;

pub use city::City;
pub use foretold::{Foretelling, Foretold, foretell, map_without, measured};
pub use logs::{LogError, LogFormat, read_log};
