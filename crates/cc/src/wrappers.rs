//! Controllers around any other: `NAME+fec` probes for capacity by repair packets, `NAME+map` is bounded by a forecast
//! of capacity.
//!
//! `NAME+fec` and `NAME+map` are constructed on request. The registry wraps any entry in FEC probing, or in a bound by
//! a forecast of capacity; lists show plain names. A forecast (`Cue::CapacityForecast`) reaches a controller by
//! `Endpoint::on_capacity_forecast`, or from the other end in RTCP.

pub(crate) mod fec_probing;
pub(crate) mod map_guided;

pub use fec_probing::{Config as FecProbingConfig, FecProbing, SUFFIX as FEC_SUFFIX};
pub use map_guided::{Config as MapGuidedConfig, MapGuided, SUFFIX as MAP_SUFFIX, start_rate};
