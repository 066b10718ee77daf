//! A database server that is away, and one without space, under a service.

use crate::cluster::{Cluster, store};
use crate::faults::SmallDisk;
use crate::support::{batch, config, run, start, update};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use weir_coverage::client::{Client, ClientError, Endpoint, Trust};
use weir_coverage::limits::Rate;
use weir_coverage::server::store::{Role, StoreConfig};
use weir_coverage::server::{Clock, RunningServer, ServerConfig, issue, serve};
use weir_coverage::{Filter, Resolution};

/// Updates that may wait.
const MAX_QUEUED: usize = 2_000;
/// Seconds that the server is away. WEIR_AWAY sets another number.
const AWAY: u64 = 3;

fn client(running: &RunningServer, key: &str) -> Client {
    let endpoint = Endpoint { tls: false, host: running.address.ip().to_string(), port: running.address.port() };
    Client::new(endpoint, key, &Trust::Nothing, Duration::from_secs(40)).expect("a client")
}

fn add_key(store: &StoreConfig) -> String {
    let key = issue(Role::Fleet, "", Clock::system().wall(), None).expect("made");
    store.open().expect("opened").add_key(&key.record).expect("kept");
    key.text
}

fn ids(store: &StoreConfig) -> BTreeSet<u64> {
    let (mut ids, mut count) = (BTreeSet::new(), 0_usize);
    store
        .open()
        .expect("opened")
        .replay(&mut |_, update| {
            ids.insert(update.id);
            count += 1;
        })
        .expect("read");
    assert_eq!(ids.len(), count, "each once");
    ids
}

fn resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1_024
}

/// Outcomes seen by reporters.
#[derive(Default)]
struct Seen {
    acknowledged: Mutex<BTreeSet<u64>>,
    /// Batches that were refused, and since the server is away.
    refused: AtomicUsize,
    /// Batches that were kept.
    kept: AtomicUsize,
    ended: AtomicBool,
}

/// Reports batch after batch, each until it is kept, as a phone does.
async fn report(seen: &Seen, mut client: Client, reporter: u64) {
    let mut first = reporter * 1_000_000_000;
    while !seen.ended.load(Ordering::SeqCst) {
        let updates = (first..first + 100).map(|id| update(id, (id % 5_000) as f64, 500.0)).collect();
        match client.report(&batch(Some(&format!("d{reporter}")), updates)).await {
            Ok(done) => {
                // Refused reports were not kept, whatever the server had done by then.
                assert_eq!((done.accepted, done.duplicates), (100, 0));
                seen.acknowledged.lock().expect("no panic").extend(first..first + 100);
                seen.kept.fetch_add(1, Ordering::SeqCst);
                first += 100;
            }
            Err(ClientError::Refused { status: 503 | 429, wait: Some(_), .. }) => {
                seen.refused.fetch_add(1, Ordering::SeqCst);
                // Sooner than it may: for more load.
                tokio::time::sleep(Duration::from_millis(30)).await;
            }
            Err(e) => panic!("{e}"),
        }
    }
}

/// Longest time until a batch is kept again, in steps of 100 ms: that of two calls of the store, of which the first may have been
/// under way.
const FOUND: usize = 600;

/// Waits until so many batches are acknowledged: a busy machine takes its time for it.
async fn kept(seen: &Seen, least: usize, cluster: &Cluster) {
    for _ in 0..FOUND {
        if seen.kept.load(Ordering::SeqCst) >= least {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let (kept, refused) = (seen.kept.load(Ordering::SeqCst), seen.refused.load(Ordering::SeqCst));
    let log = cluster.log();
    panic!("{kept} batches of {least} after a minute, {refused} refused; the database says:\n{log}");
}

#[test]
fn a_database_that_is_away_loses_nothing_and_is_found_again() {
    let cluster = Cluster::start();
    let store = store(&cluster.url(&cluster.database()));
    let away = std::env::var("WEIR_AWAY").ok().and_then(|n| n.parse().ok()).unwrap_or(AWAY);
    let key = add_key(&store);
    let (seen, unlimited) = (Seen::default(), Rate { per_second: 1e9, burst: 1e9 });
    let service = ServerConfig {
        max_queued: MAX_QUEUED,
        address_rate: unlimited,
        fleet_rate: unlimited,
        look_rate: unlimited,
        ..config()
    };
    run(async {
        let running = serve(service, Clock::system(), store.open().expect("opened")).await.expect("started");
        let reporters = (0..30).map(|n| report(&seen, client(&running, &key), n));
        let stages = async {
            tokio::time::sleep(Duration::from_millis(800)).await;
            kept(&seen, 5, &cluster).await;
            let before = (seen.kept.load(Ordering::SeqCst), resident_mb());
            tokio::task::block_in_place(|| cluster.crash());
            // Answers that were under way.
            tokio::time::sleep(Duration::from_millis(300)).await;
            let at_crash = seen.kept.load(Ordering::SeqCst);
            for _ in 0..away {
                tokio::time::sleep(Duration::from_secs(1)).await;
                // Looking ahead goes on from memory.
                let cell = start().cell(Resolution::Five);
                assert!(client(&running, &key).part(cell, &Filter::default()).await.is_ok());
                let answer = client(&running, "").request("GET", "/metrics", Vec::new()).await.expect("metrics");
                let text = String::from_utf8(answer.body.to_vec()).expect("UTF-8");
                let queued = text.lines().find_map(|l| l.strip_prefix("weir_coverage_queued_updates "));
                let queued: usize = queued.and_then(|n| n.parse().ok()).expect("a number");
                assert!(queued <= MAX_QUEUED, "{queued}");
            }
            let refused = seen.refused.load(Ordering::SeqCst);
            assert!(refused >= 30, "{refused}");
            assert_eq!(seen.kept.load(Ordering::SeqCst), at_crash, "nothing is acknowledged meanwhile");
            tokio::task::block_in_place(|| cluster.resume());
            kept(&seen, at_crash + 5, &cluster).await;
            let after = (seen.kept.load(Ordering::SeqCst), resident_mb());
            assert!(after.1 < before.1 + 60, "MB: {before:?} {after:?}");
            seen.ended.store(true, Ordering::SeqCst);
            println!("away {away} s: {before:?} to {after:?} batches and MB, {refused} refused");
        };
        let mut reporting = Vec::new();
        tokio::join!(stages, async {
            let all = reporters.map(Box::pin).collect::<Vec<_>>();
            reporting = futures_util::future::join_all(all).await;
        });
        assert_eq!(reporting.len(), 30);
        running.stop().await;
    });
    let (there, acknowledged) = (ids(&store), seen.acknowledged.into_inner().expect("no panic"));
    assert_eq!(there, acknowledged, "what was acknowledged, and no more");
}

#[test]
fn a_disk_without_space_for_the_database_is_answered_and_overcome() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(_disk) = SmallDisk::over(folder.path(), "40m") else {
        println!("skipped: mounting needs root");
        return;
    };
    let cluster = Cluster::start();
    let name = cluster.database_at(folder.path());
    let filler = folder.path().join("filler");
    let store = store(&cluster.url(&name));
    let key = add_key(&store);
    // A megabyte or so is left.
    std::fs::write(&filler, vec![1; 60 << 20]).expect_err("no such space");
    let filled = std::fs::metadata(&filler).expect("there").len();
    std::fs::OpenOptions::new().write(true).open(&filler).and_then(|f| f.set_len(filled - (1 << 20))).expect("shorter");
    let mut kept = 0;
    run(async {
        let running = serve(config(), Clock::system(), store.open().expect("opened")).await.expect("started");
        let mut client = client(&running, &key);
        let mut report = async |first: u64| {
            let updates = (first..first + 500).map(|id| update(id, 0.0, 500.0)).collect();
            client.report(&batch(Some("a"), updates)).await
        };
        let mut away = 0;
        let error = loop {
            match report(kept).await {
                Ok(done) => kept += done.accepted as u64,
                // Nothing of that batch was kept either; 507 has to follow.
                Err(ClientError::Refused { status: 503, wait: Some(_), .. }) if away < 20 => {
                    away += 1;
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(e) => break e,
            }
            assert!(kept < 100_000);
        };
        assert!(matches!(error, ClientError::Refused { status: 507, wait: Some(_), .. }), "{error}");
        std::fs::remove_file(&filler).expect("removed");
        kept += report(kept).await.expect("there is space again").accepted as u64;
        running.stop().await;
    });
    assert!(kept >= 1_000, "{kept}");
    assert_eq!(ids(&store), (0..kept).collect(), "what was acknowledged, and no more");
}
