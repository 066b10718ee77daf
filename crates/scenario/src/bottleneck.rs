//! The links that limit a flow, against whose capacity it is measured.

use super::model::{Flow, Link};
use weir_path::Capacity;
use weir_units::{TimeDelta, Timestamp};

/// Times of a run at which capacities are read.
const SAMPLES: i64 = 1_000;

/// Mean capacity of each link in bit/s; `None` for one without a limit.
pub fn mean_capacities(links: &[Link], duration: TimeDelta) -> Vec<Option<f64>> {
    links.iter().map(|l| mean_capacity(l, duration)).collect()
}

fn mean_capacity(link: &Link, duration: TimeDelta) -> Option<f64> {
    let config = &link.config;
    let buckets = [config.policer, config.shaper];
    let lasting = buckets.iter().flatten().map(|bucket| bucket.rate.as_bps_f64()).reduce(f64::min);
    let at = |at: Timestamp| config.shared_at(at).as_bps_f64().min(lasting.unwrap_or(f64::INFINITY));
    match &config.capacity {
        Capacity::Unlimited => lasting,
        Capacity::Constant(_) if !config.has_changing_users() => Some(at(Timestamp::ZERO)),
        _ => {
            let step = TimeDelta::from_nanos(duration.as_nanos() / SAMPLES);
            Some((0..SAMPLES).map(|i| at(Timestamp::ZERO + step * i)).sum::<f64>() / SAMPLES as f64)
        }
    }
}

/// Indices of the links that limit a flow, that of its first path first: of each path the one that the file names or,
/// without one there, that of the smallest mean capacity. A link that all paths cross and that has less than those
/// together limits the flow alone.
pub fn limiting_links(flow: &Flow, named: Option<usize>, means: &[Option<f64>]) -> Vec<usize> {
    let several = flow.rtp().and_then(|r| r.multipath.as_ref()).map_or(&[][..], |m| &m.paths);
    let paths: Vec<&[usize]> =
        if several.is_empty() { vec![&flow.forward] } else { several.iter().map(|p| &p.forward[..]).collect() };
    let mean = |l: usize| means.get(l).copied().flatten();
    let smallest = |links: &mut dyn Iterator<Item = usize>| {
        let limited = links.filter_map(|l| Some((l, mean(l)?)));
        limited.reduce(|a, b| if b.1 < a.1 { b } else { a })
    };
    let of_path = |path: &[usize]| {
        let given = named.filter(|l| path.contains(l));
        given.or_else(|| smallest(&mut path.iter().copied()).map(|l| l.0)).or(path.first().copied())
    };
    let mut links: Vec<usize> = Vec::new();
    for link in paths.iter().filter_map(|path| of_path(path)) {
        if !links.contains(&link) {
            links.push(link);
        }
    }
    if named.is_none_or(|l| !links.contains(&l)) && links.len() > 1 {
        let together: f64 = links.iter().filter_map(|&l| mean(l)).sum();
        let on_all = |l: &usize| paths.iter().all(|path| path.contains(l));
        let common = smallest(&mut paths[0].iter().copied().filter(on_all));
        if let Some((link, _)) = common.filter(|c| c.1 < together) {
            return vec![link];
        }
    }
    links
}
