//! Connections that others open.

use super::config::PortConfig;
use super::error::DccpError;
use super::handshakes::Handshakes;
use super::lock;
use super::port::DccpPort;
use super::socket::{DccpSocket, SocketId};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_dccp::connection::Config;
use weir_dccp::listener::ListenerConfig;
use weir_units::TimeDelta;

/// Maximum wait before a thread checks again.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Accepts connections on a UDP port.
///
/// Dropping it ends that: connections not yet accepted are reset, and accepted ones continue.
#[derive(Debug)]
pub struct DccpListener {
    port: DccpPort,
    is_nonblocking: AtomicBool,
}

impl DccpPort {
    /// Begins to accept connections. The configuration's secret is drawn here, and IP's overhead is set by the port.
    ///
    /// # Errors
    /// It listens already, the configuration is invalid, or there are no random numbers.
    pub fn listen(&self, config: ListenerConfig) -> Result<DccpListener, DccpError> {
        let shared = self.shared();
        let mut handshakes = lock(&shared.handshakes);
        if handshakes.is_some() {
            return Err(DccpError::Config(format!("{} is listened on already", self.local_addr())));
        }
        *handshakes = Some(Handshakes::new(config, self.local_addr())?);
        lock(&shared.table).is_listening = true;
        drop(handshakes);
        Ok(DccpListener { port: self.clone(), is_nonblocking: AtomicBool::new(false) })
    }
}

impl DccpListener {
    /// Binds a UDP port, any if the address has port 0, and accepts connections of this configuration there, on its
    /// local DCCP port and for its service.
    ///
    /// # Errors
    /// The system refuses the socket or the thread, or the configuration is invalid.
    pub fn bind(address: SocketAddr, connection: Config) -> Result<Self, DccpError> {
        DccpPort::bind(address, PortConfig::default())?.listen(ListenerConfig::new(connection, [0; 32]))
    }

    /// Waits for the next connection, whose handshake is complete.
    ///
    /// # Errors
    /// [`DccpError::WouldBlock`] if there is none and [`Self::set_nonblocking`] is on.
    pub fn accept(&self) -> Result<DccpSocket, DccpError> {
        let time = self.is_nonblocking.load(Ordering::Relaxed).then_some(TimeDelta::ZERO);
        self.accept_until(time)
    }

    /// Waits for the next connection for a time.
    ///
    /// # Errors
    /// [`DccpError::WouldBlock`] if none is open by then.
    pub fn accept_timeout(&self, time: Duration) -> Result<DccpSocket, DccpError> {
        self.accept_until(Some(TimeDelta::from_secs_f64(time.as_secs_f64())))
    }

    fn accept_until(&self, time: Option<TimeDelta>) -> Result<DccpSocket, DccpError> {
        let shared = self.port.shared();
        let until = time.map(|t| shared.outlet.clock.now() + t);
        let mut table = lock(&shared.table);
        loop {
            if let Some(link) = table.ready.pop_front() {
                drop(table);
                return Ok(DccpSocket::new(self.port.clone(), link));
            }
            if let Some(why) = shared.outlet.failure.get() {
                return Err(DccpError::Driver(why.clone()));
            }
            let left = until.map(|u| u.saturating_since(shared.outlet.clock.now()));
            if left.is_some_and(|l| l <= TimeDelta::ZERO) {
                return Err(DccpError::WouldBlock);
            }
            let left = left.map_or(MAX_WAIT, |l| Duration::from_nanos(l.as_nanos().unsigned_abs()).min(MAX_WAIT));
            table = shared.acceptable.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until there is a connection to accept, if `accepts` is set, or watched ones have events
    /// ([`DccpSocket::watch`]), whose ids replace the contents of `news`; returns at the latest after `time`.
    ///
    /// # Errors
    /// The port has failed.
    pub fn wait(&self, accepts: bool, time: Duration, news: &mut Vec<SocketId>) -> Result<(), DccpError> {
        news.clear();
        let shared = self.port.shared();
        let until = shared.outlet.clock.now() + TimeDelta::from_secs_f64(time.as_secs_f64());
        let mut table = lock(&shared.table);
        while table.news.is_empty() && (!accepts || table.ready.is_empty()) {
            if let Some(why) = shared.outlet.failure.get() {
                return Err(DccpError::Driver(why.clone()));
            }
            let left = until.saturating_since(shared.outlet.clock.now());
            if left <= TimeDelta::ZERO {
                return Ok(());
            }
            let left = Duration::from_nanos(left.as_nanos().unsigned_abs()).min(MAX_WAIT);
            table = shared.acceptable.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let links = std::mem::take(&mut table.news);
        drop(table);
        for link in links {
            link.take_news();
            news.push(SocketId(link.id));
        }
        Ok(())
    }

    /// Whether [`Self::accept`] returns at once if there is nothing to accept.
    pub fn set_nonblocking(&self, is_nonblocking: bool) {
        self.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
    }

    /// Its local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.local_addr()
    }

    /// The UDP port that it listens on.
    pub fn port(&self) -> &DccpPort {
        &self.port
    }
}

impl Drop for DccpListener {
    fn drop(&mut self) {
        let shared = self.port.shared();
        *lock(&shared.handshakes) = None;
        let waiting = {
            let mut table = lock(&shared.table);
            table.is_listening = false;
            std::mem::take(&mut table.ready)
        };
        for link in waiting {
            DccpSocket::new(self.port.clone(), link).abort();
        }
    }
}
