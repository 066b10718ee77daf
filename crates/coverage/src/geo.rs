use h3o::{CellIndex, LatLng, Resolution};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Mean radius of the Earth in metres (IUGG).
const EARTH_RADIUS_M: f64 = 6_371_008.8;

/// A position on Earth, in degrees of WGS 84: finite, latitude -90 to 90, longitude -180 to 180.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Position {
    /// Degrees north of the equator.
    #[cfg_attr(feature = "server", schema(example = 60.187))]
    lat: f64,
    /// Degrees east of Greenwich.
    #[cfg_attr(feature = "server", schema(example = 24.833))]
    lon: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    lat: f64,
    lon: f64,
}

impl TryFrom<Raw> for Position {
    type Error = PositionError;

    fn try_from(raw: Raw) -> Result<Self, PositionError> {
        Self::new(raw.lat, raw.lon)
    }
}

/// Latitude or longitude out of range.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("position {lat}, {lon}: expected latitude -90 to 90 and longitude -180 to 180")]
pub struct PositionError {
    lat: f64,
    lon: f64,
}

impl Position {
    /// A position in degrees.
    ///
    /// # Errors
    /// A coordinate is out of range or not finite.
    pub fn new(lat: f64, lon: f64) -> Result<Self, PositionError> {
        let valid = (-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon);
        if valid { Ok(Self { lat, lon }) } else { Err(PositionError { lat, lon }) }
    }

    /// Degrees north of the equator.
    pub const fn lat(self) -> f64 {
        self.lat
    }

    /// Degrees east of Greenwich.
    pub const fn lon(self) -> f64 {
        self.lon
    }

    /// The great-circle distance in metres, on a sphere.
    pub fn distance_m(self, to: Self) -> f64 {
        let (a, b) = (self.lat.to_radians(), to.lat.to_radians());
        let half_lat = libm::sin((b - a) / 2.0);
        let half_lon = libm::sin((to.lon - self.lon).to_radians() / 2.0);
        let h = half_lat * half_lat + libm::cos(a) * libm::cos(b) * half_lon * half_lon;
        2.0 * EARTH_RADIUS_M * libm::asin(libm::sqrt(h.min(1.0)))
    }

    /// The direction to `to` along a great circle, in degrees clockwise from north, 0 to 360.
    pub fn bearing_deg(self, to: Self) -> f64 {
        let (a, b) = (self.lat.to_radians(), to.lat.to_radians());
        let d = (to.lon - self.lon).to_radians();
        let y = libm::sin(d) * libm::cos(b);
        let x = libm::cos(a) * libm::sin(b) - libm::sin(a) * libm::cos(b) * libm::cos(d);
        let deg = libm::atan2(y, x).to_degrees();
        if deg < 0.0 { deg + 360.0 } else { deg }
    }

    /// The position `distance_m` from here in direction `bearing_deg`, along a great circle.
    #[must_use]
    pub fn offset(self, bearing_deg: f64, distance_m: f64) -> Self {
        let (a, bearing, angle) = (self.lat.to_radians(), bearing_deg.to_radians(), distance_m / EARTH_RADIUS_M);
        let sin_lat = libm::sin(a) * libm::cos(angle) + libm::cos(a) * libm::sin(angle) * libm::cos(bearing);
        let lat = libm::asin(sin_lat.clamp(-1.0, 1.0));
        let y = libm::sin(bearing) * libm::sin(angle) * libm::cos(a);
        let lon = self.lon + libm::atan2(y, libm::cos(angle) - libm::sin(a) * sin_lat).to_degrees();
        let lon = if lon > 180.0 {
            lon - 360.0
        } else if lon < -180.0 {
            lon + 360.0
        } else {
            lon
        };
        Self::new(lat.to_degrees(), lon).unwrap_or(self)
    }

    /// The position at a share of the way to `to`, 0 to 1, by linear interpolation of the coordinates: for ways of some
    /// kilometres that do not cross the antimeridian.
    #[must_use]
    pub fn toward(self, to: Self, share: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        Self { lat: self.lat + (to.lat - self.lat) * share, lon: self.lon + (to.lon - self.lon) * share }
    }

    /// The H3 cell of this position.
    pub fn cell(self, resolution: Resolution) -> Cell {
        let at = LatLng::new(self.lat, self.lon).unwrap_or_default();
        Cell(at.to_cell(resolution))
    }
}

/// A hexagonal (twelve are pentagonal) cell of the H3 grid, written as its index in hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "server", schema(value_type = String, example = "8a1126d33a57fff"))]
pub struct Cell(CellIndex);

/// A text that is no index of an H3 cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no H3 cell: expected 15 hexadecimal digits")]
pub struct CellError(String);

impl Cell {
    /// The cell of an H3 index.
    ///
    /// # Errors
    /// The number is no index of a cell.
    pub fn from_index(index: u64) -> Result<Self, CellError> {
        CellIndex::try_from(index).map(Self).map_err(|_| CellError(format!("{index:x}")))
    }

    /// The H3 index.
    pub fn index(self) -> u64 {
        self.0.into()
    }

    /// The resolution, 0 to 15.
    pub fn resolution(self) -> Resolution {
        self.0.resolution()
    }

    /// The cell of a coarser resolution that this one belongs to, or this one if `resolution` is not coarser.
    #[must_use]
    pub fn parent(self, resolution: Resolution) -> Self {
        self.0.parent(resolution).map_or(self, Self)
    }

    /// The first and last cell inside this one at a finer resolution, in order of the index, or this one twice if
    /// `resolution` is not finer. All cells of that resolution between them are inside this one.
    pub fn span(self, resolution: Resolution) -> (Self, Self) {
        if resolution <= self.resolution() {
            return (self, self);
        }
        let count = self.0.children_count(resolution);
        let at = |i| self.0.child_at(i, resolution).map_or(self, Self);
        (at(0), at(count - 1))
    }

    /// The cells of the coarsest resolution.
    pub fn coarsest() -> impl Iterator<Item = Self> {
        CellIndex::base_cells().map(Self)
    }

    /// The cells of the next finer resolution inside this one; none at the finest.
    pub fn children(self) -> impl Iterator<Item = Self> {
        let finer = self.resolution().succ();
        finer.into_iter().flat_map(move |finer| self.0.children(finer)).map(Self)
    }

    /// Up to `count` cells of a finer resolution inside this one, in order, evenly spread over their indices.
    pub(crate) fn spread(self, resolution: Resolution, count: u64) -> impl Iterator<Item = Self> {
        let all = if resolution > self.resolution() { self.0.children_count(resolution) } else { 1 };
        let count = count.clamp(1, all);
        (0..count).map(move |i| self.0.child_at(i * all / count, resolution).map_or(self, Self))
    }

    /// This cell and those within `k` steps. Numbers of cells grow as 3 k (k + 1) + 1.
    pub fn disk(self, k: u32) -> Vec<Self> {
        let cells: Vec<CellIndex> = self.0.grid_disk(k);
        cells.into_iter().map(Self).collect()
    }

    /// The centre.
    pub fn center(self) -> Position {
        let at = LatLng::from(self.0);
        Position { lat: at.lat(), lon: at.lng() }
    }

    /// The corners, in order.
    pub fn boundary(self) -> Vec<Position> {
        self.0.boundary().iter().map(|at| Position { lat: at.lat(), lon: at.lng() }).collect()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.index())
    }
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cell({self})")
    }
}

impl FromStr for Cell {
    type Err = CellError;

    fn from_str(text: &str) -> Result<Self, CellError> {
        let error = || CellError(text.chars().take(20).collect());
        if text.len() > 16 || text.starts_with('+') {
            return Err(error());
        }
        let index = u64::from_str_radix(text, 16).map_err(|_| error())?;
        Self::from_index(index).map_err(|_| error())
    }
}

impl TryFrom<String> for Cell {
    type Error = CellError;

    fn try_from(text: String) -> Result<Self, CellError> {
        text.parse()
    }
}

impl From<Cell> for String {
    fn from(cell: Cell) -> Self {
        cell.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(lat: f64, lon: f64) -> Position {
        Position::new(lat, lon).expect("valid")
    }

    #[test]
    fn distances_and_directions_are_known_ones() {
        // A degree of latitude is pi / 180 of the radius: 111,195 m.
        let (a, b) = (at(60.0, 24.0), at(61.0, 24.0));
        assert!((a.distance_m(b) - 111_195.1).abs() < 1.0, "{}", a.distance_m(b));
        assert!(a.bearing_deg(b).abs() < 1e-9 && (b.bearing_deg(a) - 180.0).abs() < 1e-9);
        // Half of that along the 60th parallel, where the cosine is one half.
        let c = at(60.0, 25.0);
        assert!((a.distance_m(c) - 55_597.0).abs() < 5.0, "{}", a.distance_m(c));
        assert!((a.bearing_deg(c) - 89.567).abs() < 0.01, "{}", a.bearing_deg(c));
    }

    #[test]
    fn coordinates_out_of_range_are_refused() {
        for (lat, lon) in [(91.0, 0.0), (0.0, 181.0), (f64::NAN, 0.0), (0.0, f64::INFINITY)] {
            assert!(Position::new(lat, lon).is_err(), "{lat} {lon}");
        }
        assert!(serde_json::from_str::<Position>(r#"{"lat": 91, "lon": 0}"#).is_err());
        assert!(serde_json::from_str::<Position>(r#"{"lat": 1, "lon": 0, "alt": 2}"#).is_err());
    }

    #[test]
    fn cells_contain_their_children_in_one_span() {
        let cell = at(59.91, 10.75).cell(Resolution::Seven);
        let (first, last) = cell.span(Resolution::Ten);
        let inside: Vec<Cell> = cell.0.children(Resolution::Ten).map(Cell).collect();
        assert_eq!(inside.len(), 343);
        assert!(inside.iter().all(|c| (first..=last).contains(c) && c.parent(Resolution::Seven) == cell));
        assert_eq!(cell.span(Resolution::Seven), (cell, cell));
    }

    proptest! {
        #[test]
        fn offset_goes_as_far_as_it_says(lat in -80.0..80.0, lon in -180.0..180.0, b in 0.0..360.0, d in 1.0..50_000.0) {
            let from = at(lat, lon);
            let to = from.offset(b, d);
            prop_assert!((from.distance_m(to) - d).abs() < 0.01 + d * 1e-6);
            let turn = (from.bearing_deg(to) - b).abs();
            prop_assert!(turn.min(360.0 - turn) < 0.1, "{turn}");
        }

        #[test]
        fn cells_are_written_as_they_are_read(lat in -90.0..90.0, lon in -180.0..180.0, text in "[0-9a-f+]{0,17}") {
            let cell = at(lat, lon).cell(Resolution::Ten);
            prop_assert_eq!(cell.to_string().parse::<Cell>(), Ok(cell));
            prop_assert!(cell.center().distance_m(at(lat, lon)) < 120.0);
            if let Ok(cell) = text.parse::<Cell>() {
                prop_assert_eq!(cell.to_string(), text.trim_start_matches('0'));
            }
        }
    }
}
