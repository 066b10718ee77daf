//! State shared by the threads of a port: the table of connections, and requests to the driver.

use super::config::{PortConfig, PortCounters};
use super::handshakes::Handshakes;
use super::link::{Due, Key, Link, Outcome};
use super::lock;
use super::outlet::Outlet;
use crate::udp::{UdpPort, Waker};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use weir_dccp::connection::Connection;
use weir_units::Timestamp;

/// State shared by all threads.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outlet: Outlet,
    pub(super) local: SocketAddr,
    pub(super) config: PortConfig,
    pub(super) waker: Waker,
    pub(super) table: Mutex<Table>,
    /// A connection was added to [`Table::ready`] or [`Table::news`].
    pub(super) acceptable: Condvar,
    /// Deadlines that the driver does not know yet.
    pub(super) due: Mutex<Vec<Due>>,
    /// Until when the driver sleeps, in ns of the clock; while it is awake, the beginning of time.
    pub(super) sleeps_until: AtomicI64,
    /// Answers Requests, while there is a listener.
    pub(super) handshakes: Mutex<Option<Handshakes>>,
    /// All handles are gone.
    pub(super) closing: AtomicBool,
    pub(super) counters: Mutex<PortCounters>,
    pub(super) wakes: AtomicU64,
}

/// The connections of a port.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) links: HashMap<Key, Arc<Link>>,
    /// Opened by others, and to be accepted.
    pub(super) ready: VecDeque<Arc<Link>>,
    /// Watched connections of which something has arrived or that have changed their state.
    pub(super) news: VecDeque<Arc<Link>>,
    /// Connections opened by each source.
    sources: HashMap<IpAddr, usize>,
    pub(super) is_listening: bool,
    next_id: u64,
}

impl Table {
    /// Whether `peer` may not open another connection.
    pub(super) fn is_full(&self, config: &PortConfig, peer: IpAddr) -> bool {
        self.links.len() >= config.max_connections
            || self.ready.len() >= config.backlog
            || self.sources.get(&source(peer)).is_some_and(|n| *n >= config.max_per_source)
    }
    /// Adds a connection opened by the other end.
    pub(super) fn insert_accepted(&mut self, key: Key, connection: Connection, now: Timestamp) -> Arc<Link> {
        let link = self.insert_link(key, Link::accepted, connection, now);
        *self.sources.entry(source(key.peer.ip())).or_default() += 1;
        self.ready.push_back(link.clone());
        link
    }
    /// Adds a connection opened by this end.
    pub(super) fn insert(&mut self, key: Key, connection: Connection, now: Timestamp) -> Arc<Link> {
        self.insert_link(key, Link::new, connection, now)
    }
    fn insert_link(
        &mut self,
        key: Key,
        make: fn(Key, u64, Connection, Timestamp) -> Link,
        connection: Connection,
        now: Timestamp,
    ) -> Arc<Link> {
        self.next_id += 1;
        let link = Arc::new(make(key, self.next_id, connection, now));
        self.links.insert(key, link.clone());
        link
    }
    fn remove(&mut self, link: &Arc<Link>) {
        // Another one may have replaced it.
        if self.links.get(&link.key).is_none_or(|l| l.id != link.id) {
            return;
        }
        self.links.remove(&link.key);
        let source = source(link.key.peer.ip());
        if link.is_accepted
            && let Some(count) = self.sources.get_mut(&source)
        {
            *count -= 1;
            if *count == 0 {
                self.sources.remove(&source);
            }
        }
    }
}

/// One source: an address, or an IPv6 network of 64 bits, of which a host may have all addresses.
fn source(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
        v4 => v4,
    }
}

impl Shared {
    pub(super) fn new(outlet: UdpPort, local: SocketAddr, config: PortConfig, waker: Waker) -> Self {
        Self {
            outlet: Outlet::new(outlet),
            local,
            config,
            waker,
            table: Mutex::default(),
            acceptable: Condvar::new(),
            due: Mutex::default(),
            sleeps_until: AtomicI64::new(0),
            handshakes: Mutex::default(),
            closing: AtomicBool::new(false),
            counters: Mutex::default(),
            wakes: AtomicU64::new(0),
        }
    }

    pub(super) fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Handles the outcome of an action by a thread other than the driver.
    pub(super) fn settle(&self, link: &Arc<Link>, outcome: Outcome) {
        if outcome.sent > 0 {
            self.outlet.flush();
        }
        if outcome.is_over {
            self.forget(link);
        }
        if outcome.has_news {
            self.announce(link);
        }
        let due = if outcome.is_over { Some(Timestamp::ZERO) } else { outcome.due };
        let Some(due) = due else { return };
        if !outcome.is_over {
            lock(&self.due).push((due, link.clone()));
        }
        // The driver checks deadlines after it has stored its sleep time.
        if due.as_nanos() < self.sleeps_until.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Wakes threads that wait for events of watched connections.
    pub(super) fn announce(&self, link: &Arc<Link>) {
        lock(&self.table).news.push_back(link.clone());
        self.acceptable.notify_one();
    }

    /// Removes an ended connection from the table.
    pub(super) fn forget(&self, link: &Arc<Link>) {
        lock(&self.table).remove(link);
    }

    /// The driver has failed: all waits end with this reason.
    pub(super) fn fail(&self, why: String) {
        let _ = self.outlet.failure.set(why);
        let links: Vec<Arc<Link>> = {
            let table = lock(&self.table);
            self.acceptable.notify_all();
            table.links.values().cloned().collect()
        };
        for link in links {
            // A thread that checked before the failure was stored is waiting by now, or still holds the lock.
            drop(link.lock());
            link.wake_all();
        }
    }
}
