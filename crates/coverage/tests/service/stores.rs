//! Databases: what all do alike, and what is SQLite's own.

use crate::cluster::{self, shared};
use rusqlite::Connection;
use std::ops::Range;
use std::path::Path;
use weir_coverage::server::store::{
    AppendOutcome, KeyRecord, Reports, Role, SqliteConfig, SqliteStore, Store, StoreConfig, StoreError, VERSION,
    backup, migrate, version,
};
use weir_coverage::{Position, Technology, Update, WallTime};
use weir_units::DataRate;

const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

fn config(path: &Path, max_bytes: Option<u64>) -> SqliteConfig {
    SqliteConfig { path: path.to_owned(), max_bytes, max_devices_per_key: 3 }
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(&config(path, None)).expect("opened")
}

/// An empty database for a test.
enum Place {
    Sqlite(tempfile::TempDir),
    Postgres(String),
}

impl Place {
    fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().expect("a folder"))
    }

    fn postgres() -> Self {
        let cluster = shared();
        Self::Postgres(cluster.url(&cluster.database()))
    }

    fn open(&self) -> Box<dyn Store> {
        let config = match self {
            Self::Postgres(url) => StoreConfig::Postgres(Box::new(cluster::config(url).with_max_devices_per_key(3))),
            Self::Sqlite(dir) => StoreConfig::Sqlite(config(&dir.path().join("map.db"), None)),
        };
        config.open().expect("opened")
    }
}

/// Runs a test on each database.
macro_rules! on_each {
    ($($name:ident)*) => {$(
        mod $name {
            #[test]
            fn in_sqlite() {
                super::$name(&super::Place::sqlite());
            }

            #[test]
            fn in_postgres() {
                super::$name(&super::Place::postgres());
            }
        }
    )*};
}

on_each! {
    what_is_kept_is_read_again_and_counts_once
    deletion_takes_what_is_asked_for_and_no_more
    keys_are_kept_and_revoked_once
}

fn update(id: u64) -> Update {
    let at = Position::new(60.187, 24.833).expect("valid");
    let rate = DataRate::from_kbps(900 + id % 7);
    let mut update = Update::new(id, NOW, at, "244-91".parse().expect("valid"), Technology::Umts, rate);
    update.rtt_ms = Some(61.5);
    update.cell_id = Some(u64::MAX - id);
    update.app_limited = id.is_multiple_of(2);
    update
}

fn all(store: &mut dyn Store) -> Vec<(u32, Update)> {
    let mut all = Vec::new();
    store.replay(&mut |device, update| all.push((device, update))).expect("read");
    all
}

/// Appends updates of one device, and returns its number and which are new.
fn append(store: &mut dyn Store, (key, device): (&str, &str), ids: Range<u64>) -> Result<(u32, Vec<bool>), StoreError> {
    let updates: Vec<Update> = ids.map(update).collect();
    match store.append(&[Reports { key, device, updates: &updates }])?.remove(0) {
        AppendOutcome::Stored { device, new } => Ok((device, new)),
        AppendOutcome::TooManyDevices => Ok((0, Vec::new())),
    }
}

fn what_is_kept_is_read_again_and_counts_once(place: &Place) {
    let mut store = place.open();
    let (a, new) = append(&mut *store, ("k1", ""), 0..3).expect("kept");
    assert_eq!(new, [true; 3]);
    assert_eq!(append(&mut *store, ("k1", ""), 1..5).expect("kept"), (a, vec![false, false, true, true]));
    let (b, new) = append(&mut *store, ("k2", "bus"), u64::MAX - 1..u64::MAX).expect("kept");
    assert!(a != b && new == [true]);
    store.close().expect("closed");
    drop(store);
    let mut store = place.open();
    let read = all(&mut *store);
    assert_eq!(read.len(), 6);
    assert!(read.iter().all(|(device, u)| *u == update(u.id) && [a, b].contains(device)));
    assert_eq!(append(&mut *store, ("k2", "bus"), 0..1).expect("kept"), (b, vec![true]));
    // The number of a key's devices is limited, and others go on.
    for (name, known) in [("x", true), ("y", true), ("z", false), ("x", true)] {
        assert_eq!(append(&mut *store, ("k2", name), 5..6).expect("answered").0 != 0, known, "{name}");
    }
}

fn deletion_takes_what_is_asked_for_and_no_more(place: &Place) {
    let mut store = place.open();
    let devices = [("k1", "x"), ("k1", "y"), ("k2", "x")].map(|d| append(&mut *store, d, 0..10).expect("kept").0);
    let [a, b, _] = devices;
    assert_eq!(store.forget("k1", Some("y")).expect("deleted"), (10, vec![b]));
    assert_eq!(store.forget("k1", Some("z")).expect("nothing"), (0, vec![]));
    assert_eq!(all(&mut *store).len(), 20);
    assert_eq!(store.forget("k1", None).expect("deleted"), (10, vec![a]));
    assert_eq!(store.newest().expect("read"), Some(NOW));
    assert_eq!(store.expire(NOW, 100).expect("none is older"), 0);
    let later = WallTime::from_unix_millis(NOW.as_unix_millis() + 1);
    assert_eq!((store.expire(later, 7).expect("some"), store.expire(later, 7).expect("some")), (7, 3));
    assert_eq!(append(&mut *store, ("k1", "x"), 0..2).expect("kept").1, [true, true]);
}

#[test]
fn a_full_database_takes_nothing_and_recovers() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("map.db");
    let mut store = SqliteStore::open(&config(&path, Some(200_000))).expect("opened");
    let mut kept = 0;
    let error = loop {
        match append(&mut store, ("k", ""), kept..kept + 100) {
            Ok((_, new)) => kept += new.len() as u64,
            Err(e) => break e,
        }
        assert!(kept < 10_000);
    };
    assert!(matches!(error, StoreError::Full), "{error}");
    assert!(kept >= 500 && all(&mut store).len() as u64 == kept, "{kept}");
    // Old updates go, and there is space again.
    store.expire(WallTime::from_unix_millis(u64::MAX), 300).expect("deleted");
    assert_eq!(append(&mut store, ("k", ""), 100_000..100_100).expect("kept").1, [true; 100]);
}

#[test]
fn migrations_lead_from_each_version_to_this_one() {
    for from in 0..VERSION {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("map.db");
        let mut old = Connection::open(&path).expect("opened");
        migrate(&mut old, from).expect("made");
        assert_eq!(version(&old).expect("read"), from);
        if from > 0 {
            old.execute_batch(
                "INSERT INTO keys (id, hash, role, note, created_ms) VALUES ('k', zeroblob(32), 'fleet', '', 5);
                INSERT INTO devices (id, key, name) VALUES (9, 'k', 'bus');
                INSERT INTO updates (device, id, time_ms, lat, lon, accuracy_m, operator, technology, bps)
                    VALUES (9, 1, 1700000000000, 60.0, 24.0, 5.0, '244-91', 2, 900000);",
            )
            .expect("written");
        }
        drop(old);
        let mut store = open(&path);
        let read = all(&mut store);
        assert_eq!((read.len(), store.keys().expect("read").len()), if from > 0 { (1, 1) } else { (0, 0) });
        if from > 0 {
            let (device, update) = &read[0];
            assert_eq!((*device, update.app_limited, update.throughput), (9, false, DataRate::from_kbps(900)));
            let key = &store.keys().expect("read")[0];
            assert_eq!((key.role, key.expires, key.revoked), (Role::Fleet, None, None));
        }
        let (device, _) = append(&mut store, ("k", "bus"), 50..51).expect("kept");
        assert_eq!(device == 9, from > 0);
    }
}

#[test]
fn a_database_of_a_later_version_and_other_files_are_left_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("map.db");
    drop(open(&path));
    let later = Connection::open(&path).expect("opened");
    later.pragma_update(None, "user_version", VERSION + 1).expect("written");
    drop(later);
    let error = SqliteStore::open(&config(&path, None)).expect_err("too new");
    assert!(
        matches!(error, StoreError::TooNew { found, known } if found == VERSION + 1 && known == VERSION),
        "{error}"
    );
    let other = dir.path().join("text");
    std::fs::write(&other, "this is no database, but a text that is long enough to have a header").expect("written");
    let error = SqliteStore::open(&config(&other, None)).expect_err("no database");
    assert!(error.to_string().contains("not a database"), "{error}");
    assert!(std::fs::read(&other).expect("there").starts_with(b"this is"));
}

#[test]
fn a_backup_is_made_while_others_write() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, copy) = (dir.path().join("map.db"), dir.path().join("copy.db"));
    let mut store = open(&path);
    append(&mut store, ("k", ""), 0..20_000).expect("kept");
    let writer = std::thread::spawn(move || {
        for round in 0..50 {
            append(&mut store, ("k", ""), 20_000 + round * 10..20_010 + round * 10).expect("kept");
        }
        store
    });
    let bytes = backup(&path, &copy).expect("copied");
    let mut store = writer.join().expect("no panic");
    let mut copied = open(&copy);
    let (of_copy, of_store) = (all(&mut copied).len(), all(&mut store).len());
    assert!(bytes > 500_000 && (20_000..=20_500).contains(&of_copy) && of_store == 20_500, "{bytes} {of_copy}");
    assert_eq!(of_copy % 10, 0, "whole transactions");
    assert!(backup(&path, &copy).expect_err("it exists").to_string().contains("exists"));
}

fn keys_are_kept_and_revoked_once(place: &Place) {
    let (mut store, mut other) = (place.open(), place.open());
    let key = KeyRecord {
        id: "0123456789ab".into(),
        hash: [7; 32],
        role: Role::Reporter,
        note: "a bus".into(),
        created: NOW,
        expires: Some(WallTime::from_unix_millis(1)),
        revoked: None,
    };
    let before = store.generation().expect("read");
    other.add_key(&key).expect("kept");
    assert_ne!(store.generation().expect("read"), before, "another connection has written");
    assert_eq!(store.keys().expect("read"), std::slice::from_ref(&key));
    assert!(store.add_key(&key).is_err());
    assert!(store.revoke_key(&key.id, NOW).expect("revoked"));
    assert!(!store.revoke_key(&key.id, NOW).expect("again") && !store.revoke_key("x", NOW).expect("none"));
    assert_eq!(other.keys().expect("read")[0].revoked, Some(NOW));
}
