//! A connection between the threads that use it and the one that drives it.

use super::error::DccpError;
use super::lock;
use super::outlet::{Addresses, Outlet};
use std::any::Any;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use weir_admission::Ticket;
use weir_dccp::connection::{Connection, State};
use weir_units::{TimeDelta, Timestamp};

/// Maximum consecutive packets sent in one turn.
const MAX_BURST: u32 = 256;
/// Minimum distance of deadlines, so that one in the past cannot keep a core busy.
const MIN_WAIT: TimeDelta = TimeDelta::from_micros(20);
/// Maximum wait of a connection's thread before it checks again.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// How often data received count as progress.
const NOTE: TimeDelta = TimeDelta::from_secs(1);

/// Identifies a connection on a port: together with the port's own address and UDP port, the 6-tuple of RFC 6773,
/// section 3.8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    /// The other end's address and UDP port.
    pub(super) peer: SocketAddr,
    /// This host's address, if the port has several and the other end has chosen one.
    pub(super) local_ip: Option<IpAddr>,
    /// This end's DCCP port.
    pub(super) local_port: u16,
    /// The other end's.
    pub(super) remote_port: u16,
}

impl Key {
    /// The addresses of its datagrams.
    pub(super) fn addresses(&self) -> Addresses {
        Addresses { peer: self.peer, local_ip: self.local_ip }
    }
}

/// A connection, its lock, and the threads waiting for it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) key: Key,
    /// Distinguishes links with the same deadline.
    pub(super) id: u64,
    /// Its place among those that other ends have opened.
    ticket: OnceLock<Ticket>,
    inner: Mutex<Inner>,
    /// There may be something to receive.
    readable: Condvar,
    /// The queue may have room, or the state has changed.
    writable: Condvar,
}

pub(super) struct Inner {
    pub(super) connection: Connection,
    /// The time of the connection's last call.
    last_now: Timestamp,
    /// The earliest deadline known to the driver.
    registered: Timestamp,
    /// Buffer for packets.
    packet: Vec<u8>,
    /// Buffer for datagrams that are copied to a caller's slice.
    pub(super) scratch: Vec<u8>,
    state: State,
    /// Data packets received so far.
    data: u64,
    /// Of these, those that its place is owed to, and when further ones count next.
    noted: (u64, Timestamp),
    /// Low 24 bits of the last sequence number sent.
    sent: u32,
    pub(super) readers: u32,
    pub(super) writers: u32,
    /// Whether a thread waits for this connection's events among others, and whether there are unread ones.
    watched: bool,
    has_news: bool,
    /// The network's error about the path to the other end.
    pub(super) unreachable: Option<ErrorKind>,
    /// It has panicked, with this message.
    broken: Option<String>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("state", &self.state).field("broken", &self.broken).finish_non_exhaustive()
    }
}

/// The message of a panic.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}

/// The result of an action on a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// When the driver has to handle it, if that is earlier than it knows.
    pub(super) due: Option<Timestamp>,
    /// It has ended: the port removes it.
    pub(super) is_over: bool,
    /// Packets that were sent.
    pub(super) sent: u32,
    /// It is watched, and datagrams have arrived or its state has changed.
    pub(super) has_news: bool,
}

impl Link {
    pub(super) fn new(key: Key, id: u64, connection: Connection, now: Timestamp) -> Self {
        let inner = Inner {
            state: connection.state(),
            connection,
            last_now: now,
            registered: Timestamp::MAX,
            packet: Vec::new(),
            scratch: Vec::new(),
            data: 0,
            noted: (0, Timestamp::ZERO),
            sent: 0,
            readers: 0,
            writers: 0,
            watched: false,
            has_news: false,
            unreachable: None,
            broken: None,
        };
        let (readable, writable) = (Condvar::new(), Condvar::new());
        Self { key, id, ticket: OnceLock::new(), inner: Mutex::new(inner), readable, writable }
    }

    /// The other end has opened it, and it has this place.
    pub(super) fn set_ticket(&self, ticket: Ticket) {
        let _ = self.ticket.set(ticket);
    }

    /// Its place; none if this end has opened it.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.ticket.get().copied()
    }

    /// Whether data have been received that its place is to know of: the first, and then some of each second.
    pub(super) fn has_moved(&self, inner: &mut Inner, now: Timestamp) -> bool {
        let data = inner.connection.counters().data_received;
        if self.ticket().is_none() || data == inner.noted.0 || now < inner.noted.1 {
            return false;
        }
        inner.noted = (data, now + NOTE);
        true
    }

    /// Begins to announce events; earlier ones count.
    pub(super) fn watch(&self) {
        let mut inner = self.lock();
        (inner.watched, inner.has_news) = (true, true);
    }

    /// The events are read now: later ones are announced again.
    pub(super) fn take_news(&self) {
        self.lock().has_news = false;
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        lock(&self.inner)
    }

    /// Performs an action on the connection at `at`, or at a later time of an earlier call; sends pending packets, and
    /// wakes waiting threads. A panic ends only this connection. Packets wait in the outlet until it is flushed.
    pub(super) fn with<T>(
        &self,
        inner: &mut Inner,
        outlet: &Outlet,
        at: Timestamp,
        act: impl FnOnce(&mut Connection, Timestamp) -> T,
    ) -> (Option<T>, Outcome) {
        if inner.broken.is_some() {
            return (None, Outcome { is_over: true, ..Outcome::default() });
        }
        let now = inner.last_now.max(at);
        inner.last_now = now;
        let done = catch_unwind(AssertUnwindSafe(|| {
            let result = act(&mut inner.connection, now);
            let sent = self.transmit(inner, outlet, now);
            let due = inner.connection.poll_timeout(now).unwrap_or(Timestamp::MAX);
            let state = inner.connection.state();
            (result, sent, if sent >= MAX_BURST { now } else { due }, state)
        }));
        let (result, sent, due, state) = match done {
            Ok(done) => done,
            Err(panic) => {
                self.fail(inner, message(&*panic));
                let has_news = inner.watched && !std::mem::replace(&mut inner.has_news, true);
                return (None, Outcome { is_over: true, has_news, ..Outcome::default() });
            }
        };
        let due = due.max(now + MIN_WAIT);
        let mut outcome = Outcome { sent, ..Outcome::default() };
        if due < inner.registered {
            inner.registered = due;
            outcome.due = Some(due);
        }
        let is_new_state = state != inner.state;
        if is_new_state {
            inner.state = state;
            self.readable.notify_all();
            self.writable.notify_all();
        }
        outcome.is_over = state == State::Closed;
        if inner.readers > 0 || inner.watched {
            let data = inner.connection.counters().data_received;
            let has_data = data != inner.data;
            inner.data = data;
            if has_data && inner.readers > 0 {
                self.readable.notify_all();
            }
            if inner.watched && (has_data || is_new_state) {
                outcome.has_news = !std::mem::replace(&mut inner.has_news, true);
            }
        }
        let queue = inner.connection.queue();
        if inner.writers > 0 && queue.len() <= queue.config().capacity / 2 {
            self.writable.notify_all();
        }
        (Some(result), outcome)
    }

    fn transmit(&self, inner: &mut Inner, outlet: &Outlet, now: Timestamp) -> u32 {
        let mut packet = std::mem::take(&mut inner.packet);
        let mut socket = None;
        let mut sent = 0;
        while sent < MAX_BURST
            && let Some(t) = inner.connection.poll_transmit(now, &mut packet)
        {
            sent += 1;
            // A payload may have a length and no content.
            packet.resize(packet.len() + t.payload as usize, 0);
            inner.sent = low_sequence(&packet).unwrap_or(inner.sent);
            let socket = socket.get_or_insert_with(|| lock(&outlet.socket));
            socket.send_from(self.key.local_ip, self.key.peer, t.ecn, &packet);
        }
        inner.packet = packet;
        sent
    }

    /// It cannot continue; all waits end with the reason.
    fn fail(&self, inner: &mut Inner, why: String) {
        inner.broken.get_or_insert(why);
        self.wake_all();
    }

    /// Ends all waits on it, so that they check again.
    pub(super) fn wake_all(&self) {
        self.readable.notify_all();
        self.writable.notify_all();
    }

    /// This deadline has passed. Returns whether it was the one last registered; then none is registered any more.
    pub(super) fn is_due(inner: &mut Inner, at: Timestamp) -> bool {
        let is_due = inner.registered == at;
        if is_due {
            inner.registered = Timestamp::MAX;
        }
        is_due
    }

    /// Whether a packet quoted by an ICMP error, by the low 24 bits of its sequence number, is one of the last `window`
    /// (RFC 4340, section 14.1, requires others to be ignored).
    pub(super) fn has_sent(inner: &Inner, sequence: u32, window: u64) -> bool {
        u64::from(inner.sent.wrapping_sub(sequence) & 0xff_ffff) < window
    }

    /// Why nothing more can be sent or received; `None` if it can.
    pub(super) fn ended(&self, inner: &Inner, outlet: &Outlet) -> Option<DccpError> {
        if let Some(why) = inner.broken.as_ref().or(outlet.failure.get()) {
            return Some(DccpError::Driver(why.clone()));
        }
        let end = inner.connection.end()?;
        Some(match inner.unreachable {
            Some(kind) => DccpError::Unreachable { peer: self.key.peer, kind },
            None => DccpError::Ended(end.reason),
        })
    }

    /// Waits on one of the two conditions until `ready` returns a value; returns `None` after the timeout.
    pub(super) fn wait<'a, T>(
        &'a self,
        mut inner: MutexGuard<'a, Inner>,
        outlet: &Outlet,
        reads: bool,
        time: Option<TimeDelta>,
        mut ready: impl FnMut(&mut Inner) -> Option<T>,
    ) -> (MutexGuard<'a, Inner>, Option<T>) {
        let until = time.map(|t| outlet.clock.now() + t);
        loop {
            if let Some(done) = ready(&mut inner) {
                return (inner, Some(done));
            }
            let left = until.map(|u| u.saturating_since(outlet.clock.now()));
            if left.is_some_and(|l| l <= TimeDelta::ZERO) {
                return (inner, None);
            }
            let left = left.map_or(MAX_WAIT, |l| Duration::from_nanos(l.as_nanos().unsigned_abs()).min(MAX_WAIT));
            *(if reads { &mut inner.readers } else { &mut inner.writers }) += 1;
            let condition = if reads { &self.readable } else { &self.writable };
            let waited = condition.wait_timeout(inner, left);
            inner = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            *(if reads { &mut inner.readers } else { &mut inner.writers }) -= 1;
        }
    }
}

/// The low 24 bits of a packet's sequence number.
pub(super) fn low_sequence(packet: &[u8]) -> Option<u32> {
    let is_long = packet.get(8)? & 1 == 1;
    let at = if is_long { 13 } else { 9 };
    let b = packet.get(at..at + 3)?;
    Some(u32::from_be_bytes([0, b[0], b[1], b[2]]))
}

/// A link with the deadline that the driver has for it.
pub(super) type Due = (Timestamp, Arc<Link>);
