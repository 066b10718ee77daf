//! A UDP port and the connections on it.

use super::config::{PortConfig, PortCounters};
use super::driver::Driver;
use super::error::DccpError;
use super::lock;
use super::shared::Shared;
use crate::udp::{UdpConfig, UdpPort, Waker};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_units::{TimeDelta, Timestamp};

/// Bytes of the driver's stack.
const STACK: usize = 512 << 10;

/// A UDP port that carries connections. It stays open while it has handles, sockets or connections: connections whose
/// sockets were dropped close in the background.
#[derive(Clone, Debug)]
pub struct DccpPort(Arc<Handle>);

#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.closing.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}

impl DccpPort {
    /// Binds a UDP port: any if the address has port 0.
    ///
    /// # Errors
    /// The system refuses the socket or the thread.
    pub fn bind(address: SocketAddr, config: PortConfig) -> Result<Self, DccpError> {
        let socket = UdpSocket::bind(address);
        let what = || format!("binding the UDP socket {address}");
        Self::of(socket.map_err(DccpError::socket(what()))?, config)
    }

    /// Likewise for a socket that is already bound, as in another network namespace.
    ///
    /// # Errors
    /// The system refuses what ECN, batches or the thread need.
    pub fn of(socket: UdpSocket, config: PortConfig) -> Result<Self, DccpError> {
        let udp = UdpConfig { errors: true, ..config.udp };
        let inlet = UdpPort::new(socket, udp).map_err(DccpError::socket("preparing the UDP socket"))?;
        let outlet = inlet.twin().map_err(DccpError::socket("doubling the UDP socket"))?;
        let local = inlet.local_addr().map_err(DccpError::socket("asking for the UDP socket's address"))?;
        let waker = Waker::new().map_err(DccpError::socket("making a descriptor to wake a thread by"))?;
        let shared = Arc::new(Shared::new(outlet, local, config, waker));
        let driver = Driver::new(shared.clone(), inlet);
        std::thread::Builder::new()
            .name("dccp".into())
            .stack_size(STACK)
            .spawn(move || driver.run())
            .map_err(DccpError::socket("starting a thread"))?;
        Ok(Self(Arc::new(Handle(shared))))
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().local
    }

    /// Its counters.
    pub fn counters(&self) -> PortCounters {
        let s = self.shared();
        let sent = lock(&s.outlet.socket).counters();
        PortCounters { sent, wakes: s.wakes.load(Ordering::Relaxed), ..*lock(&s.counters) }
    }

    /// How long it has been open.
    pub fn uptime(&self) -> TimeDelta {
        self.shared().outlet.clock.now() - Timestamp::ZERO
    }

    /// Connections on it, in any state, TIMEWAIT included.
    pub fn connections(&self) -> usize {
        lock(&self.shared().table).links.len()
    }
}
