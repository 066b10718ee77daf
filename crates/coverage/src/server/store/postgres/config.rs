use crate::server::store::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time to connect to one address.
const CONNECT: Duration = Duration::from_secs(5);
/// Time after which a connection on which nothing is acknowledged is lost.
const SILENCE: Duration = Duration::from_secs(15);
/// Most partitions: each is two indexes to open for a statement.
const MAX_PARTITIONS: u16 = 1_024;

/// A database of a server. Its text shows no user and no password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresConfig {
    connection: tokio_postgres::Config,
    roots: Option<PathBuf>,
    partitions: u16,
    max_devices_per_key: u32,
}

fn refused(text: impl fmt::Display) -> StoreError {
    StoreError::Database(text.to_string())
}

/// Whether what is sent there stays on this machine.
fn is_local(connection: &tokio_postgres::Config) -> bool {
    let host = |host: &Host| match host {
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    connection.get_hosts().iter().all(host) && connection.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

impl PostgresConfig {
    /// Whether a text is the address of such a database, and no file.
    pub fn is_url(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads `postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE[?PARAMETER=VALUE&...]`, with the parameters of libpq that
    /// tokio-postgres knows and `sslrootcert=FILE`. `password` is used if the URL has none. Other hosts than this machine's own
    /// are connected to by TLS, with a certificate of one of the authorities in `sslrootcert`.
    ///
    /// # Errors
    /// It is none, or reports would cross a network in the clear.
    pub fn new(url: &str, password: Option<&str>) -> Result<Self, StoreError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut rest, mut roots): (Vec<&str>, Option<PathBuf>) = (Vec::new(), None);
        for parameter in query.split('&').filter(|p| !p.is_empty()) {
            match parameter.split_once('=') {
                Some(("sslrootcert", file)) => roots = Some(file.into()),
                // Certificates are always verified.
                Some(("sslmode", "verify-full" | "verify-ca")) => rest.push("sslmode=require"),
                _ => rest.push(parameter),
            }
        }
        let separator = if rest.is_empty() { "" } else { "?" };
        let mut connection: tokio_postgres::Config = format!("{base}{separator}{}", rest.join("&"))
            .parse()
            .map_err(|e| refused(format!("the database's address: {}", super::error::text(&e))))?;
        if let (None, Some(password)) = (connection.get_password(), password) {
            connection.password(password);
        }
        #[cfg(unix)]
        if connection.get_hosts().is_empty() && connection.get_hostaddrs().is_empty() {
            connection.host_path("/var/run/postgresql");
        }
        let local = is_local(&connection);
        match (local, &roots, connection.get_ssl_mode()) {
            (false, _, SslMode::Disable) => {
                return Err(refused(
                    "sslmode=disable is for databases on this machine: reports would cross a network in the clear",
                ));
            }
            (false, None, _) | (true, None, SslMode::Require) => {
                return Err(refused(
                    "TLS needs the database's authority: add ?sslrootcert=FILE, a PEM file, to its address",
                ));
            }
            (_, Some(_), _) => connection.ssl_mode(SslMode::Require),
            (true, None, _) => connection.ssl_mode(SslMode::Disable),
        };
        if connection.get_connect_timeout().is_none() {
            connection.connect_timeout(CONNECT);
        }
        connection.tcp_user_timeout(SILENCE).keepalives_idle(SILENCE).application_name("weir coverage");
        Ok(Self { connection, roots, partitions: 16, max_devices_per_key: 100_000 })
    }

    /// Partitions of a database that is made, 1 to 1,024. Default: 16.
    ///
    /// # Errors
    /// Another number.
    pub fn with_partitions(self, partitions: u16) -> Result<Self, StoreError> {
        if !(1..=MAX_PARTITIONS).contains(&partitions) {
            return Err(refused(format!("{partitions} partitions: 1 to {MAX_PARTITIONS} are possible")));
        }
        Ok(Self { partitions, ..self })
    }

    /// Most devices of one key. Default: 100,000.
    #[must_use]
    pub fn with_max_devices_per_key(self, max_devices_per_key: u32) -> Self {
        Self { max_devices_per_key, ..self }
    }

    pub(super) fn partitions(&self) -> u16 {
        self.partitions
    }

    pub(super) fn max_devices_per_key(&self) -> u32 {
        self.max_devices_per_key
    }

    pub(super) fn connection(&self) -> &tokio_postgres::Config {
        &self.connection
    }

    /// Protection of connections, or `None` on this machine.
    pub(super) fn tls(&self) -> Result<Option<MakeRustlsConnect>, StoreError> {
        let Some(file) = &self.roots else { return Ok(None) };
        let roots = authorities(file).map_err(|e| refused(format!("{}: {e}", file.display())))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(MakeRustlsConnect::new(config)))
    }
}

fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| e.to_string())? {
        roots.add(certificate.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    }
    if roots.is_empty() { Err("no certificate in it".to_owned()) } else { Ok(roots) }
}

impl fmt::Display for PostgresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match self.connection.get_hosts().first() {
            Some(Host::Tcp(name)) => name.clone(),
            #[cfg(unix)]
            Some(Host::Unix(path)) => path.display().to_string(),
            None => self.connection.get_hostaddrs().first().map_or_else(String::new, ToString::to_string),
        };
        write!(f, "database {:?} of PostgreSQL at {host}", self.connection.get_dbname().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_cross_no_network_in_the_clear() {
        for (url, mode) in [
            ("postgres://weir@localhost/map", Some(SslMode::Disable)),
            ("postgres://weir@[::1]:5433/map?sslmode=prefer", Some(SslMode::Disable)),
            ("postgres:///map?user=weir", Some(SslMode::Disable)),
            ("postgres://weir@127.0.0.1/map?sslrootcert=ca.pem", Some(SslMode::Require)),
            ("postgres://weir@db.example.org/map?sslmode=verify-full&sslrootcert=ca.pem", Some(SslMode::Require)),
            ("postgresql://weir@db.example.org/map?sslrootcert=ca.pem&application_name=x", Some(SslMode::Require)),
            ("postgres://weir@db.example.org/map", None),
            ("postgres://weir@localhost,db.example.org/map", None),
            ("postgres://weir@localhost/map?hostaddr=192.0.2.1", None),
            ("postgres://weir@db.example.org/map?sslmode=disable&sslrootcert=ca.pem", None),
            ("postgres://weir@localhost/map?sslmode=require", None),
            ("postgres://weir@localhost:port/map", None),
            ("postgres://weir@localhost/map?colour=red", None),
        ] {
            assert!(PostgresConfig::is_url(url));
            let read = PostgresConfig::new(url, None);
            assert_eq!(read.as_ref().ok().map(|c| c.connection.get_ssl_mode()), mode, "{url}: {read:?}");
        }
        assert!(!PostgresConfig::is_url("coverage.db") && !PostgresConfig::is_url("postgres.db"));
    }

    #[test]
    fn passwords_are_not_shown() {
        let read = PostgresConfig::new("postgres://weir:secret@localhost/map", Some("other")).expect("valid");
        assert_eq!(read.connection.get_password(), Some(&b"secret"[..]));
        assert_eq!(read.to_string(), "database \"map\" of PostgreSQL at localhost");
        assert!(!format!("{read:?}").contains("secret"), "{read:?}");
        let read = PostgresConfig::new("postgres://weir@localhost/map", Some("other")).expect("valid");
        assert_eq!(read.connection.get_password(), Some(&b"other"[..]));
        let error = PostgresConfig::new("postgres://weir:secret@localhost:x/map", None).expect_err("no port");
        assert!(!error.to_string().contains("secret"), "{error}");
        assert!(read.with_partitions(0).is_err());
    }
}
