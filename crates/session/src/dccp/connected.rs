//! Passes a session's packets to a DCCP connection.

use super::config::{DccpConfig, Sizing};
use super::counters::DccpCounters;
use crate::datagram::Datagram;
use crate::endpoint::Endpoint;
use crate::outcome::Outcome;
use crate::timers::earliest;
use weir_dccp::ccid::Chunk;
use weir_dccp::connection::{self, Connection, SendError, State};
use weir_dccp::queue::{Message, QueueConfig, QueuePolicy};
use weir_fec::Importance;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Importance of RTCP in the send queue: it is small, and others wait for it.
const RTCP_IMPORTANCE: u8 = u8::MAX;

/// Importance of media in the send queue.
fn importance(of: Importance) -> u8 {
    match of {
        Importance::Key => 2,
        Importance::Reference => 1,
        Importance::Other => 0,
    }
}

/// The frame being handed over.
#[derive(Clone, Copy, Debug)]
struct HandOver {
    rtp_timestamp: u32,
    importance: u8,
    deadline: Option<Timestamp>,
    /// Whether no packet of it has been handed over yet.
    first: bool,
    refused: u32,
}

/// A connection and the state of the hand-over to it.
pub(super) struct Connected {
    config: DccpConfig,
    connection: Connection,
    sizing: Option<Sizing>,
    frame: Option<HandOver>,
    buffer: Vec<u8>,
    /// An RTCP datagram waiting for room.
    rtcp: Vec<u8>,
    paused: bool,
    open: bool,
    leaving: bool,
    max_packet_size: DataSize,
    last_rate: Option<Timestamp>,
    last_sent: Timestamp,
    /// The queue's drop count at the controller's last notification.
    dropped: u64,
    counters: DccpCounters,
}

impl Connected {
    /// Media of the session waits until the connection is open.
    pub(super) fn new(endpoint: &mut Endpoint, connection: Connection, config: DccpConfig, now: Timestamp) -> Self {
        let mut connected = Self {
            config,
            connection,
            sizing: config.sizing.map(Sizing::new),
            frame: None,
            buffer: Vec::new(),
            rtcp: Vec::new(),
            paused: false,
            open: false,
            leaving: false,
            max_packet_size: DataSize::ZERO,
            last_rate: None,
            last_sent: now,
            dropped: 0,
            counters: DccpCounters::default(),
        };
        endpoint.set_paused(true);
        connected.follow_connection(endpoint, now);
        connected
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }
    pub(super) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
    pub(super) fn replace(&mut self, endpoint: &mut Endpoint, connection: Connection, now: Timestamp) -> Connection {
        let before = core::mem::replace(&mut self.connection, connection);
        self.frame = None;
        self.max_packet_size = DataSize::ZERO;
        (self.open, self.dropped) = (false, 0);
        self.follow_connection(endpoint, now);
        endpoint.set_paused(self.paused || !self.open);
        before
    }
    pub(super) fn counters(&self) -> DccpCounters {
        self.counters
    }
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
    pub(super) fn set_paused(&mut self, endpoint: &mut Endpoint, paused: bool) {
        self.paused = paused;
        endpoint.set_paused(paused || !self.open);
    }
    pub(super) fn leave(&mut self, endpoint: &mut Endpoint) {
        endpoint.leave(None);
        self.leaving = true;
    }

    pub(super) fn handle_datagram(
        &mut self,
        endpoint: &mut Endpoint,
        now: Timestamp,
        datagram: &connection::Datagram<'_>,
    ) -> Option<Outcome> {
        let mut outcome = None;
        self.connection.handle_datagram(now, datagram);
        while let Some(received) = self.connection.receive(&mut self.buffer) {
            // Empty datagrams keep bindings.
            if !self.buffer.is_empty() {
                let (payload, ecn) = (received.payload, received.ecn);
                let datagram = Datagram { payload, ..Datagram::new(&self.buffer, ecn) };
                outcome = Some(endpoint.handle_datagram(now, &datagram));
            }
        }
        self.follow_connection(endpoint, now);
        outcome
    }

    pub(super) fn handle_timeout(&mut self, endpoint: &mut Endpoint, now: Timestamp) {
        self.connection.handle_timeout(now);
        self.follow_connection(endpoint, now);
        endpoint.handle_timeout(now);
    }

    pub(super) fn poll_timeout(&mut self, endpoint: &mut Endpoint, now: Timestamp) -> Option<Timestamp> {
        let mut at = Timestamp::MAX;
        earliest(&mut at, self.connection.poll_timeout(now));
        earliest(&mut at, endpoint.poll_timeout(now));
        if self.open {
            earliest(&mut at, self.config.keep_alive.map(|t| self.last_sent + t));
        }
        (at < Timestamp::MAX).then_some(at)
    }

    pub(super) fn poll_transmit(
        &mut self,
        endpoint: &mut Endpoint,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) -> Option<connection::Transmit> {
        loop {
            if let Some(transmit) = self.connection.poll_transmit(now, out) {
                return Some(transmit);
            }
            if !self.hand_over(endpoint, now) {
                return None;
            }
        }
    }

    /// Handles changes of the connection's state.
    fn follow_connection(&mut self, endpoint: &mut Endpoint, now: Timestamp) {
        let open = matches!(self.connection.state(), State::PartOpen | State::Open);
        if open != self.open {
            self.open = open;
            self.last_sent = now;
            endpoint.set_paused(self.paused || !open);
            if open && !self.paused {
                endpoint.request_key_frame(now);
            }
        }
        let max = self.connection.max_packet_size();
        if max != self.max_packet_size {
            self.max_packet_size = max;
            endpoint.limit_packet_size(max);
        }
    }

    /// Passes one packet of the session on; `false` if there is none.
    fn hand_over(&mut self, endpoint: &mut Endpoint, now: Timestamp) -> bool {
        if !self.rtcp.is_empty() && self.has_room() {
            let rtcp = core::mem::take(&mut self.rtcp);
            self.send_rtcp(now, &rtcp);
            self.rtcp = rtcp;
            self.rtcp.clear();
            return true;
        }
        self.begin_frame(endpoint, now);
        let Some(t) = endpoint.poll_transmit(now, &mut self.buffer) else {
            return self.on_nothing(endpoint, now);
        };
        self.last_sent = now;
        if t.is_rtp() {
            self.send_rtp(endpoint, now, t.payload);
        } else if self.has_room() || self.is_over() {
            let rtcp = core::mem::take(&mut self.buffer);
            self.send_rtcp(now, &rtcp);
            self.buffer = rtcp;
        } else {
            self.counters.rtcp_replaced += u64::from(!self.rtcp.is_empty());
            core::mem::swap(&mut self.rtcp, &mut self.buffer);
        }
        true
    }

    /// The session has nothing to send.
    fn on_nothing(&mut self, endpoint: &mut Endpoint, now: Timestamp) -> bool {
        if self.leaving && self.rtcp.is_empty() && endpoint.has_left() {
            self.leaving = false;
            self.connection.close(now);
            return true;
        }
        let due = self.config.keep_alive.is_some_and(|t| now.saturating_since(self.last_sent) >= t);
        if due && self.open {
            self.last_sent = now;
            let sent = self.connection.send(now, &Message::default()).is_ok();
            self.counters.keep_alives += u64::from(sent);
            return sent;
        }
        false
    }

    fn has_room(&self) -> bool {
        let queue = self.connection.queue();
        queue.len() < queue.config().capacity.max(1) || queue.config().policy != QueuePolicy::Refuse
    }
    /// Whether the connection accepts no more data.
    fn is_over(&self) -> bool {
        self.connection.state() > State::Open || self.connection.state() == State::Closed
    }

    fn send_rtcp(&mut self, now: Timestamp, bytes: &[u8]) {
        let message = Message { bytes, payload: 0, importance: RTCP_IMPORTANCE, deadline: None };
        match self.connection.send(now, &message) {
            Ok(()) => self.counters.rtcp += 1,
            Err(SendError::TooLong { .. }) => self.counters.too_long += 1,
            Err(_) => self.counters.unsent += 1,
        }
    }

    fn send_rtp(&mut self, endpoint: &mut Endpoint, now: Timestamp, payload: u32) {
        // Repair and padding are the first to be dropped.
        let beside = HandOver {
            rtp_timestamp: 0,
            importance: 0,
            deadline: self.config.max_wait.map(|t| now + t),
            first: false,
            refused: 0,
        };
        let HandOver { importance, deadline, first, .. } = self.frame.unwrap_or(beside);
        if let Some(frame) = &mut self.frame {
            frame.first = false;
        }
        let message = Message { bytes: &self.buffer, payload, importance, deadline };
        let size = message.size();
        match self.connection.send(now, &message) {
            Ok(()) => self.counters.accepted += 1,
            Err(error) => {
                endpoint.on_not_sent(size);
                match error {
                    SendError::WouldBlock => {
                        self.counters.rejected += 1;
                        self.counters.first_rejected += u64::from(first);
                        if let Some(frame) = &mut self.frame {
                            frame.refused = frame.refused.saturating_add(1);
                        }
                    }
                    SendError::TooLong { .. } => self.counters.too_long += 1,
                    _ => self.counters.unsent += 1,
                }
            }
        }
        let next = endpoint.next_media().map(|p| p.rtp_timestamp);
        if self.frame.is_some_and(|f| next != Some(f.rtp_timestamp)) {
            self.end_frame(endpoint, now);
        }
    }

    /// The next frame reaches the front of the session's queue.
    fn begin_frame(&mut self, endpoint: &mut Endpoint, now: Timestamp) {
        let Some(next) = endpoint.next_media().copied() else { return };
        if self.frame.is_some_and(|f| f.rtp_timestamp == next.rtp_timestamp) {
            return;
        }
        // The rest of the previous frame was discarded.
        self.end_frame(endpoint, now);
        let (packets, size, interval) = endpoint.next_frame(now);
        self.counters.frames += 1;
        let queue = self.connection.queue().config();
        let capacity = self.sizing.as_mut().and_then(|s| s.on_frame(packets, queue.capacity));
        if let Some(capacity) = capacity {
            self.counters.queue_grown += u64::from(capacity > queue.capacity);
            self.counters.queue_shrunk += u64::from(capacity < queue.capacity);
            self.connection.set_queue(QueueConfig { capacity, ..queue });
        }
        self.connection.on_chunk(Chunk { now, size, interval: interval.max(TimeDelta::ZERO) });
        self.frame = Some(HandOver {
            rtp_timestamp: next.rtp_timestamp,
            importance: importance(next.importance),
            deadline: self.config.max_wait.map(|t| next.captured + t),
            first: true,
            refused: 0,
        });
    }

    /// The frame has been handed over: notifies the controller of the result.
    fn end_frame(&mut self, endpoint: &mut Endpoint, now: Timestamp) {
        let Some(frame) = self.frame.take() else { return };
        let queue = self.connection.queue().counters();
        let dropped = queue.displaced + queue.expired;
        let news = dropped.saturating_sub(core::mem::replace(&mut self.dropped, dropped));
        let packets = frame.refused.saturating_add(u32::try_from(news).unwrap_or(u32::MAX));
        if packets > 0 {
            self.counters.frames_rejected += 1;
            endpoint.on_send_rejected(packets, now);
        }
        let due = self.last_rate.is_none_or(|t| now.saturating_since(t) >= self.config.rate_interval);
        if due && let Some(rate) = self.connection.rate() {
            self.last_rate = Some(now);
            let smoothed = self.connection.smoothed_rate().unwrap_or(rate);
            endpoint.on_transport_rate(rate, smoothed, self.connection.rtt(), now);
        }
    }
}
