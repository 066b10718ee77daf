//! A flow's forecast as a file writes it.

use crate::capacity::{RawCapacity, RawTraceFormat};
use crate::quantity::Time;
use crate::spanned::At;
use serde::Deserialize;

/// A forecast of the capacity of the flow's bottleneck, of a flow over several paths one for each path, given to both ends of the call, as
/// from a map of network coverage
/// (Singh's dissertation, section 7.2), for controllers named `NAME+map` and for `omniscient`, `rate-switching` and `late-scheduling`. It is that of the link itself unless one of `rides`,
/// `folder`, `drawn` and `file` states another.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { drawn = { rides = 10 } }")]
#[cfg_attr(feature = "schema", schemars(rename = "Forecast"))]
pub(crate) struct RawForecast {
    /// The capacities that other rides found, from the beginning of the run on: the map is made of them.
    pub(crate) rides: Option<At<Vec<At<RawCapacity>>>>,
    /// A folder of traces of other rides on the same way, searched beside the scenario file: all its files but the link's own trace,
    /// at most 100.
    pub(crate) folder: Option<At<String>>,
    /// The format of the traces in `folder`; by name and first line if absent.
    pub(crate) format: Option<At<RawTraceFormat>>,
    /// Other rides as a model: that of the link, at other times and with other rates.
    pub(crate) drawn: Option<At<RawDrawn>>,
    /// A file, searched beside the scenario file, with the columns `time_s`, `low_kbps`, `median_kbps` and `confidence`, from 0
    /// to 1, of a map elsewhere. A row lasts until the next one; "-" says that nothing is known.
    pub(crate) file: Option<At<String>>,
    /// Length of a stretch with one expected capacity; "5 s" if absent.
    pub(crate) segment: Option<At<Time>>,
    /// How far it looks ahead; "60 s" if absent.
    pub(crate) look_ahead: Option<At<Time>>,
    /// Interval at which a new one is given; "10 s" if absent.
    pub(crate) interval: Option<At<Time>>,
    /// Factor on all its rates, for a map that lies; 1 if absent.
    pub(crate) factor: Option<At<f64>>,
    /// Whether only the receiver gets it and announces it to the sender in RTCP (a capacity vector, of a flow over several paths one for
    /// each), where it may be late or lost; otherwise each end gets it from the map. The call's start rate is not that of the forecast then.
    pub(crate) in_band: Option<At<bool>>,
}

/// Rides drawn from that of the link.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { rides = 10 }")]
#[cfg_attr(feature = "schema", schemars(rename = "DrawnRides"))]
pub(crate) struct RawDrawn {
    /// Their number.
    pub(crate) rides: At<u32>,
    /// Most time by which a ride is earlier or later at a place than that of the link, any with equal chance; none if absent.
    pub(crate) shift: Option<At<Time>>,
    /// Standard deviation of the natural logarithm of the ratio of rates, drawn for each ride and each 10 s; 0 if absent.
    pub(crate) spread: Option<At<f64>>,
}
