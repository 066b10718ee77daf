//! State shared by all requests.

use super::answers::{Answers, Recent};
use super::bodies::Budget;
use super::clock::Clock;
use super::config::ServerConfig;
use super::jobs::Job;
use super::keys::Keys;
use super::metrics::Metrics;
use super::problem::Problem;
use super::store::Role;
use crate::limits::Limiter;
use crate::{Map, Position, WallTime};
use axum::http::StatusCode;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use weir_admission::Source;
use weir_units::{TimeDelta, Timestamp};

/// Keys and addresses whose rates are remembered.
const REMEMBERED: usize = 100_000;

/// Batches that wait for those who follow their devices; who is slower misses some.
const REPORTS: usize = 256;

/// The caller, by its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) key: String,
    pub(super) role: Role,
}

/// One measurement, as those who follow their own device get it.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, utoipa::ToSchema)]
pub(super) struct Sample {
    /// When it was measured.
    pub(super) time_ms: WallTime,
    /// Where.
    pub(super) position: Position,
    /// Bit/s received.
    pub(super) throughput_bps: u64,
}

/// A device's report.
#[derive(Debug)]
pub(super) struct Reported {
    pub(super) key: String,
    pub(super) device: String,
    pub(super) samples: Vec<Sample>,
}

/// The state of the database, by the last transaction.
#[derive(Clone, Copy, Debug)]
struct Database {
    answers: bool,
    /// When the writer came back from it.
    seen: Timestamp,
}

/// The writer looks at its database once a second: after this long it hangs.
const HANGS: TimeDelta = TimeDelta::from_secs(10);

#[derive(Debug)]
struct Limits {
    addresses: Limiter<Source>,
    callers: Limiter<(String, Source)>,
    reporters: Limiter<String>,
    fleets: Limiter<String>,
    looks: Limiter<String>,
    subscriptions: BTreeMap<String, usize>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: ServerConfig,
    pub(super) clock: Clock,
    pub(super) map: RwLock<Map>,
    /// Regions that subscribers have asked for lately.
    answers: Answers,
    pub(super) keys: RwLock<Keys>,
    pub(super) jobs: mpsc::Sender<Job>,
    /// Updates that wait to be written.
    pub(super) queued: AtomicUsize,
    pub(super) metrics: Metrics,
    /// Batches that changed the map, counted.
    pub(super) changes: AtomicU64,
    /// Places of pages that follow the map.
    pub(super) pages: Arc<Semaphore>,
    /// To those who follow their own devices.
    pub(super) reports: broadcast::Sender<Arc<Reported>>,
    /// Bodies that are being received.
    pub(super) bodies: Budget,
    /// How the database is.
    database: Mutex<Database>,
    /// True from the begin of the end.
    pub(super) stopping: watch::Sender<bool>,
    limits: Mutex<Limits>,
}

/// A wrong key costs an address as much as this many requests more.
const FAILURE_COST: f64 = 10.0;

impl Shared {
    pub(super) fn new(config: ServerConfig, clock: Clock, map: Map, keys: Keys, jobs: mpsc::Sender<Job>) -> Self {
        let limits = Limits {
            addresses: Limiter::new(config.address_rate, REMEMBERED),
            callers: Limiter::new(config.address_rate, REMEMBERED),
            reporters: Limiter::new(config.reporter_rate, REMEMBERED),
            fleets: Limiter::new(config.fleet_rate, REMEMBERED),
            looks: Limiter::new(config.look_rate, REMEMBERED),
            subscriptions: BTreeMap::new(),
        };
        let bodies = Budget::new(config.max_bodies);
        let database = Database { answers: true, seen: clock.elapsed() };
        let pages = Arc::new(Semaphore::new(config.max_pages));
        Self {
            config,
            clock,
            changes: AtomicU64::new(0),
            pages,
            reports: broadcast::Sender::new(REPORTS),
            map: RwLock::new(map),
            answers: Answers::default(),
            keys: RwLock::new(keys),
            jobs,
            queued: AtomicUsize::new(0),
            metrics: Metrics::new(),
            bodies,
            database: Mutex::new(database),
            stopping: watch::Sender::new(false),
            limits: Mutex::new(limits),
        }
    }

    /// The map. What a panic of another thread left is as good as what a crash leaves: the next start reads it all.
    pub(super) fn map(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The map as subscribers see it: what they ask for is looked up again after the time between two looks.
    pub(super) fn recent<'a>(&'a self, map: &'a Map) -> Recent<'a> {
        Recent { map, answers: &self.answers, now: self.clock.elapsed(), fresh: self.config.refresh }
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn database(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer has come back from the database, which answers or does not.
    pub(super) fn note_database(&self, answers: bool) {
        *self.database() = Database { answers, seen: self.clock.elapsed() };
    }

    /// Whether the database answers.
    pub(super) fn has_database(&self) -> bool {
        let Database { answers, seen } = *self.database();
        answers && self.clock.elapsed().saturating_since(seen) < HANGS
    }

    pub(super) fn now(&self) -> WallTime {
        self.clock.wall()
    }

    /// Whether a request with this key, or none, may go on. Who guesses keys takes nothing from those with a right one behind
    /// the same address.
    pub(super) fn admit(&self, peer: Source, key: Option<&str>) -> Result<(), Problem> {
        let caller = key.map(|key| self.caller(key));
        let now = self.clock.elapsed();
        let mut limits = self.limits();
        let taken = match caller {
            Some(Some(caller)) => limits.callers.take(&(caller.key, peer), 1.0, now),
            Some(None) => limits.addresses.take(&peer, 1.0 + FAILURE_COST, now),
            None => limits.addresses.take(&peer, 1.0, now),
        };
        taken.map_err(|wait| Problem::busy("too many requests from this address", wait))
    }

    fn caller(&self, key: &str) -> Option<Caller> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.check(key, self.now()).map(|(role, key)| Caller { key, role })
    }

    /// Looks up the owner of a key.
    pub(super) fn authenticate(&self, text: Option<&str>) -> Result<Caller, Problem> {
        let none =
            || Problem::new(StatusCode::UNAUTHORIZED, "a valid API key is needed: Authorization: Bearer wcm_...");
        text.and_then(|text| self.caller(text)).ok_or_else(none)
    }

    /// Whether a key is still valid.
    pub(super) fn is_valid(&self, caller: &Caller) -> bool {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).is_valid(&caller.key, self.now())
    }

    pub(super) fn take_updates(&self, caller: &Caller, count: usize) -> Result<(), Problem> {
        let mut limits = self.limits();
        let limiter = if caller.role == Role::Reporter { &mut limits.reporters } else { &mut limits.fleets };
        let wait = |wait| Problem::busy("too many updates with this key", wait);
        limiter.take(&caller.key, count as f64, self.clock.elapsed()).map_err(wait)
    }

    pub(super) fn take_look(&self, caller: &Caller, cost: f64) -> Result<(), Problem> {
        let wait = |wait| Problem::busy("too many look-aheads with this key", wait);
        self.limits().looks.take(&caller.key, cost, self.clock.elapsed()).map_err(wait)
    }

    pub(super) fn begin_subscription(&self, caller: &Caller) -> Result<(), Problem> {
        let mut limits = self.limits();
        let count = limits.subscriptions.entry(caller.key.clone()).or_default();
        if *count >= self.config.max_subscriptions_per_key {
            return Err(Problem::busy("too many subscriptions with this key", TimeDelta::from_secs(60)));
        }
        *count += 1;
        self.metrics.subscribers.inc();
        Ok(())
    }

    pub(super) fn end_subscription(&self, caller: &Caller) {
        let mut limits = self.limits();
        if let Some(count) = limits.subscriptions.get_mut(&caller.key) {
            *count -= 1;
            if *count == 0 {
                limits.subscriptions.remove(&caller.key);
            }
        }
        self.metrics.subscribers.dec();
    }
}
