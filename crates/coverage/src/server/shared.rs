//! State shared by all requests.

use super::answers::{Answers, Recent};
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
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::{Semaphore, broadcast, mpsc, watch};
use weir_units::TimeDelta;

/// Keys and addresses whose rates are remembered.
const REMEMBERED: usize = 100_000;

/// Batches that wait for those who follow their devices; who is slower misses some.
const REPORTS: usize = 256;

/// The address that limits count: the whole of IPv4, the /64 of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Peer(IpAddr);

impl Peer {
    pub(super) fn new(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & !u128::from(u64::MAX)).into()),
            v4 => v4,
        })
    }
}

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

#[derive(Debug)]
struct Limits {
    addresses: Limiter<Peer>,
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
    /// True from the begin of the end.
    pub(super) stopping: watch::Sender<bool>,
    limits: Mutex<Limits>,
}

/// Failed authentications cost an address as much as this many requests.
const FAILURE_COST: f64 = 10.0;

impl Shared {
    pub(super) fn new(config: ServerConfig, clock: Clock, map: Map, keys: Keys, jobs: mpsc::Sender<Job>) -> Self {
        let limits = Limits {
            addresses: Limiter::new(config.address_rate, REMEMBERED),
            reporters: Limiter::new(config.reporter_rate, REMEMBERED),
            fleets: Limiter::new(config.fleet_rate, REMEMBERED),
            looks: Limiter::new(config.look_rate, REMEMBERED),
            subscriptions: BTreeMap::new(),
        };
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

    pub(super) fn now(&self) -> WallTime {
        self.clock.wall()
    }

    pub(super) fn admit(&self, peer: Peer) -> Result<(), Problem> {
        let wait = |wait| Problem::busy("too many requests from this address", wait);
        self.limits().addresses.take(&peer, 1.0, self.clock.elapsed()).map_err(wait)
    }

    /// Looks up the owner of a key.
    pub(super) fn authenticate(&self, peer: Peer, text: Option<&str>) -> Result<Caller, Problem> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match text.and_then(|text| keys.check(text, self.now())) {
            Some((role, key)) => Ok(Caller { key, role }),
            None => {
                let _ = self.limits().addresses.take(&peer, FAILURE_COST, self.clock.elapsed());
                Err(Problem::new(StatusCode::UNAUTHORIZED, "a valid API key is needed: Authorization: Bearer wcm_..."))
            }
        }
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
