//! The scheduler of the thesis (section 6.1.1): paths in groups of like latency, ordered by capacity and latency, and a
//! distribution that avoids congested ones.

use super::characterisation::{Condition, PathRecord, PathReport};
use super::credits::Credits;
use super::scheduler::{MAX_PATHS, Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec, merit};
use crate::datagram::Kind;
use core::cmp::Ordering;
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};

/// Paths with a higher latency carry no media while another is usable (section 6.3).
const MAX_LATENCY: TimeDelta = TimeDelta::from_millis(500);
/// Greatest difference of latency between active paths (section 6.3).
const MAX_SKEW: TimeDelta = TimeDelta::from_millis(200);
/// Paths of a group differ by less than this (calibrated, since the thesis says "similar": a quarter of the greatest
/// skew).
const LIKE_LATENCY: TimeDelta = TimeDelta::from_millis(50);
/// Factors on a path's share with each report (calibrated: "a smaller fractional distribution").
const MILDLY_CONGESTED_FACTOR: f64 = 0.9;
const CONGESTED_FACTOR: f64 = 0.7;
const LOSSY_FACTOR: f64 = 0.9;
/// Part of the share that a non-congested report gives back (calibrated: the thesis "does not quickly reallocate" it).
const RECOVERY: f64 = 0.05;
/// Least factor, so that a path is still measured.
const LEAST_FACTOR: f64 = 0.05;
/// Interval over which the rate of the media is measured.
const DEMAND_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// Groups, orders and weights paths as the thesis does.
#[derive(Clone, Debug)]
pub struct Thesis {
    records: [PathRecord; MAX_PATHS],
    /// Factor on each path's share, 0 to 1.
    factors: [f64; MAX_PATHS],
    credits: Credits,
    /// Rate of the media over the last interval; bytes in this one, and its start.
    demand: Option<DataRate>,
    bytes: u64,
    since: Option<Timestamp>,
}

impl Default for Thesis {
    fn default() -> Self {
        Self {
            records: [PathRecord::default(); MAX_PATHS],
            factors: [1.0; MAX_PATHS],
            credits: Credits::default(),
            demand: None,
            bytes: 0,
            since: None,
        }
    }
}

impl Named for Thesis {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "thesis",
        summary: "shares by capacity on paths of like latency, less on congested ones",
        source: "thesis, section 6.1.1",
    };
}

/// A path of the distribution.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    id: PathId,
    latency: TimeDelta,
    rtt: Option<TimeDelta>,
    /// bit/s.
    capacity: f64,
    loss: f64,
}

impl Thesis {
    /// The condition of a path.
    pub fn condition(&self, path: PathId) -> Condition {
        self.records.get(path.index()).map_or(Condition::NonCongested, PathRecord::condition)
    }

    /// Returns the capacity of a path: the estimated receiver rate where it is congested, or the rate that its controller allows.
    fn capacity(&self, path: &PathView) -> f64 {
        let record = &self.records[path.id.index()];
        let congested = matches!(record.condition(), Condition::MildlyCongested | Condition::Congested);
        let received = record.received().filter(|_| congested);
        received.map_or(path.rate, |r| r.min(path.rate)).as_bps_f64()
    }

    /// Usable paths within the latency bound, or else the fastest alone; by latency.
    fn candidates(&self, paths: &[PathView]) -> Vec<Candidate> {
        let known = paths.iter().filter(|p| p.is_usable && p.id.index() < MAX_PATHS);
        let mut all: Vec<Candidate> = known
            .map(|p| Candidate {
                id: p.id,
                latency: p.latency(),
                rtt: p.rtt,
                capacity: self.capacity(p),
                loss: self.records[p.id.index()].loss().max(p.loss),
            })
            .collect();
        all.sort_by_key(|c| (c.latency, c.id));
        let within = all.iter().filter(|c| c.latency <= MAX_LATENCY).count();
        all.truncate(within.max(1));
        all
    }

    /// The active paths: groups by capacity and latency until they carry a media rate of `wanted` bit/s, within the skew
    /// bound.
    fn active(&self, paths: &[PathView], wanted: f64) -> Vec<Candidate> {
        let candidates = self.candidates(paths);
        let mut groups: Vec<(f64, &[Candidate])> = Vec::new();
        let mut rest = &candidates[..];
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|c| c.latency - first.latency < LIKE_LATENCY).count();
            let (members, after) = rest.split_at(count);
            let capacity: f64 = members.iter().map(|c| c.capacity).sum();
            let latency = members.iter().fold(TimeDelta::ZERO, |sum, c| sum + c.latency) / count as i64;
            groups.push((merit(capacity, latency), members));
            rest = after;
        }
        groups.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut active: Vec<Candidate> = Vec::new();
        let mut sum = 0.0;
        for (_, members) in groups {
            let far = |c: &Candidate| active.iter().any(|a| (a.latency - c.latency).abs() > MAX_SKEW);
            if sum >= wanted || members.iter().any(far) {
                continue;
            }
            sum += members.iter().map(|c| c.capacity).sum::<f64>();
            active.extend_from_slice(members);
        }
        active
    }

    fn measure_demand(&mut self, packet: &Scheduled) {
        if packet.kind != Kind::Media {
            return;
        }
        let since = *self.since.get_or_insert(packet.now);
        let time = packet.now.saturating_since(since);
        if time >= DEMAND_INTERVAL {
            self.demand = DataRate::from_size_over(DataSize::from_bytes(self.bytes), time);
            (self.since, self.bytes) = (Some(packet.now), 0);
        }
        self.bytes += packet.size.as_bytes();
    }

    /// The share of each active path: equal at the start, then by capacity, less where reports were bad.
    fn weights(&self, active: &[Candidate]) -> [(PathId, f64); MAX_PATHS] {
        let started = active.iter().all(|c| self.records[c.id.index()].received().is_some());
        let mut weights = [(PathId::FIRST, 0.0); MAX_PATHS];
        for (weight, c) in weights.iter_mut().zip(active) {
            let share = if started { c.capacity.max(1.0) * self.factors[c.id.index()] } else { 1.0 };
            *weight = (c.id, share);
        }
        weights
    }
}

/// The candidate that is first in this order.
fn first(active: &[Candidate], order: impl Fn(&Candidate, &Candidate) -> Ordering) -> Option<PathId> {
    active.iter().min_by(|a, b| order(a, b).then(a.id.cmp(&b.id))).map(|c| c.id)
}

/// Capacity by latency, the greatest first.
fn by_merit(a: &Candidate, b: &Candidate) -> Ordering {
    merit(b.capacity, b.latency).total_cmp(&merit(a.capacity, a.latency))
}

impl Scheduler for Thesis {
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
        self.measure_demand(packet);
        let active = self.active(paths, self.demand.map_or(f64::INFINITY, DataRate::as_bps_f64));
        let weights = self.weights(&active);
        let by_loss = |a: &Candidate, b: &Candidate| a.loss.total_cmp(&b.loss);
        let path = match packet.kind {
            Kind::Retransmission => first(&active, |a, b| by_merit(a, b).then(a.rtt.cmp(&b.rtt)).then(by_loss(a, b))),
            Kind::Media if packet.is_key => {
                let by_capacity = |a: &Candidate, b: &Candidate| b.capacity.total_cmp(&a.capacity);
                first(&active, |a, b| by_merit(a, b).then(by_capacity(a, b)).then(by_loss(a, b)))
            }
            _ => self.credits.next(&weights),
        };
        let Some(path) = path else { return PathSet::NONE };
        self.credits.on_sent(path, packet.size, &weights);
        PathSet::one(path)
    }

    fn media_rate(&self, paths: &[PathView]) -> DataRate {
        // All paths that could be active carry media, if there is enough of it.
        // At these shares the path with the least rate for its share is the first to be full.
        let weights = self.weights(&self.active(paths, f64::INFINITY));
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        let open = weights.iter().filter(|(_, weight)| *weight > 0.0);
        let carried = open.filter_map(|(id, weight)| {
            let path = paths.iter().find(|p| p.id == *id)?;
            Some(path.rate.as_bps_f64() * total / weight)
        });
        let least = carried.fold(f64::INFINITY, f64::min);
        if least.is_finite() { DataRate::from_bps(least as u64) } else { DataRate::ZERO }
    }

    fn on_report(&mut self, path: PathId, report: &PathReport) {
        let Some(record) = self.records.get_mut(path.index()) else { return };
        record.on_report(report);
        let factor = &mut self.factors[path.index()];
        *factor = match record.condition() {
            Condition::NonCongested => *factor + RECOVERY,
            Condition::MildlyCongested => *factor * MILDLY_CONGESTED_FACTOR,
            Condition::Congested => *factor * CONGESTED_FACTOR,
            Condition::Lossy => *factor * LOSSY_FACTOR,
        }
        .clamp(LEAST_FACTOR, 1.0);
    }
}
