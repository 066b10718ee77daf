//! Parts that only PostgreSQL has: schema, connections that are lost, TLS.

use crate::cluster::{Cluster, config, shared, store};
use crate::support::update;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use weir_coverage::server::store::{
    AppendOutcome, POSTGRES_VERSION, PostgresConfig, PostgresStore, Reports, Store, StoreError,
};
use weir_coverage::{Update, WallTime};

fn append(store: &mut dyn Store, device: &str, updates: &[Update]) -> Result<(u32, Vec<bool>), StoreError> {
    match store.append(&[Reports { key: "k", device, updates }])?.remove(0) {
        AppendOutcome::Stored { device, new } => Ok((device, new)),
        AppendOutcome::TooManyDevices => panic!("50 are permitted"),
    }
}

fn ids(store: &mut dyn Store) -> Vec<u64> {
    let mut ids = Vec::new();
    store.replay(&mut |_, update| ids.push(update.id)).expect("read");
    ids.sort_unstable();
    ids
}

fn some(ids: std::ops::Range<u64>) -> Vec<Update> {
    // Some kilometres apart: in several partitions.
    ids.map(|id| update(id, id as f64 * 2_000.0, 500.0)).collect()
}

#[test]
fn migrations_lead_from_each_version_to_this_one() {
    let cluster = shared();
    for from in 0..POSTGRES_VERSION {
        let name = cluster.database();
        let config = config(&cluster.url(&name));
        drop(PostgresStore::open_version(&config, from).expect("made"));
        let there = cluster.sql(&name, "SELECT to_regclass('weir_coverage.version') IS NOT NULL");
        assert_eq!(there, if from > 0 { "t" } else { "f" });
        if from > 0 {
            cluster.sql(
                &name,
                "SET search_path = weir_coverage, public;
                INSERT INTO keys (id, hash, role, note, created_ms) VALUES ('k', '\\x00', 'fleet', '', 5);
                INSERT INTO devices (id, key, name) OVERRIDING SYSTEM VALUE VALUES (9, 'k', 'bus');
                INSERT INTO updates (device, id, time_ms, parent, h3, place, accuracy_m, operator, technology, bps, limited)
                    VALUES (9, 1, 1700000000000, 1, 1, 'POINT(24 60)', 5, '244-91', 2, 900000, false);",
            );
        }
        let mut store = PostgresStore::open(&config).expect("brought forward");
        assert_eq!(cluster.sql(&name, "SELECT version FROM weir_coverage.version"), POSTGRES_VERSION.to_string());
        assert_eq!(ids(&mut store), if from > 0 { vec![1] } else { vec![] });
        assert_eq!(append(&mut store, "bus", &some(5..6)).expect("kept").0 == 9, from > 0);
        // Opened again, nothing is left to do.
        drop(PostgresStore::open(&config).expect("opened"));
        assert_eq!(cluster.sql(&name, "SELECT count(*) FROM pg_inherits"), "9", "three tables, each with two indexes");
    }
}

#[test]
fn later_versions_and_databases_without_postgis_are_left_alone() {
    let cluster = shared();
    let name = cluster.database();
    let config = config(&cluster.url(&name));
    drop(PostgresStore::open(&config).expect("made"));
    cluster.sql(&name, &format!("UPDATE weir_coverage.version SET version = {}", POSTGRES_VERSION + 1));
    let error = PostgresStore::open(&config).expect_err("too new");
    assert!(matches!(error, StoreError::TooNew { found, .. } if found == POSTGRES_VERSION + 1), "{error}");
    cluster.sql("postgres", "CREATE ROLE plain LOGIN");
    cluster.sql("postgres", "CREATE DATABASE bare TEMPLATE template0 OWNER plain");
    let url = cluster.url("bare").replace("user=weir", "user=plain");
    let error = PostgresStore::open(&self::config(&url)).expect_err("no PostGIS");
    assert!(error.to_string().contains("run CREATE EXTENSION postgis"), "{error}");
    assert_eq!(cluster.sql("bare", "SELECT count(*) FROM pg_namespace WHERE nspname = 'weir_coverage'"), "0");
    // Once it is there, a user who is no superuser makes the rest.
    cluster.sql("bare", "CREATE EXTENSION postgis");
    let mut store = PostgresStore::open(&self::config(&url)).expect("made");
    assert_eq!(append(&mut store, "a", &some(0..3)).expect("kept").1, [true; 3]);
}

#[test]
fn rows_say_where_they_are() {
    let cluster = shared();
    let name = cluster.database();
    let mut store = store(&cluster.url(&name)).open().expect("made");
    let updates = some(0..40);
    append(&mut *store, "a", &updates).expect("kept");
    let far = "SELECT max(ST_Distance(place, ST_SetSRID(ST_MakePoint(24.833, 60.187), 4326)::geography))::int
        FROM weir_coverage.updates";
    let metres: f64 = cluster.sql(&name, far).parse().expect("a number");
    assert!((metres / 78_000.0 - 1.0).abs() < 0.01, "{metres}");
    let cell = updates[7].position.cell(weir_coverage::Resolution::Ten).index();
    assert_eq!(cluster.sql(&name, &format!("SELECT id FROM weir_coverage.updates WHERE h3 = {cell}")), "7");
    let used = cluster.sql(&name, "SELECT count(DISTINCT tableoid) FROM weir_coverage.updates");
    assert!(["2", "3"].contains(&used.as_str()), "78 km are in several partitions: {used}");
}

#[test]
fn connections_are_protected_where_it_is_asked_for() {
    let cluster = shared();
    let name = cluster.database();
    let authority = cluster.authority.display();
    let url = format!("{}?sslmode=verify-full&sslrootcert={authority}", cluster.tcp_url(&name));
    let mut store = PostgresStore::open(&PostgresConfig::new(&url, None).expect("valid")).expect("opened");
    append(&mut store, "a", &some(0..1)).expect("kept");
    let protected = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'weir coverage' AND datname = current_database()";
    assert_eq!(cluster.sql(&name, protected), "t");
    // Another authority.
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("other.pem");
    std::fs::write(&file, other.cert.pem()).expect("written");
    let url = format!("{}?sslrootcert={}", cluster.tcp_url(&name), file.display());
    let error = PostgresStore::open(&PostgresConfig::new(&url, None).expect("valid")).expect_err("not trusted");
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[test]
fn a_server_that_crashes_has_lost_nothing_when_it_is_back() {
    let cluster = Cluster::start();
    let mut store = store(&cluster.url(&cluster.database())).open().expect("made");
    append(&mut *store, "a", &some(0..100)).expect("kept");
    cluster.crash();
    assert!(append(&mut *store, "a", &some(100..110)).is_err());
    assert!(store.keys().is_err() && store.newest().is_err());
    cluster.resume();
    // No call before has to be repeated, but calls fail for half a second after one that could not connect.
    std::thread::sleep(std::time::Duration::from_millis(600));
    assert_eq!(append(&mut *store, "a", &some(50..150)).expect("kept").1, [[false; 50], [true; 50]].concat());
    assert_eq!(ids(&mut *store), (0..150).collect::<Vec<_>>());
}

/// How a connection is lost.
const OPEN: u8 = 0;
/// Once the server has answered to COMMIT, but the answer does not arrive.
const AFTER_COMMIT: u8 = 1;
/// Before COMMIT arrives at the server, who does not notice.
const BEFORE_COMMIT: u8 = 2;

/// Stands between a store and its server, and cuts one connection.
struct Cutter {
    port: u16,
    cut: Arc<AtomicU8>,
}

impl Cutter {
    fn before(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let cut = Arc::new(AtomicU8::new(OPEN));
        let given = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let cut = Arc::clone(&given);
                std::thread::spawn(move || Self::pass(client, server, &cut));
            }
        });
        Self { port, cut }
    }

    fn pass(mut client: TcpStream, server: u16, cut: &AtomicU8) {
        let mut server = TcpStream::connect(("127.0.0.1", server)).expect("connected");
        let (mut from, mut to) = (server.try_clone().expect("cloned"), client.try_clone().expect("cloned"));
        let silent = Arc::new(AtomicU8::new(0));
        let quiet = Arc::clone(&silent);
        let answers = std::thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if quiet.load(Ordering::SeqCst) == 1 {
                    break;
                }
                if to.write_all(&buffer[..n]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
        let mut buffer = vec![0; 1 << 20];
        while let Ok(n @ 1..) = client.read(&mut buffer) {
            let commit = buffer[..n].windows(6).any(|w| w == b"COMMIT");
            match if commit { cut.swap(OPEN, Ordering::SeqCst) } else { OPEN } {
                AFTER_COMMIT => silent.store(1, Ordering::SeqCst),
                BEFORE_COMMIT => {
                    let _ = client.shutdown(Shutdown::Both);
                    // The server's side stays open.
                    std::thread::sleep(std::time::Duration::from_secs(30));
                    return;
                }
                _ => {}
            }
            if server.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _ = answers.join();
    }
}

#[test]
fn a_commit_without_an_answer_is_taken_back() {
    let cluster = shared();
    let name = cluster.database();
    let cutter = Cutter::before(cluster.port());
    let mut store =
        PostgresStore::open(&config(&format!("postgres://weir@127.0.0.1:{}/{name}", cutter.port))).expect("made");
    append(&mut store, "a", &some(0..10)).expect("kept");
    let count = || cluster.sql(&name, "SELECT count(*) FROM weir_coverage.updates");
    let again = |store: &mut PostgresStore, updates: &[Update]| {
        for _ in 0..50 {
            match append(store, "a", updates) {
                Ok((_, new)) => return new,
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            }
        }
        panic!("not within five seconds");
    };
    // The server commits after the connection has been cut.
    let comes_to = |expected: &str| {
        let is_there = (0..50).any(|_| {
            let is_there = count() == expected;
            if !is_there {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            is_there
        });
        assert!(is_there, "{} updates, not {expected}", count());
    };
    // The server has it, and the sender does not know.
    cutter.cut.store(AFTER_COMMIT, Ordering::SeqCst);
    append(&mut store, "a", &some(5..20)).expect_err("no answer");
    comes_to("20");
    // The next call takes it back, but not what was there before.
    store.newest().expect("answered");
    assert_eq!(count(), "10");
    assert_eq!(again(&mut store, &some(5..20)), [[false; 5].as_slice(), &[true; 10]].concat());
    // The server still waits for the end of the transaction.
    cutter.cut.store(BEFORE_COMMIT, Ordering::SeqCst);
    append(&mut store, "a", &some(20..30)).expect_err("no answer");
    assert_eq!(again(&mut store, &some(15..30)), [[false; 5].as_slice(), &[true; 10]].concat());
    assert_eq!(ids(&mut store), (0..30).collect::<Vec<_>>());
    // A deletion of which the caller does not know is done again, with the same device.
    cutter.cut.store(AFTER_COMMIT, Ordering::SeqCst);
    let device = append(&mut store, "b", &some(0..5));
    assert!(device.is_err());
    let (device, _) = append(&mut store, "b", &some(0..5)).expect("kept");
    cutter.cut.store(AFTER_COMMIT, Ordering::SeqCst);
    store.forget("k", Some("b")).expect_err("no answer");
    comes_to("30");
    assert_eq!(store.forget("k", Some("b")).expect("done"), (0, vec![device]));
    assert_eq!(store.forget("k", Some("b")).expect("nothing"), (0, vec![]));
}

#[test]
fn old_updates_go_from_all_partitions() {
    let cluster = shared();
    let mut store = store(&cluster.url(&cluster.database())).open().expect("made");
    append(&mut *store, "a", &some(0..60)).expect("kept");
    let newest = store.newest().expect("read").expect("there is one");
    assert_eq!(store.expire(newest.plus(weir_units::TimeDelta::from_secs(-3_600)), 100).expect("none is so old"), 0);
    let all = WallTime::from_unix_millis(u64::MAX);
    assert_eq!((store.expire(all, 50).expect("some"), store.expire(all, 50).expect("the others")), (50, 10));
    assert!(ids(&mut *store).is_empty() && store.size().expect("read") > 100_000);
}
