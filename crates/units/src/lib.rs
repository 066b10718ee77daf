//! Units that every room of Weir shares: time, rate, size, gain, sequence numbers that wrap and path numbers.
//!
//! Times and durations are integer nanoseconds, rates integer bits per second, sizes integer bytes. Only dimensionally
//! valid operators exist, so a rate cannot be added to a size, nor a receiver's clock subtracted from the sender's.
//! Arithmetic saturates: a value from the network can make a number large, but never cause a panic.
//!
//! ```
//! use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
//! let rate = DataRate::from_kbps(2_000);
//! let packet = DataSize::from_bytes(1_000);
//! assert_eq!(rate.time_for(packet), Some(TimeDelta::from_millis(4)));
//! assert_eq!(Timestamp::ZERO + TimeDelta::from_millis(4), Timestamp::from_millis(4));
//! ```
#![no_std]

#[cfg(test)]
extern crate std;

mod ecn;
mod gain;
mod hint;
mod path_id;
mod rate;
mod seq;
mod seq48;
mod size;
mod time;

pub use ecn::Ecn;
pub use gain::Gain;
pub use hint::cold_path;
pub use path_id::PathId;
pub use rate::DataRate;
pub use seq::{Seq16, SeqUnwrapper};
pub use seq48::Seq48;
pub use size::DataSize;
pub use time::{RemoteTimestamp, TimeDelta, Timestamp};

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
