//! A thread beside a call.

use super::http::{Client, ClientError, Endpoint, Trust};
use crate::lookahead::{Area, Route};
use crate::{Batch, CachedMap, CapacityVector, Cell, Filter, Outbox, OutboxConfig, OutboxStats, Update, WallTime};
use h3o::Resolution;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_units::{TimeDelta, Timestamp};

/// Steps from a map's cells to the areas that are downloaded: about 10 km across by default.
const PART_STEPS: u8 = 5;
/// Most areas of one look-ahead that are downloaded.
const MAX_PARTS: usize = 8;
/// Messages that wait for the thread: more than a call makes while one request is answered or times out.
const MAX_MESSAGES: usize = 1_024;
/// Longest cached map, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// How the thread works.
#[derive(Clone, Debug, PartialEq)]
pub struct BackgroundConfig {
    /// The service.
    pub endpoint: Endpoint,
    /// The key.
    pub key: String,
    /// Certificates that are believed.
    pub trust: Trust,
    /// The device's name, with a fleet's key.
    pub device: Option<String>,
    /// How reports are sent.
    pub outbox: OutboxConfig,
    /// Time for a request. Default of [`BackgroundConfig::new`]: 5 s.
    pub timeout: Duration,
    /// Where the map is cached, or nowhere.
    pub cache: Option<PathBuf>,
    /// Resolution of the service's cells. Default: 10.
    pub resolution: Resolution,
    /// Age from which on a part of the map is downloaded again. Default: a day.
    pub max_age: TimeDelta,
    /// Age at which a cached part counts half. Default: 14 days.
    pub half_life: TimeDelta,
}

impl BackgroundConfig {
    /// The defaults, for a service and a key.
    pub fn new(endpoint: Endpoint, key: &str) -> Self {
        Self {
            endpoint,
            key: key.to_owned(),
            trust: Trust::Nothing,
            device: None,
            outbox: OutboxConfig::default(),
            timeout: Duration::from_secs(5),
            cache: None,
            resolution: Resolution::Ten,
            max_age: TimeDelta::from_secs(86_400),
            half_life: TimeDelta::from_secs(14 * 86_400),
        }
    }
}

/// The subject of a look-ahead.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A route.
    Route(Route),
    /// A sector.
    Area(Area),
}

/// The newest answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// Capacities expected from the time of the request on.
    pub vector: CapacityVector,
    /// When it was asked for, on the clock of [`Background::now`].
    pub asked: Timestamp,
    /// Whether the service answered, rather than the cached map.
    pub fresh: bool,
}

enum Message {
    /// A measurement.
    Report(Box<Update>),
    /// There is a look-ahead.
    Look,
    /// All that waits is sent, then the thread ends.
    Flush,
}

#[derive(Debug, Default)]
struct State {
    /// Of several look-aheads that wait, only the newest is of use.
    wanted: Option<(Request, Timestamp)>,
    forecast: Option<Forecast>,
    stats: OutboxStats,
    overflowed: u64,
}

/// A reporter and look-aheads on a thread of their own. No call of a method waits for the network.
#[derive(Debug)]
pub struct Background {
    messages: Option<SyncSender<Message>>,
    state: Arc<Mutex<State>>,
    started: Instant,
    /// Of the next report: ids rise over restarts too.
    next_id: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

#[expect(clippy::disallowed_methods, reason = "the client is where clocks are read")]
fn instant() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the client is where clocks are read")]
fn wall() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    WallTime::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn since(started: Instant) -> Timestamp {
    let passed = instant().saturating_duration_since(started).as_nanos();
    Timestamp::from_nanos(i64::try_from(passed).unwrap_or(i64::MAX))
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Background {
    /// Starts the thread. A service that cannot be reached is no error, now or later.
    ///
    /// # Errors
    /// The certificates cannot be used, or the system gives no thread.
    pub fn start(config: BackgroundConfig) -> Result<Self, ClientError> {
        let client = Client::new(config.endpoint.clone(), &config.key, &config.trust, config.timeout)?;
        let failed = |e: io::Error| ClientError::Connection(e.to_string());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (messages, queue) = sync_channel(MAX_MESSAGES);
        let state = Arc::new(Mutex::new(State::default()));
        let started = instant();
        let worker = Worker {
            outbox: Outbox::new(config.outbox),
            map: load(&config),
            config,
            client,
            runtime,
            state: Arc::clone(&state),
            started,
            retry_map: Timestamp::from_nanos(i64::MIN),
        };
        let thread =
            std::thread::Builder::new().name("coverage".into()).spawn(move || worker.run(&queue)).map_err(failed)?;
        let next_id = AtomicU64::new(wall().as_unix_millis().saturating_mul(1_000));
        Ok(Self { messages: Some(messages), state, started, next_id, thread: Some(thread) })
    }

    fn send(&self, message: Message) {
        let sent = self.messages.as_ref().is_some_and(|m| m.try_send(message).is_ok());
        if !sent {
            lock(&self.state).overflowed += 1;
        }
    }

    /// Time since the start.
    pub fn now(&self) -> Timestamp {
        since(self.started)
    }

    /// Reports a measurement, some time soon. Its id is replaced by the next one.
    pub fn report(&self, mut update: Update) {
        update.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.send(Message::Report(Box::new(update)));
    }

    /// Looks ahead; the answer is in [`Self::forecast`] after a while.
    pub fn look(&self, request: Request) {
        let now = self.now();
        lock(&self.state).wanted = Some((request, now));
        // If the thread has no room for this, it has messages enough to look by itself.
        let _ = self.messages.as_ref().map(|m| m.try_send(Message::Look));
    }

    /// The newest answer.
    pub fn forecast(&self) -> Option<Forecast> {
        lock(&self.state).forecast.clone()
    }

    /// Returns the outcome of the reports.
    pub fn stats(&self) -> OutboxStats {
        lock(&self.state).stats
    }

    /// Reports that the thread had no room for.
    pub fn overflowed(&self) -> u64 {
        lock(&self.state).overflowed
    }

    /// Sends what waits, as far as the service takes it within the timeout, and ends the thread.
    pub fn stop(mut self) -> OutboxStats {
        self.send(Message::Flush);
        self.messages = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        lock(&self.state).stats
    }
}

fn load(config: &BackgroundConfig) -> CachedMap {
    let empty = CachedMap::new(config.resolution, config.half_life, 64);
    let Some(path) = &config.cache else { return empty };
    let read = || {
        let text = weir_files::read_text(path, MAX_FILE).ok()?;
        CachedMap::from_json(&text, config.half_life, 64).ok()?
    };
    // A cache that cannot be read is none.
    read().filter(|map| crate::View::resolution(map) == config.resolution).unwrap_or(empty)
}

/// Writes a file whole or not at all.
fn save(path: &Path, text: &str) -> io::Result<()> {
    let mut part = path.as_os_str().to_owned();
    part.push(".part");
    fs::write(&part, text)?;
    fs::rename(&part, path)
}

struct Worker {
    config: BackgroundConfig,
    client: Client,
    runtime: tokio::runtime::Runtime,
    outbox: Outbox,
    map: CachedMap,
    state: Arc<Mutex<State>>,
    started: Instant,
    /// The map is not downloaded before.
    retry_map: Timestamp,
}

impl Worker {
    fn run(mut self, queue: &Receiver<Message>) {
        loop {
            let now = since(self.started);
            let due = self.outbox.poll_timeout().map_or(TimeDelta::from_secs(3_600), |at| at.saturating_since(now));
            let wait = Duration::from_nanos(u64::try_from(due.as_nanos()).unwrap_or(0));
            let first = match queue.recv_timeout(wait) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let mut flush = false;
            for message in first.into_iter().chain(std::iter::from_fn(|| queue.try_recv().ok())) {
                match message {
                    Message::Report(update) => self.outbox.push(*update),
                    Message::Look => {}
                    Message::Flush => flush = true,
                }
            }
            let wanted = lock(&self.state).wanted.take();
            if let Some((request, asked)) = wanted {
                self.look(&request, asked);
            }
            self.send(false);
            if flush {
                while self.send(true) {}
                break;
            }
            lock(&self.state).stats = self.outbox.stats();
        }
        lock(&self.state).stats = self.outbox.stats();
    }

    /// Sends a batch if one is due, or one waits and all shall go, and returns whether it was acknowledged.
    fn send(&mut self, all: bool) -> bool {
        let now = if all { Timestamp::from_nanos(i64::MAX) } else { since(self.started) };
        let Some(updates) = self.outbox.poll_batch(now) else { return false };
        let batch = Batch { sent_ms: wall(), device: self.config.device.clone(), updates };
        let done = self.runtime.block_on(self.client.report(&batch));
        let now = since(self.started);
        match done {
            Ok(accepted) => {
                self.outbox.on_acknowledged(accepted.refused.len(), now);
                return true;
            }
            Err(e) if e.is_final() => self.outbox.on_refused(now),
            Err(ClientError::Refused { wait, .. }) => self.outbox.on_failure(wait, now),
            Err(_) => self.outbox.on_failure(None, now),
        }
        false
    }

    fn look(&mut self, request: &Request, asked: Timestamp) {
        let (client, runtime) = (&mut self.client, &self.runtime);
        let answer = runtime.block_on(async {
            match request {
                Request::Route(route) => client.look_route(route).await,
                Request::Area(area) => client.look_area(area).await,
            }
        });
        let fresh = answer.is_ok();
        let cached = || match request {
            Request::Route(route) => route.look(&self.map, wall()).ok(),
            Request::Area(area) => area.look(&self.map, wall()).ok(),
        };
        if let Some(vector) = answer.ok().or_else(cached) {
            lock(&self.state).forecast = Some(Forecast { vector, asked, fresh });
        }
        if fresh && self.config.cache.is_some() {
            self.download(request);
        }
    }

    /// Downloads the areas that a look-ahead went through, for the time without a service.
    fn download(&mut self, request: &Request) {
        let now = since(self.started);
        if now < self.retry_map {
            return;
        }
        let coarse = Resolution::try_from(u8::from(self.config.resolution).saturating_sub(PART_STEPS));
        let coarse = coarse.unwrap_or(Resolution::Zero);
        let (areas, network): (BTreeSet<Cell>, &Filter) = match request {
            Request::Route(route) => (route.points.iter().map(|p| p.cell(coarse)).collect(), &route.network),
            Request::Area(area) => (std::iter::once(area.position.cell(coarse)).collect(), &area.network),
        };
        let mut changed = false;
        for area in areas.into_iter().take(MAX_PARTS) {
            if self.map.has(area, network, self.config.max_age, wall()) {
                continue;
            }
            match self.runtime.block_on(self.client.part(area, network)) {
                Ok(part) => changed |= self.map.add(part).is_ok(),
                Err(_) => {
                    self.retry_map = now + TimeDelta::from_secs(60);
                    break;
                }
            }
        }
        if let Some(path) = self.config.cache.as_ref().filter(|_| changed) {
            // A cache that cannot be written is missed at the next start only.
            let _ = save(path, &self.map.to_json());
        }
    }
}
