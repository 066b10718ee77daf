//! A service for a test, and callers of it.

use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_coverage::client::{Client, Endpoint, Trust};
use weir_coverage::server::store::{Role, SqliteConfig, SqliteStore, Store};
use weir_coverage::server::{Clock, RunningServer, ServerConfig, issue, serve};
use weir_coverage::{Batch, Position, Technology, Update, WallTime};
use weir_units::{DataRate, TimeDelta};

pub(crate) fn now() -> WallTime {
    Clock::system().wall()
}

/// A point in Otaniemi.
pub(crate) fn start() -> Position {
    Position::new(60.187, 24.833).expect("valid")
}

pub(crate) fn update(id: u64, metres_east: f64, kbps: f64) -> Update {
    let rate = DataRate::from_bps_f64(kbps * 1e3);
    let at = start().offset(90.0, metres_east);
    let time = now().plus(TimeDelta::from_secs(-2));
    Update::new(id, time, at, "244-91".parse().expect("valid"), Technology::Umts, rate)
}

pub(crate) fn batch(device: Option<&str>, updates: Vec<Update>) -> Batch {
    Batch { sent_ms: now(), device: device.map(str::to_owned), updates }
}

pub(crate) struct Service {
    pub(crate) running: RunningServer,
    pub(crate) dir: tempfile::TempDir,
    pub(crate) trust: Trust,
}

pub(crate) fn database(dir: &Path) -> PathBuf {
    dir.join("map.db")
}

pub(crate) fn open(path: &Path, max_bytes: Option<u64>) -> SqliteStore {
    let config = SqliteConfig { path: path.to_owned(), max_bytes, max_devices_per_key: 50 };
    SqliteStore::open(&config).expect("opened")
}

/// Any free port.
pub(crate) fn config() -> ServerConfig {
    ServerConfig { listen: ([127, 0, 0, 1], 0).into(), ..ServerConfig::default() }
}

impl Service {
    pub(crate) async fn start(config: ServerConfig) -> Self {
        Self::start_in(config, tempfile::tempdir().expect("a folder"), Clock::system(), None).await
    }

    pub(crate) async fn start_in(
        config: ServerConfig,
        dir: tempfile::TempDir,
        clock: Clock,
        max_bytes: Option<u64>,
    ) -> Self {
        let store = open(&database(dir.path()), max_bytes);
        let running = serve(config, clock, Box::new(store)).await.expect("started");
        Self { running, dir, trust: Trust::Nothing }
    }

    /// A key, made as another process would. The service knows it within a second.
    pub(crate) async fn key(&self, role: Role) -> String {
        let issued = issue(role, "a test", now(), None).expect("made");
        open(&database(self.dir.path()), None).add_key(&issued.record).expect("kept");
        let mut client = self.client(&issued.text);
        for _ in 0..100 {
            let answer = client.request("DELETE", "/v1/updates?device=none", Vec::new()).await.expect("an answer");
            if answer.status != 401 {
                return issued.text;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the key is not known");
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        let tls = self.running.fingerprint.is_some();
        Endpoint { tls, host: self.running.address.ip().to_string(), port: self.running.address.port() }
    }

    pub(crate) fn client(&self, key: &str) -> Client {
        Client::new(self.endpoint(), key, &self.trust, Duration::from_secs(20)).expect("a client")
    }

    /// The value of a metric whose line begins so.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let answer = self.client("").request("GET", "/metrics", Vec::new()).await.expect("metrics");
        let text = String::from_utf8(answer.body.to_vec()).expect("UTF-8");
        let line = text.lines().find(|l| l.starts_with(name));
        line.and_then(|l| l.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }

    /// Sends bytes, and returns the head of the answer once the service has closed the connection, and how long it took.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.running.address).await.expect("connected");
        // The service may have answered and closed before it has read all.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut answer)).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// Runs a test in a runtime.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(test);
}
