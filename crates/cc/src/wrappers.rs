//! Controllers around any other: `NAME+fec` probes for capacity by repair packets, `NAME+map` is bounded by a forecast
//! of capacity, `NAME+vidaptive` pads where the encoder leaves room.
//!
//! They are constructed on request. The registry wraps any entry in FEC probing, in a bound by
//! a forecast of capacity, or in Vidaptive's pacer; lists show plain names. A forecast (`Cue::CapacityForecast`) reaches a controller by
//! `Endpoint::on_capacity_forecast`, or from the other end in RTCP.

pub(crate) mod fec_probing;
pub(crate) mod map_guided;
pub(crate) mod vidaptive;

pub use fec_probing::{Config as FecProbingConfig, FecProbing, SUFFIX as FEC_SUFFIX};
pub use map_guided::{Config as MapGuidedConfig, MapGuided, SUFFIX as MAP_SUFFIX, start_rate};
pub use vidaptive::{Config as FilledConfig, SUFFIX as VIDAPTIVE_SUFFIX, fill};
