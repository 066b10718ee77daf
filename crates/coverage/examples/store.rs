//! Cost of a report in a database, and a region in memory: `store DATABASE REPORTS STREETS PARTITIONS`. DATABASE is a new
//! file, or the address of an empty PostgreSQL database on this machine, whose processes' time is counted. By default 400,000
//! reports in a city of 60 streets in each direction, over 16 partitions.

use std::fs;
use weir_coverage::rides::City;
use weir_coverage::server::Clock;
use weir_coverage::server::store::{PostgresConfig, Reports, SqliteConfig, StoreConfig};
use weir_coverage::{Map, MapConfig, Update};
use weir_units::TimeDelta;

/// Reports of one ride, as one batch.
const BATCH: u32 = 100;
/// Batches of one transaction.
const GROUP: usize = 100;
/// Devices that report, in turn.
const DEVICES: u32 = 2_000;

/// Processor time in seconds of processes of a name, with those of their children that have ended; Linux counts hundredths.
fn processor_seconds(pick: impl Fn(&str, &str) -> bool) -> f64 {
    let mut sum = 0.0;
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((head, tail)) = stat.rsplit_once(')') else { continue };
        let Some((pid, name)) = head.split_once(" (") else { continue };
        if pick(pid, name) {
            let ticks = tail.split_whitespace().skip(11).take(4).map(|f| f.parse().unwrap_or(0.0));
            sum += ticks.sum::<f64>() / 100.0;
        }
    }
    sum
}

fn resident_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap_or(0.0) * 1_024.0
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let database = arguments.next().ok_or("store DATABASE REPORTS STREETS PARTITIONS")?;
    let mut next = |default: u32| arguments.next().map_or(Ok(default), |a| a.parse::<u32>());
    let (reports, streets, partitions) = (next(400_000)?, next(60)?, next(16)?);
    let config = if PostgresConfig::is_url(&database) {
        let config = PostgresConfig::new(&database, None)?.with_partitions(u16::try_from(partitions)?)?;
        StoreConfig::Postgres(Box::new(config))
    } else {
        StoreConfig::Sqlite(SqliteConfig { path: database.into(), max_bytes: None, max_devices_per_key: DEVICES })
    };
    let mut store = config.open()?;
    let (city, clock) = (City::new(1, streets), Clock::system());
    let (empty, now) = (store.size()?, clock.wall());
    let own = std::process::id().to_string();
    let times = || (processor_seconds(|pid, _| pid == own), processor_seconds(|_, name| name == "postgres"));
    let (mut seconds, mut client, mut server) = (0.0, 0.0, 0.0);
    let rides: Vec<(u32, u32)> = (0..reports / BATCH).map(|n| (n % DEVICES, n / DEVICES)).collect();
    for group in rides.chunks(GROUP) {
        let batches: Vec<(String, Vec<Update>)> = group
            .iter()
            .map(|(device, ride)| {
                let begin = now.plus(TimeDelta::from_secs(i64::from(*ride) * i64::from(BATCH) - 80 * 86_400));
                (format!("d{device}"), city.ride(*device, *ride, begin, BATCH))
            })
            .collect();
        let these: Vec<Reports<'_>> =
            batches.iter().map(|(device, updates)| Reports { key: "k", device, updates }).collect();
        let (begin, before) = (clock.elapsed(), times());
        store.append(&these)?;
        let after = times();
        seconds += clock.elapsed().saturating_since(begin).as_secs_f64();
        client += after.0 - before.0;
        server += after.1 - before.1;
    }
    let bytes = store.size()?.saturating_sub(empty);
    let (mut map, memory, begin) = (Map::new(MapConfig::default()), resident_bytes(), clock.elapsed());
    let read = store.replay(&mut |device, update| {
        map.insert(device, &update, now);
    })?;
    let replay = clock.elapsed().saturating_since(begin).as_secs_f64();
    let (stats, memory) = (map.stats(), resident_bytes() - memory);
    let (count, entries) = (f64::from(reports), stats.entries as f64);
    println!("{config}");
    println!("{read} reports in {seconds:.1} s: {:.0} a second", count / seconds);
    println!("{:.1} µs of this process a report, {:.1} µs of the server", client / count * 1e6, server / count * 1e6);
    println!("{:.0} bytes a report in the database", bytes as f64 / count);
    println!("read again in {replay:.1} s: {:.0} a second, with the map", count / replay);
    println!(
        "{} cells, {entries} devices in regions: {:.0} bytes each, {:.0} a cell",
        stats.cells,
        memory / entries,
        memory / stats.cells as f64
    );
    store.close()?;
    Ok(())
}
