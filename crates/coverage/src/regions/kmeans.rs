//! K-means (J. MacQueen, 1967) over position and rate, by Lloyd's iteration.

use super::{BySquare, Plane, Sample, quantiles};
use crate::{Position, Quantiles};

/// Metres that a factor of e between rates counts as: two samples 100 m apart are as far from each other as two that differ
/// by that factor. Own choice.
const METRES_PER_FACTOR: f64 = 100.0;
/// Most rounds.
const ROUNDS: usize = 20;
/// Furthest from a cluster's centre that it speaks for, in metres.
const REACH_M: f64 = 300.0;
/// Side of the squares by which centres are found, in metres: with the eight around, they cover the reach.
const BUCKET_M: f64 = REACH_M;
/// Rates below this count as this, bit/s.
const LEAST_RATE: f64 = 1_000.0;

#[derive(Clone, Debug)]
pub(super) struct KMeans {
    plane: Plane,
    /// Centres by square.
    centres: BySquare<((f64, f64), Quantiles)>,
}

type Point = [f64; 3];

fn bucket(x: f64, y: f64) -> (i64, i64) {
    (libm::floor(x / BUCKET_M) as i64, libm::floor(y / BUCKET_M) as i64)
}

fn square_distance(a: &Point, b: &Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The centre of each point: the nearest one of those around.
fn assign(points: &[Point], centres: &[Point]) -> Vec<usize> {
    let mut near: BySquare<usize> = BySquare::new();
    for (i, centre) in centres.iter().enumerate() {
        near.entry(bucket(centre[0], centre[1])).or_default().push(i);
    }
    let nearest = |point: &Point| {
        let (x, y) = bucket(point[0], point[1]);
        let around = (-1..=1).flat_map(|i| (-1..=1).map(move |j| (x + i, y + j)));
        let candidates = around.filter_map(|b| near.get(&b)).flatten().copied();
        let by_distance = |a: &usize, b: &usize| {
            square_distance(point, &centres[*a]).total_cmp(&square_distance(point, &centres[*b]))
        };
        // Where no centre is around, all are looked at.
        candidates.min_by(by_distance).or_else(|| (0..centres.len()).min_by(by_distance)).unwrap_or(0)
    };
    points.iter().map(nearest).collect()
}

impl KMeans {
    /// Clusters of samples. It begins with samples at equal steps, so that the same samples give the same clusters.
    pub(super) fn form(plane: Plane, samples: &[Sample], clusters: usize) -> Self {
        let point = |s: &Sample| {
            let (x, y) = plane.metres(s.position);
            [x, y, METRES_PER_FACTOR * libm::log(s.rate.as_bps_f64().max(LEAST_RATE))]
        };
        let points: Vec<Point> = samples.iter().map(point).collect();
        let step = points.len() as f64 / clusters as f64;
        let mut centres: Vec<Point> = (0..clusters).map(|i| points[(i as f64 * step) as usize]).collect();
        let mut of = Vec::new();
        for _ in 0..ROUNDS {
            let next = assign(&points, &centres);
            if next == of {
                break;
            }
            of = next;
            let mut sums = vec![([0.0; 3], 0.0); centres.len()];
            for (point, i) in points.iter().zip(&of) {
                sums[*i].0.iter_mut().zip(point).for_each(|(sum, p)| *sum += p);
                sums[*i].1 += 1.0;
            }
            for (centre, (sum, count)) in centres.iter_mut().zip(sums) {
                if count > 0.0 {
                    *centre = sum.map(|s| s / count);
                }
            }
        }
        let mut rates: Vec<Vec<f64>> = vec![Vec::new(); centres.len()];
        for (sample, i) in samples.iter().zip(&of) {
            rates[*i].push(sample.rate.as_bps_f64());
        }
        let mut by_square: BySquare<((f64, f64), Quantiles)> = BySquare::new();
        for (centre, rates) in centres.iter().zip(rates) {
            if let Some(known) = quantiles(rates) {
                by_square.entry(bucket(centre[0], centre[1])).or_default().push(((centre[0], centre[1]), known));
            }
        }
        Self { plane, centres: by_square }
    }

    /// The cluster whose centre is nearest.
    pub(super) fn at(&self, position: Position) -> Option<Quantiles> {
        let (x, y) = self.plane.metres(position);
        let (i, j) = bucket(x, y);
        let around = (-1..=1).flat_map(|a| (-1..=1).map(move |b| (i + a, j + b)));
        let candidates = around.filter_map(|b| self.centres.get(&b)).flatten();
        let distances = candidates.map(|((a, b), known)| (libm::hypot(a - x, b - y), known));
        let nearest = distances.min_by(|a, b| a.0.total_cmp(&b.0));
        nearest.filter(|n| n.0 <= REACH_M).map(|n| *n.1)
    }
}
