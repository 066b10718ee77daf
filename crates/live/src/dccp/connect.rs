//! Opening connections.

use super::config::PortConfig;
use super::error::DccpError;
use super::link::Key;
use super::lock;
use super::outlet::overhead;
use super::port::DccpPort;
use super::random::random;
use super::socket::{DccpSocket, Interest};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use weir_dccp::connection::{Config, Connection};

/// How long [`DccpSocket::connect`] waits for the other end.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// Ephemeral DCCP ports (RFC 6335, section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Draws of an ephemeral port before all are assumed to be in use.
const DRAWS: u32 = 100;

impl DccpSocket {
    /// Opens a connection from its own ephemeral UDP port, and waits for the other end for 20 s.
    ///
    /// # Errors
    /// As [`Self::connect_timeout`].
    pub fn connect(peer: SocketAddr, config: Config) -> Result<Self, DccpError> {
        Self::connect_timeout(peer, config, CONNECT_TIMEOUT)
    }

    /// Opens a connection from its own ephemeral UDP port, and waits for the other end for a time.
    ///
    /// # Errors
    /// An invalid configuration, the other end cannot be reached, refuses or does not answer, or the system
    /// refuses the socket.
    pub fn connect_timeout(peer: SocketAddr, config: Config, time: Duration) -> Result<Self, DccpError> {
        let socket = Self::begin_connect(peer, config)?;
        if socket.wait(Interest::Open, Some(time))? {
            return Ok(socket);
        }
        let kind = socket.link.lock().unreachable;
        socket.abort();
        Err(match kind {
            Some(kind) => DccpError::Unreachable { peer, kind },
            None => DccpError::TimedOut { peer, seconds: time.as_secs_f64() },
        })
    }

    /// Begins to open a connection from its own ephemeral UDP port; [`Self::wait`] returns when it is open.
    ///
    /// # Errors
    /// An invalid configuration, or the system refuses the socket.
    pub fn begin_connect(peer: SocketAddr, config: Config) -> Result<Self, DccpError> {
        let any = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        DccpPort::bind(SocketAddr::new(any, 0), PortConfig::default())?.begin_connect(peer, config)
    }
}

impl DccpPort {
    /// Begins to open a connection, without waiting for the answer. Per-connection values are chosen here: a random
    /// seed, IP's overhead by the address, and this end's DCCP port, if it is given as 0, among the ephemeral ones.
    ///
    /// RFC 6773, section 3.8, recommends a UDP port per connection, as [`DccpSocket::connect`] uses.
    ///
    /// # Errors
    /// An invalid configuration, a full port, or no random numbers.
    pub fn begin_connect(&self, peer: SocketAddr, config: Config) -> Result<DccpSocket, DccpError> {
        let shared = self.shared();
        let config = Config { header_overhead: overhead(peer.ip()), seed: random()?, ..config };
        let now = shared.outlet.clock.now();
        let link = {
            let mut table = lock(&shared.table);
            if let Some(why) = shared.outlet.failure.get() {
                return Err(DccpError::Driver(why.clone()));
            }
            if table.links.len() >= shared.config.max_connections {
                return Err(DccpError::Full(table.links.len()));
            }
            let key = |local_port| Key { peer, local_ip: None, local_port, remote_port: config.remote_port };
            let local_port = match config.local_port {
                0 => free_port(|p| table.links.contains_key(&key(p)))?,
                p => p,
            };
            if table.links.contains_key(&key(local_port)) {
                let what = format!("DCCP port {local_port} has a connection to {peer} already: choose another, or 0");
                return Err(DccpError::Config(what));
            }
            let connection = Connection::connect(Config { local_port, ..config }, now)?;
            table.insert(key(local_port), connection, now)
        };
        let mut inner = link.lock();
        let (_, outcome) = link.with(&mut inner, &shared.outlet, now, |_, _| ());
        drop(inner);
        shared.settle(&link, outcome);
        Ok(DccpSocket::new(self.clone(), link))
    }
}

fn free_port(is_taken: impl Fn(u16) -> bool) -> Result<u16, DccpError> {
    let span = u64::from(EPHEMERAL.end() - EPHEMERAL.start()) + 1;
    for _ in 0..DRAWS {
        let port = EPHEMERAL.start() + (random()? % span) as u16;
        if !is_taken(port) {
            return Ok(port);
        }
    }
    Err(DccpError::Config("no ephemeral DCCP port is free towards this address".into()))
}
