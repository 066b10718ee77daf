//! The thread of a port: receives, runs timers, and answers packets that belong to no connection.

use super::link::{Key, Link, Outcome, low_sequence, message};
use super::lock;
use super::resets::Resets;
use super::shared::{Shared, Table};
use crate::udp::{PathError, UdpPort};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use weir_dccp::connection::{Connection, Datagram, State};
use weir_dccp::listener::ListenerEvent;
use weir_units::{TimeDelta, Timestamp};

/// Longest sleep.
const MAX_WAIT: TimeDelta = TimeDelta::from_secs(1);
/// Maximum batches received before timers are run again.
const MAX_BATCHES: u32 = 8;
/// Maximum timers run before the socket is read again.
const MAX_TIMERS: u32 = 256;
/// Maximum errors read in one turn.
const MAX_ERRORS: u32 = 64;
/// Failures of the socket in a row after which the port fails.
const MAX_FAILURES: u32 = 1_000;
/// Packets of a connection to which ICMP may refer: those that may be in flight within one round trip at a high rate.
const ICMP_WINDOW: u64 = 65_536;
/// The kernel may be this late with a deadline; the usual value is 50 us.
const TIMER_SLACK_NS: u64 = 1_000;

pub(super) struct Driver {
    shared: Arc<Shared>,
    inlet: UdpPort,
    /// Deadlines; the same connection may also have an earlier one.
    timers: BTreeMap<(Timestamp, u64), Arc<Link>>,
    /// Answers to packets of no connection.
    resets: Resets,
    reply: Vec<u8>,
    failures: u32,
}

/// A datagram's place among the connections.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Ports {
    source: u16,
    destination: u16,
}

fn ports(bytes: &[u8]) -> Option<Ports> {
    let header = bytes.first_chunk::<{ weir_dccp::packet::SHORT_HEADER }>()?;
    let two = |i: usize| u16::from_be_bytes([header[i], header[i + 1]]);
    Some(Ports { source: two(0), destination: two(2) })
}

/// The connection of a key: one opened by another end to this of several addresses, or one opened by this end.
fn find(table: &Table, key: Key) -> Option<Arc<Link>> {
    let any = Key { local_ip: None, ..key };
    table.links.get(&key).or_else(|| table.links.get(&any)).cloned()
}

impl Driver {
    pub(super) fn new(shared: Arc<Shared>, inlet: UdpPort) -> Self {
        Self { shared, inlet, timers: BTreeMap::new(), resets: Resets::default(), reply: Vec::new(), failures: 0 }
    }

    /// Runs until all handles and connections are gone. If it fails, all waiting threads get the reason.
    pub(super) fn run(mut self) {
        // Without it deadlines are a little late.
        let _ = nix::sys::prctl::set_timerslack(TIMER_SLACK_NS);
        let shared = self.shared.clone();
        if let Some(priority) = shared.config.realtime {
            crate::realtime::request_realtime(priority);
        }
        match catch_unwind(AssertUnwindSafe(|| self.drive())) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => shared.fail(format!("the UDP socket fails: {e}")),
            Err(panic) => shared.fail(message(&*panic)),
        }
    }

    fn drive(&mut self) -> std::io::Result<()> {
        loop {
            for (at, link) in std::mem::take(&mut *lock(&self.shared.due)) {
                self.timers.insert((at, link.id), link);
            }
            let sent = self.run_timers();
            if let Some(handshakes) = lock(&self.shared.handshakes).as_mut() {
                let outlet = &self.shared.outlet;
                handshakes.tick(outlet.clock.now(), &mut self.reply, |to, bytes| outlet.send(to, bytes));
            }
            if sent {
                self.shared.outlet.flush();
            }
            self.notify();
            if self.shared.closing.load(Ordering::SeqCst) && lock(&self.shared.table).links.is_empty() {
                return Ok(());
            }
            let ready = self.inlet.wait_ready(self.sleep_time(), Some(&self.shared.waker))?;
            self.shared.sleeps_until.store(0, Ordering::SeqCst);
            if ready.error {
                self.take_errors();
            }
            if ready.datagram {
                self.receive()?;
            }
        }
    }

    fn notify(&mut self) {
        let mut c = lock(&self.shared.counters);
        c.turns += 1;
        c.received = self.inlet.counters();
    }

    /// How long to sleep, stored for other threads before the last check of the deadlines that they set.
    fn sleep_time(&self) -> Duration {
        let now = self.shared.outlet.clock.now();
        let next = self.timers.first_key_value().map_or(Timestamp::MAX, |(k, _)| k.0);
        let until = next.min(now + MAX_WAIT);
        self.shared.sleeps_until.store(until.as_nanos(), Ordering::SeqCst);
        if !lock(&self.shared.due).is_empty() {
            return Duration::ZERO;
        }
        Duration::from_nanos(until.saturating_since(now).as_nanos().unsigned_abs())
    }

    fn run_timers(&mut self) -> bool {
        let mut sent = false;
        for _ in 0..MAX_TIMERS {
            let now = self.shared.outlet.clock.now();
            let Some(first) = self.timers.first_entry().filter(|e| e.key().0 <= now) else { break };
            let at = first.key().0;
            let link = first.remove();
            let mut inner = link.lock();
            if !Link::is_due(&mut inner, at) {
                continue;
            }
            let (_, outcome) = link.with(&mut inner, &self.shared.outlet, now, |c, now| {
                if c.poll_timeout(now).is_some_and(|t| t <= now) {
                    c.handle_timeout(now);
                }
            });
            drop(inner);
            sent |= outcome.sent > 0;
            self.settle(&link, outcome);
        }
        sent
    }

    /// As [`Shared::settle`], for actions of the driver itself.
    fn settle(&mut self, link: &Arc<Link>, outcome: Outcome) {
        if let Some(due) = outcome.due {
            self.timers.insert((due, link.id), link.clone());
        }
        if outcome.is_over {
            self.shared.forget(link);
        }
        if outcome.has_news {
            self.shared.announce(link);
        }
    }

    fn receive(&mut self) -> std::io::Result<()> {
        for _ in 0..MAX_BATCHES {
            let count = match self.inlet.receive() {
                Ok(count) => count,
                Err(e) => {
                    lock(&self.shared.counters).receive_errors += 1;
                    self.failures += 1;
                    if self.failures < MAX_FAILURES {
                        self.take_errors();
                        return Ok(());
                    }
                    return Err(e);
                }
            };
            self.failures = 0;
            self.take_batch(count);
            self.shared.outlet.flush();
            if count < quinn_udp::BATCH_SIZE {
                break;
            }
        }
        Ok(())
    }

    /// Passes a batch to its connections; consecutive datagrams of the same one under one lock.
    fn take_batch(&mut self, count: usize) {
        let reading = self.shared.outlet.clock.reading();
        let several = self.inlet.local_addr().is_ok_and(|a| a.ip().is_unspecified());
        let mut index = 0;
        while index < count {
            let Some(d) = self.inlet.datagram(index) else {
                index += 1;
                continue;
            };
            let Some(p) = ports(d.bytes) else {
                lock(&self.shared.counters).malformed += 1;
                index += 1;
                continue;
            };
            let local_ip = d.to.filter(|_| several);
            let key = Key { peer: d.from, local_ip, local_port: p.destination, remote_port: p.source };
            let found = find(&lock(&self.shared.table), key);
            let Some(link) = found else {
                self.take_stray(index, key, reading.now);
                index += 1;
                continue;
            };
            let mut all = Outcome::default();
            let mut inner = link.lock();
            while index < count {
                let Some(d) = self.inlet.datagram(index) else { break };
                if d.from != key.peer || ports(d.bytes) != Some(p) || d.to.filter(|_| several) != local_ip {
                    break;
                }
                index += 1;
                let datagram = Datagram { bytes: d.bytes, payload: 0, ecn: d.ecn };
                let at = reading.arrival(d.kernel_time);
                let act = |c: &mut Connection, now| c.handle_datagram(now, &datagram);
                let (_, outcome) = link.with(&mut inner, &self.shared.outlet, at, act);
                all.due = outcome.due.or(all.due);
                all.is_over = outcome.is_over;
                all.has_news |= outcome.has_news;
            }
            let has_moved = link.has_moved(&mut inner, reading.now);
            drop(inner);
            self.settle(&link, all);
            if has_moved {
                let gone = lock(&self.shared.table).note_data(&link, reading.now);
                self.give_way(gone);
            }
        }
    }

    /// A datagram of no connection: a Request for the listener, or something to be refused.
    fn take_stray(&mut self, index: usize, key: Key, now: Timestamp) {
        let Some(d) = self.inlet.datagram(index) else { return };
        lock(&self.shared.counters).strays += 1;
        let datagram = Datagram { bytes: d.bytes, payload: 0, ecn: d.ecn };
        self.reply.clear();
        let addresses = key.addresses();
        let mut handshakes = lock(&self.shared.handshakes);
        let event = match handshakes.as_mut() {
            Some(handshakes) => {
                let is_busy = lock(&self.shared.table).is_full(&self.shared.config);
                let is_used = || {
                    let table = lock(&self.shared.table);
                    table.links.keys().any(|k| k.addresses() == addresses)
                };
                handshakes.handle(now, addresses, is_busy, is_used, &datagram, &mut self.reply)
            }
            None if self.resets.answer(now, &datagram, &mut self.reply) => ListenerEvent::Reply,
            None => ListenerEvent::Nothing,
        };
        drop(handshakes);
        match event {
            ListenerEvent::Nothing => {}
            ListenerEvent::Reply => self.shared.outlet.send(addresses, &self.reply),
            ListenerEvent::Accepted(connection) => self.take_connection(now, key, *connection),
        }
    }

    /// A connection opened by another end.
    fn take_connection(&mut self, now: Timestamp, key: Key, mut connection: Connection) {
        let mut table = lock(&self.shared.table);
        let has_room = table.is_listening && !table.is_full(&self.shared.config);
        if has_room {
            let (link, gone) = table.insert_accepted(key, connection, now);
            self.shared.acceptable.notify_one();
            drop(table);
            self.apply(&link, |_, _| ());
            self.give_way(gone);
        } else {
            drop(table);
            connection.abort(now);
            while connection.poll_transmit(now, &mut self.reply).is_some() {
                self.shared.outlet.send(key.addresses(), &self.reply);
            }
        }
        let mut c = lock(&self.shared.counters);
        *(if has_room { &mut c.accepted } else { &mut c.turned_away }) += 1;
    }

    /// Resets a connection whose place another one gets.
    fn give_way(&mut self, gone: Option<Arc<Link>>) {
        if let Some(link) = gone {
            self.apply(&link, |c, now| c.abort(now));
            lock(&self.shared.counters).gave_way += 1;
        }
    }

    fn take_errors(&mut self) {
        for _ in 0..MAX_ERRORS {
            let Some(e) = self.inlet.poll_error() else { break };
            let taken = self.take_error(&e);
            let mut c = lock(&self.shared.counters);
            *(if taken { &mut c.path_errors } else { &mut c.foreign_errors }) += 1;
        }
    }

    /// Reports an ICMP error to the connection whose packet it quotes (RFC 6773, section 3.6), if that was sent
    /// recently (RFC 4340, section 14.1). A size limit set by this host applies to all connections to the address.
    fn take_error(&mut self, e: &PathError) -> bool {
        if e.is_local {
            let Some(mtu) = e.mtu else { return false };
            let links = self.links_to(|peer| peer.ip() == e.to.ip());
            for link in &links {
                self.apply(link, |c, now| c.on_path_mtu(now, mtu));
            }
            return !links.is_empty();
        }
        let quoted = e.quoted();
        let Some((p, sequence)) = ports(quoted).zip(low_sequence(quoted)) else { return false };
        let (local_port, remote_port) = (p.source, p.destination);
        let links = self.links_to(|peer| *peer == e.to);
        let link = links.iter().find(|l| l.key.local_port == local_port && l.key.remote_port == remote_port);
        let Some(link) = link else { return false };
        let link = link.clone();
        let inner = link.lock();
        if !Link::has_sent(&inner, sequence, ICMP_WINDOW) {
            return false;
        }
        // Once the other end has answered, routers' errors may be transient.
        let opens = inner.connection.state() == State::Request;
        drop(inner);
        if let Some(mtu) = e.mtu {
            self.apply(&link, |c, now| c.on_path_mtu(now, mtu));
        } else if opens {
            link.lock().unreachable = Some(e.kind);
            if matches!(e.kind, ErrorKind::ConnectionRefused | ErrorKind::PermissionDenied) {
                self.apply(&link, |c, now| c.abort(now));
            }
        }
        true
    }

    fn apply(&mut self, link: &Arc<Link>, act: impl FnOnce(&mut Connection, Timestamp)) {
        let now = self.shared.outlet.clock.now();
        let mut inner = link.lock();
        let (_, outcome) = link.with(&mut inner, &self.shared.outlet, now, act);
        drop(inner);
        self.settle(link, outcome);
    }

    fn links_to(&self, is_meant: impl Fn(&SocketAddr) -> bool) -> Vec<Arc<Link>> {
        let table = lock(&self.shared.table);
        table.links.values().filter(|l| is_meant(&l.key.peer)).cloned().collect()
    }
}
