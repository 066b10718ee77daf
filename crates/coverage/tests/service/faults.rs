//! Crashes, full disks and clocks that jump.

use crate::cluster;
use crate::support::{Service, batch, config, database, open, run, update};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use weir_coverage::client::{Client, ClientError, Endpoint, Trust};
use weir_coverage::server::store::{PostgresConfig, Role, Store, backup};
use weir_coverage::server::{Clock, issue, serve};
use weir_coverage::{Filter, Resolution};
use weir_units::TimeDelta;

/// The file or address of the database that the child uses.
const DATABASE: &str = "WEIR_COVERAGE_TEST_DATABASE";

/// The database at a file or an address.
fn open_at(text: &str) -> Box<dyn Store> {
    if PostgresConfig::is_url(text) {
        cluster::store(text).open().expect("opened")
    } else {
        Box::new(open(Path::new(text), None))
    }
}

/// Not a test by itself: what [`kill_loses_no_acknowledged_update`] runs as another process.
#[test]
fn a_service_for_another_test() {
    let Ok(text) = std::env::var(DATABASE) else {
        assert!(std::env::var_os(DATABASE).is_none());
        return;
    };
    run(async move {
        let running = serve(config(), Clock::system(), open_at(&text)).await.expect("started");
        println!("\nlistening {} {}", running.address, running.loaded);
        tokio::time::sleep(Duration::from_secs(60)).await;
    });
}

/// A service in a process of its own, and what it said at its start.
fn child(database: &str) -> (Child, SocketAddr, u64) {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "faults::a_service_for_another_test", "--nocapture"])
        .env(DATABASE, database)
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    for line in lines.map_while(Result::ok) {
        if let Some(rest) = line.strip_prefix("listening ") {
            let (address, loaded) = rest.split_once(' ').expect("two words");
            return (child, address.parse().expect("an address"), loaded.parse().expect("a number"));
        }
    }
    panic!("the child has ended: {:?}", child.wait());
}

#[test]
fn kill_loses_no_acknowledged_update() {
    let dir = tempfile::tempdir().expect("a folder");
    kill(&database(dir.path()).display().to_string());
}

#[test]
fn kill_loses_no_acknowledged_update_in_postgres() {
    let cluster = cluster::shared();
    kill(&cluster.url(&cluster.database()));
}

/// Ends a service ten times under load.
fn kill(database: &str) {
    let key = issue(Role::Fleet, "", Clock::system().wall(), None).expect("made");
    open_at(database).add_key(&key.record).expect("kept");
    let mut acknowledged: Vec<(usize, u64)> = Vec::new();
    for round in 0..10_u64 {
        let (mut child, address, loaded) = child(database);
        assert!(loaded >= acknowledged.len() as u64, "{round}: {loaded} of {}", acknowledged.len());
        let (text, kept) = (key.text.clone(), std::sync::Mutex::new(Vec::new()));
        run(async {
            let reporter = async |device: usize| {
                let endpoint = Endpoint { tls: false, host: address.ip().to_string(), port: address.port() };
                let mut client =
                    Client::new(endpoint, &text, &Trust::Nothing, Duration::from_secs(5)).expect("a client");
                for i in 0.. {
                    let first = round * 1_000_000 + i * 50;
                    let updates = (first..first + 50).map(|id| update(id, id as f64 % 5e3, 500.0)).collect();
                    match client.report(&batch(Some(&format!("d{device}")), updates)).await {
                        Ok(done) => {
                            assert_eq!(done.accepted, 50);
                            kept.lock().expect("no panic").extend((first..first + 50).map(|id| (device, id)));
                        }
                        Err(ClientError::Connection(_)) => break,
                        Err(e) => panic!("{e}"),
                    }
                }
            };
            // In the middle of a batch: at another moment in each round, once something was acknowledged.
            let kill = async {
                tokio::time::sleep(Duration::from_millis(150 + 37 * round)).await;
                for _ in 0..200 {
                    if !kept.lock().expect("no panic").is_empty() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                child.kill().expect("SIGKILL");
                child.wait().expect("gone");
            };
            tokio::join!(reporter(0), reporter(1), reporter(2), kill);
        });
        let kept = kept.into_inner().expect("no panic");
        assert!(kept.len() >= 50, "{round}: nothing was acknowledged before the end");
        acknowledged.extend(kept);
    }
    let mut there = BTreeSet::new();
    open_at(database)
        .replay(&mut |device, u| {
            there.insert((device, u.id));
        })
        .expect("read");
    // Devices are numbered in the order in which they came first.
    let ids: BTreeSet<u64> = there.iter().map(|(_, id)| *id).collect();
    let lost = acknowledged.iter().filter(|(_, id)| !ids.contains(id)).count();
    assert_eq!(lost, 0, "of {}", acknowledged.len());
    assert!(there.len() >= acknowledged.len(), "{} of {}", there.len(), acknowledged.len());
    println!("{} acknowledged, {} kept", acknowledged.len(), there.len());
}

#[test]
fn a_full_disk_is_answered_and_overcome() {
    run(async {
        let dir = tempfile::tempdir().expect("a folder");
        let service = Service::start_in(config(), dir, Clock::system(), Some(400_000)).await;
        let key = service.key(Role::Fleet).await;
        let mut client = service.client(&key);
        let mut kept = 0;
        let error = loop {
            let updates = (kept..kept + 200).map(|id| update(id, 0.0, 500.0)).collect();
            match client.report(&batch(Some("a"), updates)).await {
                Ok(done) => kept += done.accepted as u64,
                Err(e) => break e,
            }
            assert!(kept < 20_000);
        };
        assert!(matches!(error, ClientError::Refused { status: 507, wait: Some(_), .. }), "{error}");
        // Looking ahead goes on, and after a deletion reporting does.
        let area = client.part(crate::support::start().cell(Resolution::Five), &Filter::default()).await;
        assert!(area.is_ok() && service.metric("weir_coverage_store_errors_total ").await >= 1.0);
        let deleted = client.request("DELETE", "/v1/updates?device=a", Vec::new()).await.expect("answered");
        assert_eq!(String::from_utf8_lossy(&deleted.body), format!("{{\"deleted\":{kept}}}"));
        let done = client.report(&batch(Some("b"), vec![update(1, 0.0, 500.0)])).await.expect("there is space again");
        assert_eq!(done.accepted, 1);
        service.running.stop().await;
    });
}

/// A small disk of its own over a folder, as long as this lives.
pub(crate) struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// `None` where this user may not mount.
    pub(crate) fn over(folder: &'a Path, size: &str) -> Option<Self> {
        let mount =
            Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder).output();
        mount.is_ok_and(|out| out.status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_others_fill_is_answered_and_overcome() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_disk) = SmallDisk::over(folder.path(), "4m") else {
        println!("skipped: mounting needs root");
        return;
    };
    // Others' file leaves a megabyte or so.
    let filler = folder.path().join("filler");
    std::fs::write(&filler, vec![1; 2_500_000]).expect("written");
    let path = database(folder.path());
    let key = issue(Role::Fleet, "", Clock::system().wall(), None).expect("made");
    open(&path, None).add_key(&key.record).expect("kept");
    let mut kept = 0;
    run(async {
        let running = serve(config(), Clock::system(), Box::new(open(&path, None))).await.expect("started");
        let endpoint = Endpoint { tls: false, host: "127.0.0.1".into(), port: running.address.port() };
        let mut client = Client::new(endpoint, &key.text, &Trust::Nothing, Duration::from_secs(20)).expect("a client");
        let mut report = async |first: u64| {
            let updates = (first..first + 500).map(|id| update(id, 0.0, 500.0)).collect();
            client.report(&batch(Some("a"), updates)).await
        };
        let error = loop {
            match report(kept).await {
                Ok(done) => kept += done.accepted as u64,
                Err(e) => break e,
            }
            assert!(kept < 100_000);
        };
        assert!(matches!(error, ClientError::Refused { status: 507, wait: Some(_), .. }), "{error}");
        // Once there is space again, reporting goes on without a hand.
        std::fs::remove_file(&filler).expect("removed");
        kept += report(kept).await.expect("there is space again").accepted as u64;
        running.stop().await;
    });
    assert!(kept >= 1_000, "{kept}");
    let mut there = 0;
    open(&path, None).replay(&mut |_, _| there += 1).expect("read");
    assert_eq!(there, kept, "what was acknowledged, and no more");
}

#[test]
fn a_clock_that_goes_back_and_forth_does_no_harm() {
    run(async {
        let offset = Arc::new(AtomicI64::new(0));
        let moved = Arc::clone(&offset);
        let system = Clock::system();
        let clock = Clock::with_wall(move || system.wall().plus(TimeDelta::from_secs(moved.load(Ordering::Relaxed))));
        let service = Service::start_in(config(), tempfile::tempdir().expect("a folder"), clock, None).await;
        let key = service.key(Role::Fleet).await;
        let mut id = 0;
        for (seconds, kept) in [
            (0, true),
            (-3_600, false),
            (43_200, false),
            (-86_400 * 400, false),
            (86_400 * 400, false),
            (0, true),
            (60, true),
        ] {
            offset.store(seconds, Ordering::Relaxed);
            for device in ["a", "b", "c"] {
                id += 1;
                // A new connection each time, as after a pause.
                let mut client = service.client(&key);
                let done = client.report(&batch(Some(device), vec![update(id, 0.0, 500.0)])).await;
                assert_eq!(done.is_ok(), kept, "{seconds}: {done:?}");
            }
            // Longer than between two turns of housekeeping.
            tokio::time::sleep(Duration::from_millis(if kept { 0 } else { 2_200 })).await;
            let mut client = service.client(&key);
            let part = client.part(crate::support::start().cell(Resolution::Seven), &Filter::default()).await;
            let cells = part.expect("answered").cells;
            assert!(!cells.is_empty() || seconds > 86_400, "{seconds}");
            for (_, capacity) in cells {
                assert!((capacity.quantiles.p50.as_kbps_f64() / 500.0 - 1.0).abs() < 0.03, "{seconds}");
            }
        }
        // Nothing was deleted while the clock was a year ahead.
        let copy = service.dir.path().join("copy.db");
        assert!(backup(&database(service.dir.path()), &copy).expect("copied") > 10_000);
        let mut copied = 0;
        open(&copy, None).replay(&mut |_, _| copied += 1).expect("read");
        assert_eq!(copied, 9);
        service.running.stop().await;
    });
}
