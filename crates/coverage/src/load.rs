//! A generator of load, and a service under it, in one process.

mod hostile;
mod subscribers;

pub use hostile::{Hostile, HostileReport};

use crate::client::{Client, ClientError, Endpoint, Trust};
use crate::limits::Rate;
use crate::lookahead::Route;
use crate::rides::City;
use crate::server::store::{Role, StoreConfig, StoreError};
use crate::server::{Clock, KeyError, ServeError, ServerConfig, issue, serve};
use crate::{Batch, Filter, Map, MapConfig, MapStats};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use weir_units::TimeDelta;

/// The load to generate.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadConfig {
    /// The database, which should be empty.
    pub store: StoreConfig,
    /// How long.
    pub duration: Duration,
    /// Updates a second.
    pub updates_per_second: f64,
    /// Updates of a batch.
    pub batch: usize,
    /// Devices that report.
    pub devices: u32,
    /// Connections on which they do.
    pub connections: u32,
    /// Look-aheads a second.
    pub looks_per_second: f64,
    /// Windows asked for a second, as the page does, each of 1,500 regions or so.
    pub overviews_per_second: f64,
    /// Streets of the city in each direction: how many regions there are to fill.
    pub streets: u32,
    /// WebSocket subscribers, each of which sends a position every 5 s.
    pub subscribers: usize,
    /// Malformed requests, from the second quarter of the time on.
    pub hostile: Option<Hostile>,
}

/// Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Default, Serialize)]
pub struct Latency {
    /// How many.
    pub count: usize,
    /// Median.
    pub p50_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// The measurements of a load.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct LoadReport {
    /// Seconds that it took.
    pub seconds: f64,
    /// Updates acknowledged a second.
    pub updates_per_second: f64,
    /// Updates acknowledged.
    pub updates: u64,
    /// Batches answered with 429.
    pub busy: u64,
    /// From a batch's sending to its acknowledgement.
    pub batches: Latency,
    /// From a look-ahead's sending to its answer.
    pub looks: Latency,
    /// From the question for a window to its answer.
    pub overviews: Latency,
    /// Subscribers at the end.
    pub subscribers: usize,
    /// Events that they got.
    pub events: u64,
    /// Resident memory of the process (service and generator) in MB, at ten times from the first to the last.
    pub resident_mb: Vec<f64>,
    /// The map at the end.
    pub cells: usize,
    /// Devices by region of the map at the end.
    pub entries: usize,
    /// Size of the database in MB.
    pub database_mb: f64,
    /// Seconds in which the map is made again from the database.
    pub replay_seconds: f64,
    /// Processor time of the process a second, in processors.
    pub processors: f64,
    /// Outcomes of malformed requests; `batches` and `looks` are then those beside them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostile: Option<HostileReport>,
}

/// Why there was no load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The service did not start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The service was lost, or refused what it should not.
    #[error("the service under load: {0}")]
    Client(#[from] ClientError),
}

/// Times in seconds, from several tasks.
#[derive(Debug, Default)]
struct Times(Mutex<Vec<f64>>);

impl Times {
    fn add(&self, time: TimeDelta) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(time.as_secs_f64());
    }

    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn latency(&self) -> Latency {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.sort_by(f64::total_cmp);
        let at = |q: f64| all.get(((all.len() as f64 * q) as usize).min(all.len().saturating_sub(1)));
        let ms = |q| at(q).map_or(0.0, |s| s * 1e3);
        Latency { count: all.len(), p50_ms: ms(0.5), p99_ms: ms(0.99), max_ms: ms(1.0) }
    }
}

/// State shared by all tasks.
#[derive(Debug)]
struct Run {
    config: LoadConfig,
    endpoint: Endpoint,
    key: String,
    clock: Clock,
    city: City,
    stop: AtomicBool,
    next: AtomicU64,
    acknowledged: AtomicU64,
    busy: AtomicU64,
    events: AtomicU64,
    batches: Times,
    looks: Times,
    overviews: Times,
}

impl Run {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn client(&self) -> Result<Client, ClientError> {
        Client::new(self.endpoint.clone(), &self.key, &Trust::Nothing, Duration::from_secs(30))
    }

    /// Waits until something that happens `per_second` times a second is due for the nth time.
    async fn due(&self, n: u64, per_second: f64) {
        let at = n as f64 / per_second.max(1e-6);
        let wait = at - self.clock.elapsed().as_secs_f64();
        if wait > 0.0 {
            tokio::time::sleep(Duration::from_secs_f64(wait)).await;
        }
    }

    async fn report(&self) -> Result<(), ClientError> {
        let mut client = self.client()?;
        let per_second = self.config.updates_per_second / self.config.batch as f64;
        while self.goes_on() {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            let (device, ride) = (n % u64::from(self.config.devices), n / u64::from(self.config.devices));
            let (device, ride) = (u32::try_from(device).unwrap_or(0), u32::try_from(ride).unwrap_or(0));
            let seconds = i64::try_from(self.config.batch).unwrap_or(0);
            let begin = self.clock.wall().plus(TimeDelta::from_secs(-seconds));
            let updates = self.city.ride(device, ride, begin, u32::try_from(seconds).unwrap_or(0));
            self.due(n, per_second).await;
            let batch = Batch { sent_ms: self.clock.wall(), device: Some(format!("d{device}")), updates };
            let sent = self.clock.elapsed();
            match client.report(&batch).await {
                Ok(done) => {
                    self.batches.add(self.clock.elapsed().saturating_since(sent));
                    self.acknowledged.fetch_add(done.accepted as u64, Ordering::Relaxed);
                }
                Err(ClientError::Refused { status: 429, .. }) => {
                    self.busy.fetch_add(1, Ordering::Relaxed);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    async fn look(&self) -> Result<(), ClientError> {
        let mut client = self.client()?;
        let network = Filter { operator: Some(self.city.operator().clone()), technology: None };
        let mut n = 0;
        while self.goes_on() {
            n += 1;
            self.due(n, self.config.looks_per_second).await;
            // A ride's own way of five minutes, as a route.
            let device = u32::try_from(n % 1_000).unwrap_or(0);
            let way = self.city.ride(1_000_000 + device, 0, self.clock.wall(), 300);
            let points = way.iter().step_by(10).map(|u| u.position).collect();
            let route = Route { points, polyline: None, speed_mps: 12.0, horizon_s: 300.0, network: network.clone() };
            let sent = self.clock.elapsed();
            client.look_route(&route).await?;
            self.looks.add(self.clock.elapsed().saturating_since(sent));
        }
        Ok(())
    }
}

impl Run {
    /// Asks for windows of 4 km by 4 km, each elsewhere in the city.
    async fn overview(&self) -> Result<(), ClientError> {
        let mut client = self.client()?;
        let mut n: u64 = 0;
        while self.goes_on() {
            n += 1;
            self.due(n, self.config.overviews_per_second).await;
            let off = |by: u64| (n * by % u64::from(self.config.streets)) as f64 * 200.0;
            let (a, b) = (self.city.at(off(7), off(11)), self.city.at(off(7) + 4_000.0, off(11) + 4_000.0));
            let window = serde_json::json!({ "south": a.lat(), "west": a.lon(), "north": b.lat(), "east": b.lon() });
            let body = serde_json::json!({ "window": window, "most": 4_000 }).to_string().into_bytes();
            let sent = self.clock.elapsed();
            client.request("POST", "/v1/regions", body).await?;
            self.overviews.add(self.clock.elapsed().saturating_since(sent));
        }
        Ok(())
    }
}

/// A value of `/proc/self/status` in MB; zero where there is none.
fn resident_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.trim().split(' ').next()?.parse::<f64>().ok()).unwrap_or(0.0) / 1_024.0
}

/// Processor time of this process in seconds; zero where it is not known. Linux counts it in hundredths.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

/// Runs a service and load on it, within a tokio runtime.
///
/// # Errors
/// See [`LoadError`].
pub async fn run(config: LoadConfig) -> Result<LoadReport, LoadError> {
    let mut store = config.store.open()?;
    let clock = Clock::system();
    let key = issue(Role::Fleet, "load", clock.wall(), None)?;
    store.add_key(&key.record)?;
    let stranger = issue(Role::Fleet, "malformed requests", clock.wall(), None)?;
    store.add_key(&stranger.record)?;
    let unlimited = Rate { per_second: 1e9, burst: 1e9 };
    let server = ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        max_connections_per_address: 4_096,
        max_subscriptions_per_key: config.subscribers.max(1),
        address_rate: unlimited,
        fleet_rate: unlimited,
        look_rate: unlimited,
        ..ServerConfig::default()
    };
    let running = serve(server, clock.clone(), store).await?;
    let endpoint = Endpoint { tls: false, host: running.address.ip().to_string(), port: running.address.port() };
    // Subscribers first: the clock of the load begins when they are there.
    let run = |clock| Run {
        config: config.clone(),
        endpoint: endpoint.clone(),
        key: key.text.clone(),
        clock,
        city: City::new(1, config.streets),
        stop: AtomicBool::new(false),
        next: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        busy: AtomicU64::new(0),
        events: AtomicU64::new(0),
        batches: Times::default(),
        looks: Times::default(),
        overviews: Times::default(),
    };
    let quiet = Arc::new(run(clock));
    let subscribers = subscribers::connect(&quiet).await;
    let run = Arc::new(run(Clock::system()));
    let mut tasks = JoinSet::new();
    for _ in 0..config.connections {
        let run = Arc::clone(&run);
        tasks.spawn(async move { run.report().await });
    }
    if config.looks_per_second > 0.0 {
        let run = Arc::clone(&run);
        tasks.spawn(async move { run.look().await });
    }
    if config.overviews_per_second > 0.0 {
        let run = Arc::clone(&run);
        tasks.spawn(async move { run.overview().await });
    }
    let before = processor_seconds();
    let (mut resident, mut left, mut attackers) = (Vec::new(), config.duration, None);
    if let Some(hostile) = config.hostile {
        tokio::time::sleep(config.duration / 4).await;
        left = config.duration * 3 / 4;
        attackers = Some(hostile::Attackers::start(&run, hostile, &stranger.text, left));
    }
    for _ in 0..10 {
        tokio::time::sleep(left / 10).await;
        resident.push(resident_mb());
    }
    let hostile = match attackers {
        Some(attackers) => Some(attackers.end().await),
        None => None,
    };
    run.stop.store(true, Ordering::Relaxed);
    while let Some(done) = tasks.join_next().await {
        if let Ok(done) = done {
            done?;
        }
    }
    let seconds = run.clock.elapsed().as_secs_f64();
    let processors = (processor_seconds() - before) / seconds;
    let remaining = subscribers.end(&quiet).await;
    running.stop().await;
    let Replay { seconds: replay_seconds, stats, bytes } = replay(&config.store)?;
    let updates = run.acknowledged.load(Ordering::Relaxed);
    Ok(LoadReport {
        seconds,
        updates_per_second: updates as f64 / seconds,
        updates,
        busy: run.busy.load(Ordering::Relaxed),
        batches: run.batches.latency(),
        looks: run.looks.latency(),
        overviews: run.overviews.latency(),
        subscribers: remaining,
        events: quiet.events.load(Ordering::Relaxed),
        resident_mb: resident,
        cells: stats.cells,
        entries: stats.entries,
        database_mb: bytes as f64 / 1e6,
        replay_seconds,
        processors,
        hostile,
    })
}

struct Replay {
    seconds: f64,
    stats: MapStats,
    bytes: u64,
}

/// Makes the map again, as a start of the service does.
fn replay(store: &StoreConfig) -> Result<Replay, StoreError> {
    let mut store = store.open()?;
    let clock = Clock::system();
    let mut map = Map::new(MapConfig::default());
    let now = clock.wall();
    store.replay(&mut |device, update| {
        map.insert(device, &update, now);
    })?;
    Ok(Replay { seconds: clock.elapsed().as_secs_f64(), stats: map.stats(), bytes: store.size()? })
}
