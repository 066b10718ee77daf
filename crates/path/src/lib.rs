//! Links: capacity, queue, Wi-Fi and cellular media, token buckets, loss, delay, jitter, reordering, duplication, ECN marks and faults.
//!
//! A [`Link`] accepts packets by [`Link::push`] and returns them by [`Link::pop`], at the times given by
//! [`Link::next_event`]. It uses no clock and no socket: the simulator runs it on small handles, a live emulator on the
//! packets' bytes. The same configuration and seed give the same packets at the same times.
//!
//! ```
//! use weir_path::{Departure, Limit, Link, LinkConfig, Packet, Verdict};
//! use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
//! let mut config = LinkConfig::constant(DataRate::from_mbps(2), TimeDelta::from_millis(50));
//! config.limit = Limit::Size(DataSize::from_bytes(75_000));
//! let mut link = Link::new(&config, 1)?;
//! let packet = Packet { item: "a packet", size: DataSize::from_bytes(1_000), ecn: Ecn::NotEct, flow: 0 };
//! let verdict = link.push(Timestamp::ZERO, packet);
//! assert_eq!(verdict, Verdict::Queued);
//! // 1,000 bytes take 4 ms at 2 Mbit/s, and the way 50 ms more.
//! assert_eq!(link.next_event(), Some(Timestamp::from_millis(54)));
//! let Some(Departure::Delivered(d)) = link.pop(Timestamp::from_millis(54)) else { panic!("nothing came") };
//! assert_eq!(d.item, "a packet");
//! # Ok::<(), weir_path::ConfigError>(())
//! ```

mod capacity;
mod checks;
mod config;
mod dscp;
mod ecn_faults;
mod error;
mod flight;
mod impairment;
mod limit;
mod link;
mod members;
mod nat;
mod opportunities;
mod packet;
mod position;
pub mod presets;
pub mod queue;
mod radio;
mod random;
mod schedule;
mod stats;
mod steps;
mod token_bucket;
mod trace;

pub use capacity::Capacity;
pub use config::LinkConfig;
pub use dscp::{Class, Dscp};
pub use ecn_faults::EcnFaults;
pub use error::ConfigError;
pub use impairment::{GilbertElliott, Jitter, JitterShape, Loss, Reordering, Variation};
pub use limit::Limit;
pub use link::Link;
pub use members::{Member, Members};
pub use nat::{Dependence, Nat, NatConfig};
pub use opportunities::{OPPORTUNITY, Opportunities};
pub use packet::{Delivery, Departure, Dropped, Packet, Verdict};
pub use position::LossPosition;
pub use queue::Discipline;
pub use radio::{Cellular, Others, Radio, Wifi};
pub use random::Random;
pub use schedule::{Schedule, Step};
pub use stats::{Action, Count, DropReason, LinkStats};
pub use steps::Steps;
pub use token_bucket::TokenBucket;
pub use trace::{TraceError, TraceFormat};

/// The example of the README is run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
