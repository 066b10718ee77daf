//! Controllers around any other: `NAME+fec` probes for capacity by repair packets, `NAME+map` is bounded by a forecast
//! of capacity.

pub(crate) mod fec_probing;
pub(crate) mod map_guided;

pub use fec_probing::{Config as FecProbingConfig, FecProbing, SUFFIX as FEC_SUFFIX};
pub use map_guided::{Config as MapGuidedConfig, MapGuided, SUFFIX as MAP_SUFFIX, start_rate};
