//! The service: HTTP and WebSocket, with a database behind and the map in memory.
//!
//! A batch of updates is answered once it is durable. One thread writes: it joins what waits into one transaction, so that
//! many batches share one flush of the disk, and then adds them to the map. The map is read from the database at the start.
//!
//! A coverage map is in memory; its database keeps the reports. The map is made again from them at each start, so that
//! its form may change without a migration. One thread writes: batches that wait share one transaction, and each is
//! answered after it (SQLite with a synchronous WAL, or PostgreSQL).

mod answers;
mod bodies;
mod clock;
mod config;
mod connections;
mod docs;
mod jobs;
mod keys;
mod listener;
mod live;
mod logs;
mod metrics;
mod page;
mod problem;
mod regions;
mod routes;
mod shared;
mod socket;
pub mod store;
mod subscription;
mod tls;
mod writer;

pub use clock::Clock;
pub use config::{ConfigError, ServerConfig, TlsConfig};
pub use keys::{IssuedKey, KeyError, issue, note_is_valid};
pub use listener::{RunningServer, ServeError, bind, serve, serve_on};
pub use logs::log_to_stderr;
pub use regions::{RegionShown, Regions, RegionsRequest};
pub use routes::{KeyInfo, MapPart, NewKey, openapi};
