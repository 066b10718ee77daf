//! The one thread that writes.

use super::jobs::{Append, Appended, Job};
use super::keys::Keys;
use super::logs::Repeated;
use super::shared::{Reported, Sample, Shared};
use super::store::{AppendOutcome, Reports, Store, StoreError};
use crate::{Inserted, Sweep, Update};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use tokio::sync::mpsc;
use weir_units::{TimeDelta, Timestamp};

/// Most updates of one transaction, so that its time is bounded.
const MAX_GROUP: usize = 20_000;
/// Updates that are added to the map, and cells that are swept, while look-aheads wait.
const MAX_HELD: usize = 256;
/// Between two turns of housekeeping.
const HOUSEKEEPING: TimeDelta = TimeDelta::from_millis(1_000);
/// Between two sweeps of the map.
const SWEEP: TimeDelta = TimeDelta::from_secs(3_600);
/// Most measurements of one batch that go to who follows the device.
const MAX_FOLLOWED: usize = 100;
/// How far the clock may be ahead of the newest update where old ones are deleted.
const AHEAD: TimeDelta = TimeDelta::from_secs(86_400);
/// Updates that one turn of housekeeping deletes at most.
const MAX_EXPIRED: u32 = 20_000;

pub(super) struct Writer {
    store: Box<dyn Store>,
    shared: Arc<Shared>,
    jobs: mpsc::Receiver<Job>,
    generation: i64,
    kept: Timestamp,
    swept: Timestamp,
    sweep: Option<Sweep>,
    failures: Repeated,
}

impl Writer {
    pub(super) fn new(store: Box<dyn Store>, shared: Arc<Shared>, jobs: mpsc::Receiver<Job>) -> Self {
        let now = shared.clock.elapsed();
        Self { store, shared, jobs, generation: -1, kept: now, swept: now, sweep: None, failures: Repeated::default() }
    }

    /// Works until it is stopped.
    pub(super) fn run(mut self) {
        let mut stopped = false;
        while !stopped {
            let Some(first) = self.jobs.blocking_recv() else { break };
            let mut group = Vec::new();
            let mut waiting = 0;
            let mut next = Some(first);
            while let Some(job) = next.take() {
                match job {
                    Job::Append(append) => {
                        waiting += append.updates.len();
                        group.push(append);
                    }
                    other => {
                        // Order is kept: what came before a deletion is written before it.
                        self.append(std::mem::take(&mut group));
                        waiting = 0;
                        stopped |= self.other(other);
                    }
                }
                if waiting < MAX_GROUP && !stopped {
                    next = self.jobs.try_recv().ok();
                }
            }
            self.append(group);
            self.keep_house();
        }
        if let Err(e) = self.store.close() {
            tracing::error!(error = %e, "closing the database");
        }
    }

    fn append(&mut self, group: Vec<Append>) {
        if group.is_empty() {
            return;
        }
        let begin = self.shared.clock.elapsed();
        let count: usize = group.iter().map(|a| a.updates.len()).sum();
        let reports: Vec<Reports<'_>> =
            group.iter().map(|a| Reports { key: &a.key, device: &a.device, updates: &a.updates }).collect();
        let written = self.store.append(&reports);
        // A database that is full answers.
        self.shared.note_database(!matches!(&written, Err(e) if !matches!(e, StoreError::Full)));
        let took = self.shared.clock.elapsed().saturating_since(begin).as_secs_f64();
        self.shared.metrics.commits.observe(took);
        self.shared.metrics.commit_updates.observe(count as f64);
        self.shared
            .metrics
            .queued
            .set(self.shared.queued.fetch_sub(count, Ordering::Relaxed).saturating_sub(count) as i64);
        match written {
            Ok(kept) => {
                self.insert(&group, &kept);
                self.pass_on(&group, &kept);
                for (append, kept) in group.into_iter().zip(kept) {
                    let appended = match kept {
                        AppendOutcome::Stored { new, .. } => {
                            let count = new.iter().filter(|new| **new).count();
                            Appended::Stored { new: count, duplicates: new.len() - count }
                        }
                        AppendOutcome::TooManyDevices => Appended::TooManyDevices,
                    };
                    // A caller that went away is not interested.
                    let _ = append.reply.send(Ok(appended));
                }
            }
            Err(e) => {
                self.shared.metrics.store_errors.inc();
                if let Some(times) = self.failures.note(self.shared.clock.elapsed()) {
                    tracing::error!(error = %e, updates = count, times, "transactions failed: nothing was acknowledged");
                }
                let full = matches!(e, StoreError::Full);
                for append in group {
                    let error = if full { StoreError::Full } else { StoreError::Database(e.to_string()) };
                    let _ = append.reply.send(Err(error));
                }
            }
        }
    }

    /// Adds what is new to the map, some at a time.
    fn insert(&self, group: &[Append], kept: &[AppendOutcome]) {
        let mut all: Vec<(u32, &Update)> = Vec::new();
        for (append, kept) in group.iter().zip(kept) {
            if let AppendOutcome::Stored { device, new } = kept {
                all.extend(append.updates.iter().zip(new).filter(|(_, new)| **new).map(|(u, _)| (*device, u)));
            }
        }
        let now = self.shared.now();
        let mut outcomes: BTreeMap<&'static str, usize> = BTreeMap::new();
        for some in all.chunks(MAX_HELD) {
            let mut map = self.shared.map.write().unwrap_or_else(PoisonError::into_inner);
            for (device, update) in some {
                let outcome = match map.insert(*device, update, now) {
                    Inserted::Counted => "counted",
                    Inserted::Limited => "limited",
                    Inserted::Full => "map_full",
                };
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        self.shared.changes.fetch_add(1, Ordering::Relaxed);
        for (outcome, count) in outcomes {
            self.shared.metrics.count_updates(outcome, count);
        }
    }

    /// Passes on what is new to those who follow their own devices, newest last.
    fn pass_on(&self, group: &[Append], kept: &[AppendOutcome]) {
        if self.shared.reports.receiver_count() == 0 {
            return;
        }
        for (append, kept) in group.iter().zip(kept) {
            let AppendOutcome::Stored { new, .. } = kept else { continue };
            let new = append.updates.iter().zip(new).filter(|(_, new)| **new).map(|(u, _)| u);
            let mut samples: Vec<Sample> = new
                .map(|u| Sample { time_ms: u.time_ms, position: u.position, throughput_bps: u.throughput.as_bps() })
                .collect();
            samples.drain(..samples.len().saturating_sub(MAX_FOLLOWED));
            if !samples.is_empty() {
                let reported = Reported { key: append.key.clone(), device: append.device.clone(), samples };
                // Nobody may follow by now.
                let _ = self.shared.reports.send(Arc::new(reported));
            }
        }
    }

    /// Does anything but appending, and returns whether it is time to stop.
    fn other(&mut self, job: Job) -> bool {
        match job {
            Job::Append(append) => self.append(vec![append]),
            Job::Forget { key, device, reply } => {
                let done = self.store.forget(&key, device.as_deref()).map(|(count, devices)| {
                    let mut sweep = Sweep::new(devices);
                    while !sweep.is_done() {
                        self.step(&mut sweep);
                    }
                    self.shared.changes.fetch_add(1, Ordering::Relaxed);
                    count
                });
                let _ = reply.send(done);
            }
            Job::AddKey { record, reply } => {
                let done = self.store.add_key(&record).and_then(|()| self.load_keys());
                let _ = reply.send(done);
            }
            Job::RevokeKey { id, reply } => {
                let now = self.shared.now();
                let done = self.store.revoke_key(&id, now).and_then(|found| self.load_keys().map(|()| found));
                let _ = reply.send(done);
            }
            Job::Tick => {}
            Job::Stop => return true,
        }
        false
    }

    fn step(&self, sweep: &mut Sweep) {
        let now = self.shared.now();
        let mut map = self.shared.map.write().unwrap_or_else(PoisonError::into_inner);
        map.sweep(sweep, MAX_HELD, now);
    }

    fn load_keys(&mut self) -> Result<(), StoreError> {
        let keys = Keys::new(self.store.keys()?);
        *self.shared.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// Keys that another process changed, retention, the map's sweep.
    fn keep_house(&mut self) {
        let now = self.shared.clock.elapsed();
        if now.saturating_since(self.kept) < HOUSEKEEPING {
            return;
        }
        self.kept = now;
        let kept = self.keep();
        self.shared.note_database(kept.is_ok());
        if let Err(e) = kept {
            self.shared.metrics.store_errors.inc();
            if let Some(times) = self.failures.note(self.shared.clock.elapsed()) {
                tracing::error!(error = %e, times, "housekeeping failed");
            }
        }
        if self.sweep.is_none() && now.saturating_since(self.swept) >= SWEEP {
            self.swept = now;
            self.sweep = Some(Sweep::new([]));
        }
        if let Some(mut sweep) = self.sweep.take() {
            for _ in 0..64 {
                self.step(&mut sweep);
            }
            self.sweep = (!sweep.is_done()).then_some(sweep);
        }
    }

    fn keep(&mut self) -> Result<(), StoreError> {
        let generation = self.store.generation()?;
        if generation != self.generation {
            self.generation = generation;
            self.load_keys()?;
        }
        // A clock that jumps ahead deletes nothing by itself: reporters go on at the right time.
        let newest = self.store.newest()?.map(|at| at.plus(AHEAD));
        let now = newest.map_or(self.shared.now(), |newest| newest.min(self.shared.now()));
        let expired = self.store.expire(now.plus(-self.shared.config.bounds.max_age), MAX_EXPIRED)?;
        self.shared.metrics.count_updates("expired", usize::try_from(expired).unwrap_or(usize::MAX));
        self.shared.metrics.database_bytes.set(i64::try_from(self.store.size()?).unwrap_or(i64::MAX));
        Ok(())
    }
}
