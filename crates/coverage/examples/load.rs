//! Load on a service in the same process: `load SECONDS UPDATES_PER_SECOND SUBSCRIBERS STREETS`, by default 60 s, 10,000,
//! 1,000 and 60.

use std::time::Duration;
use weir_coverage::load::{LoadConfig, run};
use weir_coverage::server::store::{SqliteConfig, StoreConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|a| a.parse::<f64>());
    let mut next = |default: f64| numbers.next().unwrap_or(Ok(default));
    let folder = std::env::temp_dir().join(format!("weir-coverage-load-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let config = LoadConfig {
        store: StoreConfig::Sqlite(SqliteConfig {
            path: folder.join("load.db"),
            max_bytes: None,
            max_devices_per_key: 1_000_000,
        }),
        duration: Duration::from_secs_f64(next(60.0)?),
        updates_per_second: next(10_000.0)?,
        subscribers: next(1_000.0)? as usize,
        streets: next(60.0)? as u32,
        batch: 100,
        devices: 2_000,
        connections: 16,
        looks_per_second: 50.0,
        overviews_per_second: 1.0,
        hostile: None,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(run(config));
    std::fs::remove_dir_all(&folder)?;
    println!("{}", serde_json::to_string_pretty(&report?)?);
    Ok(())
}
