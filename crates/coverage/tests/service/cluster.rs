//! A PostgreSQL server for a test, in a folder of its own, at this machine's loopback device and a Unix socket.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use weir_coverage::server::store::{PostgresConfig, StoreConfig};

/// A process that ends the server and removes its folder, once its input ends: also if this process is killed.
const JANITOR: &str = "trap '' INT TERM; cat >/dev/null; \"$@\" >/dev/null 2>&1; rm -rf \"$0\"";

pub(crate) struct Cluster {
    dir: PathBuf,
    port: u16,
    /// A certificate that the server shows.
    pub(crate) authority: PathBuf,
    databases: AtomicU32,
    janitor: Child,
}

/// The folder of PostgreSQL's programs.
fn programs() -> PathBuf {
    let newest = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|e| e.path().join("bin"));
    let found = newest.filter(|bin| bin.join("initdb").exists()).max();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = || std::env::split_paths(&path).find(|bin| bin.join("initdb").exists());
    found.or_else(in_path).expect(
        "PostgreSQL with PostGIS is needed: ./test installs it (Debian: apt-get install postgresql-postgis), elsewhere its \
        programs have to be in PATH",
    )
}

/// A program of the server, as a user who may run it: it refuses root.
fn program(dir: &Path, name: &str) -> Command {
    let program = programs().join(name);
    if fs::metadata(dir).expect("there").uid() != 0 && running_as_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
        return command;
    }
    Command::new(program)
}

fn running_as_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

fn succeed(command: &mut Command) {
    let out = command.stdin(Stdio::null()).output().expect("it runs");
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

impl Cluster {
    pub(crate) fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("weir-pg").tempdir().expect("a folder").keep();
        let port = TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a port").port();
        let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let (authority, key) = (dir.join("server.pem"), dir.join("server.key"));
        fs::write(&authority, certified.cert.pem()).expect("written");
        fs::write(&key, certified.signing_key.serialize_pem()).expect("written");
        succeed(Command::new("chmod").arg("600").arg(&key));
        if running_as_root() {
            succeed(Command::new("chown").arg("-R").arg("postgres:").arg(&dir));
            succeed(Command::new("chmod").arg("755").arg(&dir));
        }
        let data = dir.join("data");
        let mut stop = program(&dir, "pg_ctl");
        stop.args(["-m", "immediate", "stop", "-D"]).arg(&data);
        let janitor = Command::new("sh")
            .args(["-c", JANITOR])
            .arg(&dir)
            .arg(stop.get_program())
            .args(stop.get_args())
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let cluster = Self { dir, port, authority, databases: AtomicU32::new(0), janitor };
        let mut init = program(&cluster.dir, "initdb");
        init.args(["--no-sync", "--auth=trust", "--username=weir", "--encoding=UTF8", "--locale=C", "-D"]);
        succeed(init.arg(&data));
        fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))
            .and_then(|mut file| {
                let (dir, port) = (cluster.dir.display(), cluster.port);
                let settings = format!(
                    "listen_addresses = '127.0.0.1'\nport = {port}\nunix_socket_directories = '{dir}'\nssl = on\n\
                    ssl_cert_file = '{dir}/server.pem'\nssl_key_file = '{dir}/server.key'\n"
                );
                std::io::Write::write_all(&mut file, settings.as_bytes())
            })
            .expect("configured");
        cluster.resume();
        cluster.sql("template1", "CREATE EXTENSION postgis");
        cluster
    }

    fn control(&self, arguments: &[&str]) {
        let mut control = program(&self.dir, "pg_ctl");
        control.arg("-D").arg(self.dir.join("data")).arg("-l").arg(self.dir.join("log")).arg("-w").args(arguments);
        // Processes that it starts keep its output open.
        let done = control.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().expect("it runs");
        assert!(done.success(), "{}", self.log());
    }

    /// The last lines that the server wrote.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Ends the server as a crash does.
    pub(crate) fn crash(&self) {
        self.control(&["stop", "-m", "immediate"]);
    }

    pub(crate) fn resume(&self) {
        self.control(&["start"]);
    }

    /// Returns the result of a query, as text.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let out = Command::new(programs().join("psql"))
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--username=weir", "--set=ON_ERROR_STOP=1"])
            .arg("--host")
            .arg(&self.dir)
            .arg(format!("--port={}", self.port))
            .args(["--dbname", database, "--command", sql])
            .stdin(Stdio::null())
            .output()
            .expect("psql runs");
        assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).expect("UTF-8").trim().to_owned()
    }

    /// The name of a new database with PostGIS.
    pub(crate) fn database(&self) -> String {
        let name = format!("map{}", self.databases.fetch_add(1, Ordering::Relaxed));
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// The name of a new database with PostGIS, whose tables are in a folder.
    pub(crate) fn database_at(&self, folder: &Path) -> String {
        let tables = folder.join("tables");
        fs::create_dir(&tables).expect("made");
        if running_as_root() {
            succeed(Command::new("chown").arg("postgres:").arg(&tables));
            succeed(Command::new("chmod").arg("755").arg(folder));
        }
        self.sql("postgres", &format!("CREATE TABLESPACE small LOCATION '{}'", tables.display()));
        self.sql("postgres", "CREATE DATABASE small TABLESPACE small");
        "small".to_owned()
    }

    /// By the Unix socket.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres:///{database}?host={}&port={}&user=weir", self.dir.display(), self.port)
    }

    /// By TCP.
    pub(crate) fn tcp_url(&self, database: &str) -> String {
        format!("postgres://weir@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
    }
}

/// The server of tests that leave it running.
pub(crate) fn shared() -> &'static Cluster {
    static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);
    &CLUSTER
}

pub(crate) fn config(url: &str) -> PostgresConfig {
    let config = PostgresConfig::new(url, None).expect("valid");
    config.with_partitions(3).expect("valid").with_max_devices_per_key(50)
}

pub(crate) fn store(url: &str) -> StoreConfig {
    StoreConfig::Postgres(Box::new(config(url)))
}
