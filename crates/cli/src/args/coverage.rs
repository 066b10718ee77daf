//! Arguments of `weir coverage`.

use clap::Subcommand;
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Ends report throughput with their position; the service joins reports into regions, and ends look ahead along their way. It is
described at /docs of a running service. Everything is in one file (SQLite), coverage.db in this folder by default, or in a
PostgreSQL database with PostGIS. The map page is at / of a running service.

Examples:
  weir coverage demo                                   a service, rides through a city, and a look-ahead, in some seconds
  weir coverage demo --keep                            and the address of its map page, with a ride on it
  weir coverage serve                                  at 127.0.0.1:6580; then, for each caller:
  weir coverage keys add reporter --note 'my phone'
  weir coverage serve --listen 0.0.0.0:6580 --cert chain.pem --key key.pem
  weir coverage serve --database 'postgres://weir@localhost/map'
  weir coverage import --format norway --operator 242-01 report.*.txt
  weir coverage compare --format norway report.*.txt   H3, squares, K-means and nearest neighbours on the same rides
  weir coverage forecast --format ireland --out rides *.csv && weir compare --scenario rides/rides.toml
  weir coverage backup copy.db                         while the service runs";

#[derive(Subcommand, Debug)]
pub(crate) enum CoverageCommand {
    /// Run the service
    Serve(ServeArgs),
    /// Run a service in a new folder, send it the rides of a drawn city, and look ahead along another one
    Demo(DemoArgs),
    /// Add logs of rides to a database
    Import(ImportArgs),
    /// Compare ways to form regions: each ride is foretold from the others
    Compare(LogArgs),
    /// Foretell each ride from the others, and write scenarios of calls that ride with the forecasts
    Forecast(ForecastArgs),
    /// Make, list and revoke API keys; a running service knows within a second
    Keys {
        #[command(subcommand)]
        command: KeysCommand,
    },
    /// Copy a database file that may be in use (PostgreSQL: pg_dump)
    Backup(BackupArgs),
    /// Put load on a service in this process, and measure
    Load(LoadArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct DatabaseArgs {
    /// The database: a file (SQLite), or postgres://USER[:PASSWORD]@HOST[:PORT]/NAME[?sslrootcert=FILE] (PostgreSQL with
    /// PostGIS; the password may be in PGPASSWORD; other machines need the PEM file of the authority)
    #[arg(long, value_name = "FILE|URL", default_value = "coverage.db")]
    pub(crate) database: PathBuf,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// Where to listen. Other addresses than the loopback device's need a certificate
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:6580")]
    pub(crate) listen: SocketAddr,
    /// Certificate chain in PEM
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The certificate's key in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// A certificate that signs itself, for this name or address; it is kept beside the database
    #[arg(long, value_name = "NAME", conflicts_with = "cert")]
    pub(crate) self_signed: Vec<String>,
    /// Devices that must have reported before a region answers
    #[arg(long, value_name = "K", default_value = "3")]
    pub(crate) anonymity: usize,
    /// Days after which reports are deleted
    #[arg(long, value_name = "DAYS", default_value = "90")]
    pub(crate) retention: u32,
    /// Greatest size of the database in MB (SQLite)
    #[arg(long, value_name = "MB")]
    pub(crate) max_size: Option<u64>,
    /// Tables over which reports are spread by place, in a PostgreSQL database that is made
    #[arg(long, value_name = "N", default_value = "16")]
    pub(crate) partitions: u16,
    /// Logs as lines of JSON
    #[arg(long)]
    pub(crate) json_logs: bool,
    /// Log each request, without places and addresses
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DemoArgs {
    /// Devices that ride
    #[arg(long, value_name = "N", default_value = "60")]
    pub(crate) devices: u32,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve on until Ctrl-C, with a ride that goes on, and print the address of the map page
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// Norwegian 3G rides: time, ms, latitude, longitude, bytes, ms
    Norway,
    /// Irish 4G and 5G rides: CSV with a header
    Ireland,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LogArgs {
    /// Format of the logs
    #[arg(long, value_enum)]
    pub(crate) format: Format,
    /// The operator, as MCC-MNC or a name
    #[arg(long, value_name = "NAME", default_value = "unknown")]
    pub(crate) operator: String,
    /// Logs, one ride each
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(after_help = FORECAST)]
pub(crate) struct ForecastArgs {
    #[command(flatten)]
    pub(crate) logs: LogArgs,
    /// Folder for the files; it is made if absent
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Rides that must have reported before a region answers
    #[arg(long, value_name = "K", default_value = "3")]
    pub(crate) anonymity: usize,
    /// Time from one look-ahead to the next, 1 s to 1 h
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = crate::values::seconds)]
    pub(crate) interval: f64,
    /// No remarks on standard error
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

const FORECAST: &str = "\
Each log is one ride of one device. A map is made of all rides but one; that one looks ahead along its way, at the speed that it \
has, again at each interval. For each ride the folder gets

  N-NAME.capacity.csv   what it measured, as the capacity of a scenario's link
  N-NAME.forecast.csv   what the map said, for a flow's `forecast = { file = \"...\" }`
  N-NAME.svg            both: the route with its inter-quartile range, as figure 7.4 of the thesis

and rides.toml has a variant for each ride. The table shows for which share of the seconds something was known, the factor between \
the median foretold and the rate measured (median), and the share of seconds in which at least the lower quartile was measured \
(75 % is right).";

#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    #[command(flatten)]
    pub(crate) logs: LogArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RoleName {
    /// One device
    Reporter,
    /// Many devices, which it names
    Fleet,
    /// Looking ahead and metrics
    Reader,
    /// All, and keys
    Admin,
}

#[derive(Subcommand, Debug)]
pub(crate) enum KeysCommand {
    /// Make a key and print it, this once
    Add {
        #[command(flatten)]
        database: DatabaseArgs,
        /// Permission that the key gives
        #[arg(value_enum)]
        role: RoleName,
        /// Purpose of the key, for the list
        #[arg(long, default_value = "")]
        note: String,
        /// Days after which it is refused
        #[arg(long, value_name = "DAYS")]
        days: Option<u32>,
    },
    /// List all keys, without their secrets
    List {
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke a key
    Revoke {
        #[command(flatten)]
        database: DatabaseArgs,
        /// The 12 digits after wcm_
        id: String,
    },
}

#[derive(clap::Args, Debug)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) database: DatabaseArgs,
    /// The copy, which must not exist
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LoadArgs {
    /// How long
    #[arg(long, alias = "seconds", value_name = "TIME", default_value = "60s", value_parser = crate::values::seconds)]
    pub(crate) duration: f64,
    /// Updates a second
    #[arg(long, value_name = "N", default_value = "10000")]
    pub(crate) updates: f64,
    /// WebSocket subscribers
    #[arg(long, value_name = "N", default_value = "1000")]
    pub(crate) subscribers: usize,
    /// Malformed requests, beside the load from the second quarter of the time on
    #[arg(long, value_name = "N")]
    pub(crate) hostile: Option<u64>,
    /// Of which they are a function
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Streets of the drawn city in each direction: how many regions there are to fill
    #[arg(long, value_name = "N", default_value = "60")]
    pub(crate) streets: u32,
    /// An empty database, as of `serve`; without it, a file that is removed at the end
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) database: Option<PathBuf>,
    /// Tables over which reports are spread by place, in a PostgreSQL database
    #[arg(long, value_name = "N", default_value = "16")]
    pub(crate) partitions: u16,
}
