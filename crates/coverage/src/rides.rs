//! Rides: reports of devices on their way, drawn from a city that is a function of a seed, or read from logs.

mod city;
mod logs;

pub use city::City;
pub use logs::{LogError, LogFormat, read_log};
