//! A UDP port and the connections on it.

use super::driver::Driver;
use super::error::DccpError;
use super::link::{Due, Key, Link, Outcome};
use super::listener::DccpListener;
use super::lock;
use super::seat::{Seat, Way};
use super::socket::DccpSocket;
use crate::clock::Clock;
use crate::udp::{UdpConfig, UdpCounters, UdpPort, Waker};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use weir_dccp::connection::{Config, Connection};
use weir_dccp::listener::ListenerConfig;
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};

/// Ephemeral DCCP ports (RFC 6335, section 6).
const EPHEMERAL: std::ops::RangeInclusive<u16> = 49_152..=65_535;
/// Draws of an ephemeral port that is free before there is said to be none.
const DRAWS: u32 = 100;
/// Bytes of the driver's stack.
const STACK: usize = 512 << 10;
/// Bytes of IP and UDP headers.
const V4_HEADERS: DataSize = DataSize::from_bytes(28);
const V6_HEADERS: DataSize = DataSize::from_bytes(48);

/// How a port works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// The UDP socket. Errors that ICMP tells are always asked for.
    pub udp: UdpConfig,
    /// Connections in any state; more are refused.
    pub max_connections: usize,
    /// Connections that are open and that nobody has accepted yet; with more, Requests are answered by Too Busy.
    pub backlog: usize,
    /// Real-time priority (SCHED_FIFO, from 1 on) that the port's thread asks for, where a machine is busy.
    pub realtime: Option<u8>,
}

impl Default for PortConfig {
    fn default() -> Self {
        let udp = UdpConfig { errors: true, buffer: Some(4 << 20), ..UdpConfig::default() };
        Self { udp, max_connections: 10_000, backlog: 128, realtime: None }
    }
}

/// What a port has seen beside what its connections count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PortCounters {
    /// Datagrams of no connection.
    pub strays: u64,
    /// Datagrams too short for a DCCP header.
    pub malformed: u64,
    /// Connections accepted from outside, up to the end of the handshake.
    pub accepted: u64,
    /// Connections reset because too many waited to be accepted, or the port had all that it may have, when they opened.
    pub turned_away: u64,
    /// What ICMP has told of a connection's packets.
    pub path_errors: u64,
    /// What it has told of packets that no connection has sent lately.
    pub foreign_errors: u64,
    /// Failures of the socket on receipt.
    pub receive_errors: u64,
    /// Turns of the port's thread.
    pub turns: u64,
    /// Times that others have woken it.
    pub wakes: u64,
    /// The UDP socket's, receiving.
    pub received: UdpCounters,
    /// The UDP socket's, sending.
    pub sent: UdpCounters,
}

/// A UDP port that carries connections. It stays open as long as it has handles, sockets or connections: those that their
/// sockets have left close in the background.
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

/// What all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    local: SocketAddr,
    pub(super) config: PortConfig,
    pub(super) waker: Waker,
    pub(super) outlet: Mutex<UdpPort>,
    pub(super) table: Mutex<Table>,
    /// A connection has been put into [`Table::ready`].
    pub(super) acceptable: Condvar,
    /// Deadlines that the driver does not know yet.
    pub(super) due: Mutex<Vec<Due>>,
    /// Until when the driver sleeps, in ns of the clock; while it is awake, the beginning of time.
    pub(super) sleeps_until: AtomicI64,
    /// Takes Requests, while somebody listens.
    pub(super) listener: Mutex<Option<Seat>>,
    /// All handles are gone.
    pub(super) closing: AtomicBool,
    /// The driver has failed.
    pub(super) failure: OnceLock<String>,
    pub(super) counters: Mutex<PortCounters>,
    wakes: AtomicU64,
}

/// The connections of a port.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) links: HashMap<Key, Arc<Link>>,
    /// Opened by others, and to be accepted.
    pub(super) ready: VecDeque<Arc<Link>>,
    pub(super) is_listening: bool,
    next_id: u64,
}

impl Table {
    /// Whether no connection may be added that others open.
    pub(super) fn is_full(&self, config: &PortConfig) -> bool {
        self.links.len() >= config.max_connections || self.ready.len() >= config.backlog
    }
    /// Takes a connection in.
    pub(super) fn insert(&mut self, key: Key, connection: Connection, now: Timestamp) -> Arc<Link> {
        self.next_id += 1;
        let link = Arc::new(Link::new(key, self.next_id, connection, now));
        self.links.insert(key, link.clone());
        link
    }
}

impl Shared {
    pub(super) fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Does what came of something that a thread other than the driver has done.
    pub(super) fn settle(&self, link: &Arc<Link>, outcome: Outcome) {
        if outcome.sent > 0 {
            lock(&self.outlet).flush();
        }
        if outcome.is_over {
            self.forget(link);
        }
        let due = if outcome.is_over { Some(Timestamp::ZERO) } else { outcome.due };
        let Some(due) = due else { return };
        if !outcome.is_over {
            lock(&self.due).push((due, link.clone()));
        }
        // The driver looks at what is due after it has said how long it will sleep.
        if due.as_nanos() < self.sleeps_until.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Sends a packet of no connection. It leaves when the outlet is flushed.
    pub(super) fn send(&self, (peer, local_ip): Way, bytes: &[u8]) {
        lock(&self.outlet).send_from(local_ip, peer, Ecn::NotEct, bytes);
    }

    /// Takes a connection that is over out of the table.
    pub(super) fn forget(&self, link: &Arc<Link>) {
        let mut table = lock(&self.table);
        // Another may have come in its place.
        if table.links.get(&link.key).is_some_and(|l| l.id == link.id) {
            table.links.remove(&link.key);
        }
    }

    /// Everything that waits is told that the driver is gone.
    pub(super) fn fail(&self, why: String) {
        let _ = self.failure.set(why);
        let links: Vec<Arc<Link>> = {
            let table = lock(&self.table);
            self.acceptable.notify_all();
            table.links.values().cloned().collect()
        };
        for link in links {
            // Whoever has looked before the failure was told waits now, or holds the lock still.
            drop(link.lock());
            link.wake_all();
        }
    }
}

/// Random bits from the system.
pub(super) fn random() -> Result<u64, DccpError> {
    getrandom::u64().map_err(|e| DccpError::Random(e.to_string()))
}

impl DccpPort {
    /// Takes a UDP port: any where the address says 0.
    ///
    /// # Errors
    /// Where the system refuses the socket or the thread.
    pub fn bind(address: SocketAddr, config: PortConfig) -> Result<Self, DccpError> {
        let socket = UdpSocket::bind(address);
        let what = || format!("binding the UDP socket {address}");
        Self::of(socket.map_err(DccpError::socket(what()))?, config)
    }

    /// The same of a socket that is bound already, as in another network namespace.
    ///
    /// # Errors
    /// Where the system refuses what ECN, batches or the thread need.
    pub fn of(socket: UdpSocket, config: PortConfig) -> Result<Self, DccpError> {
        let udp = UdpConfig { errors: true, ..config.udp };
        let inlet = UdpPort::new(socket, udp).map_err(DccpError::socket("preparing the UDP socket"))?;
        let outlet = inlet.twin().map_err(DccpError::socket("doubling the UDP socket"))?;
        let local = inlet.local_addr().map_err(DccpError::socket("asking for the UDP socket's address"))?;
        let shared = Arc::new(Shared {
            clock: Clock::starting_now(),
            local,
            config,
            waker: Waker::new().map_err(DccpError::socket("making a descriptor to wake a thread by"))?,
            outlet: Mutex::new(outlet),
            table: Mutex::default(),
            acceptable: Condvar::new(),
            due: Mutex::default(),
            sleeps_until: AtomicI64::new(0),
            listener: Mutex::default(),
            closing: AtomicBool::new(false),
            failure: OnceLock::new(),
            counters: Mutex::default(),
            wakes: AtomicU64::new(0),
        });
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

    /// What it has seen.
    pub fn counters(&self) -> PortCounters {
        let s = self.shared();
        let sent = lock(&s.outlet).counters();
        PortCounters { sent, wakes: s.wakes.load(Ordering::Relaxed), ..*lock(&s.counters) }
    }

    /// How long it has been open.
    pub fn uptime(&self) -> TimeDelta {
        self.shared().clock.now() - Timestamp::ZERO
    }

    /// Connections on it, in any state, TIMEWAIT included.
    pub fn connections(&self) -> usize {
        lock(&self.shared().table).links.len()
    }

    /// Begins to accept connections. The configuration's secret is drawn here, and IP's overhead is the port's.
    ///
    /// # Errors
    /// Where it does so already, the configuration cannot be, or there are no random numbers.
    pub fn listen(&self, config: ListenerConfig) -> Result<DccpListener, DccpError> {
        DccpListener::on(self.clone(), config)
    }

    /// Begins to open a connection, without waiting for the answer. What differs from one to the next is chosen here: the
    /// seed at random, IP's overhead by the address, and this end's DCCP port, where it is given as 0, among the ephemeral ones.
    ///
    /// RFC 6773, section 3.8, would rather have a UDP port for each connection, as [`DccpSocket::connect`] has it.
    ///
    /// # Errors
    /// Where the configuration cannot be, the port is full, or there are no random numbers.
    pub fn begin_connect(&self, peer: SocketAddr, config: Config) -> Result<DccpSocket, DccpError> {
        let shared = self.shared();
        let config = Config { header_overhead: overhead(peer.ip()), seed: random()?, ..config };
        let now = shared.clock.now();
        let link = {
            let mut table = lock(&shared.table);
            if let Some(why) = shared.failure.get() {
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
        let (_, outcome) = link.with(&mut inner, shared, now, |_, _| ());
        drop(inner);
        shared.settle(&link, outcome);
        Ok(DccpSocket::new(self.clone(), link))
    }
}

/// Bytes of the headers below DCCP on the way to an address.
pub(super) fn overhead(peer: IpAddr) -> DataSize {
    if peer.to_canonical().is_ipv4() { V4_HEADERS } else { V6_HEADERS }
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
