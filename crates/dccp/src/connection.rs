//! One end of a connection (RFC 4340, section 8).
//!
//! A [`Connection`] takes datagrams, the time and the application's requests, and returns datagrams, a deadline and what has arrived
//! out. After each input, call [`Connection::poll_transmit`] until it gives nothing, then [`Connection::poll_timeout`].
//!
//! Where the RFC leaves a choice:
//! - Requests and Responses carry no data of this end's; data on the other end's are dropped with Drop Code 0 (section 8.1.3).
//! - What waits in the send queue leaves before the connection closes, for at most [`Config::give_up_after`]; from
//!   [`Connection::close`] on, data that come are dropped with Drop Code 1 (sections 8.3 and 11.7.2).
//! - A server acknowledges the packet that opens it, and Acks that know of its Response only: the fourth packet of section 8.1's
//!   figure. Section 8.5 leaves that to data, without which a client would give up in PARTOPEN.
//! - GSR and GAR are of packets that pass step 7, by sections 7.1 and 7.4; section 8.5's step 6 counts those before it too.
//! - A server closes by CloseReq, so that the client holds TIMEWAIT (section 8.3).
//! - Syncs that answer invalid packets leave at most eight times a second, as section 7.5.4 suggests, Resets of a connection that
//!   has ended likewise.
//! - The more stringent checks of Syncs on active connections are made (section 7.5.3), those of Close, CloseReq and Reset, which
//!   the RFC calls experimental, are not.
//! - Invalid packets are not kept for later (section 7.5.4).
//! - The Sequence Window widens by itself to five times the packets of a round trip (section 7.5.2).
//! - Where short sequence numbers are agreed on, packets have them up to windows of 2^14 and 2^23 packets within two maximum
//!   segment lifetimes (section 7.6.2).
//! - Data that the other end reports dropped with Drop Code 0 hold the next data back for a round trip, with Drop Code 1 for good
//!   (section 11.7.2).
//! - Where the path's MTU falls, datagrams of the send queue that are longer than it now allows leave as they are, and may be
//!   fragmented (section 14.2).
//! - Data, Ack and DataAck packets leave as ECT(0) where both ends and the CCID agree, all others as not ECN-capable. The ECN
//!   nonce (section 12.2) is neither sent nor verified, and Nonce Echoes are zero: RFC 3540 is historic, and ECT(1) has another
//!   meaning since RFC 8311.
//! - Without any other measurement the round-trip time is taken as 200 ms (section 3.4).

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

/// Round-trip time where none has been measured (RFC 4340, section 3.4).
const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
/// Syncs a second in answer to invalid packets (RFC 4340, section 7.5.4).
const SYNCS_PER_SECOND: u32 = 8;
/// SyncAcks a second.
const SYNC_ACKS_PER_SECOND: u32 = 64;
/// Resets a second for packets of a connection that has ended or not begun.
const RESETS_PER_SECOND: u32 = 8;

/// See the top of this module.
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
    /// The cookies kept are of the Response that is processed now.
    cookies_of_this_response: bool,
    syncs: limit::RateLimit,
    sync_acks: limit::RateLimit,
    resets: limit::RateLimit,
    /// The application takes no more data.
    deaf: bool,
    /// The other end's application takes no more data (Drop Code 1).
    peer_deaf: bool,
    /// What the other end's Reset says in words.
    reset_text: Box<str>,
    slow_receiver: bool,
    peer_slow_at: Option<Timestamp>,
    counters: Counters,
}

impl Connection {
    /// Where it is in its life.
    pub fn state(&self) -> State {
        self.state
    }
    /// Which end it is.
    pub fn role(&self) -> Role {
        self.role
    }
    /// What it was made from.
    pub fn config(&self) -> &Config {
        &self.config
    }
    /// Why it has ended; `None` until then.
    pub fn end(&self) -> Option<End> {
        self.end
    }
    /// What the other end's Reset says in words (RFC 4340, section 5.6), its first 256 bytes; mostly nothing.
    pub fn reset_text(&self) -> &str {
        &self.reset_text
    }
    /// What it has seen and done.
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
    /// Most bytes of a datagram that [`Self::send`] takes.
    pub fn max_packet_size(&self) -> DataSize {
        self.mtu.max_packet_size()
    }
    /// CCIDs of what this end sends and receives, once they are agreed.
    pub fn ccids(&self) -> Option<(u8, u8)> {
        self.halves.numbers
    }
    /// The rate at which congestion control lets data leave, where it is known.
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

    /// Hands a datagram over. It waits in the send queue until the connection is open and congestion control lets it leave.
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
    /// A chunk of data is handed over at once, such as a frame; for CCIDs that know of chunks.
    pub fn on_chunk(&mut self, chunk: Chunk) {
        if let Some(sender) = &mut self.halves.sender {
            sender.on_chunk(&chunk);
        }
    }
    /// Writes the oldest datagram received into `out`, in place of what is there.
    pub fn receive(&mut self, out: &mut Vec<u8>) -> Option<Received> {
        self.received.pop(out)
    }
    /// Asks for another value of a feature: those that this end takes, the best first (RFC 4340, section 6). `false` where the
    /// feature is not known, a value is not valid, or the other end alone may change it. CCIDs are settled when the connection opens.
    pub fn change_feature(&mut self, location: Location, number: FeatureNumber, values: &[u64]) -> bool {
        number != FeatureNumber::CCID && self.features.change(location, number, values)
    }
    /// The value of a feature, as far as this end knows it.
    pub fn feature(&self, location: Location, number: FeatureNumber) -> u64 {
        match location {
            Location::Local => self.features.local(number),
            Location::Remote => self.features.remote(number),
        }
    }
    /// Reports to the other end that a datagram received was dropped here, and why (section 11.7): the application had
    /// no room for it, or its own checksum was wrong. The first report of a packet stays, and a report is of use for a round trip or
    /// two only. [`DropCode::APPLICATION_NOT_LISTENING`] is [`Self::stop_receiving`] too.
    pub fn report_dropped(&mut self, sequence: Seq48, code: DropCode) {
        if sequence.is_within(self.sequences.swl(), self.sequences.gsr) {
            self.dropped.on_dropped(sequence, code);
            self.deaf |= code == DropCode::APPLICATION_NOT_LISTENING;
        }
    }
    /// Takes no more data: those that arrive are dropped, which is reported to the other end (Drop Code 1; section 11.7.2).
    pub fn stop_receiving(&mut self) {
        self.deaf = true;
    }
    /// Reports to the other end that this one has trouble to keep up, until set back (Slow Receiver, section 11.6). A
    /// receive queue more than half full is reported by itself.
    pub fn set_slow_receiver(&mut self, slow: bool) {
        self.slow_receiver = slow;
    }
    /// Whether the other end has said within a round trip that it has trouble to keep up.
    pub fn peer_is_slow(&self, now: Timestamp) -> bool {
        self.peer_slow_at.is_some_and(|t| now.saturating_since(t) <= self.rtt_or_default())
    }
    /// Whether the other end has said that its application takes no more data.
    pub fn peer_has_stopped_receiving(&self) -> bool {
        self.peer_deaf
    }
}
