//! K-nearest-neighbour: the samples around a place, however far they are, up to a limit.

use super::{BySquare, Plane, Sample, quantiles};
use crate::{Position, Quantiles};

/// Furthest neighbour, in metres.
const REACH_M: f64 = 300.0;
/// Side of the squares by which samples are found, in metres.
const BUCKET_M: f64 = 100.0;

#[derive(Clone, Debug)]
pub(super) struct Nearest {
    plane: Plane,
    k: usize,
    /// East, north and rate, by square.
    samples: BySquare<(f64, f64, f64)>,
}

fn bucket(x: f64, y: f64) -> (i64, i64) {
    (libm::floor(x / BUCKET_M) as i64, libm::floor(y / BUCKET_M) as i64)
}

impl Nearest {
    pub(super) fn form(plane: Plane, samples: &[Sample], k: usize) -> Self {
        let mut by_square: BySquare<(f64, f64, f64)> = BySquare::new();
        for sample in samples {
            let (x, y) = plane.metres(sample.position);
            by_square.entry(bucket(x, y)).or_default().push((x, y, sample.rate.as_bps_f64()));
        }
        Self { plane, k, samples: by_square }
    }

    pub(super) fn at(&self, position: Position) -> Option<Quantiles> {
        let (x, y) = self.plane.metres(position);
        let (i, j) = bucket(x, y);
        let mut found: Vec<(f64, f64)> = Vec::new();
        // Squares in growing rings; one more ring than needed, since corners are further than sides.
        for ring in 0..=(REACH_M / BUCKET_M) as i64 {
            let enough = found.iter().filter(|f| f.0 <= (ring - 1) as f64 * BUCKET_M).count() >= self.k;
            if enough {
                break;
            }
            for a in -ring..=ring {
                for b in (-ring..=ring).filter(|b| a.abs() == ring || b.abs() == ring) {
                    let Some(samples) = self.samples.get(&(i + a, j + b)) else { continue };
                    found.extend(samples.iter().map(|s| (libm::hypot(s.0 - x, s.1 - y), s.2)));
                }
            }
        }
        found.retain(|f| f.0 <= REACH_M);
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        found.truncate(self.k);
        quantiles(found.into_iter().map(|f| f.1))
    }
}
