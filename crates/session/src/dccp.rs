//! A call end over DCCP (RFC 5762): RTP and RTCP on one connection (RFC 5761), whose congestion control says when packets leave.
//!
//! A [`DccpEnd`] is an [`Endpoint`] on a [`Connection`], of the same shape: its owner brings datagrams and the time, calls
//! [`DccpEnd::poll_transmit`] until it gives nothing, and waits until [`DccpEnd::poll_timeout`]. By convention who sends media
//! connects; the thesis has a connection for each direction of media.
//!
//! The rules of the application are those of S. Jero, 2013, section 3.2:
//! - Packets are handed over one by one, as a kernel's socket has them: what congestion control lets leave leaves, the rest waits
//!   in the connection's send queue, and what that refuses is lost. RTP sequence numbers of lost packets are used up, as in
//!   linphone, so that the receiver sees a gap; sender reports do not count them.
//! - The controller hears of refused packets once a frame ([`SendRejected`](weir_cc::cue::SendRejected)); packets that the queue
//!   has dropped since, in favour of others or past their deadline, count as refused ones. With each frame it may hear the transport's rate.
//! - The queue follows the frames' sizes: see [`QueueSizing`].
//!
//! Media waits for the connection to open: frames until then are thrown away, and the first one after is a key frame. RTCP that
//! the queue has no room for waits for it (RFC 5762, section 4.2), the newest alone; its timer runs from when it was made. A
//! connection that has ended is the owner's to replace: [`DccpEnd::set_connection`].

mod config;

pub use config::{DccpConfig, QueueSizing, video_connection};

use crate::endpoint::{Datagram, Endpoint};
use crate::sender::earliest;
use config::Sizing;
use weir_cc::tunable::SetupError;
use weir_dccp::ccid::Chunk;
use weir_dccp::connection::{self, Connection, SendError, State};
use weir_dccp::queue::{Message, QueueConfig, QueuePolicy};
use weir_fec::Importance;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// A DCCP packet that is to leave by UDP; its bytes are in the buffer that the caller gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DccpTransmit {
    /// What there is to say of it as a datagram.
    pub transmit: connection::Transmit,
    /// Whether it carries RTP or RTCP rather than being DCCP's own.
    pub has_data: bool,
}

/// What became of the session's packets on their way into the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DccpCounters {
    /// Frames handed over, of which at least a packet was.
    pub frames: u64,
    /// Of these with refused packets, or with packets dropped from the queue since the frame before.
    pub frames_rejected: u64,
    /// RTP packets that the connection has taken.
    pub accepted: u64,
    /// RTP packets that its queue refused.
    pub rejected: u64,
    /// Frames whose first packet its queue refused.
    pub first_rejected: u64,
    /// RTP packets longer than a packet may be.
    pub too_long: u64,
    /// Packets, RTCP's too, for a connection that takes none any more.
    pub unsent: u64,
    /// RTCP datagrams that the connection has taken.
    pub rtcp: u64,
    /// RTCP datagrams that waited until a newer one took their place.
    pub rtcp_replaced: u64,
    /// Empty datagrams sent to keep bindings.
    pub keep_alives: u64,
    /// Times that the queue was made longer ...
    pub queue_grown: u64,
    /// ... and shorter.
    pub queue_shrunk: u64,
}

/// The frame that is being handed over.
#[derive(Clone, Copy, Debug)]
struct HandOver {
    rtp_timestamp: u32,
    importance: u8,
    deadline: Option<Timestamp>,
    /// No packet of it has been handed over yet.
    first: bool,
    refused: u32,
}

/// See the top of this module.
pub struct DccpEnd {
    config: DccpConfig,
    endpoint: Endpoint,
    connection: Connection,
    sizing: Option<Sizing>,
    frame: Option<HandOver>,
    buffer: Vec<u8>,
    /// An RTCP datagram that waits for room.
    rtcp: Vec<u8>,
    paused: bool,
    open: bool,
    leaving: bool,
    max_packet_size: DataSize,
    last_rate: Option<Timestamp>,
    last_sent: Timestamp,
    /// What the queue had dropped when the controller last heard of it.
    dropped: u64,
    counters: DccpCounters,
}

/// Importance in the send queue: RTCP is little and others wait for it.
const RTCP_IMPORTANCE: u8 = u8::MAX;

/// Importance in the send queue of media's.
fn importance(of: Importance) -> u8 {
    match of {
        Importance::Key => 2,
        Importance::Reference => 1,
        Importance::Other => 0,
    }
}

impl DccpEnd {
    /// An end on a connection that is open or will be. Packets of media are made to fit the connection's.
    pub fn new(endpoint: Endpoint, connection: Connection, config: DccpConfig, now: Timestamp) -> Self {
        let mut end = Self {
            config,
            endpoint,
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
        end.endpoint.set_paused(true);
        end.follow_connection(now);
        end
    }

    /// An end that connects.
    ///
    /// # Errors
    /// As [`Connection::connect`].
    pub fn connect(
        endpoint: Endpoint,
        connection: connection::Config,
        config: DccpConfig,
        now: Timestamp,
    ) -> Result<Self, SetupError> {
        Ok(Self::new(endpoint, Connection::connect(connection, now)?, config, now))
    }

    /// The session.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
    /// The session to change. Pause it by [`Self::set_paused`].
    pub fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }
    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
    /// The connection to change.
    pub fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
    /// Another connection in place of one that has ended, which it gives. Media waits until it is open.
    pub fn set_connection(&mut self, connection: Connection, now: Timestamp) -> Connection {
        let before = core::mem::replace(&mut self.connection, connection);
        self.frame = None;
        self.max_packet_size = DataSize::ZERO;
        (self.open, self.dropped) = (false, 0);
        self.follow_connection(now);
        self.endpoint.set_paused(self.paused || !self.open);
        before
    }
    /// What became of packets on their way into the connection.
    pub fn counters(&self) -> DccpCounters {
        self.counters
    }
    /// Whether media may flow.
    pub fn is_open(&self) -> bool {
        self.open
    }
    /// Stops or restarts the media source; RTCP goes on.
    pub fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
        self.endpoint.set_paused(paused || !self.open);
    }
    /// Ends the call: an RTCP goodbye leaves, and then the connection closes.
    pub fn leave(&mut self) {
        self.endpoint.leave();
        self.leaving = true;
    }

    /// A UDP datagram has arrived.
    pub fn handle_datagram(&mut self, now: Timestamp, datagram: &connection::Datagram<'_>) {
        self.connection.handle_datagram(now, datagram);
        while let Some(received) = self.connection.receive(&mut self.buffer) {
            // Empty ones keep bindings.
            if !self.buffer.is_empty() {
                let (payload, ecn) = (received.payload, received.ecn);
                self.endpoint.handle_datagram(now, &Datagram { bytes: &self.buffer, payload, ecn });
            }
        }
        self.follow_connection(now);
    }

    /// The deadline has come.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.connection.handle_timeout(now);
        self.follow_connection(now);
        self.endpoint.handle_timeout(now);
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut at = self.connection.poll_timeout(now);
        earliest(&mut at, self.endpoint.poll_timeout(now));
        if self.open {
            earliest(&mut at, self.config.keep_alive.map(|t| self.last_sent + t));
        }
        at
    }

    /// Writes the next datagram into `out`, in place of what is there; `None` where nothing is due. Call it until it gives nothing, after
    /// every input.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<DccpTransmit> {
        loop {
            if let Some(transmit) = self.connection.poll_transmit(now, out) {
                let has_data = transmit.size.as_bytes() > transmit.header as u64;
                return Some(DccpTransmit { transmit, has_data });
            }
            if !self.hand_over(now) {
                return None;
            }
        }
    }

    /// Follows what the connection has come to.
    fn follow_connection(&mut self, now: Timestamp) {
        let open = matches!(self.connection.state(), State::PartOpen | State::Open);
        if open != self.open {
            self.open = open;
            self.last_sent = now;
            self.endpoint.set_paused(self.paused || !open);
            if open && !self.paused {
                self.endpoint.request_key_frame(now);
            }
        }
        let max = self.connection.max_packet_size();
        if max != self.max_packet_size {
            self.max_packet_size = max;
            self.endpoint.limit_packet_size(max);
        }
    }

    /// Hands one packet of the session over; `false` where there is none.
    fn hand_over(&mut self, now: Timestamp) -> bool {
        if !self.rtcp.is_empty() && self.has_room() {
            let rtcp = core::mem::take(&mut self.rtcp);
            self.send_rtcp(now, &rtcp);
            self.rtcp = rtcp;
            self.rtcp.clear();
            return true;
        }
        self.begin_frame(now);
        let Some(t) = self.endpoint.poll_transmit(now, &mut self.buffer) else {
            return self.on_nothing(now);
        };
        self.last_sent = now;
        if t.is_rtp {
            self.send_rtp(now, t.payload);
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
    fn on_nothing(&mut self, now: Timestamp) -> bool {
        if self.leaving && self.rtcp.is_empty() && self.endpoint.has_left() {
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
    /// Whether the connection takes nothing any more.
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

    fn send_rtp(&mut self, now: Timestamp, payload: u32) {
        // What goes beside media, or as padding, can be missed first.
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
                self.endpoint.on_not_sent(size);
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
        let next = self.endpoint.next_media().map(|p| p.rtp_timestamp);
        if self.frame.is_some_and(|f| next != Some(f.rtp_timestamp)) {
            self.end_frame(now);
        }
    }

    /// The next frame comes to the front of the session's queue.
    fn begin_frame(&mut self, now: Timestamp) {
        let Some(next) = self.endpoint.next_media().copied() else { return };
        if self.frame.is_some_and(|f| f.rtp_timestamp == next.rtp_timestamp) {
            return;
        }
        // What was left of the frame before was thrown away.
        self.end_frame(now);
        let (packets, size, interval) = self.endpoint.next_frame(now);
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

    /// All of a frame has been handed over: the controller hears how that went.
    fn end_frame(&mut self, now: Timestamp) {
        let Some(frame) = self.frame.take() else { return };
        let queue = self.connection.queue().counters();
        let dropped = queue.displaced + queue.expired;
        let news = dropped.saturating_sub(core::mem::replace(&mut self.dropped, dropped));
        let packets = frame.refused.saturating_add(u32::try_from(news).unwrap_or(u32::MAX));
        if packets > 0 {
            self.counters.frames_rejected += 1;
            self.endpoint.on_send_rejected(packets, now);
        }
        let due = self.last_rate.is_none_or(|t| now.saturating_since(t) >= self.config.rate_interval);
        if due && let Some(rate) = self.connection.rate() {
            self.last_rate = Some(now);
            let smoothed = self.connection.smoothed_rate().unwrap_or(rate);
            self.endpoint.on_transport_rate(rate, smoothed, self.connection.rtt(), now);
        }
    }
}
