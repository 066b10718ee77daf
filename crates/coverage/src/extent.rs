//! A part of the Earth between two parallels and two meridians, as a map's window shows it.

use crate::{Cell, Position};
use h3o::Resolution;
use serde::{Deserialize, Serialize};

/// Metres of a degree of latitude, on the sphere of [`Position::distance_m`].
const DEGREE_M: f64 = 111_195.08;

/// The extent of a window, in degrees. East of `west` and west of `east`: across the antimeridian if `west` is the greater.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Extent {
    /// Least latitude.
    south: f64,
    /// Longitude of the western border.
    west: f64,
    /// Greatest latitude.
    north: f64,
    /// Longitude of the eastern border.
    east: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    south: f64,
    west: f64,
    north: f64,
    east: f64,
}

impl TryFrom<Raw> for Extent {
    type Error = ExtentError;

    fn try_from(raw: Raw) -> Result<Self, ExtentError> {
        Self::new(raw.south, raw.west, raw.north, raw.east)
    }
}

/// Borders that are no window.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "window {south}, {west} to {north}, {east}: expected latitudes -90 to 90, south below north, and longitudes -180 to 180"
)]
pub struct ExtentError {
    south: f64,
    west: f64,
    north: f64,
    east: f64,
}

impl Extent {
    /// A window by its borders, in degrees.
    ///
    /// # Errors
    /// A border is out of range, or there is nothing between south and north, or west and east.
    pub fn new(south: f64, west: f64, north: f64, east: f64) -> Result<Self, ExtentError> {
        let latitudes = (-90.0..=90.0).contains(&south) && (-90.0..=90.0).contains(&north) && south < north;
        let longitudes = (-180.0..=180.0).contains(&west) && (-180.0..=180.0).contains(&east) && west != east;
        let extent = Self { south, west, north, east };
        if latitudes && longitudes { Ok(extent) } else { Err(ExtentError { south, west, north, east }) }
    }

    /// From west to east, in degrees.
    fn width(self) -> f64 {
        let width = self.east - self.west;
        if width > 0.0 { width } else { width + 360.0 }
    }

    /// The finest resolution, up to `finest`, of which about `most` cells cover the window.
    pub fn resolution(self, most: usize, finest: Resolution) -> Resolution {
        let radius_km = DEGREE_M * 0.18 / core::f64::consts::PI;
        let height = libm::sin(self.north.to_radians()) - libm::sin(self.south.to_radians());
        let area_km2 = radius_km * radius_km * self.width().to_radians() * height;
        let mut resolution = finest;
        while area_km2 / resolution.area_km2() > most as f64
            && let Some(coarser) = resolution.pred()
        {
            resolution = coarser;
        }
        resolution
    }

    /// Whether a position is inside, or within a distance that is short beside the Earth.
    pub fn near(self, at: Position, within_m: f64) -> bool {
        let margin = within_m / DEGREE_M;
        if at.lat() < self.south - margin || at.lat() > self.north + margin {
            return false;
        }
        let nearest_pole = at.lat().abs() + margin;
        if nearest_pole >= 90.0 {
            return true;
        }
        let half = self.width() / 2.0 + margin / libm::cos(nearest_pole.to_radians());
        let off = (at.lon() - self.west - self.width() / 2.0).abs() % 360.0;
        off.min(360.0 - off) <= half
    }

    /// Whether a cell may be partly inside; with `descendants`, whether one of its descendants may be, which can protrude
    /// from it.
    pub(crate) fn touches(self, cell: Cell, descendants: bool) -> bool {
        // Corners are up to 1.4 mean edges from the centre of a distorted cell, and descendants somewhat further.
        let edges = if descendants { 2.0 } else { 1.4 };
        self.near(cell.center(), cell.resolution().edge_length_m() * edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lat: f64, lon: f64) -> Position {
        Position::new(lat, lon).expect("valid")
    }

    #[test]
    fn windows_have_borders_in_order() {
        let wrong = [(1.0, 0.0, 1.0, 1.0), (0.0, 1.0, 1.0, 1.0), (-91.0, 0.0, 0.0, 1.0), (0.0, f64::NAN, 1.0, 1.0)];
        for (south, west, north, east) in wrong {
            assert!(Extent::new(south, west, north, east).is_err(), "{south} {west} {north} {east}");
        }
        assert!(serde_json::from_str::<Extent>(r#"{"south":0,"west":0,"north":1,"east":1,"up":2}"#).is_err());
    }

    #[test]
    fn positions_are_inside_also_across_the_antimeridian() {
        let fiji = Extent::new(-20.0, 176.0, -15.0, -178.0).expect("valid");
        assert!(fiji.near(at(-17.0, 179.9), 1.0) && fiji.near(at(-17.0, -179.9), 1.0));
        assert!(
            !fiji.near(at(-17.0, 175.9), 1.0) && !fiji.near(at(-17.0, -177.9), 1.0) && !fiji.near(at(-17.0, 0.0), 1.0)
        );
        // 0.1 degrees there are 10.6 km.
        assert!(fiji.near(at(-17.0, 175.9), 10_700.0) && !fiji.near(at(-17.0, 175.9), 10_500.0));
        let world = Extent::new(-90.0, -180.0, 90.0, 180.0).expect("valid");
        assert!(world.near(at(90.0, 77.0), 0.0) && world.near(at(0.0, 180.0), 0.0));
    }

    #[test]
    fn a_window_is_covered_by_about_as_many_cells_as_asked_for() {
        // 1 degree by 2 at 60 N: 12,350 km2. H3's table: 36.13 km2 at resolution 6, 5.161 at 7.
        let window = Extent::new(59.5, 24.0, 60.5, 26.0).expect("valid");
        assert_eq!(window.resolution(2_500, Resolution::Ten), Resolution::Seven);
        assert_eq!(window.resolution(2_300, Resolution::Ten), Resolution::Six);
        assert_eq!(window.resolution(usize::MAX, Resolution::Ten), Resolution::Ten);
        let world = Extent::new(-90.0, -180.0, 90.0, 180.0).expect("valid");
        assert_eq!(
            (world.resolution(900, Resolution::Ten), world.resolution(1, Resolution::Ten)),
            (Resolution::One, Resolution::Zero)
        );
    }
}
