//! Looking ahead: which capacity an end will meet, along a known route, in an area ahead, or by subscription to regions
//! of poor coverage (thesis, section 7.2: "known travel route, area lookahead or by subscribing to areas with poor
//! coverage, typically using geo-fencing").
//!
//! Only capacity over time enters a call. A look-ahead's answer has no places, and `CapacityVector::coarse` removes
//! what would let someone with the map find the route.

mod area;
mod fence;
mod route;
#[cfg(test)]
mod tests;

pub use area::Area;
pub use fence::{Fence, FenceEvent, FenceRequest, PoorRegion};
pub use route::{Route, decode_polyline, encode_polyline};

/// Most points of a route.
pub const MAX_POINTS: usize = 2_000;
/// Longest route or radius in metres.
pub const MAX_LENGTH_M: f64 = 300_000.0;
/// Most cells that one look-ahead asks for.
pub const MAX_CELLS: usize = 2_000;

/// Why a look-ahead has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LookaheadError {
    /// A route without a way.
    #[error("a route has 2 to {MAX_POINTS} points: got {0}")]
    Points(usize),
    /// A speed that no vehicle has.
    #[error("speed {0} m/s: expected 0.1 to 350")]
    Speed(f64),
    /// A length out of range.
    #[error("{what} {value}: expected {least} to {most}")]
    Range {
        /// The field.
        what: &'static str,
        /// The value given.
        value: f64,
        /// The least possible.
        least: f64,
        /// The greatest possible.
        most: f64,
    },
    /// A polyline that cannot be decoded.
    #[error("the polyline cannot be decoded at byte {0}")]
    Polyline(usize),
}

pub(crate) fn in_range(what: &'static str, value: f64, least: f64, most: f64) -> Result<(), LookaheadError> {
    let valid = (least..=most).contains(&value);
    if valid { Ok(()) } else { Err(LookaheadError::Range { what, value, least, most }) }
}

fn check_speed(speed: f64) -> Result<(), LookaheadError> {
    // Up to the speed of an airliner over ground.
    if (0.1..=350.0).contains(&speed) { Ok(()) } else { Err(LookaheadError::Speed(speed)) }
}
