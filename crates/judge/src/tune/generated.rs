//! Capacities from a seed, for training: recordings alone are few, and what fits them may fit nothing else.
//!
//! A model of Weir's own: the logarithm of the rate returns to its mean (an Ornstein-Uhlenbeck process), it jumps now and then, and
//! there are outages. How much of each differs from trace to trace, log-uniformly between the bounds below.

use super::super::rows::Trace;
use weir_path::{Capacity, Random, Schedule, Step};
use weir_units::{DataRate, TimeDelta};

/// Length of a trace and of one of its steps, s.
const LENGTH: f64 = 120.0;
const STEP: f64 = 0.1;
/// Median rate, bit/s.
const MEDIAN: [f64; 2] = [0.4e6, 30e6];
/// Standard deviation of the logarithm of the rate, and the time in which it returns, s.
const DEVIATION: [f64; 2] = [0.1, 0.8];
const MEMORY: [f64; 2] = [0.3, 10.0];
/// Mean time between jumps, s, and the greatest factor of one.
const BETWEEN_JUMPS: [f64; 2] = [5.0, 60.0];
const JUMP: f64 = 4.0;
/// Mean time between outages, s, and their length, s.
const BETWEEN_OUTAGES: [f64; 2] = [10.0, 400.0];
const OUTAGE: [f64; 2] = [0.1, 2.0];
/// Rate in an outage, bit/s: a link that serves nothing for seconds has no omniscient sender.
const OUT: f64 = 10e3;

/// So many capacities; the same seed gives the same ones.
pub fn generated(count: usize, seed: u64) -> Vec<Trace> {
    (0..count).filter_map(|i| one(i, seed)).collect()
}

fn one(number: usize, seed: u64) -> Option<Trace> {
    let mut rng = Random::new(seed.wrapping_mul(1_000_000).wrapping_add(number as u64));
    let mut between = |[low, high]: [f64; 2]| low * libm::pow(high / low, rng.uniform());
    let (median, deviation, memory) = (between(MEDIAN), between(DEVIATION), between(MEMORY));
    let (jumps, outages) = (between(BETWEEN_JUMPS), between(BETWEEN_OUTAGES));
    let keep = libm::exp(-STEP / memory);
    let (mut level, mut around, mut out_until) = (0.0, 0.0, 0.0);
    let mut steps = Vec::new();
    for k in 0..(LENGTH / STEP) as u32 {
        let at = f64::from(k) * STEP;
        // Twelve uniform numbers make a normal one.
        let normal = (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        around = around * keep + deviation * libm::sqrt(1.0 - keep * keep) * normal;
        if rng.uniform() < STEP / jumps {
            level = libm::log(JUMP) * (2.0 * rng.uniform() - 1.0);
        }
        if rng.uniform() < STEP / outages {
            out_until = at + OUTAGE[0] * libm::pow(OUTAGE[1] / OUTAGE[0], rng.uniform());
        }
        let rate = if at < out_until { OUT } else { median * libm::exp(level + around) };
        steps.push(Step { at: TimeDelta::from_secs_f64(at), rate: DataRate::from_bps_f64(rate) });
    }
    let schedule = Schedule::new(steps, Some(TimeDelta::from_secs_f64(LENGTH))).ok()?;
    let group = format!("generated-{seed}");
    Trace::new(format!("{group}/{number:03}"), group, &Capacity::Schedule(schedule)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_traces_and_another_gives_others() {
        let all = generated(20, 1);
        assert_eq!(all.len(), 20, "each is of use");
        assert_eq!(all, generated(20, 1));
        assert_eq!(all[..5], generated(5, 1), "fewer are the first of more");
        assert_ne!(all, generated(20, 2));
        assert_ne!(all[0], all[1]);
    }
}
