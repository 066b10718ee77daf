//! Ways to form regions, by name, and their comparison on the same rides: H3 cells; squares of 100 m as Netradar has them;
//! K-means and K-nearest-neighbour as the thesis has them (section 7.2). The service uses H3 cells: they need no pass over
//! all samples when one arrives.

mod compare;
mod kmeans;
mod nearest;

pub use compare::{Comparison, compare};

use crate::robust::weighted_quantile;
use crate::{Position, Quantiles};
use h3o::Resolution;
use kmeans::KMeans;
use nearest::Nearest;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use weir_units::DataRate;

/// A rate measured at a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Where.
    pub position: Position,
    /// The reason.
    pub rate: DataRate,
}

/// A way to form regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// H3 cells of a resolution: `h3-10`.
    H3(Resolution),
    /// Squares of so many metres: `squares-100`.
    Squares(u32),
    /// K-means over position and rate, with one cluster for so many samples: `k-means-50`.
    KMeans(u32),
    /// The so many nearest samples within 300 m: `nearest-20`.
    Nearest(u32),
}

impl Method {
    /// Those that are compared by default.
    pub const ALL: [Self; 5] = [
        Self::H3(Resolution::Ten),
        Self::H3(Resolution::Nine),
        Self::Squares(100),
        Self::KMeans(50),
        Self::Nearest(20),
    ];
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::H3(resolution) => write!(f, "h3-{resolution}"),
            Self::Squares(metres) => write!(f, "squares-{metres}"),
            Self::KMeans(samples) => write!(f, "k-means-{samples}"),
            Self::Nearest(samples) => write!(f, "nearest-{samples}"),
        }
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("{text:?} is no method: expected h3-10, squares-100, k-means-50, nearest-20 or alike");
        let (name, number) = text.rsplit_once('-').ok_or_else(unknown)?;
        let number: u32 = number.parse().map_err(|_| unknown())?;
        let positive = (1..=100_000).contains(&number);
        match name {
            "h3" => {
                let resolution = u8::try_from(number).ok().and_then(|n| Resolution::try_from(n).ok());
                resolution.map(Self::H3).ok_or_else(unknown)
            }
            "squares" if positive => Ok(Self::Squares(number)),
            "k-means" if positive => Ok(Self::KMeans(number)),
            "nearest" if positive => Ok(Self::Nearest(number)),
            _ => Err(unknown()),
        }
    }
}

/// Metres east and north of a point, on a plane that touches the Earth there.
#[derive(Clone, Copy, Debug)]
struct Plane {
    origin: Position,
    metres_per_degree_east: f64,
}

/// Metres of a degree of latitude.
const METRES_PER_DEGREE: f64 = 111_195.0;

impl Plane {
    fn at(origin: Position) -> Self {
        Self { origin, metres_per_degree_east: METRES_PER_DEGREE * libm::cos(origin.lat().to_radians()) }
    }

    fn metres(&self, at: Position) -> (f64, f64) {
        let east = (at.lon() - self.origin.lon()) * self.metres_per_degree_east;
        (east, (at.lat() - self.origin.lat()) * METRES_PER_DEGREE)
    }
}

/// Things by the square that they are in.
type BySquare<T> = BTreeMap<(i64, i64), Vec<T>>;

/// Regions formed from samples.
#[derive(Clone, Debug)]
pub struct Regions(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Cells(Resolution, BTreeMap<u64, Quantiles>),
    Squares(Plane, f64, BTreeMap<(i64, i64), Quantiles>),
    KMeans(KMeans),
    Nearest(Nearest),
}

/// Quantiles of rates, all with the same weight.
fn quantiles(rates: impl IntoIterator<Item = f64>) -> Option<Quantiles> {
    let mut rates: Vec<(f64, f64)> = rates.into_iter().map(|r| (r, 1.0)).collect();
    let mut values = [DataRate::ZERO; 5];
    for (value, share) in values.iter_mut().zip(Quantiles::SHARES) {
        *value = DataRate::from_bps_f64(weighted_quantile(&mut rates, share)?);
    }
    Some(Quantiles::from_values(values))
}

fn grouped<K: Ord>(samples: &[Sample], key: impl Fn(&Sample) -> K) -> BTreeMap<K, Quantiles> {
    let mut groups: BTreeMap<K, Vec<f64>> = BTreeMap::new();
    for sample in samples {
        groups.entry(key(sample)).or_default().push(sample.rate.as_bps_f64());
    }
    groups.into_iter().filter_map(|(k, rates)| Some((k, quantiles(rates)?))).collect()
}

fn square(plane: &Plane, size: f64, at: Position) -> (i64, i64) {
    let (east, north) = plane.metres(at);
    (libm::floor(east / size) as i64, libm::floor(north / size) as i64)
}

impl Regions {
    /// Regions of samples; `None` if there are none.
    pub fn form(method: Method, samples: &[Sample]) -> Option<Self> {
        let plane = Plane::at(samples.first()?.position);
        Some(Self(match method {
            Method::H3(r) => Kind::Cells(r, grouped(samples, |s| s.position.cell(r).index())),
            Method::Squares(metres) => {
                let size = f64::from(metres);
                Kind::Squares(plane, size, grouped(samples, |s| square(&plane, size, s.position)))
            }
            Method::KMeans(each) => Kind::KMeans(KMeans::form(plane, samples, (samples.len() / each as usize).max(1))),
            Method::Nearest(k) => Kind::Nearest(Nearest::form(plane, samples, k as usize)),
        }))
    }

    /// Returns the capacity expected at a place, or `None` if no region is there.
    pub fn at(&self, position: Position) -> Option<Quantiles> {
        match &self.0 {
            Kind::Cells(resolution, cells) => cells.get(&position.cell(*resolution).index()).copied(),
            Kind::Squares(plane, size, squares) => squares.get(&square(plane, *size, position)).copied(),
            Kind::KMeans(means) => means.at(position),
            Kind::Nearest(nearest) => nearest.at(position),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_written_as_they_are_read() {
        for method in Method::ALL {
            assert_eq!(method.to_string().parse(), Ok(method));
        }
        for wrong in ["h3", "h3-16", "squares-0", "k-means-x", "voronoi-3", ""] {
            assert!(wrong.parse::<Method>().is_err(), "{wrong}");
        }
    }

    /// 2 Mbit/s west of a line and 100 kbit/s east of it, on a road of 4 km.
    fn road() -> Vec<Sample> {
        let start = Position::new(60.187, 24.833).expect("valid");
        let at = |i: u32| {
            let metres = f64::from(i) * 4.0;
            let kbps = if metres < 2_000.0 { 2_000 } else { 100 };
            Sample { position: start.offset(90.0, metres), rate: DataRate::from_kbps(kbps + u64::from(i % 10)) }
        };
        (0..1_000).map(at).collect()
    }

    #[test]
    fn every_method_finds_the_edge() {
        let samples = road();
        let start = samples[0].position;
        for method in Method::ALL {
            let regions = Regions::form(method, &samples).expect("samples");
            let kbps = |metres| regions.at(start.offset(90.0, metres)).map(|q| q.p50.as_kbps_f64());
            assert!((kbps(1_000.0).expect("known") / 2_000.0 - 1.0).abs() < 0.02, "{method}");
            assert!((kbps(3_000.0).expect("known") / 100.0 - 1.0).abs() < 0.1, "{method}");
            assert_eq!(regions.at(start.offset(0.0, 5_000.0)), None, "{method}: too far");
            assert!(Regions::form(method, &[]).is_none());
        }
    }

    #[test]
    fn rides_left_out_are_foretold() {
        let city = crate::rides::City::new(3, 4);
        let now = crate::WallTime::from_unix_millis(1_700_000_000_000);
        let ride =
            |n| city.ride(n, 0, now, 300).iter().map(|u| Sample { position: u.position, rate: u.throughput }).collect();
        let rides: Vec<Vec<Sample>> = (0..12).map(ride).collect();
        let results = compare(&rides, &Method::ALL);
        assert_eq!(results.len(), 5);
        for result in &results {
            // The difference of a second from its median alone is a factor of 1.23 in the median.
            assert!((1.15..1.5).contains(&result.median_factor), "{result:?}");
            assert!(result.known > 0.8 && (0.3..0.7).contains(&result.within_quartiles), "{result:?}");
        }
    }
}
