//! Units that every room of Weir shares: time, rate, size, gain, sequence numbers that wrap and path numbers.
//!
//! Times and durations are integer nanoseconds, rates are integer bits a second, sizes are integer bytes.
//! Only operators that make dimensional sense exist, so a rate cannot be added to a size and a
//! receiver's clock cannot be subtracted from the sender's. Arithmetic saturates rather than wraps:
//! a value from the network can make a number large, never make it panic.
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
mod path_id;
mod rate;
mod seq;
mod seq48;
mod size;
mod time;

pub use ecn::Ecn;
pub use gain::Gain;
pub use path_id::PathId;
pub use rate::DataRate;
pub use seq::{Seq16, SeqUnwrapper};
pub use seq48::Seq48;
pub use size::DataSize;
pub use time::{RemoteTimestamp, TimeDelta, Timestamp};
