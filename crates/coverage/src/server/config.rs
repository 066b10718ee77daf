use crate::limits::Rate;
use crate::{Bounds, MapConfig};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use weir_units::TimeDelta;

/// How a connection is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsConfig {
    /// Not at all: on the loopback device only.
    None,
    /// A certificate chain and its key, as PEM files.
    Files {
        /// The chain.
        certificate: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// A certificate that signs itself, kept in this PEM file, made on first use. Clients compare its fingerprint.
    SelfSigned {
        /// The file.
        file: PathBuf,
        /// Names and addresses that it is for.
        names: Vec<String>,
    },
}

/// How the service runs. Every limit is per process.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    /// Where it listens. Default: port 6580 of the loopback device.
    pub listen: SocketAddr,
    /// How connections are protected. Plain HTTP is for the loopback device only. Default: not at all.
    pub tls: TlsConfig,
    /// How reports are aggregated.
    pub map: MapConfig,
    /// Limits of accepted updates; `max_age` is the retention as well.
    pub bounds: Bounds,
    /// Most updates of one batch. Default: 1,000.
    pub max_batch: usize,
    /// Longest body in bytes. Default: 512 KiB, a batch with room to spare.
    pub max_body: usize,
    /// Most updates that wait to be written; beyond that the answer is 429. Default: 100,000.
    pub max_queued: usize,
    /// Most connections that have presented a valid key; one that has been idle gives way to a new one. Default: 4,096.
    pub max_connections: usize,
    /// Of these, the most of one address (a /64 of IPv6). Default: 256.
    pub max_connections_per_address: usize,
    /// Most connections that have not. For one more, the one that is next by [`weir_admission`] is closed: of the address
    /// with most, the one longest without a request. Default: 512, half a second for each at 1,000 new ones a second.
    pub max_strangers: usize,
    /// Most bytes of all bodies that are being received. Where there are more, the body of the key that holds most is given
    /// up, the longest first. Default: 16 MiB.
    pub max_bodies: usize,
    /// Most subscriptions of one key. Default: 16.
    pub max_subscriptions_per_key: usize,
    /// Most pages that follow the map at once: each looks at its window again after each refresh. Default: 64.
    pub max_pages: usize,
    /// Most devices of one fleet's key. Default: 100,000.
    pub max_devices_per_key: usize,
    /// Time for a request's head, and for a TLS handshake. Default: 5 s.
    pub head_timeout: Duration,
    /// Time for a request's body. Default: 15 s.
    pub body_timeout: Duration,
    /// Time after which a connection on which nothing moves is closed. Default: 75 s.
    pub idle_timeout: Duration,
    /// Requests of one address without a valid key, where one with a wrong key counts as eleven, and apart from these those of
    /// each key at an address. Requests for health count for nobody. Default: 200 a second, 1,000 at once.
    pub address_rate: Rate,
    /// Updates of one device's key. Default: 10 a second, 6,000 at once (an hour offline at one in 600 ms).
    pub reporter_rate: Rate,
    /// Updates of a fleet's key. Default: 20,000 a second, 100,000 at once.
    pub fleet_rate: Rate,
    /// Look-aheads and downloads of one key. Default: 20 a second, 200 at once.
    pub look_rate: Rate,
    /// How often subscriptions look at the map again. Default: 5 s.
    pub refresh: Duration,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 6580)),
            tls: TlsConfig::None,
            map: MapConfig::default(),
            bounds: Bounds::default(),
            max_batch: 1_000,
            max_body: 512 * 1024,
            max_queued: 100_000,
            max_connections: 4_096,
            max_connections_per_address: 256,
            max_strangers: 512,
            max_bodies: 16 << 20,
            max_subscriptions_per_key: 16,
            max_pages: 64,
            max_devices_per_key: 100_000,
            head_timeout: Duration::from_secs(5),
            body_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(75),
            address_rate: Rate { per_second: 200.0, burst: 1_000.0 },
            reporter_rate: Rate { per_second: 10.0, burst: 6_000.0 },
            fleet_rate: Rate { per_second: 20_000.0, burst: 100_000.0 },
            look_rate: Rate { per_second: 20.0, burst: 200.0 },
            refresh: Duration::from_secs(5),
        }
    }
}

/// A configuration that must not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Keys would cross a network in the clear.
    #[error("{0} is not on the loopback device: plain HTTP is for that only, a certificate is needed")]
    PlainHttp(SocketAddr),
    /// A limit that lets nothing through.
    #[error("{0} must be positive")]
    Zero(&'static str),
}

/// Connections without proof that an address has without giving way to those with fewer: with 512 places it takes a flood
/// from 256 addresses to get at them.
const USUAL: usize = 2;
/// Connections in use that a browser has at a time to one service.
const OF_A_BROWSER: usize = 8;
/// A subscriber is pinged each 5 s by default, and answers.
const IN_USE: TimeDelta = TimeDelta::from_secs(20);

impl ServerConfig {
    /// The bounds on connections.
    pub(super) fn admission(&self) -> weir_admission::Limits {
        weir_admission::Limits {
            strangers: self.max_strangers,
            usual: USUAL,
            proven: self.max_connections,
            per_source: self.max_connections_per_address,
            kept: OF_A_BROWSER,
            quiet: IN_USE,
        }
    }

    /// Whether this may run.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.tls == TlsConfig::None && !self.listen.ip().is_loopback() {
            return Err(ConfigError::PlainHttp(self.listen));
        }
        let counts = [
            ("max_batch", self.max_batch),
            ("max_body", self.max_body),
            ("max_queued", self.max_queued),
            ("max_connections", self.max_connections),
            ("max_connections_per_address", self.max_connections_per_address),
            ("max_strangers", self.max_strangers),
            ("max_bodies", self.max_bodies),
        ];
        for (name, count) in counts {
            if count == 0 {
                return Err(ConfigError::Zero(name));
            }
        }
        if self.bounds.max_age <= TimeDelta::ZERO {
            return Err(ConfigError::Zero("bounds.max_age"));
        }
        Ok(())
    }
}
