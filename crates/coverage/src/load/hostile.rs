//! Requests that are malformed, on a service that others use.

mod mutator;

use super::{Latency, Run, resident_mb};
use crate::WallTime;
use crate::rides::City;
use mutator::{Attack, Mutator};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use weir_units::Timestamp;

/// Connections that attack at once.
const ATTACKERS: usize = 16;
/// Time for an answer. Longer than the service waits for a client in no case, since nothing more is sent.
const ANSWER: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read at most.
const MAX_ANSWER: usize = 1 << 20;

/// Malformed requests to send beside the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hostile {
    /// How many.
    pub requests: u64,
    /// They are a function of it.
    pub seed: u64,
}

/// Outcomes of malformed requests, and of those who called meanwhile.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
pub struct HostileReport {
    /// Requests sent.
    pub requests: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Those that were answered, by status; 101 is a WebSocket.
    pub answered: BTreeMap<u16, u64>,
    /// Those whose connection was closed without an answer.
    pub closed: u64,
    /// Those that had no answer in 5 s.
    pub silent: u64,
    /// Panics of the process.
    pub panics: u64,
    /// Look-aheads of the load before them, in the first quarter of the time.
    pub looks_before: Latency,
    /// Look-aheads of the load beside them.
    pub looks_during: Latency,
    /// Batches of the load before them.
    pub batches_before: Latency,
    /// Batches of the load beside them.
    pub batches_during: Latency,
    /// Resident memory of the process before them, in MB.
    pub resident_mb_before: f64,
}

static PANICS: AtomicU64 = AtomicU64::new(0);

/// Attackers at work.
#[derive(Debug)]
pub(super) struct Attackers {
    tasks: JoinSet<()>,
    shared: Arc<Shared>,
    begin: Timestamp,
    report: HostileReport,
}

#[derive(Debug)]
struct Shared {
    run: Arc<Run>,
    mutator: Mutator,
    hostile: Hostile,
    per_second: f64,
    begin: Timestamp,
    next: AtomicU64,
    outcomes: Mutex<BTreeMap<Outcome, u64>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Answered(u16),
    Closed,
    Silent,
}

/// Counts panics from now on.
fn count_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        before(panic);
    }));
}

impl Attackers {
    /// Begins to attack, over a time.
    pub(super) fn start(run: &Arc<Run>, hostile: Hostile, key: &str, over: Duration) -> Self {
        count_panics();
        let begin = run.clock.elapsed();
        let report = HostileReport {
            looks_before: run.looks.latency(),
            batches_before: run.batches.latency(),
            resident_mb_before: resident_mb(),
            ..HostileReport::default()
        };
        run.looks.clear();
        run.batches.clear();
        let now: WallTime = run.clock.wall();
        let shared = Arc::new(Shared {
            run: Arc::clone(run),
            mutator: Mutator::new(&City::new(1, run.config.streets), now, key),
            hostile,
            per_second: hostile.requests as f64 / over.as_secs_f64().max(0.1),
            begin,
            next: AtomicU64::new(0),
            outcomes: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        for _ in 0..ATTACKERS {
            let shared = Arc::clone(&shared);
            tasks.spawn(async move { shared.attack().await });
        }
        Self { tasks, shared, begin, report }
    }

    /// Waits for the last one.
    pub(super) async fn end(mut self) -> HostileReport {
        while self.tasks.join_next().await.is_some() {}
        let run = &self.shared.run;
        self.report.seconds = run.clock.elapsed().saturating_since(self.begin).as_secs_f64();
        self.report.looks_during = run.looks.latency();
        self.report.batches_during = run.batches.latency();
        self.report.panics = PANICS.load(Ordering::Relaxed);
        for (outcome, count) in self.shared.outcomes.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            self.report.requests += count;
            match outcome {
                Outcome::Answered(status) => drop(self.report.answered.insert(*status, *count)),
                Outcome::Closed => self.report.closed = *count,
                Outcome::Silent => self.report.silent = *count,
            }
        }
        self.report
    }
}

impl Shared {
    async fn attack(&self) {
        let mut open = None;
        loop {
            let n = self.next.fetch_add(1, Ordering::Relaxed);
            if n >= self.hostile.requests {
                return;
            }
            let due = self.begin.as_secs_f64() + n as f64 / self.per_second;
            let wait = due - self.run.clock.elapsed().as_secs_f64();
            if wait > 0.0 {
                tokio::time::sleep(Duration::from_secs_f64(wait)).await;
            }
            let one = self.one(&mut open, self.mutator.attack(self.hostile.seed, n));
            let outcome = tokio::time::timeout(ANSWER, one).await.unwrap_or(Ok(Outcome::Silent));
            let outcome = outcome.unwrap_or(Outcome::Closed);
            if !matches!(outcome, Outcome::Answered(_)) {
                open = None;
            }
            *self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).entry(outcome).or_default() += 1;
        }
    }

    /// A connection, which is reset at its end: so many in the state of TIME_WAIT would use up all ports.
    async fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect((self.run.endpoint.host.as_str(), self.run.endpoint.port)).await?;
        stream.set_zero_linger()?;
        Ok(stream)
    }

    async fn one(&self, open: &mut Option<TcpStream>, attack: Attack) -> std::io::Result<Outcome> {
        match attack {
            Attack::Request(bytes) => {
                let mut stream = match open.take() {
                    Some(stream) => stream,
                    None => self.connect().await?,
                };
                stream.write_all(&bytes).await?;
                let answer = read_head(&mut stream).await?;
                let Some(status) = status(&answer) else { return Ok(Outcome::Closed) };
                if rest(&mut stream, &answer).await? {
                    *open = Some(stream);
                }
                Ok(Outcome::Answered(status))
            }
            Attack::Bytes(bytes) => {
                let mut stream = self.connect().await?;
                // The service may have answered and closed before it has read all.
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                let answer = read_all(&mut stream).await;
                Ok(status(&answer).map_or(Outcome::Closed, Outcome::Answered))
            }
            Attack::Frames(head, frames) => {
                let mut stream = self.connect().await?;
                stream.write_all(&head).await?;
                let answer = read_head(&mut stream).await?;
                let _ = stream.write_all(&frames).await;
                let _ = stream.shutdown().await;
                read_all(&mut stream).await;
                Ok(status(&answer).map_or(Outcome::Closed, Outcome::Answered))
            }
        }
    }
}

fn status(answer: &[u8]) -> Option<u16> {
    std::str::from_utf8(answer.strip_prefix(b"HTTP/1.")?.get(2..5)?).ok()?.parse().ok()
}

/// Where a head ends.
fn end_of_head(answer: &[u8]) -> Option<usize> {
    answer.windows(4).position(|w| w == b"\r\n\r\n").map(|at| at + 4)
}

async fn read_head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    while end_of_head(&answer).is_none() && answer.len() < MAX_ANSWER {
        if stream.read_buf(&mut answer).await? == 0 {
            break;
        }
    }
    Ok(answer)
}

async fn read_all(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    while answer.len() < MAX_ANSWER {
        match stream.read_buf(&mut answer).await {
            Ok(1..) => {}
            _ => break,
        }
    }
    answer
}

/// Reads the rest of an answer, and returns whether the connection may be used again.
async fn rest(stream: &mut TcpStream, answer: &[u8]) -> std::io::Result<bool> {
    let Some(end) = end_of_head(answer) else { return Ok(false) };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let Some(length) = length.filter(|length| *length <= MAX_ANSWER) else { return Ok(false) };
    let mut left = vec![0; (end + length).saturating_sub(answer.len())];
    stream.read_exact(&mut left).await?;
    Ok(!head.contains("connection: close"))
}

#[cfg(test)]
mod tests {
    use crate::load::{Hostile, LoadConfig, run};
    use crate::server::store::{SqliteConfig, StoreConfig};
    use std::time::Duration;

    #[test]
    fn malformed_requests_harm_nobody() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("load.db");
        let config = LoadConfig {
            store: StoreConfig::Sqlite(SqliteConfig { path, max_bytes: None, max_devices_per_key: 1_000_000 }),
            duration: Duration::from_secs(3),
            updates_per_second: 500.0,
            batch: 50,
            devices: 20,
            connections: 2,
            looks_per_second: 20.0,
            overviews_per_second: 1.0,
            streets: 4,
            subscribers: 2,
            hostile: Some(Hostile { requests: 4_000, seed: 1 }),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let report = runtime.expect("a runtime").block_on(run(config)).expect("no caller is harmed");
        let hostile = report.hostile.clone().expect("there was an attack");
        assert_eq!((hostile.requests, hostile.silent, hostile.panics), (4_000, 0, 0), "{hostile:?}");
        // Refused, most of them, and no error of the service.
        assert!(hostile.answered.keys().all(|status| *status < 500), "{:?}", hostile.answered);
        let refused: u64 = hostile.answered.range(400..500).map(|(_, count)| count).sum();
        assert!(refused > 1_200, "{refused} {:?}", hostile.answered);
        assert!(hostile.answered.contains_key(&101) && hostile.closed < 2_000, "{hostile:?}");
        assert_eq!(report.subscribers, 2);
        assert!(hostile.looks_during.count >= 20 && report.updates >= 1_000, "{report:?}");
    }
}
