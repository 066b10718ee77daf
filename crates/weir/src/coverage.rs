//! `weir coverage`.

mod demo;
mod forecast;

use crate::Done;
use crate::args::coverage::{
    BackupArgs, CoverageCommand, DatabaseArgs, Format, ImportArgs, KeysCommand, LoadArgs, LogArgs, RoleName, ServeArgs,
};
use crate::output::{self, Failure};
use crate::session::Session;
use crate::tables::table;
use std::fs;
use std::future::Future;
use std::path::Path;
use std::time::Duration;
use weir_coverage::regions::{Method, Sample, compare};
use weir_coverage::rides::{LogFormat, read_log};
use weir_coverage::server::store::{Kept, Reports, Role, SqliteConfig, SqliteStore, Store, StoreConfig, backup};
use weir_coverage::server::{Clock, ServerConfig, TlsConfig, issue, log_to_stderr, serve};
use weir_coverage::{Bounds, MapConfig, Update};
use weir_units::TimeDelta;

pub(crate) fn coverage(session: &Session, command: &CoverageCommand) -> Done {
    match command {
        CoverageCommand::Serve(a) => run_service(session, a),
        CoverageCommand::Demo(a) => demo::demo(session, a),
        CoverageCommand::Import(a) => import(a),
        CoverageCommand::Compare(a) => compare_methods(a),
        CoverageCommand::Forecast(a) => forecast::forecast(session, a),
        CoverageCommand::Keys { command } => keys(command),
        CoverageCommand::Backup(a) => copy(a),
        CoverageCommand::Load(a) => load(a),
    }
}

/// Runs asynchronous work to its end.
fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::work)?;
    Ok(runtime.block_on(work))
}

/// Returns once the user wants the command to end.
async fn until_stopped(session: &Session) {
    while !session.stopped() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn open(path: &Path, max_bytes: Option<u64>) -> Result<SqliteStore, Failure> {
    let config = SqliteConfig { path: path.to_owned(), max_bytes, max_devices_per_key: 100_000 };
    SqliteStore::open(&config).map_err(|e| Failure::Work(format!("{}: {e}", path.display())))
}

fn open_existing(args: &DatabaseArgs) -> Result<SqliteStore, Failure> {
    if !args.database.exists() {
        let path = args.database.display();
        return Err(Failure::Work(format!(
            "there is no database {path}: weir coverage serve makes one, or name it by --database"
        )));
    }
    open(&args.database, None)
}

fn run_service(session: &Session, args: &ServeArgs) -> Done {
    let tls = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => TlsConfig::Files { certificate: certificate.clone(), key: key.clone() },
        _ if !args.self_signed.is_empty() => {
            let file = args.database.database.with_extension("pem");
            TlsConfig::SelfSigned { file, names: args.self_signed.clone() }
        }
        _ => TlsConfig::None,
    };
    let config = ServerConfig {
        listen: args.listen,
        tls,
        map: MapConfig { anonymity: args.anonymity.max(1), ..MapConfig::default() },
        bounds: Bounds {
            max_age: TimeDelta::from_secs(i64::from(args.retention.max(1)) * 86_400),
            ..Bounds::default()
        },
        ..ServerConfig::default()
    };
    // Before the database is made.
    config.check().map_err(Failure::work)?;
    log_to_stderr(args.json_logs, args.verbose);
    let mut store = open(&args.database.database, args.max_size.map(|mb| mb.saturating_mul(1_000_000)))?;
    if store.keys().map_err(Failure::work)?.is_empty() {
        output::remark("there are no keys yet: weir coverage keys add reporter --note 'my phone'");
    }
    block_on(async {
        let running = serve(config, Clock::system(), Box::new(store)).await.map_err(Failure::work)?;
        let scheme = if running.fingerprint.is_some() { "https" } else { "http" };
        output::remark(&format!(
            "{} updates; the map page is {scheme}://{1}/, {scheme}://{1}/docs describes the interface",
            running.loaded, running.address
        ));
        if let Some(fingerprint) = &running.fingerprint {
            output::remark(&format!("SHA-256 of the certificate: {fingerprint}"));
        }
        until_stopped(session).await;
        running.stop().await;
        Ok(())
    })?
}

fn rides(args: &LogArgs) -> Result<Vec<(String, Vec<Update>)>, Failure> {
    let operator = args.operator.parse().map_err(Failure::work)?;
    let format = match args.format {
        Format::Norway => LogFormat::Norway,
        Format::Ireland => LogFormat::Ireland,
    };
    let read = |path: &std::path::PathBuf| {
        let failed = |e: &dyn std::fmt::Display| Failure::Work(format!("{}: {e}", path.display()));
        let text = fs::read_to_string(path).map_err(|e| failed(&e))?;
        let updates = read_log(&text, format, &operator).map_err(|e| failed(&e))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((name.chars().filter(|c| !c.is_control()).take(40).collect(), updates))
    };
    args.files.iter().map(read).collect()
}

fn import(args: &ImportArgs) -> Done {
    let rides = rides(&args.logs)?;
    let mut store = open(&args.database.database, None)?;
    let (mut new, mut known) = (0, 0);
    for (device, updates) in &rides {
        for some in updates.chunks(10_000) {
            let kept = store.append(&[Reports { key: "import", device, updates: some }]).map_err(Failure::work)?;
            for kept in kept {
                match kept {
                    Kept::Kept { new: of, .. } => {
                        new += of.iter().filter(|new| **new).count();
                        known += of.iter().filter(|new| !**new).count();
                    }
                    Kept::TooManyDevices => return Err(Failure::Work("too many devices".into())),
                }
            }
        }
    }
    store.close().map_err(Failure::work)?;
    output::print(&format!("{new} updates of {} rides are new, {known} were there\n", rides.len()))
}

fn compare_methods(args: &LogArgs) -> Done {
    let rides = rides(args)?;
    let samples = |updates: &[Update]| {
        updates.iter().map(|u| Sample { position: u.position, rate: u.throughput }).collect::<Vec<_>>()
    };
    let rides: Vec<Vec<Sample>> = rides.iter().map(|(_, updates)| samples(updates)).collect();
    let mut rows = table(&["method", "known", "factor p50", "factor p90", "in quartiles"], 1);
    for row in compare(&rides, &Method::ALL) {
        let share = |x: f64| format!("{:.0} %", 100.0 * x);
        let (p50, p90) = (format!("{:.2}", row.median_factor), format!("{:.2}", row.p90_factor));
        rows.add_row([row.method, share(row.known), p50, p90, share(row.within_quartiles)]);
    }
    output::print(&format!("{rows}\n"))
}

fn keys(command: &KeysCommand) -> Done {
    let now = Clock::system().wall();
    match command {
        KeysCommand::Add { database, role, note, days } => {
            let role = match role {
                RoleName::Reporter => Role::Reporter,
                RoleName::Fleet => Role::Fleet,
                RoleName::Reader => Role::Reader,
                RoleName::Admin => Role::Admin,
            };
            let expires = days.map(|days| now.plus(TimeDelta::from_secs(i64::from(days.min(36_500)) * 86_400)));
            let issued = issue(role, note, now, expires).map_err(Failure::work)?;
            // A key may be the first thing of a database.
            open(&database.database, None)?.add_key(&issued.record).map_err(Failure::work)?;
            output::print(&format!("{}\n", issued.text))
        }
        KeysCommand::List { database } => {
            let mut rows = table(&["id", "role", "state", "note"], 4);
            for key in open_existing(database)?.keys().map_err(Failure::work)? {
                let state = match (key.revoked, key.expires) {
                    (Some(_), _) => "revoked",
                    (None, Some(at)) if at <= now => "expired",
                    _ => "valid",
                };
                rows.add_row([key.id, format!("{:?}", key.role).to_lowercase(), state.to_owned(), key.note]);
            }
            output::print(&format!("{rows}\n"))
        }
        KeysCommand::Revoke { database, id } => {
            if !open_existing(database)?.revoke_key(id, now).map_err(Failure::work)? {
                return Err(Failure::Work(format!("there is no key {id:?} that is not revoked")));
            }
            Ok(())
        }
    }
}

fn copy(args: &BackupArgs) -> Done {
    open_existing(&args.database)?;
    let bytes = backup(&args.database.database, &args.to).map_err(Failure::work)?;
    output::print(&format!("{bytes} bytes in {}\n", args.to.display()))
}

fn load(args: &LoadArgs) -> Done {
    let folder = std::env::temp_dir().join(format!("weir-coverage-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(Failure::work)?;
    let config = weir_coverage::load::LoadConfig {
        store: StoreConfig::Sqlite(SqliteConfig {
            path: folder.join("load.db"),
            max_bytes: None,
            max_devices_per_key: 1_000_000,
        }),
        duration: Duration::from_secs_f64(args.seconds.clamp(1.0, 86_400.0)),
        updates_per_second: args.updates.clamp(1.0, 1e6),
        batch: 100,
        devices: 2_000,
        connections: 16,
        looks_per_second: 50.0,
        overviews_per_second: 1.0,
        streets: 60,
        subscribers: args.subscribers.min(4_000),
    };
    let report = block_on(weir_coverage::load::run(config));
    fs::remove_dir_all(&folder).map_err(Failure::work)?;
    let text = serde_json::to_string_pretty(&report?.map_err(Failure::work)?).map_err(Failure::work)?;
    output::print(&format!("{text}\n"))
}
