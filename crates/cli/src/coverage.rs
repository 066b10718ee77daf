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
use weir_coverage::load::{Hostile, LoadConfig};
use weir_coverage::regions::{Method, Sample, compare};
use weir_coverage::rides::{LogFormat, read_log};
use weir_coverage::server::store::{
    AppendOutcome, PostgresConfig, Reports, Role, SqliteConfig, Store, StoreConfig, backup,
};
use weir_coverage::server::{Clock, ServeError, ServerConfig, TlsConfig, bind, issue, log_to_stderr, serve_on};
use weir_coverage::{Bounds, MapConfig, Update};
use weir_lab::scenario::InputError;
use weir_units::TimeDelta;

/// Greatest size of a log of a ride, in bytes.
const MAX_LOG: u64 = 64 << 20;

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

fn is_server(database: &Path) -> Option<&str> {
    database.to_str().filter(|text| PostgresConfig::is_url(text))
}

/// A database's configuration, from its file or address.
fn configure(database: &Path, max_bytes: Option<u64>, partitions: Option<u16>) -> Result<StoreConfig, Failure> {
    let Some(url) = is_server(database) else {
        let path = database.to_owned();
        return Ok(StoreConfig::Sqlite(SqliteConfig { path, max_bytes, max_devices_per_key: 100_000 }));
    };
    if max_bytes.is_some() {
        let what = "it is for files: give a PostgreSQL database a tablespace of its own";
        return Err(InputError::whole("--max-size", what).into());
    }
    let config = PostgresConfig::new(url, std::env::var("PGPASSWORD").ok().as_deref());
    let config = config.and_then(|c| match partitions {
        Some(partitions) => c.with_partitions(partitions),
        None => Ok(c),
    });
    config.map(|c| StoreConfig::Postgres(Box::new(c))).map_err(Failure::work)
}

fn open_configured(config: &StoreConfig) -> Result<Box<dyn Store>, Failure> {
    config.open().map_err(|e| Failure::Work(format!("{config}: {e}")))
}

fn open(database: &Path) -> Result<Box<dyn Store>, Failure> {
    open_configured(&configure(database, None, None)?)
}

fn open_existing(args: &DatabaseArgs) -> Result<Box<dyn Store>, Failure> {
    if is_server(&args.database).is_none() && !args.database.exists() {
        let path = args.database.display();
        let error = InputError::whole("--database", format!("{path}: there is no such file"));
        return Err(error.help("weir coverage serve makes one").into());
    }
    open(&args.database)
}

fn run_service(session: &Session, args: &ServeArgs) -> Done {
    let tls = match (&args.cert, &args.key) {
        (Some(certificate), Some(key)) => TlsConfig::Files { certificate: certificate.clone(), key: key.clone() },
        _ if !args.self_signed.is_empty() => {
            let database = &args.database.database;
            let file =
                if is_server(database).is_some() { "coverage.pem".into() } else { database.with_extension("pem") };
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
    let socket = bind(&config).map_err(|e| match e {
        e @ ServeError::Config(_) => InputError::whole("--listen, --cert", e.to_string()).into(),
        e => Failure::work(e),
    })?;
    log_to_stderr(args.json_logs, args.verbose);
    let max_bytes = args.max_size.map(|mb| mb.saturating_mul(1_000_000));
    let mut store = open_configured(&configure(&args.database.database, max_bytes, Some(args.partitions))?)?;
    if store.keys().map_err(Failure::work)?.is_empty() {
        output::remark("there are no keys yet: weir coverage keys add reporter --note 'my phone'");
    }
    block_on(async {
        let running = serve_on(socket, config, Clock::system(), store).await.map_err(Failure::work)?;
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
    let wrong = |e: &dyn std::fmt::Display| InputError::whole("--operator", e.to_string());
    let operator = args.operator.parse().map_err(|e| wrong(&e))?;
    let format = match args.format {
        Format::Norway => LogFormat::Norway,
        Format::Ireland => LogFormat::Ireland,
    };
    let read = |path: &std::path::PathBuf| {
        let failed = |e: &dyn std::fmt::Display| InputError::whole(path.display().to_string(), e.to_string());
        let text = weir_files::read_text(path, MAX_LOG).map_err(|e| failed(&e))?;
        let updates = read_log(&text, format, &operator).map_err(|e| failed(&e))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((name.chars().filter(|c| !c.is_control()).take(40).collect(), updates))
    };
    args.files.iter().map(read).collect()
}

fn import(args: &ImportArgs) -> Done {
    let rides = rides(&args.logs)?;
    let mut store = open(&args.database.database)?;
    let (mut new, mut known) = (0, 0);
    for (device, updates) in &rides {
        for some in updates.chunks(10_000) {
            let kept = store.append(&[Reports { key: "import", device, updates: some }]).map_err(Failure::work)?;
            for kept in kept {
                match kept {
                    AppendOutcome::Stored { new: of, .. } => {
                        new += of.iter().filter(|new| **new).count();
                        known += of.iter().filter(|new| !**new).count();
                    }
                    AppendOutcome::TooManyDevices => return Err(Failure::Work("too many devices".into())),
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
            open(&database.database)?.add_key(&issued.record).map_err(Failure::work)?;
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
                let error = InputError::whole("ID", format!("there is no key {id:?} that is not revoked"));
                return Err(error.help("weir coverage keys list").into());
            }
            Ok(())
        }
    }
}

fn copy(args: &BackupArgs) -> Done {
    if is_server(&args.database.database).is_some() {
        let how =
            "a PostgreSQL database is copied by pg_dump --format=custom --file=FILE URL, also while the service runs";
        return Err(InputError::whole("--database", how).into());
    }
    open_existing(&args.database)?;
    let bytes = backup(&args.database.database, &args.to).map_err(Failure::work)?;
    output::print(&format!("{bytes} bytes in {}\n", args.to.display()))
}

fn load(args: &LoadArgs) -> Done {
    let folder = std::env::temp_dir().join(format!("weir-coverage-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(Failure::work)?;
    let database = args.database.clone().unwrap_or_else(|| folder.join("load.db"));
    let config = LoadConfig {
        store: configure(&database, None, Some(args.partitions))?,
        duration: Duration::from_secs_f64(args.duration.clamp(1.0, 86_400.0)),
        updates_per_second: args.updates.clamp(1.0, 1e6),
        batch: 100,
        devices: 2_000,
        connections: 16,
        looks_per_second: 50.0,
        overviews_per_second: 1.0,
        streets: args.streets.clamp(2, 1_000),
        subscribers: args.subscribers.min(4_000),
        hostile: args.hostile.map(|requests| Hostile { requests, seed: args.seed }),
    };
    let report = block_on(weir_coverage::load::run(config));
    fs::remove_dir_all(&folder).map_err(Failure::work)?;
    let text = serde_json::to_string_pretty(&report?.map_err(Failure::work)?).map_err(Failure::work)?;
    output::print(&format!("{text}\n"))
}
