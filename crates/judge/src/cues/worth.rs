//! Sums over rides and seeds.

use super::reading::{Measure, Measures};
use super::rides::Ride;
use super::{ALL, MATTERS, NONE};
use serde::Serialize;
use weir_lab::results::Stat;

/// A variant's measures.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CueVariant"))]
pub struct Variant {
    /// Its name in the scenario.
    pub name: String,
    /// Means over seeds, by ride; `None` where a run is missing.
    pub rides: Vec<Option<Measures>>,
}

impl Variant {
    /// A measure over the rides.
    pub fn over_rides(&self, measure: Measure) -> Option<Stat> {
        Stat::of(&self.rides.iter().flatten().map(|m| m.get(measure)).collect::<Vec<_>>())
    }
}

/// The worth of a cue: what the call with all has more than the call without it, relative to that.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CueWorth {
    /// The variant that leaves it out.
    pub without: String,
    /// Rides on which it gained more than one per cent in a deciding measure, with every seed.
    pub earns: usize,
    /// Rides on which it cost more than one per cent in a deciding measure, with every seed.
    pub costs: usize,
    /// Greatest gain of a ride in a deciding measure, mean over seeds.
    pub best: f64,
    /// Its ride and measure.
    pub best_at: Option<(String, Measure)>,
    /// Greatest cost (below zero).
    pub worst: f64,
    /// Its ride and measure.
    pub worst_at: Option<(String, Measure)>,
    /// Gain of each deciding measure over the rides, with its interval.
    pub gains: Vec<(Measure, Option<Stat>)>,
}

/// Of all variants and rides.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CueTable"))]
pub struct Table {
    /// The rides.
    pub rides: Vec<Ride>,
    /// Seeds of each.
    pub seeds: usize,
    /// The variants, in the order of the scenario.
    pub variants: Vec<Variant>,
    /// The cues.
    pub cues: Vec<CueWorth>,
    /// Whether every cue earns its place on some ride.
    pub all_earn: bool,
    /// Whether none costs more than one per cent on any.
    pub none_costs: bool,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Runs that a stop left undone.
    pub undone: usize,
}

impl Table {
    /// Of runs by variant, ride and seed, the seeds of a ride beside each other.
    pub(super) fn of(
        names: &[&str],
        rides: &[Ride],
        seeds: usize,
        read: &[Option<Measures>],
        failed: Vec<String>,
        undone: usize,
    ) -> Self {
        let of_variant: Vec<&[Option<Measures>]> = read.chunks((rides.len() * seeds).max(1)).collect();
        let variant = |(name, runs): (&&str, &&[Option<Measures>])| Variant {
            name: (*name).to_owned(),
            rides: runs.chunks(seeds.max(1)).map(mean).collect(),
        };
        let all = names.iter().position(|n| *n == ALL).and_then(|at| of_variant.get(at).copied()).unwrap_or_default();
        let left_out = names.iter().zip(&of_variant).filter(|(n, _)| **n != ALL && **n != NONE);
        let cues: Vec<CueWorth> = left_out.map(|(name, runs)| worth(name, rides, seeds, all, runs)).collect();
        Self {
            variants: names.iter().zip(&of_variant).map(variant).collect(),
            rides: rides.to_vec(),
            seeds,
            all_earn: cues.iter().all(|c| c.earns > 0),
            none_costs: cues.iter().all(|c| c.costs == 0),
            cues,
            failed,
            undone,
        }
    }
}

fn mean(runs: &[Option<Measures>]) -> Option<Measures> {
    let runs: Option<Vec<Measures>> = runs.iter().copied().collect();
    let runs = runs.filter(|r| !r.is_empty())?;
    let of = |m: Measure| runs.iter().map(|r| r.get(m)).sum::<f64>() / runs.len() as f64;
    Some(Measures {
        on_time: of(Measure::OnTime),
        psnr_db: of(Measure::Psnr),
        speech: of(Measure::Speech),
        mos: of(Measure::Mos),
        frozen_s: of(Measure::Frozen),
        delay_p95_ms: of(Measure::Delay),
        shown_bps: of(Measure::Shown),
    })
}

fn worth(name: &str, rides: &[Ride], seeds: usize, all: &[Option<Measures>], without: &[Option<Measures>]) -> CueWorth {
    let mut worth = CueWorth {
        without: name.to_owned(),
        earns: 0,
        costs: 0,
        best: 0.0,
        best_at: None,
        worst: 0.0,
        worst_at: None,
        gains: Vec::new(),
    };
    let mut gains = Measure::DECIDING.map(|m| (m, Vec::new()));
    let pairs = all.chunks(seeds.max(1)).zip(without.chunks(seeds.max(1)));
    for (ride, (with, without)) in rides.iter().zip(pairs) {
        let (mut earns, mut costs) = (false, false);
        for (measure, gains) in &mut gains {
            let gain = |(a, b): (&Option<Measures>, &Option<Measures>)| {
                let (a, b) = (a.as_ref()?.get(*measure), b.as_ref()?.get(*measure));
                Some((a - b) / b.max(1e-3))
            };
            let Some(each) = with.iter().zip(without).map(gain).collect::<Option<Vec<f64>>>() else { continue };
            earns |= each.iter().all(|g| *g > MATTERS);
            costs |= each.iter().all(|g| *g < -MATTERS);
            let mean = each.iter().sum::<f64>() / each.len() as f64;
            if mean > worth.best {
                (worth.best, worth.best_at) = (mean, Some((ride.name.clone(), *measure)));
            }
            if mean < worth.worst {
                (worth.worst, worth.worst_at) = (mean, Some((ride.name.clone(), *measure)));
            }
            gains.push(mean);
        }
        worth.earns += usize::from(earns);
        worth.costs += usize::from(costs);
    }
    worth.gains = gains.into_iter().map(|(m, values)| (m, Stat::of(&values))).collect();
    worth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cue_earns_and_costs_where_every_seed_agrees() {
        let of = |on_time: f64| {
            let m = Measures {
                on_time,
                psnr_db: 30.0,
                speech: 1.0,
                mos: 4.0,
                frozen_s: 0.0,
                delay_p95_ms: 90.0,
                shown_bps: 1e6,
            };
            Some(m)
        };
        let rides = Ride::all(1, 3, 0).expect("rides");
        let all = [of(0.9), of(0.9), of(0.9), of(0.9), of(0.9), of(0.9)];
        // Better in both seeds; in one; worse in both.
        let without = [of(0.8), of(0.85), of(0.8), of(0.9), of(0.95), of(0.92)];
        let read = [&all[..], &without[..], &all[..]].concat();
        let table = Table::of(&[ALL, "no-map", NONE], &rides, 2, &read, Vec::new(), 0);
        let cue = &table.cues[0];
        assert_eq!((table.cues.len(), cue.earns, cue.costs), (1, 1, 1));
        assert!(table.all_earn && !table.none_costs);
        assert!((cue.best - (0.1 / 0.8 + 0.05 / 0.85) / 2.0).abs() < 1e-12, "{cue:?}");
        assert_eq!(cue.worst_at, Some((rides[2].name.clone(), Measure::OnTime)));
        let short = Table::of(&[ALL, "no-map"], &rides, 2, &[vec![None; 6], without.to_vec()].concat(), Vec::new(), 6);
        assert_eq!((short.cues[0].earns, short.variants[0].rides[0]), (0, None));
    }
}
