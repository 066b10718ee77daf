//! Bounds that an application sets a joint plan.

use weir_units::TimeDelta;

/// Bounds of a joint plan, which both ends know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Joint {
    /// Earliest playout, from capture. Default: 100 ms, up to which delay is no impairment (ITU-T G.107, equation 7-27).
    pub earliest: TimeDelta,
    /// Latest playout, from capture. Default: 300 ms.
    pub latest: TimeDelta,
    /// Whether the receiver requests lost packets (RFC 4585). Default: true.
    pub requests: bool,
}

impl Default for Joint {
    fn default() -> Self {
        Self { earliest: TimeDelta::from_millis(100), latest: TimeDelta::from_millis(300), requests: true }
    }
}
