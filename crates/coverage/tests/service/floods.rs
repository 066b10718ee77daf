//! Floods by strangers, and what one caller cannot take from the others.

use crate::flood::{Away, Flood, Kind, print_row};
use crate::newcomer::ask;
use crate::support::{Service, batch, config, database, open, run, update};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use weir_coverage::WallTime;
use weir_coverage::limits::Rate;
use weir_coverage::server::store::{AppendOutcome, KeyRecord, Reports, Role, SqliteStore, Store, StoreError};
use weir_coverage::server::{Clock, ServerConfig, serve};

/// A newcomer is served within this time.
const SERVED: Duration = Duration::from_secs(2);
/// From an end to the other, one 100 ms away.
const DELAY: Duration = Duration::from_millis(50);
/// Places of strangers, a quarter of the default and so few that this process has descriptors for both ends of a flood, which
/// comes from a quarter of 200 addresses.
const STRANGERS: usize = 128;

/// Requests of the floods are not to be stopped by another limit.
fn unlimited() -> ServerConfig {
    ServerConfig { address_rate: Rate { per_second: 1e9, burst: 1e9 }, max_strangers: STRANGERS, ..config() }
}

#[test]
fn a_newcomer_is_served_under_each_flood() {
    run(async {
        let service = Service::start(unlimited()).await;
        let (key, other) = (service.key(Role::Fleet).await, service.key(Role::Reporter).await);
        let at = service.running.address;
        let head = b"GET /health/live HTTP/1.1\r\nhost: x\r\nx: ".to_vec();
        let body = |key: &str| {
            let fields = format!("host: x\r\nauthorization: Bearer {key}\r\ncontent-length: 500000\r\n\r\n[");
            format!("POST /v1/updates HTTP/1.1\r\n{fields}").into_bytes()
        };
        let whole = b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n".to_vec();
        let route = br#"{"speed_mps": 1.0}"#;
        let asks = format!(
            "POST /v1/lookahead/route HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            route.len()
        );
        let asks = [asks.as_bytes(), route].concat();
        for (kind, addresses, count) in [
            (Kind::HalfOpen, 17, STRANGERS + 20),
            (Kind::Slow(head), 8, STRANGERS + 20),
            // With a reporter's key, and without.
            (Kind::Slow(body(&other)), 1, STRANGERS + 20),
            (Kind::Slow(body("none")), 1, STRANGERS + 20),
            (Kind::Finished(whole), 50, STRANGERS + 20),
            (Kind::Storm(1_000), 1, 300),
            (Kind::Storm(1_000), 50, 300),
        ] {
            let (label, asks) = (format!("{kind:?} from {addresses}"), asks.clone());
            let shown = kind.clone();
            let answers = tokio::task::spawn_blocking(move || {
                let flood = Flood::begin(at, &kind, addresses, count);
                let far = Away::from(at, DELAY);
                let health = b"GET /health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
                let answers = [at, far.address].map(|to| (ask(to, health), ask(to, &asks)));
                drop(flood);
                answers
            });
            let answers = answers.await.expect("no panic");
            print_row("coverage", &shown, addresses, [&answers[0], &answers[1]].map(|a| a.0.0.max(a.1.0)));
            for ((took, health), (took_too, looked)) in answers {
                assert!(health.starts_with("HTTP/1.1 200"), "{label:.80}: {took:?} {health}");
                // It is a request that was read and checked.
                assert!(looked.starts_with("HTTP/1.1 400"), "{label:.80}: {took_too:?} {looked}");
                assert!(took < SERVED && took_too < SERVED, "{label:.80}: {took:?} {took_too:?}");
            }
        }
        service.running.stop().await;
    });
}

/// Sends part of a body, and returns the connection.
async fn begin_body(at: SocketAddr, key: &str, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(at).await.expect("connected");
    let head = format!(
        "POST /v1/updates HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: 500000\r\n\r\n{}",
        " ".repeat(length)
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream
}

#[test]
fn bodies_in_progress_have_one_budget_and_who_holds_most_gives_way() {
    run(async {
        const BUDGET: usize = 1 << 20;
        let service = Service::start(ServerConfig { max_bodies: BUDGET, ..unlimited() }).await;
        let (many, one) = (service.key(Role::Fleet).await, service.key(Role::Fleet).await);
        let at = service.running.address;
        let mut bodies = Vec::new();
        let mut honest = begin_body(at, &one, 200_000).await;
        for _ in 0..20 {
            bodies.push(begin_body(at, &many, 200_000).await);
        }
        let mut given_up = 0;
        for stream in &mut bodies {
            let mut answer = [0; 12];
            let read = tokio::time::timeout(Duration::from_millis(200), stream.read_exact(&mut answer)).await;
            if matches!(read, Ok(Ok(_))) {
                assert_eq!(&answer, b"HTTP/1.1 429");
                given_up += 1;
            }
        }
        // 1,048,576 bytes hold five bodies of 200,000, one of which is the honest caller's.
        assert!((15..=17).contains(&given_up), "{given_up}");
        // The other's body is still wanted, and it goes on.
        let mut text = serde_json::to_string(&batch(Some("a"), vec![update(1, 0.0, 100.0)])).expect("JSON");
        text.push_str(&" ".repeat(500_000 - 200_000 - text.len()));
        honest.write_all(text.as_bytes()).await.expect("sent");
        let mut answer = [0; 12];
        honest.read_exact(&mut answer).await.expect("answered");
        assert_eq!(&answer, b"HTTP/1.1 200");
        service.running.stop().await;
    });
}

#[test]
fn who_guesses_keys_takes_nothing_from_who_has_one_at_the_same_address() {
    run(async {
        let rate = Rate { per_second: 22.0, burst: 220.0 };
        let service = Service::start(ServerConfig { address_rate: rate, ..config() }).await;
        let key = service.key(Role::Fleet).await;
        let mut stranger = service.client(&format!("wcm_000000000000_{}", "0".repeat(64)));
        let mut honest = service.client(&key);
        let clock = Clock::system();
        let (mut checked, mut refused) = (0, 0);
        for i in 0..400_u64 {
            match stranger.request("POST", "/v1/lookahead/route", b"{}".to_vec()).await.expect("answered").status {
                401 => checked += 1,
                429 => refused += 1,
                other => panic!("{other}"),
            }
            if i % 4 == 0 {
                let kept = honest.report(&batch(Some("a"), vec![update(i, 0.0, 100.0)])).await;
                assert!(kept.is_ok(), "{i}: {kept:?}");
            }
        }
        // A wrong key costs eleven requests: 20 at once, less those by which the other key became known, then two a second.
        let seconds = clock.elapsed().as_nanos() as f64 / 1e9;
        let most = 21.0 + 2.0 * (seconds + 1.0);
        assert!((5.0..=most).contains(&f64::from(checked)) && refused > 200, "{checked}, {refused} in {seconds} s");
        // A probe is answered, however many requests come from its address.
        for path in ["/health/live", "/health/ready"] {
            assert_eq!(service.client("").request("GET", path, Vec::new()).await.expect("answered").status, 200);
        }
        service.running.stop().await;
    });
}

/// A database that can be taken away.
struct Mortal {
    inner: SqliteStore,
    is_dead: Arc<AtomicBool>,
}

impl Mortal {
    fn living(&mut self) -> Result<&mut SqliteStore, StoreError> {
        if self.is_dead.load(Ordering::Relaxed) {
            return Err(StoreError::Database("gone".into()));
        }
        Ok(&mut self.inner)
    }
}

impl Store for Mortal {
    fn append(&mut self, reports: &[Reports<'_>]) -> Result<Vec<AppendOutcome>, StoreError> {
        self.living()?.append(reports)
    }
    fn replay(&mut self, visit: &mut dyn FnMut(u32, weir_coverage::Update)) -> Result<u64, StoreError> {
        self.living()?.replay(visit)
    }
    fn forget(&mut self, key: &str, name: Option<&str>) -> Result<(u64, Vec<u32>), StoreError> {
        self.living()?.forget(key, name)
    }
    fn expire(&mut self, before: WallTime, most: u32) -> Result<u64, StoreError> {
        self.living()?.expire(before, most)
    }
    fn newest(&mut self) -> Result<Option<WallTime>, StoreError> {
        self.living()?.newest()
    }
    fn keys(&mut self) -> Result<Vec<KeyRecord>, StoreError> {
        self.living()?.keys()
    }
    fn add_key(&mut self, key: &KeyRecord) -> Result<(), StoreError> {
        self.living()?.add_key(key)
    }
    fn revoke_key(&mut self, id: &str, now: WallTime) -> Result<bool, StoreError> {
        self.living()?.revoke_key(id, now)
    }
    fn generation(&mut self) -> Result<i64, StoreError> {
        self.living()?.generation()
    }
    fn size(&mut self) -> Result<u64, StoreError> {
        self.living()?.size()
    }
    fn close(&mut self) -> Result<(), StoreError> {
        self.inner.close()
    }
}

#[test]
fn a_service_without_its_database_is_not_ready() {
    run(async {
        let dir = tempfile::tempdir().expect("a folder");
        let is_dead = Arc::new(AtomicBool::new(false));
        let store = Mortal { inner: open(&database(dir.path()), None), is_dead: Arc::clone(&is_dead) };
        let running = serve(config(), Clock::system(), Box::new(store)).await.expect("started");
        let trust = weir_coverage::client::Trust::Nothing;
        let service = Service { running, dir, trust };
        let status =
            async |path: &str| service.client("").request("GET", path, Vec::new()).await.expect("answered").status;
        let becomes = async |wanted: u16| {
            for _ in 0..100 {
                if status("/health/ready").await == wanted {
                    return true;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            false
        };
        assert_eq!(status("/health/ready").await, 200);
        is_dead.store(true, Ordering::Relaxed);
        assert!(becomes(503).await, "without a request to find it out");
        assert_eq!(status("/health/live").await, 200);
        is_dead.store(false, Ordering::Relaxed);
        assert!(becomes(200).await);
        service.running.stop().await;
    });
}

#[cfg(unix)]
#[test]
fn the_database_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a folder");
    let path = database(dir.path());
    let mut store = open(&path, None);
    store.keys().expect("read");
    let copy = dir.path().join("copy.db");
    weir_coverage::server::store::backup(&path, &copy).expect("copied");
    for entry in std::fs::read_dir(dir.path()).expect("a folder").flatten() {
        let mode = entry.metadata().expect("a file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", entry.path().display());
    }
}
