//! Bayesian optimisation: a Gaussian process over the values so far, and the point of the greatest expected improvement next (D. Jones et al.,
//! "Efficient Global Optimization of Expensive Black-Box Functions", 1998).

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Length scale of the process in a unit cube, variance of the values' noise over that of the values, and points whose improvement is compared.
const SCALE: f64 = 0.35;
const NOISE: f64 = 1e-3;
const CANDIDATES: usize = 400;

/// The best point in a unit cube, after `first` points drawn and `then` points that the process chose.
///
/// # Errors
/// Those of `value`.
pub(super) fn minimise<const N: usize, E>(
    seed: u64,
    (first, then): (usize, usize),
    value: &mut dyn FnMut([f64; N]) -> Result<f64, E>,
) -> Result<[f64; N], E> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut point = || core::array::from_fn(|_| random.random::<f64>());
    let (mut points, mut values): (Vec<[f64; N]>, Vec<f64>) = (Vec::new(), Vec::new());
    for step in 0..first + then {
        let next = if step < first {
            point()
        } else {
            let process = Process::of(&points, &values);
            let candidates = (0..CANDIDATES).map(|_| point());
            let best = candidates.map(|p| (process.improvement(&p), p)).max_by(|a, b| a.0.total_cmp(&b.0));
            best.map_or([0.5; N], |b| b.1)
        };
        values.push(value(next)?);
        points.push(next);
    }
    let best = values.iter().zip(&points).min_by(|a, b| a.0.total_cmp(b.0));
    Ok(best.map_or([0.5; N], |b| *b.1))
}

/// A Gaussian process with a squared-exponential kernel, by values of mean 0 and variance 1.
struct Process<'a, const N: usize> {
    points: &'a [[f64; N]],
    /// Lower Cholesky factor of the covariance, by rows.
    factor: Vec<Vec<f64>>,
    /// The covariance's inverse times the values.
    weights: Vec<f64>,
    least: f64,
}

fn kernel<const N: usize>(a: &[f64; N], b: &[f64; N]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum();
    libm::exp(-0.5 * square / (SCALE * SCALE))
}

/// Solves with the lower factor; forward.
fn forward(factor: &[Vec<f64>], of: &[f64]) -> Vec<f64> {
    let mut out: Vec<f64> = Vec::with_capacity(of.len());
    for (row, y) in factor.iter().zip(of) {
        let known: f64 = row.iter().zip(&out).map(|(l, x)| l * x).sum();
        out.push((y - known) / row[out.len()]);
    }
    out
}

/// Solves with its transpose; backward.
fn backward(factor: &[Vec<f64>], of: &[f64]) -> Vec<f64> {
    let mut out = of.to_vec();
    for i in (0..out.len()).rev() {
        let known: f64 = (i + 1..out.len()).map(|k| factor[k][i] * out[k]).sum();
        out[i] = (out[i] - known) / factor[i][i];
    }
    out
}

impl<'a, const N: usize> Process<'a, N> {
    fn of(points: &'a [[f64; N]], values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let deviation = libm::sqrt(values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).max(1e-12);
        let scaled: Vec<f64> = values.iter().map(|v| (v - mean) / deviation).collect();
        let mut factor: Vec<Vec<f64>> = Vec::with_capacity(points.len());
        for (i, a) in points.iter().enumerate() {
            let mut row = Vec::with_capacity(i + 1);
            for (j, b) in points.iter().enumerate().take(i + 1) {
                let known: f64 = row.iter().zip(factor.get(j).unwrap_or(&row)).map(|(x, y): (&f64, &f64)| x * y).sum();
                let rest = kernel(a, b) + if i == j { NOISE } else { 0.0 } - known;
                let entry = if i == j { libm::sqrt(rest.max(1e-12)) } else { rest / factor[j][j] };
                row.push(entry);
            }
            factor.push(row);
        }
        let weights = backward(&factor, &forward(&factor, &scaled));
        let least = scaled.iter().copied().fold(f64::INFINITY, f64::min);
        Self { points, factor, weights, least }
    }

    /// Expected improvement on the least value so far.
    fn improvement(&self, at: &[f64; N]) -> f64 {
        let covariance: Vec<f64> = self.points.iter().map(|p| kernel(p, at)).collect();
        let mean: f64 = covariance.iter().zip(&self.weights).map(|(k, w)| k * w).sum();
        let explained: f64 = forward(&self.factor, &covariance).iter().map(|v| v * v).sum();
        let deviation = libm::sqrt((1.0 + NOISE - explained).max(1e-12));
        let z = (self.least - mean) / deviation;
        let density = libm::exp(-0.5 * z * z) / libm::sqrt(2.0 * core::f64::consts::PI);
        let below = 0.5 * (1.0 + libm::erf(z / core::f64::consts::SQRT_2));
        deviation * (z * below + density)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_a_smooth_function_is_found_in_few_steps() {
        let mut calls = 0;
        let mut value = |[x, y]: [f64; 2]| {
            calls += 1;
            Ok::<f64, ()>((x - 0.7) * (x - 0.7) + (y - 0.2) * (y - 0.2))
        };
        let [x, y] = minimise(1, (8, 20), &mut value).expect("no errors");
        assert!((x - 0.7).abs() < 0.1 && (y - 0.2).abs() < 0.1, "{x} {y}");
        assert_eq!(calls, 28);
    }
}
