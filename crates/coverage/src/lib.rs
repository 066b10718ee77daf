//! The network coverage map: reports of throughput with their position are joined into regions, and an end looks ahead
//! along its way, so that its rate falls before the tunnel and not in it.
//!
//! Section 7.2 of V. Singh, "Protocols and Algorithms for Adaptive Multimedia Systems" (Aalto University, 2015), describes
//! the service; how it scales, resists false reports and matches positions is left open there and decided here.
//!
//! The crate without features is sans-IO and deterministic: time is an argument, and equal reports in equal order give
//! equal answers. The features `server` and `client` add the service and what calls it, and `load` a generator of load.
//!
//! ```
//! use weir_coverage::{Filter, Map, MapConfig, Operator, Position, Technology, Update, WallTime, View};
//! use weir_units::DataRate;
//!
//! let mut map = Map::new(MapConfig { anonymity: 2, ..MapConfig::default() });
//! let now = WallTime::from_unix_millis(1_700_000_000_000);
//! let here = Position::new(60.187, 24.833).expect("on Earth");
//! for device in 0..3 {
//!     let rate = DataRate::from_kbps(900 + 100 * device);
//!     let update = Update::new(1, now, here, "244-91".parse().expect("a name"), Technology::Umts, rate);
//!     map.insert(u32::try_from(device).expect("small"), &update, now);
//! }
//! let filter = Filter { operator: Some("244-91".parse::<Operator>().expect("a name")), ..Filter::default() };
//! let known = map.capacity(here.cell(map.resolution()), &filter, now).expect("three devices reported");
//! assert!((known.quantiles.p50.as_kbps_f64() - 1000.0).abs() < 30.0);
//! ```
//!
//! The service's dependencies are its own feature's. the command line builds without them unless `full` or `coverage`
//! is asked for; tokio, hyper, axum, SQLite and PostgreSQL's client are what they are for.

mod api;
mod cached;
mod capacity;
mod extent;
mod geo;
mod hours;

pub mod limits;
pub mod lookahead;
mod map;
mod outbox;
pub mod regions;
pub mod rides;
mod robust;
mod sketch;
mod time;
mod update;

pub use api::{Accepted, Batch, RefusedUpdate};
pub use cached::{CacheError, CachedMap, CachedPart};
pub use capacity::{Capacity, CapacityVector, Level, Quantiles, Segment};
pub use extent::{Extent, ExtentError};
pub use geo::{Cell, CellError, Position, PositionError};
pub use hours::HourClass;
pub use map::{Devices, Filter, Hours, Inserted, Map, MapConfig, MapStats, OperatorsSeen, Region, Sweep, View};
pub use outbox::{Outbox, OutboxConfig, OutboxStats};
pub use sketch::DecayedSketch;
pub use time::WallTime;
pub use update::{Bounds, Operator, Refusal, Technology, Update};

/// Resolution of H3 cells, 0 to 15.
pub use h3o::Resolution;

#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "load")]
pub mod load;
#[cfg(feature = "server")]
pub mod server;
