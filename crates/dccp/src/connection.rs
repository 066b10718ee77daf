//! One end of a connection (RFC 4340, section 8).
//!
//! A [`Connection`] takes datagrams, the time and the application's requests, and returns datagrams, a deadline and
//! received data. After each input, call [`Connection::poll_transmit`] until it returns `None`, then
//! [`Connection::poll_timeout`].
//!
//! Where the RFC leaves a choice:
//! - Requests and Responses carry no data of this end; data on the other end's is dropped with Drop Code 0
//!   (section 8.1.3).
//! - Data in the send queue is sent before the connection closes, for at most [`Config::give_up_after`]; after
//!   [`Connection::close`], received data is dropped with Drop Code 1 (sections 8.3 and 11.7.2).
//! - A server acknowledges the packet that opens it, and Acks that acknowledge only its Response: the fourth packet of
//!   section 8.1's figure. Section 8.5 leaves that to data, without which a client would give up in PARTOPEN.
//! - GSR and GAR are of packets that pass step 7, by sections 7.1 and 7.4; section 8.5's step 6 also counts earlier
//!   ones.
//! - A server closes by CloseReq, so that the client holds TIMEWAIT (section 8.3).
//! - Syncs in reply to invalid packets are sent at most eight times per second, as section 7.5.4 suggests, and so are
//!   Resets of a connection that has ended.
//! - The stricter checks of Syncs on active connections are made (section 7.5.3); those of Close, CloseReq and Reset,
//!   which the RFC calls experimental, are not.
//! - Invalid packets are not kept for later (section 7.5.4).
//! - The Sequence Window widens by itself to five times the packets of a round trip (section 7.5.2).
//! - If short sequence numbers are negotiated, they are used with windows of up to 2^14 and with up to 2^23 packets
//!   within two maximum segment lifetimes (section 7.6.2).
//! - Data that the other end reports dropped with Drop Code 0 delays the next data by a round trip; Drop Code 1 stops
//!   data for good (section 11.7.2).
//! - If the path's MTU decreases, longer datagrams in the send queue are sent unchanged and may be fragmented
//!   (section 14.2).
//! - Data, Ack and DataAck packets are sent as ECT(0) if both ends and the CCID agree, all others as not ECN-capable.
//!   The ECN nonce (section 12.2) is neither sent nor verified, and Nonce Echoes are zero: RFC 3540 is historic, and
//!   ECT(1) has another meaning since RFC 8311.
//! - Without any other measurement the round-trip time is assumed to be 200 ms (section 3.4).
//!
//! A connection is one state machine; its two half-connections' CCIDs plug in by number, built-in ones by enum, others
//! by trait object. Ack Vectors, features, timestamps and the send queue are the connection's, since all CCIDs share
//! them.

mod ccids;
mod close;
mod dropped;
mod incoming;
mod incoming_packet;
pub(crate) mod limit;
mod mtu;
mod open;
mod options;
mod outgoing;
mod receive_queue;
mod reset;
mod sent;
mod sequence;
mod state;
mod timers;
mod timing;

#[cfg(test)]
pub(crate) mod tests;

pub use crate::config::{Ccids, Config};
pub use open::AcceptError;
pub use reset::reset_for;
pub use state::{Counters, Datagram, End, EndReason, Received, Role, SendError, State, Transmit};

use crate::ccid::{CcidReceiver, CcidSender, Chunk};
use crate::data_dropped::DropCode;
use crate::feature::{Location, Negotiation};
use crate::option::FeatureNumber;
use crate::queue::{Message, QueueConfig, SendQueue};
use weir_units::{DataRate, DataSize, Seq48, TimeDelta, Timestamp};

/// Round-trip time if none has been measured (RFC 4340, section 3.4).
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Syncs per second in reply to invalid packets (RFC 4340, section 7.5.4).
const SYNCS_PER_SECOND: u32 = 8;
/// SyncAcks per second.
const SYNC_ACKS_PER_SECOND: u32 = 64;
/// Resets per second for packets of a connection that has ended or not begun.
const RESETS_PER_SECOND: u32 = 8;

/// See the module documentation.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    role: Role,
    state: State,
    end: Option<End>,
    sequences: sequence::Sequences,
    seen: sequence::Seen,
    features: Negotiation,
    halves: ccids::Halves,
    queue: SendQueue,
    received: receive_queue::ReceiveQueue,
    dropped: dropped::Dropped,
    timing: timing::Timing,
    timers: timers::Timers,
    mtu: mtu::PathMtu,
    due: outgoing::Due,
    sending: outgoing::Sending,
    /// Init Cookies of the Response, option by option with their lengths in front, to be given back (section 8.1.4).
    cookies: Vec<u8>,
    /// The cookies kept are those of the Response being processed.
    cookies_of_this_response: bool,
    syncs: limit::RateLimit,
    sync_acks: limit::RateLimit,
    resets: limit::RateLimit,
    /// The application accepts no more data.
    deaf: bool,
    /// The other end's application accepts no more data (Drop Code 1).
    peer_deaf: bool,
    /// The error text of the other end's Reset.
    reset_text: Box<str>,
    slow_receiver: bool,
    peer_slow_at: Option<Timestamp>,
    counters: Counters,
}

impl Connection {
    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }
    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }
    /// Its configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Why it has ended; `None` until then.
    pub fn end(&self) -> Option<End> {
        self.end
    }
    /// The error text of the other end's Reset (RFC 4340, section 5.6), its first 256 bytes; usually empty.
    pub fn reset_text(&self) -> &str {
        &self.reset_text
    }
    /// Its counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }
    /// The send queue.
    pub fn queue(&self) -> &SendQueue {
        &self.queue
    }
    /// Changes how the send queue works.
    pub fn set_queue(&mut self, config: QueueConfig) {
        self.queue.set_config(config);
    }
    /// Maximum size of a datagram for [`Self::send`].
    pub fn max_packet_size(&self) -> DataSize {
        self.mtu.max_packet_size()
    }
    /// CCIDs of the data sent and received, once they are negotiated.
    pub fn ccids(&self) -> Option<(u8, u8)> {
        self.halves.numbers
    }
    /// The rate at which congestion control permits data, if it is known.
    pub fn rate(&self) -> Option<DataRate> {
        self.halves.sender.as_ref()?.rate()
    }
    /// The same, smoothed for an application to follow.
    pub fn smoothed_rate(&self) -> Option<DataRate> {
        self.halves.sender.as_ref()?.smoothed_rate()
    }
    /// Round-trip time, by congestion control or else by the handshake and timestamps.
    pub fn rtt(&self) -> Option<TimeDelta> {
        self.halves.sender.as_ref().and_then(CcidSender::rtt).or(self.timing.rtt)
    }
    fn rtt_or_default(&self) -> TimeDelta {
        self.rtt().unwrap_or(DEFAULT_RTT)
    }
    /// Internals by name, for plots.
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let Some(sender) = &self.halves.sender {
            sender.metrics(out);
        }
        if let Some(receiver) = &self.halves.receiver {
            receiver.metrics(out);
        }
        out("send_queue", self.queue.len() as f64);
    }

    /// Queues a datagram. It waits in the send queue until the connection is open and congestion control permits it.
    ///
    /// # Errors
    /// See [`SendError`].
    pub fn send(&mut self, now: Timestamp, message: &Message<'_>) -> Result<(), SendError> {
        if self.state > State::Open || self.state == State::Closed || self.timers.linger.is_some() || self.peer_deaf {
            return Err(SendError::Closed);
        }
        let (size, max) = (message.size(), self.max_packet_size());
        if size > max {
            return Err(SendError::TooLong { size, max });
        }
        if self.queue.push(now, message) { Ok(()) } else { Err(SendError::WouldBlock) }
    }
    /// Announces a chunk of data submitted at once, such as a frame; for CCIDs that use chunks.
    pub fn on_chunk(&mut self, chunk: Chunk) {
        if let Some(sender) = &mut self.halves.sender {
            sender.on_chunk(&chunk);
        }
    }
    /// Writes the oldest received datagram into `out`, replacing its contents.
    pub fn receive(&mut self, out: &mut Vec<u8>) -> Option<Received> {
        self.received.pop(out)
    }
    /// Requests another value of a feature: those that this end accepts, in order of preference (RFC 4340, section 6).
    /// Returns `false` if the feature is unknown, a value is invalid, or only the other end may change it. CCIDs are
    /// fixed when the connection opens.
    pub fn change_feature(&mut self, location: Location, number: FeatureNumber, values: &[u64]) -> bool {
        number != FeatureNumber::CCID && self.features.change(location, number, values)
    }
    /// The value of a feature, as known to this end.
    pub fn feature(&self, location: Location, number: FeatureNumber) -> u64 {
        match location {
            Location::Local => self.features.local(number),
            Location::Remote => self.features.remote(number),
        }
    }
    /// Reports to the other end that a received datagram was dropped here, and why (section 11.7): the application had
    /// no room for it, or its own checksum was wrong. The first report of a packet is kept, and a report is useful for
    /// a round trip or two only. [`DropCode::APPLICATION_NOT_LISTENING`] implies [`Self::stop_receiving`].
    pub fn report_dropped(&mut self, sequence: Seq48, code: DropCode) {
        if sequence.is_within(self.sequences.swl(), self.sequences.gsr) {
            self.dropped.on_dropped(sequence, code);
            self.deaf |= code == DropCode::APPLICATION_NOT_LISTENING;
        }
    }
    /// Accepts no more data: received data is dropped, which is reported to the other end (Drop Code 1;
    /// section 11.7.2).
    pub fn stop_receiving(&mut self) {
        self.deaf = true;
    }
    /// Signals to the other end that this one cannot keep up, until reset (Slow Receiver, section 11.6). A receive
    /// queue more than half full is signalled automatically.
    pub fn set_slow_receiver(&mut self, slow: bool) {
        self.slow_receiver = slow;
    }
    /// Whether the other end has signalled within a round trip that it cannot keep up.
    pub fn peer_is_slow(&self, now: Timestamp) -> bool {
        self.peer_slow_at.is_some_and(|t| now.saturating_since(t) <= self.rtt_or_default())
    }
    /// Whether the other end has reported that its application accepts no more data.
    pub fn peer_has_stopped_receiving(&self) -> bool {
        self.peer_deaf
    }
}
