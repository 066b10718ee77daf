//! What the threads of a port share: the table of its connections, and what they leave for the driver.

use super::config::{PortConfig, PortCounters};
use super::handshakes::Handshakes;
use super::link::{Due, Key, Link, Outcome};
use super::lock;
use super::outlet::Outlet;
use crate::udp::{UdpPort, Waker};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use weir_dccp::connection::Connection;
use weir_units::Timestamp;

/// What all threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outlet: Outlet,
    pub(super) local: SocketAddr,
    pub(super) config: PortConfig,
    pub(super) waker: Waker,
    pub(super) table: Mutex<Table>,
    /// A connection has been put into [`Table::ready`].
    pub(super) acceptable: Condvar,
    /// Deadlines that the driver does not know yet.
    pub(super) due: Mutex<Vec<Due>>,
    /// Until when the driver sleeps, in ns of the clock; while it is awake, the beginning of time.
    pub(super) sleeps_until: AtomicI64,
    /// Answers Requests, while somebody listens.
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

    /// Does what came of something that a thread other than the driver has done.
    pub(super) fn settle(&self, link: &Arc<Link>, outcome: Outcome) {
        if outcome.sent > 0 {
            self.outlet.flush();
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
        let _ = self.outlet.failure.set(why);
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
