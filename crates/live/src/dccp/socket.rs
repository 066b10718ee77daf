//! One connection as an application has it.

use super::error::DccpError;
use super::link::{Inner, Link, Outcome};
use super::port::DccpPort;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;
use weir_dccp::ccid::Chunk;
use weir_dccp::connection::{Connection, Counters, Received, State};
use weir_dccp::queue::{Message, QueueConfig, QueueCounters};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Represents no timeout.
const FOREVER: i64 = i64::MAX;

/// The event to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// The other end's answer, after which data can be sent.
    Open,
    /// Room in the send queue.
    Room,
    /// The end of the connection: both ends have closed, or one has reset it.
    End,
}

/// Identifies a connection of a port; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SocketId(pub(super) u64);

/// A connection. All methods may be called by several threads at once, for example one to send and one to receive.
///
/// Dropping it closes: data in the send queue is still sent, and the closing handshake is made, in the background. A
/// process that exits meanwhile cuts that short: see [`Self::finish`].
#[derive(Debug)]
pub struct DccpSocket {
    pub(super) link: Arc<Link>,
    port: DccpPort,
    is_nonblocking: AtomicBool,
    /// In ns.
    read_timeout: AtomicI64,
    write_timeout: AtomicI64,
}

fn delta(time: Duration) -> TimeDelta {
    TimeDelta::from_nanos(i64::try_from(time.as_nanos()).unwrap_or(FOREVER - 1))
}

impl DccpSocket {
    pub(super) fn new(port: DccpPort, link: Arc<Link>) -> Self {
        let forever = || AtomicI64::new(FOREVER);
        let (read_timeout, write_timeout) = (forever(), forever());
        Self { link, port, is_nonblocking: AtomicBool::new(false), read_timeout, write_timeout }
    }

    /// Performs an action on the connection now, and handles its outcome.
    fn with<T>(&self, act: impl FnOnce(&mut Connection, Timestamp) -> T) -> Option<T> {
        let inner = self.link.lock();
        let (result, outcome) = self.act(inner, act);
        self.port.shared().settle(&self.link, outcome);
        result
    }

    fn act<T>(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        act: impl FnOnce(&mut Connection, Timestamp) -> T,
    ) -> (Option<T>, Outcome) {
        let shared = self.port.shared();
        self.link.with(&mut inner, &shared.outlet, shared.outlet.clock.now(), act)
    }

    fn time(&self, timeout: &AtomicI64) -> Option<TimeDelta> {
        if self.is_nonblocking.load(Ordering::Relaxed) {
            return Some(TimeDelta::ZERO);
        }
        Some(timeout.load(Ordering::Relaxed)).filter(|t| *t != FOREVER).map(TimeDelta::from_nanos)
    }

    /// Sends a datagram. It is sent at once if congestion control permits it, and otherwise waits in the send queue.
    ///
    /// # Errors
    /// [`DccpError::WouldBlock`] if the queue refuses it, and this end is non-blocking or the write timeout has
    /// expired. The datagram is too long, or the connection has ended.
    pub fn send(&self, bytes: &[u8]) -> Result<(), DccpError> {
        self.send_message(&Message { bytes, ..Message::default() })
    }

    /// Likewise, with the queue's properties of the datagram. A deadline is relative to [`Self::now`].
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_message(&self, message: &Message<'_>) -> Result<(), DccpError> {
        self.send_all(std::slice::from_ref(message)).map(|_| ())
    }

    /// Sends several datagrams, which costs less than one by one; returns the number queued, at least one. Blocks only
    /// if none can be queued.
    ///
    /// # Errors
    /// As for [`Self::send`], for the first.
    pub fn send_many(&self, datagrams: &[&[u8]]) -> Result<usize, DccpError> {
        // On the stack: little is sent at a time.
        let mut messages = [Message::default(); 64];
        let count = datagrams.len().min(messages.len());
        for (m, bytes) in messages.iter_mut().zip(datagrams) {
            m.bytes = bytes;
        }
        self.send_all(&messages[..count])
    }

    fn send_all(&self, messages: &[Message<'_>]) -> Result<usize, DccpError> {
        let shared = self.port.shared();
        let until = self.time(&self.write_timeout).map(|t| shared.outlet.clock.now() + t);
        loop {
            let inner = self.link.lock();
            if let Some(e) = self.link.ended(&inner, &shared.outlet) {
                return Err(e);
            }
            let (result, outcome) = self.act(inner, |c, now| {
                let mut taken = 0;
                let refusal = messages.iter().find_map(|m| match c.send(now, m) {
                    Ok(()) => {
                        taken += 1;
                        None
                    }
                    Err(e) => Some(e),
                });
                (taken, refusal)
            });
            shared.settle(&self.link, outcome);
            let error = match result {
                None => continue,
                Some((0, Some(e))) => DccpError::from(e),
                Some((taken, _)) => return Ok(taken),
            };
            let left = until.map(|u| u.saturating_since(shared.outlet.clock.now()));
            if !error.is_would_block() || left.is_some_and(|l| l <= TimeDelta::ZERO) {
                return Err(error);
            }
            let (inner, _) =
                self.link.wait(self.link.lock(), &shared.outlet, false, left, |i| self.has_room(i).then_some(()));
            drop(inner);
        }
    }

    /// Whether the queue may accept a datagram, or waiting is useless.
    fn has_room(&self, inner: &Inner) -> bool {
        let queue = inner.connection.queue();
        queue.len() < queue.config().capacity || self.link.ended(inner, &self.port.shared().outlet).is_some()
    }

    /// Receives the next datagram; returns its length. Bytes that do not fit the buffer are dropped, as with other
    /// datagram sockets.
    ///
    /// # Errors
    /// [`DccpError::WouldBlock`] if there is none, and this end is non-blocking or the read timeout has expired. The
    /// connection's end, once all datagrams have been read.
    pub fn recv(&self, buffer: &mut [u8]) -> Result<usize, DccpError> {
        self.receive(|inner| {
            let mut scratch = std::mem::take(&mut inner.scratch);
            let length = inner.connection.receive(&mut scratch).map(|_| {
                let length = scratch.len().min(buffer.len());
                buffer[..length].copy_from_slice(&scratch[..length]);
                length
            });
            inner.scratch = scratch;
            length
        })
    }

    /// Receives the next datagram whole, replacing the buffer's contents, with its properties.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_into(&self, buffer: &mut Vec<u8>) -> Result<Received, DccpError> {
        self.receive(|inner| inner.connection.receive(buffer))
    }

    fn receive<T>(&self, mut take: impl FnMut(&mut Inner) -> Option<T>) -> Result<T, DccpError> {
        let shared = self.port.shared();
        let ready = |inner: &mut Inner| {
            let end = self.link.ended(inner, &shared.outlet);
            // A connection that has panicked is not used any more.
            if matches!(end, Some(DccpError::Driver(_))) {
                return end.map(Err);
            }
            take(inner).map(Ok).or(end.map(Err))
        };
        let time = self.time(&self.read_timeout);
        let (inner, done) = self.link.wait(self.link.lock(), &shared.outlet, true, time, ready);
        drop(inner);
        done.unwrap_or(Err(DccpError::WouldBlock))
    }

    /// Waits for another event, with an optional timeout; returns whether it has occurred.
    ///
    /// # Errors
    /// The connection's end, if that is not the awaited event.
    pub fn wait(&self, interest: Interest, time: Option<Duration>) -> Result<bool, DccpError> {
        let shared = self.port.shared();
        let ready = |inner: &mut Inner| {
            let state = inner.connection.state();
            let is_there = match interest {
                Interest::Open => state >= State::PartOpen && state <= State::Closing,
                Interest::Room => inner.connection.queue().len() < inner.connection.queue().config().capacity,
                Interest::End => matches!(state, State::TimeWait | State::Closed),
            };
            let end = self.link.ended(inner, &shared.outlet);
            match (is_there, interest) {
                (_, Interest::End) if end.is_some() => Some(Ok(())),
                (true, _) if end.is_none() => Some(Ok(())),
                _ => end.map(Err),
            }
        };
        let (inner, done) = self.link.wait(self.link.lock(), &shared.outlet, false, time.map(delta), ready);
        drop(inner);
        done.transpose().map(|d| d.is_some())
    }

    /// Makes [`DccpListener::wait`](super::DccpListener::wait) return this connection's id when datagrams were received
    /// or its state has changed, including earlier ones; for a thread that serves many connections.
    pub fn watch(&self) {
        self.link.watch();
        self.port.shared().announce(&self.link);
    }
    /// Its id on its port.
    pub fn id(&self) -> SocketId {
        SocketId(self.link.id)
    }

    /// Whether operations return at once rather than wait.
    pub fn set_nonblocking(&self, is_nonblocking: bool) {
        self.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
    }

    /// Timeout of [`Self::recv`]; `None` for none.
    pub fn set_read_timeout(&self, time: Option<Duration>) {
        self.read_timeout.store(time.map_or(FOREVER, |t| delta(t).as_nanos()), Ordering::Relaxed);
    }

    /// Timeout of [`Self::send`]; `None` for none.
    pub fn set_write_timeout(&self, time: Option<Duration>) {
        self.write_timeout.store(time.map_or(FOREVER, |t| delta(t).as_nanos()), Ordering::Relaxed);
    }

    /// Reads something of the connection.
    fn read<T>(&self, of: impl FnOnce(&Connection) -> T) -> T {
        of(&self.link.lock().connection)
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.read(Connection::state)
    }
    /// The rate of application data that congestion control permits now; `None` if it is not known yet.
    pub fn rate(&self) -> Option<DataRate> {
        self.read(Connection::rate)
    }
    /// The same, smoothed for an application to follow.
    pub fn smoothed_rate(&self) -> Option<DataRate> {
        self.read(Connection::smoothed_rate)
    }
    /// The round-trip time, smoothed.
    pub fn rtt(&self) -> Option<TimeDelta> {
        self.read(Connection::rtt)
    }
    /// The longest datagram that can be sent.
    pub fn max_packet_size(&self) -> DataSize {
        self.read(Connection::max_packet_size)
    }
    /// The connection's counters.
    pub fn counters(&self) -> Counters {
        self.read(Connection::counters)
    }
    /// CCIDs of the data sent and received, once they are negotiated.
    pub fn ccids(&self) -> Option<(u8, u8)> {
        self.read(Connection::ccids)
    }
    /// Whether the other end reports on each packet, so that [`Counters::data_lost`] counts.
    pub fn has_ack_vectors(&self) -> bool {
        self.read(|c| {
            let spec = c.ccids().and_then(|n| c.config().registry.get(n.0));
            spec.is_some_and(|s| s.requirements.ack_vector)
        })
    }
    /// Datagrams in the send queue, and their bytes.
    pub fn queued(&self) -> (usize, DataSize) {
        self.read(|c| (c.queue().len(), c.queue().size()))
    }
    /// Counters of the send queue.
    pub fn queue_counters(&self) -> QueueCounters {
        self.read(|c| c.queue().counters())
    }
    /// How the send queue works.
    pub fn queue(&self) -> QueueConfig {
        self.read(|c| c.queue().config())
    }
    /// Changes that.
    pub fn set_queue(&self, config: QueueConfig) {
        self.with(|c, _| c.set_queue(config));
    }
    /// Reports to congestion control that the application submits a frame: this much data, and the next after an
    /// interval.
    pub fn on_chunk(&self, size: DataSize, interval: TimeDelta) {
        self.with(|c, now| c.on_chunk(Chunk { now, size, interval }));
    }
    /// Congestion control's internals by name, for plots.
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.read(|c| c.metrics(out));
    }
    /// The connection's time, which deadlines are in.
    pub fn now(&self) -> Timestamp {
        self.port.shared().outlet.clock.now()
    }
    /// The other end's address and UDP port.
    pub fn peer_addr(&self) -> SocketAddr {
        self.link.key.peer
    }
    /// This end's bound address and UDP port.
    pub fn local_addr(&self) -> SocketAddr {
        self.port.local_addr()
    }
    /// The DCCP ports of this end and the other.
    pub fn dccp_ports(&self) -> (u16, u16) {
        (self.link.key.local_port, self.link.key.remote_port)
    }
    /// The UDP port that it is on.
    pub fn port(&self) -> &DccpPort {
        &self.port
    }

    /// Begins to close, and returns at once: data in the send queue is sent first. Data sent by the other end can still
    /// be received.
    pub fn close(&self) {
        self.with(|c, now| c.close(now));
    }

    /// Closes, and waits until the other end has agreed, at most for a time; returns whether it has.
    ///
    /// # Errors
    /// The connection has ended in another way.
    pub fn finish(&self, time: Duration) -> Result<bool, DccpError> {
        self.close();
        let done = self.wait(Interest::End, Some(time))?;
        match self.link.ended(&self.link.lock(), &self.port.shared().outlet) {
            Some(e) if !e.is_closed() => Err(e),
            _ => Ok(done),
        }
    }

    /// Ends the connection at once by a Reset.
    pub fn abort(&self) {
        self.with(|c, now| c.abort(now));
    }
}

impl Drop for DccpSocket {
    fn drop(&mut self) {
        self.close();
    }
}
