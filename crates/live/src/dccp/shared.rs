//! State shared by the threads of a port: the table of connections, and requests to the driver.

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
use weir_admission::{Doors, Limits, Proof, Source};
use weir_dccp::connection::Connection;
use weir_units::{TimeDelta, Timestamp};

/// A connection that has sent data, and none for this long, gives way to one that sends.
const QUIET: TimeDelta = TimeDelta::from_secs(5);
/// Connections of one source without data that count as one.
const USUAL: usize = 4;

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
#[derive(Debug)]
pub(super) struct Table {
    pub(super) links: HashMap<Key, Arc<Link>>,
    /// Opened by others, and to be accepted.
    pub(super) ready: VecDeque<Arc<Link>>,
    /// Watched connections of which something has arrived or that have changed their state.
    pub(super) news: VecDeque<Arc<Link>>,
    /// Places of the connections opened by others. One is a stranger until it has sent data.
    doors: Doors<Arc<Link>>,
    pub(super) is_listening: bool,
    next_id: u64,
}

impl Table {
    fn new(config: &PortConfig) -> Self {
        let strangers = (config.max_connections / 4).max(1);
        let limits = Limits {
            strangers,
            usual: USUAL,
            proven: config.max_connections.saturating_sub(strangers).max(1),
            per_source: config.max_per_source,
            kept: (config.max_per_source / 4).max(1),
            quiet: QUIET,
        };
        Self {
            links: HashMap::new(),
            ready: VecDeque::new(),
            news: VecDeque::new(),
            doors: Doors::new(limits),
            is_listening: false,
            next_id: 0,
        }
    }
    /// Whether too many connections wait to be accepted.
    pub(super) fn is_full(&self, config: &PortConfig) -> bool {
        self.ready.len() >= config.backlog
    }
    /// Adds a connection opened by the other end. Second is the one that gives way for it, to be reset.
    pub(super) fn insert_accepted(
        &mut self,
        key: Key,
        connection: Connection,
        now: Timestamp,
    ) -> (Arc<Link>, Option<Arc<Link>>) {
        let link = self.insert(key, connection, now);
        let (ticket, gone) = self.doors.enter(now, Source::from(key.peer.ip()), link.clone());
        link.set_ticket(ticket);
        if let Some(gone) = &gone {
            self.ready.retain(|waiting| waiting.id != gone.id);
        }
        self.ready.push_back(link.clone());
        (link, gone)
    }
    /// A connection opened by the other end has sent data. Returns the one that gives way for it, to be reset.
    pub(super) fn note_data(&mut self, link: &Link, now: Timestamp) -> Option<Arc<Link>> {
        match self.doors.prove(now, link.ticket()?) {
            Proof::Admitted(gone) => gone,
            // It is served as a stranger, and tries again with its next data.
            Proof::Waits => None,
        }
    }
    /// Adds a connection opened by this end.
    pub(super) fn insert(&mut self, key: Key, connection: Connection, now: Timestamp) -> Arc<Link> {
        self.next_id += 1;
        let link = Arc::new(Link::new(key, self.next_id, connection, now));
        self.links.insert(key, link.clone());
        link
    }
    fn remove(&mut self, link: &Arc<Link>) {
        // Another one may have replaced it.
        if self.links.get(&link.key).is_none_or(|l| l.id != link.id) {
            return;
        }
        self.links.remove(&link.key);
        if let Some(ticket) = link.ticket() {
            self.doors.leave(ticket);
        }
    }
}

impl Shared {
    pub(super) fn new(outlet: UdpPort, local: SocketAddr, config: PortConfig, waker: Waker) -> Self {
        Self {
            outlet: Outlet::new(outlet),
            local,
            config,
            waker,
            table: Mutex::new(Table::new(&config)),
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
