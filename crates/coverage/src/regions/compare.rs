use super::{Method, Regions, Sample};
use crate::robust::weighted_quantile;
use serde::Serialize;

/// Rates below this count as this when factors are taken, bit/s.
const LEAST_RATE: f64 = 1_000.0;

/// How well regions foretell rides that they were not formed from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// By which method.
    pub method: String,
    /// Samples that were to be foretold.
    pub samples: usize,
    /// Share of them at which a region was known.
    pub known: f64,
    /// Median of the factor between the region's median and the sample, whichever is larger by the smaller.
    pub median_factor: f64,
    /// The same, 90th percentile.
    pub p90_factor: f64,
    /// Share of samples between the region's quartiles; one half is right.
    pub within_quartiles: f64,
}

/// Leaves out each ride in turn, forms regions of the others, and compares what these say with what the ride measured.
pub fn compare(rides: &[Vec<Sample>], methods: &[Method]) -> Vec<Comparison> {
    methods.iter().map(|method| of_method(rides, *method)).collect()
}

fn of_method(rides: &[Vec<Sample>], method: Method) -> Comparison {
    let (mut factors, mut samples, mut within) = (Vec::new(), 0, 0.0);
    for (left_out, ride) in rides.iter().enumerate() {
        let others = rides.iter().enumerate().filter(|(i, _)| *i != left_out).flat_map(|(_, r)| r.iter().copied());
        let regions = Regions::form(method, &others.collect::<Vec<_>>());
        samples += ride.len();
        for sample in ride {
            let Some(known) = regions.as_ref().and_then(|r| r.at(sample.position)) else { continue };
            let log = |bps: f64| libm::log(bps.max(LEAST_RATE));
            factors.push(((log(known.p50.as_bps_f64()) - log(sample.rate.as_bps_f64())).abs(), 1.0));
            within += f64::from(u8::from((known.p25..=known.p75).contains(&sample.rate)));
        }
    }
    let known = factors.len() as f64;
    let mut factor = |q| weighted_quantile(&mut factors, q).map_or(f64::NAN, libm::exp);
    Comparison {
        method: method.to_string(),
        samples,
        known: known / (samples as f64).max(1.0),
        median_factor: factor(0.5),
        p90_factor: factor(0.9),
        within_quartiles: within / known.max(1.0),
    }
}
